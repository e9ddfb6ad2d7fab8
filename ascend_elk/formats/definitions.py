"""The shape of the content under ``grok/``, and its loading."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ascend_elk.cann import VersionRange
from ascend_elk.content import content_dir
from ascend_elk.errors import UserError
from ascend_elk.formats.grok import GrokLibrary

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # libyaml is not everywhere
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]  # the same interface

Fields = dict[str, Any]


_Model = TypeVar("_Model", bound=BaseModel)


class _Content(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Versioned(_Content):
    since: str | None = None
    until: str | None = None

    @property
    def versions(self) -> VersionRange:
        return VersionRange.of(self.since, self.until)


class LineSample(_Content):
    """A line that a format must match (or must not), with the fields expected."""

    line: str
    fields: Fields = {}
    unmatched: bool = False


class MessageSample(_Content):
    """A message that a body style or an extractor must match; ``not`` ones must give nothing."""

    message: str | None = None
    fields: Fields = {}
    unmatched: str | None = Field(None, alias="not")
    module: str | None = None


class LineFormat(_Versioned):
    r"""How a line begins.

    ``header`` is anchored and captures ``message`` unless ``whole`` makes the record itself the message.
    ``starts`` lists the characters it can begin with. ``time`` names how ``ascend.clock.written`` is written.
    ``head`` is a first part of the header that many lines of a file share, up to its first ``head_end``.
    """

    name: str
    starts: str = ""
    head: str = ""
    head_end: str = ""
    header: str
    time: Literal["plog", "plog-seconds", "iso", "slash", "glog", "month-day", "syslog"] | None = None
    level: str | None = None
    bodies: str | None = None
    whole: bool = False
    set: Fields = {}
    samples: tuple[LineSample, ...] = Field(min_length=1)

    @property
    def pattern(self) -> str:
        """The whole header."""
        return self.head + self.header


class BodyStyle(_Versioned):
    """What follows a header; ``modules`` are those that write so, empty for a fallback.

    An ``exclusive`` style is too loose for other modules.
    """

    name: str
    modules: tuple[str, ...]
    exclusive: bool = False
    pattern: str
    samples: tuple[MessageSample, ...] = Field(min_length=1)


class Prefix(_Content):
    """What others put in front of a line; with ``needs_header`` it counts only before a known header."""

    name: str
    starts: str = ""
    contains: str = ""
    needs_header: bool = False
    pattern: str
    samples: tuple[LineSample, ...] = Field(min_length=1)


class CodeRule(_Content):
    """Where the capture ``code`` of an extractor goes."""

    family: str
    normalise: Literal["upper", "lower", "hex", "hex8", "hex16", "triple"] | None = None


class Extractor(_Versioned):
    """A fact pulled out of a message that holds one of the literals.

    ``pattern`` is searched in the message. Where a match always starts with one of the literals, ``follows``
    is written instead, the pattern of what comes after it; ``pattern`` is then made of both.
    """

    name: str
    contains: tuple[str, ...] = Field(min_length=1)
    modules: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    pattern: str | None = None
    follows: str | None = None
    scale: dict[str, float] = {}
    set: Fields = {}
    signal: tuple[str, ...] = ()
    code: CodeRule | None = None
    all: bool = False
    samples: tuple[MessageSample, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _compose(self) -> Extractor:
        if self.follows is not None:
            if self.pattern is not None:
                raise ValueError("give pattern or follows, not both")
            literals = "|".join(re.sub(r"([\\.^$|?*+()\[\]{}])", r"\\\1", text) for text in self.contains)
            object.__setattr__(self, "pattern", f"(?:{literals}){self.follows}")
        return self


class SourcePath(_Versioned):
    """Where files of a source lie: ``glob`` below the ``root`` kind, ``pattern`` over the end of the path.

    ``dissect`` reads the ids of ``pattern`` by literal text alone, which is all that Filebeat does cheaply.
    """

    layout: str
    root: str
    glob: str
    pattern: str
    dissect: str | None = None
    samples: tuple[dict[str, Any], ...] = ()


class Source(_Content):
    """A kind of log file."""

    name: str
    dataset: str
    framing: Literal["header", "continuation"] = "header"
    continuation: tuple[str, ...] = ()
    clock: Literal["host", "device"] = "host"
    formats: tuple[str, ...]
    paths: tuple[SourcePath, ...] = ()


class HeadlineRule(_Content):
    """A place in the order in which ``error.code`` is chosen."""

    family: str
    pattern: str | None = None
    note: str | None = None


class Levels(_Content):
    """Numbers and spellings of levels."""

    severity: dict[str, int]
    spellings: dict[str, dict[str, str]]


@dataclass(frozen=True)
class Definitions:
    """All of ``grok/``, of all versions."""

    grok: GrokLibrary
    formats: dict[str, LineFormat]
    bodies: dict[str, tuple[BodyStyle, ...]]
    prefixes: tuple[Prefix, ...]
    extractors: tuple[Extractor, ...]
    sources: dict[str, Source]
    layers: dict[str, str]
    levels: Levels
    headline: tuple[HeadlineRule, ...]


def read_yaml(path: Path) -> Any:
    """Read one YAML file of the content or of a user.

    Raises:
        UserError: it cannot be read or is no YAML; the sentence names file, line and reason.
    """
    try:
        return yaml.load(path.read_text("utf-8"), Loader=_Loader)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({error})") from error
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error


def _read_list(path: Path, model: type[_Model]) -> tuple[_Model, ...]:
    items = read_yaml(path)
    try:
        return tuple(model.model_validate(item) for item in items or ())
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UserError(f"{path}: {place}: {first['msg']}") from error


@lru_cache(maxsize=2)
def load_definitions(directory: Path | None = None) -> Definitions:
    """Load ``grok/``.

    Args:
        directory: another content directory of the same shape.

    Raises:
        UserError: a file does not fit its schema.
        GrokError: a pattern is wrong.
    """
    root = directory or content_dir("grok")
    formats: dict[str, LineFormat] = {}
    bodies: dict[str, tuple[BodyStyle, ...]] = {}
    for path in sorted((root / "formats").glob("*.yml")):
        if path.stem.endswith("-bodies"):
            bodies[path.stem.removesuffix("-bodies")] = _read_list(path, BodyStyle)
        else:
            formats |= {item.name: item for item in _read_list(path, LineFormat)}
    extractors: list[Extractor] = []
    for path in sorted((root / "extractors").glob("*.yml")):
        extractors += _read_list(path, Extractor)
    sources = {
        source.name: source
        for source in (Source.model_validate(read_yaml(p)) for p in sorted((root / "sources").glob("*.yml")))
    }
    return Definitions(
        grok=GrokLibrary.load(root / "patterns"),
        formats=formats,
        bodies=bodies,
        prefixes=_read_list(root / "prefixes.yml", Prefix),
        extractors=tuple(extractors),
        sources=sources,
        layers=read_yaml(root / "modules.yml"),
        levels=Levels.model_validate(read_yaml(root / "levels.yml")),
        headline=_read_list(root / "headline.yml", HeadlineRule),
    )
