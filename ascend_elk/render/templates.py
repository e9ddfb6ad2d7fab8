"""Elasticsearch's component and index templates and the lifecycle, from the list of fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ascend_elk.formats.fields import EventField, load_fields
from ascend_elk.render.options import STACKS, RenderOptions

NAME = "ascend-elk"
PATTERN = "logs-ascend.*-*"
Document = dict[str, Any]
# Above the built-in template of logs-*-*, which has 100
_PRIORITY = 250
_META = {"managed_by": "ascend-elk"}
# What is alike lies side by side: the lines of a process, of these those that one place in CANN wrote.
_SORT = ["host.name", "log.file.path", "log.origin.file.name", "log.origin.file.line", "@timestamp"]


@dataclass(frozen=True)
class Templates:
    """Bodies by name, as Elasticsearch's APIs take them."""

    components: dict[str, Document]
    indices: dict[str, Document]
    lifecycles: dict[str, Document] = field(default_factory=dict)


def render_templates(options: RenderOptions) -> Templates:
    """Return the templates of the data streams ``logs-ascend.*``."""
    names = [f"{NAME}-mappings", f"{NAME}-settings"]
    index: Document = {
        "index_patterns": [PATTERN],
        "priority": _PRIORITY,
        "data_stream": {},
        "composed_of": names,
        "_meta": {**_META, "description": f"Logs of Ascend, CANN {options.versions}"},
    }
    settings: Document = {
        "index": {
            "codec": "best_compression",
            # A value that does not fit its field costs the field, not the event.
            "mapping": {"ignore_malformed": True, "total_fields": {"limit": 500}},
            "query": {"default_field": ["message"]},
            "sort": {"field": _SORT},
        }
    }
    lifecycles: dict[str, Document] = {}
    if options.stack == "7.17":
        lifecycles[NAME] = _policy(options.retention)
        settings["index"]["lifecycle"] = {"name": NAME}
    else:
        settings["index"]["mode"] = "logsdb"
        index["template"] = {"lifecycle": {"data_retention": options.retention}}
        index["composed_of"] = [*names, f"{NAME}@custom"]
        index["ignore_missing_component_templates"] = [f"{NAME}@custom"]
    return Templates(
        {
            f"{NAME}-mappings": {"template": {"mappings": mappings(options.stack)}, "_meta": _META},
            f"{NAME}-settings": {"template": {"settings": settings}, "_meta": _META},
        },
        {f"{NAME}-logs": index},
        lifecycles,
    )


def mappings(stack: str = STACKS[-1]) -> Document:
    """Mappings: strict where the fields are ours, nothing dynamic elsewhere."""
    properties: Document = {"labels": {"type": "flattened", "ignore_above": 256}}
    for item in load_fields():
        *parents, leaf = item.name.split(".")
        node = properties
        for number, parent in enumerate(parents):
            inner = node.setdefault(parent, {"properties": {}})
            if parent == "ascend" and number == 0:
                inner["dynamic"] = "strict"
            node = inner["properties"]
        node[leaf] = _mapping(item, stack)
    return {"dynamic": False, "date_detection": False, "numeric_detection": False, "properties": properties}


def _mapping(item: EventField, stack: str) -> Document:
    if item.type == "stored":
        return {"type": "keyword", "index": False, "doc_values": False}
    if item.type == "keyword":
        return {"type": "keyword", "ignore_above": item.limit}
    if item.name == "@timestamp":
        # A data stream insists on a right time.
        return {"type": item.type, "ignore_malformed": False}
    # 7.17 finds nothing by values that are not indexed.
    return {"type": item.type} if item.indexed or stack == "7.17" else {"type": item.type, "index": False}


def _policy(retention: str) -> Document:
    return {
        "policy": {
            "_meta": _META,
            "phases": {
                "hot": {"actions": {"rollover": {"max_age": "1d", "max_primary_shard_size": "50gb"}}},
                # Counted from the rollover: a day may be kept that much longer.
                "delete": {"min_age": retention, "actions": {"delete": {}}},
            },
        }
    }
