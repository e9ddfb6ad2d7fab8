"""The field names of docs/fields.md, and those that content names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

_FIELDS = Path(__file__).parents[2] / "docs" / "fields.md"
_NAME = re.compile(r"`(@?\.?[a-z_][a-z0-9_.]*|@timestamp)`")


@cache
def documented_fields() -> frozenset[str]:
    """Every field in the first column of the tables of docs/fields.md, `.short` forms written out."""
    names: set[str] = set()
    for line in _FIELDS.read_text("utf-8").splitlines():
        if not line.startswith("| `"):
            continue
        cells = line.split("|")
        full = ""
        for name in _NAME.findall(cells[1]):
            if name.startswith("."):
                name = ".".join(full.split(".")[: -name.count(".")]) + name
            else:
                full = name
            names.add(name)
            if "object" in cells[2]:
                names.update(f"{name}{part}" for part in _NAME.findall(cells[3]) if part.startswith("."))
    return frozenset(names)


def fields_of_request(node: Any, parent: str = "") -> Iterator[str]:
    """Every field that a search request names: queries, aggregations, sorts and sources."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "field" and isinstance(value, str):
                yield value
            elif key in ("range", "term", "match", "match_phrase", "prefix") and isinstance(value, dict):
                yield from value
            elif key == "terms" and isinstance(value, dict) and "field" not in value:
                yield from (name for name, given in value.items() if isinstance(given, list))
            elif key in ("_source", "fields") and isinstance(value, list):
                yield from value
            elif key == "sort" and isinstance(value, list):
                for entry in value:
                    yield from entry if isinstance(entry, dict) else [entry]
            else:
                yield from fields_of_request(value, key)
    elif isinstance(node, list):
        for value in node:
            yield from fields_of_request(value, parent)
