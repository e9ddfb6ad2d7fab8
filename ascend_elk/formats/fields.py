"""The fields of an event: the one list behind docs/fields.md and Elasticsearch's mapping."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

from ascend_elk.content import content_dir
from ascend_elk.formats.definitions import read_yaml

# Length up to which keywords are searched, where a field says nothing else.
KEYWORD_LIMIT = 256


class EventField(BaseModel):
    """A field.

    Attributes:
        name: dotted.
        type: of Elasticsearch; ``stored`` is kept but not searched.
        meaning: for people.
        limit: characters up to which a keyword is searched.
        indexed: whether searches go by an index; else values are sorted and shown, and searched one by one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    type: Literal[
        "keyword",
        "constant_keyword",
        "match_only_text",
        "long",
        "double",
        "boolean",
        "date",
        "date_nanos",
        "stored",
    ]
    meaning: str
    limit: int = KEYWORD_LIMIT
    indexed: bool = True


@lru_cache(maxsize=1)
def load_fields() -> tuple[EventField, ...]:
    """Read ``grok/fields.yml``."""
    return TypeAdapter(tuple[EventField, ...]).validate_python(read_yaml(content_dir("grok") / "fields.yml"))


def fields_table() -> str:
    """The list as a Markdown table."""
    rows = ["| field | type | meaning |", "|---|---|---|"]
    rows += [
        f"| `{item.name}` | {'not indexed' if item.type == 'stored' else item.type} | {item.meaning} |"
        for item in load_fields()
    ]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(fields_table(), end="")
