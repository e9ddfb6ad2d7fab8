"""Adapts what the product renders to the Elasticsearch build that the tests run, here and nowhere else.

The product renders for a full Elasticsearch. The build that the tests run is the same code with modules left
out (tried one by one on 9.4.3):

| a full Elasticsearch | here | put in its place |
|---|---|---|
| `match_only_text` | unknown type | `text` without norms: same matches, larger as it stores positions |
| `constant_keyword` | unknown type | `keyword`: no value for a document that lacks the field |
| `wildcard`, `version` | unknown type | `keyword` |
| `scaled_float` | unknown type | `double` |
| `unsigned_long` | unknown type | `long`: values from 2^63 are refused |
| index lifecycle policies | setting `index.lifecycle.name` refused | left out: policies are not exercised |
| component templates such as `logs@settings` | not there | left out of `composed_of` |
| `index.mode: logsdb` with what the licence allows | synthetic `_source`, which a basic licence lacks | `index.mapping.source.mode: stored`, as a basic licence gives |
| mustache in processors | written as it stands | `copy_from` where a value is one reference, else error |

Data stream lifecycles in templates (`lifecycle`) are accepted and kept, though nothing acts on them. The REST
paths `_data_stream` and `_ilm` don't exist, so data streams can't be deleted: tests use fresh namespaces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Type here, and the parameters of the original type that it doesn't know.
FIELD_TYPES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "match_only_text": ({"type": "text", "norms": False}, set()),
    "constant_keyword": ({"type": "keyword"}, {"value"}),
    "wildcard": ({"type": "keyword"}, set()),
    "version": ({"type": "keyword"}, set()),
    "scaled_float": ({"type": "double"}, {"scaling_factor"}),
    "unsigned_long": ({"type": "long"}, set()),
}
# Of the settings under index.lifecycle only this one is known.
_KNOWN_LIFECYCLE_SETTING = "prefer_ilm"
_BUILT_IN_COMPONENT = re.compile(r"(?:logs|ecs|data-streams|metrics|synthetics)@(?:settings|mappings)")
_REFERENCE = re.compile(r"\{\{\{?\s*&?\s*([^{}\s]+)\s*\}?\}\}")


def template(body: Mapping[str, Any]) -> dict[str, Any]:
    """An index or component template, ready to be put; the argument stays as it is."""
    adapted = dict(body)
    if "composed_of" in adapted:
        adapted["composed_of"] = [
            name for name in adapted["composed_of"] if not _BUILT_IN_COMPONENT.fullmatch(name)
        ]
    inner = dict(adapted.get("template") or {})
    if "mappings" in inner:
        inner["mappings"] = mappings(inner["mappings"])
    if "settings" in inner:
        inner["settings"] = settings(inner["settings"])
    return {**adapted, "template": inner} if "template" in adapted else adapted


def mappings(body: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings with the types that exist here."""
    adapted: dict[str, Any] = dict(_fields_below(body))
    if "dynamic_templates" in adapted:
        adapted["dynamic_templates"] = [
            {
                name: {
                    key: _field(value) if key in ("mapping", "runtime") else value
                    for key, value in rule.items()
                }
                for name, rule in entry.items()
            }
            for entry in adapted["dynamic_templates"]
        ]
    return adapted


def settings(body: Mapping[str, Any]) -> dict[str, Any]:
    """Index settings, nested or dotted, without index lifecycle management; `_source` as it is in a basic licence."""
    adapted: dict[str, Any] = {}
    for name, value in body.items():
        parts = name.split(".")
        if parts[0] == "index":
            parts = parts[1:]
        if not parts and isinstance(value, Mapping):
            adapted[name] = settings(value)
        elif parts == ["lifecycle"] and isinstance(value, Mapping):
            kept = {key: item for key, item in value.items() if key == _KNOWN_LIFECYCLE_SETTING}
            adapted |= {name: kept} if kept else {}
        elif parts[:1] != ["lifecycle"] or parts[1:] == [_KNOWN_LIFECYCLE_SETTING]:
            adapted[name] = value
        if parts == ["mode"] and value == "logsdb":
            adapted |= {f"{name.removesuffix('mode')}mapping.source.mode": "stored"}
    return adapted


def pipeline(body: Mapping[str, Any]) -> dict[str, Any]:
    """An ingest pipeline without mustache.

    Raises:
        NotImplementedError: a reference stands where nothing here can take its place. This build would
            write it out unrendered, and a test would compare the wrong text.
    """
    adapted = dict(body)
    for part in ("processors", "on_failure"):
        if part in adapted:
            adapted[part] = [_processor(processor) for processor in adapted[part]]
    return adapted


def _fields_below(body: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        key: {name: _field(field) for name, field in value.items()}
        if key in ("properties", "fields", "runtime") and isinstance(value, Mapping)
        else value
        for key, value in body.items()
    }


def _field(body: Mapping[str, Any]) -> dict[str, Any]:
    field = dict(_fields_below(body))
    if field.get("type") in FIELD_TYPES:
        replacement, unknown = FIELD_TYPES[field["type"]]
        field = {name: value for name, value in field.items() if name not in unknown} | replacement
    return field


def _processor(body: Mapping[str, Any]) -> dict[str, Any]:
    ((name, options),) = body.items()
    options = dict(options)
    if "on_failure" in options:
        options["on_failure"] = [_processor(processor) for processor in options["on_failure"]]
    if name == "foreach":
        options["processor"] = _processor(options["processor"])
    if name in ("set", "append") and "value" in options:
        values = options["value"] if isinstance(options["value"], list) else [options["value"]]
        found = _REFERENCE.fullmatch(values[0]) if len(values) == 1 and isinstance(values[0], str) else None
        if found:
            del options["value"]
            options["copy_from"] = found[1]
    # Text of grok, dissect and scripts may hold braces that are not references.
    rendered = {
        key: options[key] for key in ("value", "field", "target_field", "message", "name") if key in options
    }
    if name in ("set", "append", "fail", "rename", "remove", "pipeline", "reroute") and "{{" in str(rendered):
        raise NotImplementedError(
            f"the Elasticsearch of the tests can't render {rendered} of the processor {name}: "
            "use a value that is a single {{{reference}}}, or copy_from"
        )
    return {name: options}
