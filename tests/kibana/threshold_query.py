"""The request that Kibana's *custom threshold* sends for a rule, worked out from the rule's parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Object = dict[str, Any]
_OPERATORS = {">": ">", ">=": ">=", "<": "<", "<=": "<="}


def request(params: Object, to_query: Callable[[str], Object], start: str, end: str) -> Object:
    """The search request of the one criterion: its metric in each group, and whether that fires.

    Args:
        params: as in the body that creates the rule.
        to_query: turns KQL into a query.
        start, end: the window.
    """
    (criterion,) = params["criteria"]
    (metric,) = criterion["metrics"]
    (limit,) = criterion["threshold"]
    sources = [
        {f"group{number}": {"terms": {"field": field}}} for number, field in enumerate(params["groupBy"])
    ]
    return {
        "size": 0,
        "query": {
            "bool": {
                "filter": [
                    {"range": {"@timestamp": {"gte": start, "lte": end}}},
                    to_query(params["searchConfiguration"]["query"]["query"]),
                ]
            }
        },
        "aggs": {
            "groups": {
                "composite": {"size": 10_000, "sources": sources},
                "aggs": {
                    "value": {metric["aggType"]: {"field": metric["field"]}},
                    "fires": {
                        "bucket_selector": {
                            "buckets_path": {"value": "value"},
                            "script": f"params.value {_OPERATORS[criterion['comparator']]} {limit}",
                        }
                    },
                },
            }
        },
    }


def groups_that_fire(answer: Object) -> Iterator[str]:
    """Names of the groups over the threshold."""
    for bucket in answer["aggregations"]["groups"]["buckets"]:
        yield ", ".join(bucket["key"].values())
