"""What one event gains: pure, from its fields to the fields to write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ascend_elk.codes import Catalogue
from ascend_elk.enrich import enrich
from ascend_elk.service.queries import MARK

Fields = dict[str, Any]

# What an earlier catalogue may have written and a later one does not.
_OURS = tuple(
    f"ascend.error.{name}"
    for name in (
        "category",
        "layer",
        "severity",
        "meaning",
        "remediation",
        "meaning_zh",
        "remediation_zh",
        "reference",
    )
)


def flat(document: Mapping[str, Any]) -> Fields:
    """Dotted names for nested objects; fields without a value are left out, the message is text."""
    found: Fields = {}
    _flatten(document, "", found)
    message = found.get("message")
    if isinstance(message, str) and not message.isascii():
        # Half of a surrogate pair is no text for those who look for something in it.
        found["message"] = message.encode("utf-8", "replace").decode()
    return found


def _flatten(document: Mapping[str, Any], prefix: str, found: Fields) -> None:
    for name, value in document.items():
        if isinstance(value, dict):
            _flatten(value, f"{prefix}{name}.", found)
        elif value is not None:
            found[prefix + name] = value


def gain(fields: Fields, catalogue: Catalogue, identity: Mapping[str, Any]) -> Fields:
    """What to write on an event.

    Args:
        fields: of the event.
        catalogue: in force.
        identity: what is known of its process, as ``Registry.identify`` gives it.

    Returns:
        The fields that differ; ``None`` for those that an earlier catalogue wrote and that no longer hold.
        Empty where the event has all of it, the version of the catalogue included.
    """
    wanted: Fields = {name: None for name in _OURS if name in fields}
    wanted.update(enrich(fields, catalogue))
    wanted[MARK] = catalogue.version
    wanted.update(identity)
    return {name: value for name, value in wanted.items() if fields.get(name) != value}


def is_unknown(fields: Fields, gained: Fields) -> bool:
    """Whether the catalogue lacks the event's code."""
    return "ascend.error.codes" in fields and (
        "ascend.error.meaning" in gained and gained.get("ascend.error.category") is None
    )


def apply(gained: Fields, source: dict[str, Any]) -> None:
    """Change a document, nested as it was read, to hold what its event gains."""
    for name, value in gained.items():
        if name in source:
            # Written with dots, as some shippers do.
            _put(source, name, value)
            continue
        *parents, leaf = name.split(".")
        node = source
        for parent in parents:
            inner = node.get(parent)
            if not isinstance(inner, dict):
                inner = node[parent] = {}
            node = inner
        _put(node, leaf, value)


def _put(node: dict[str, Any], name: str, value: Any) -> None:
    if value is None:
        node.pop(name, None)
    else:
        node[name] = value
