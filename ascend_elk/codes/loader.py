"""Reads ``codes/*.yml``; a mistake in a file is named with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from ascend_elk.errors import UserError

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_T = TypeVar("_T", bound=BaseModel)


def read(path: Path, model: type[_T], text: str | None = None) -> _T:
    """Read one file of the catalogue.

    Args:
        path: the file; it is named in errors.
        model: its schema.
        text: its content, where that was read already.

    Raises:
        UserError: the file cannot be read, is no YAML or breaks the schema; says file, line and reason.
    """
    if text is None:
        text = read_text(path)
    try:
        data = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{path}:{line}: not valid YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}:1: not valid YAML: {error}") from None
    if not isinstance(data, dict):
        raise UserError(f"{path}:1: a mapping is expected, for example with the key codes")
    apply_defaults(data)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = tuple(first["loc"])
        name = ".".join(str(part) for part in where)
        reason = str(first["msg"]).removeprefix("Value error, ")
        raise UserError(f"{path}:{line_of(text, where)}: {name}: {reason}") from None


def read_text(path: Path) -> str:
    """Read a file as UTF-8.

    Raises:
        UserError: it cannot be read or is no UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read the catalogue file {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}:1: not UTF-8 at byte {error.start}") from None


def apply_defaults(data: dict[str, Any]) -> None:
    """Give the rows of a code file what they do not say themselves."""
    defaults, rows = data.get("defaults"), data.get("codes")
    if isinstance(defaults, dict) and isinstance(rows, list):
        data["codes"] = [{**defaults, **row} if isinstance(row, dict) else row for row in rows]


def line_of(text: str, where: tuple[int | str, ...]) -> int:
    """Find the line (from 1) of a place in a YAML document; of its nearest parent where it is missing."""
    node = yaml.compose(text, Loader=_Loader)
    line = 1
    for part in where:
        if isinstance(node, yaml.MappingNode):
            pair = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            break
    return line


def item_lines(text: str, key: str) -> list[int]:
    """The lines (from 1) at which the items of a YAML document's list begin; none where it is absent."""
    node = yaml.compose(text, Loader=_Loader)
    lines: list[int] = []
    # Of a key that is written twice the last one counts, as for the loader.
    for name, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if name.value == key and isinstance(value, yaml.SequenceNode):
            lines = [item.start_mark.line + 1 for item in value.value]
    return lines
