"""Builds Kibana's saved objects for one target, and their NDJSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ascend_elk.stack.dashboards import dashboard_object, to_json
from ascend_elk.stack.source import DataView, Search, Source
from ascend_elk.stack.targets import Target

DEFAULT_SPACE = "default"
_INDEX_REFERENCE = "kibanaSavedObjectMeta.searchSourceJSON.index"
_FORMATS: dict[str, dict[str, Any]] = {
    "nanoseconds": {
        "id": "duration",
        "params": {"inputFormat": "nanoseconds", "outputFormat": "humanizePrecise", "outputPrecision": 2},
    },
    "plain": {"id": "number", "params": {"pattern": "0"}},
    "percent": {"id": "percent", "params": {"pattern": "0%"}},
}


def scoped(identifier: str, space: str = DEFAULT_SPACE) -> str:
    """The id of an object in a space.

    Kibana keeps ids unique over all spaces and gives an object that is imported into a second space a random
    one, which would break the links between dashboards.
    """
    return identifier if space == DEFAULT_SPACE else f"{identifier}-{space}"


def build_objects(
    source: Source, target: Target, *, space: str = DEFAULT_SPACE, code_page: str | None = None
) -> list[dict[str, Any]]:
    """Build all saved objects, those that others refer to first.

    Args:
        source: content of ``kibana/``.
        target: generation of Kibana.
        space: space they are meant for; decides their ids.
        code_page: base URL of the enrichment service, which error codes link to; no links without it.
    """

    def scope(identifier: str) -> str:
        return scoped(identifier, space)

    tag = source.tag
    built = [
        _object("tag", scope(tag.id), tag.model_dump(exclude={"id"}), [], target),
    ]
    tags = [{"type": "tag", "id": scope(tag.id), "name": f"tag-ref-{scope(tag.id)}"}]
    for view in source.data_views.values():
        built.append(
            _object("index-pattern", scope(view.id), _data_view(view, target, code_page), [], target)
        )
    for search in source.searches.values():
        references = [{"type": "index-pattern", "id": scope(search.data_view), "name": _INDEX_REFERENCE}]
        built.append(_object("search", scope(search.id), _search(search), references + tags, target))
    for dashboard in source.dashboards.values():
        attributes, references = dashboard_object(dashboard, source, target, scope)
        built.append(_object("dashboard", scope(dashboard.id), attributes, references + tags, target))
    return built


def to_ndjson(objects: Iterable[dict[str, Any]]) -> str:
    """One object a line, as Kibana imports it; always the same bytes for the same objects."""
    return "".join(json.dumps(item, ensure_ascii=False, sort_keys=True) + "\n" for item in objects)


def _object(
    kind: str, identifier: str, attributes: dict[str, Any], references: list[dict[str, str]], target: Target
) -> dict[str, Any]:
    return {
        "type": kind,
        "id": identifier,
        "attributes": attributes,
        "references": references,
        **target.stamp(kind),
    }


def _data_view(view: DataView, target: Target, code_page: str | None) -> dict[str, Any]:
    formats = {field: _FORMATS[name] for field, name in view.formats.items()}
    if code_page is not None:
        link = {
            "type": "a",
            "urlTemplate": f"{code_page.rstrip('/')}/v1/codes/{{{{value}}}}",
            "labelTemplate": "{{value}}",
            "openLinkInCurrentTab": False,
        }
        formats |= {field: {"id": "url", "params": link} for field in view.links}
    attributes: dict[str, Any] = {
        "title": view.title,
        "timeFieldName": view.time_field,
        "allowNoIndex": True,
        "fields": "[]",
        "fieldAttrs": "{}",
        "fieldFormatMap": to_json(formats),
        "runtimeFieldMap": to_json(
            {
                name: {"type": field.type, "script": {"source": field.script}}
                for name, field in view.runtime.items()
            }
        ),
        "sourceFilters": "[]",
        "typeMeta": "{}",
    }
    # Before 8.0 a data view had no name of its own.
    return attributes | ({"name": view.name} if target.modern else {})


def _search(search: Search) -> dict[str, Any]:
    return {
        "title": search.title,
        "description": search.description,
        "columns": list(search.columns),
        "sort": [list(pair) for pair in search.sort],
        "grid": {},
        "hideChart": False,
        "kibanaSavedObjectMeta": {
            "searchSourceJSON": to_json(
                {
                    "query": {"query": search.query, "language": "kuery"},
                    "filter": [],
                    "highlightAll": True,
                    "version": True,
                    "indexRefName": _INDEX_REFERENCE,
                }
            )
        },
    }
