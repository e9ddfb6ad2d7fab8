"""Alert rules as Kibana's alerting API takes them."""

from __future__ import annotations

import json
import uuid
from typing import Any

from ascend_elk.stack.objects import scoped
from ascend_elk.stack.source import Rule
from ascend_elk.stack.targets import Target

INDEX = "logs-ascend.*-*"
TIME_FIELD = "@timestamp"
TAG = "ascend"
# Comparing date_nanos with NOW() and the match operator on lists: both since 8.18.
ESQL_SINCE = (8, 18)
_MAX_GROUPS = 100


def rule_id(rule: Rule, space: str) -> str:
    """The id of a rule in a space: rules hold encrypted attributes, so Kibana wants a version 4 UUID."""
    derived = uuid.uuid5(uuid.NAMESPACE_OID, f"ascend-elk/{scoped(rule.id, space)}")
    return str(uuid.UUID(bytes=derived.bytes, version=4))


def rule_body(rule: Rule, target: Target, kibana: tuple[int, int]) -> dict[str, Any] | None:
    """Build the body that creates a rule, switched off and without actions.

    Args:
        rule: as written.
        target: generation of Kibana.
        kibana: its major and minor version.

    Returns:
        ``None`` where that Kibana cannot express the rule.
    """
    window = int(rule.window.removesuffix("m"))
    common = {
        "size": 10,
        "timeField": TIME_FIELD,
        "timeWindowSize": window,
        "timeWindowUnit": "m",
    }
    if rule.esql is not None and kibana >= ESQL_SINCE:
        params: dict[str, Any] = {
            **common,
            "searchType": "esqlQuery",
            "esqlQuery": {"esql": rule.esql},
            "threshold": [0],
            "thresholdComparator": ">",
        }
    elif rule.query is not None:
        params = {
            **common,
            "index": [INDEX],
            "esQuery": json.dumps({"query": rule.query}, separators=(",", ":")),
            "threshold": [rule.at_least],
            "thresholdComparator": ">=",
        }
        if target.modern:
            params |= {"searchType": "esQuery", "aggType": "count", "excludeHitsFromPreviousRun": True}
            params |= (
                {"groupBy": "top", "termField": rule.group_by, "termSize": _MAX_GROUPS}
                if rule.group_by
                else {"groupBy": "all"}
            )
    else:
        return None
    body: dict[str, Any] = {
        "name": rule.name,
        "rule_type_id": ".es-query",
        "consumer": "alerts",
        "schedule": {"interval": rule.every},
        "tags": [TAG],
        "enabled": False,
        "actions": [],
        "params": params,
    }
    return body if target.modern else {**body, "notify_when": "onActionGroupChange", "throttle": None}
