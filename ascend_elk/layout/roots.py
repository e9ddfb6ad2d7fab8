"""Where CANN's log trees begin on a live machine."""

from __future__ import annotations

from functools import lru_cache

from pydantic import BaseModel, ConfigDict, TypeAdapter

from ascend_elk.content import content_dir
from ascend_elk.formats.definitions import read_yaml


class RootEnvironment(BaseModel):
    """An environment variable that moves a root; ``below`` is what CANN appends to its value."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    variable: str
    below: str = ""


class Root(BaseModel):
    """Where the paths of a source begin on a live machine; without directories a person has to say."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    directories: tuple[str, ...] = ()
    environment: tuple[RootEnvironment, ...] = ()


@lru_cache(maxsize=1)
def load_roots() -> dict[str, Root]:
    """Read ``grok/roots.yml``."""
    roots = TypeAdapter(tuple[Root, ...]).validate_python(read_yaml(content_dir("grok") / "roots.yml"))
    return {root.name: root for root in roots}
