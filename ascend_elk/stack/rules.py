"""Alert rules as Kibana's alerting API takes them."""

from __future__ import annotations

import json
import uuid
from typing import Any

from ascend_elk.stack.objects import scoped
from ascend_elk.stack.source import Distinct, Rule
from ascend_elk.stack.targets import Target

TIME_FIELD = "@timestamp"
TAG = "ascend"
# Rules of type *custom threshold* are a preview before.
DISTINCT_SINCE = (8, 13)
_MAX_GROUPS = 100
_HITS = ".es-query"
_DISTINCT = "observability.rules.custom_threshold"


def rule_id(rule: Rule, space: str) -> str:
    """The id of a rule in a space: rules hold encrypted attributes, so Kibana wants a version 4 UUID."""
    derived = uuid.uuid5(uuid.NAMESPACE_OID, f"ascend-elk/{scoped(rule.id, space)}")
    return str(uuid.UUID(bytes=derived.bytes, version=4))


def rule_body(
    rule: Rule, target: Target, kibana: tuple[int, int], *, space: str, old_type: str | None = None
) -> dict[str, Any]:
    """Build the body that creates a rule, switched off and without actions.

    Args:
        rule: as written.
        target: generation of Kibana.
        kibana: its major and minor version.
        space: space that the rule is for.
        old_type: ``rule_type_id`` that it has already; a rule cannot change its type.
    """
    body: dict[str, Any] = {
        "name": rule.name,
        "rule_type_id": _HITS,
        "consumer": "alerts",
        "schedule": {"interval": rule.every},
        "tags": [TAG],
        "enabled": False,
        "actions": [],
        "params": _hits(rule, target),
    }
    if rule.distinct is not None and kibana >= DISTINCT_SINCE and old_type != _HITS:
        params = _distinct_values(rule, rule.distinct, space)
        return body | {"rule_type_id": _DISTINCT, "consumer": "observability", "params": params}
    return body if target.modern else {**body, "notify_when": "onActionGroupChange", "throttle": None}


def _hits(rule: Rule, target: Target) -> dict[str, Any]:
    """Parameters of *Elasticsearch query*: so many hits in the window."""
    params: dict[str, Any] = {
        "size": 10,
        "timeField": TIME_FIELD,
        "timeWindowSize": minutes(rule.window),
        "timeWindowUnit": "m",
        "index": list(rule.indices),
        "esQuery": json.dumps({"query": rule.query}, separators=(",", ":")),
        "threshold": [rule.at_least],
        "thresholdComparator": ">=",
    }
    if not target.modern:
        return params
    params |= {"searchType": "esQuery", "aggType": "count", "excludeHitsFromPreviousRun": True}
    if rule.group_by is None:
        return params | {"groupBy": "all"}
    return params | {"groupBy": "top", "termField": rule.group_by, "termSize": _MAX_GROUPS}


def _distinct_values(rule: Rule, distinct: Distinct, space: str) -> dict[str, Any]:
    """Parameters of *custom threshold*: so many different values in the window."""
    params: dict[str, Any] = {
        "criteria": [
            {
                "metrics": [{"name": "A", "aggType": "cardinality", "field": distinct.field}],
                "comparator": ">=",
                "threshold": [distinct.at_least],
                "timeSize": minutes(rule.window),
                "timeUnit": "m",
            }
        ],
        "searchConfiguration": {
            "index": scoped(distinct.data_view, space),
            "query": {"query": distinct.query, "language": "kuery"},
        },
        "alertOnNoData": False,
        "alertOnGroupDisappear": False,
    }
    return params if rule.group_by is None else params | {"groupBy": [rule.group_by]}


def minutes(duration: str) -> int:
    """The number in ``10m``."""
    return int(duration.removesuffix("m"))
