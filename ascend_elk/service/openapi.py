"""The description of the API: ``openapi.yml``, with the version and the event's fields filled in."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from ascend_elk import __version__
from ascend_elk.enrich import READ_FIELDS
from ascend_elk.formats.fields import load_fields

# Elasticsearch's types, as JSON writes them.
_JSON_TYPES = {"long": "integer", "double": "number", "boolean": "boolean"}
# Fields that hold a list.
_LISTS = frozenset(name for name, kind in READ_FIELDS.items() if kind == "texts")


@lru_cache(maxsize=4)
def document(max_body: int) -> dict[str, Any]:
    """The OpenAPI document.

    Args:
        max_body: bytes of a request body that the service takes.
    """
    described: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "openapi.yml").read_text("utf-8"))
    described["info"]["version"] = __version__
    described["paths"]["/v1/enrich"]["post"]["requestBody"]["description"] = f"At most {max_body:,} bytes."
    described["components"]["schemas"]["Event"]["properties"] = _event_properties()
    return described


def _event_properties() -> dict[str, Any]:
    """The fields that are read or set, from the one list of fields."""
    properties = {}
    for item in load_fields():
        if (
            item.name not in READ_FIELDS
            and not item.name.startswith("ascend.error.")
            and item.name != "error.code"
        ):
            continue
        schema: dict[str, Any] = {"type": _JSON_TYPES.get(item.type, "string")}
        if item.name in _LISTS:
            schema = {"type": ["array", "string"], "items": schema}
        properties[item.name] = {**schema, "description": item.meaning}
    return properties
