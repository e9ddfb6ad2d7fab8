"""The event, flat in-process and nested where it is written out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class Event:
    """One event.

    Attributes:
        fields: dotted field name to value, see docs/fields.md.
        raw: the bytes, line ends included.
        offset: bytes from the start of the (uncompressed) file.
        line: number of the first line, from 1.
    """

    __slots__ = ("fields", "line", "offset", "raw")

    fields: dict[str, Any]
    raw: bytes
    offset: int
    line: int


def nested(fields: dict[str, Any]) -> dict[str, Any]:
    """Turn dotted names into nested objects.

    A program writes few different sets of fields, so the shape of each set is worked out once.
    """
    return _BUILDERS[tuple(fields)](*fields.values())


_Builder = Callable[..., dict[str, Any]]


class _Builders(dict[tuple[str, ...], _Builder]):
    """By the names in order. Asked for every event: the order of use that ``lru_cache`` keeps would cost."""

    def __missing__(self, names: tuple[str, ...]) -> _Builder:
        if len(self) >= _SHAPES:
            self.clear()
        builder = self[names] = _builder(names)
        return builder


_BUILDERS = _Builders()
_SHAPES = 4096


def _builder(names: tuple[str, ...]) -> _Builder:
    tree: dict[str, Any] = {}
    for number, name in enumerate(names):
        *parents, leaf = name.split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[leaf] = number
    arguments = ", ".join(f"v{number}" for number in range(len(names)))
    # Only names of the content reach this text, as literals.
    return eval(f"lambda {arguments}: {_literal(tree)}")  # type: ignore[no-any-return]  # noqa: S307 - as said


def _literal(node: dict[str, Any]) -> str:
    items = (
        f"{key!r}: {_literal(value) if isinstance(value, dict) else f'v{value}'}"
        for key, value in node.items()
    )
    return "{" + ", ".join(items) + "}"
