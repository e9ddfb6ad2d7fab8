"""The request that Lens sends for a chart, worked out from the state of the built object."""

from __future__ import annotations

from typing import Any

from . import kql

RECORDS = {"___records___", "Records"}
_METRICS = {"unique_count": "cardinality", "min": "min", "max": "max", "sum": "sum"}


def layer_of(attributes: dict[str, Any]) -> dict[str, Any]:
    """The one layer of a chart."""
    ((_, source),) = attributes["state"]["datasourceStates"].items()
    (layer,) = source["layers"].values()
    return dict(layer)


def request(attributes: dict[str, Any], interval: str = "1m") -> dict[str, Any]:
    """The search request: metrics nested in the buckets, in the order of the columns."""
    layer = layer_of(attributes)
    columns = [(name, layer["columns"][name]) for name in layer["columnOrder"]]
    aggregations: dict[str, Any] = {}
    for name, column in columns:
        if not column["isBucketed"]:
            aggregations[name] = _metric(column)
    for name, column in reversed([pair for pair in columns if pair[1]["isBucketed"]]):
        aggregations = {name: _bucket(column, layer["columns"], interval) | {"aggs": aggregations}}
        # The values that terms are sorted by are measured at each level.
        order = column.get("params", {}).get("orderBy", {}).get("columnId")
        if order is not None:
            aggregations[name]["aggs"] = {
                order: _metric(layer["columns"][order]),
                **aggregations[name]["aggs"],
            }
    return {
        "size": 0,
        "query": kql.to_query(attributes["state"]["query"]["query"]),
        "aggs": aggregations,
    }


def _bucket(column: dict[str, Any], columns: dict[str, Any], interval: str) -> dict[str, Any]:
    if column["operationType"] == "date_histogram":
        return {
            "date_histogram": {
                "field": column["sourceField"],
                "fixed_interval": interval,
                "min_doc_count": 0 if column["params"].get("includeEmptyRows") else 1,
            }
        }
    order = column["params"]["orderBy"]["columnId"]
    metric = columns[order]
    # A bucket of one filter is sorted by its number of documents.
    path = order
    if metric["operationType"] == "count" and "filter" not in metric:
        path = "_count"
    elif metric["operationType"] != "count" and "filter" in metric:
        path = f"{order}>value"
    return {
        "terms": {
            "field": column["sourceField"],
            "size": column["params"]["size"],
            "order": {path: column["params"]["orderDirection"]},
        }
    }


def _metric(column: dict[str, Any]) -> dict[str, Any]:
    operation, field = column["operationType"], column["sourceField"]
    wanted = column.get("filter")
    if operation == "count":
        query = kql.to_query(wanted["query"]) if wanted else {"match_all": {}}
        return {"filter": query}
    if operation == "median":
        inner: dict[str, Any] = {"percentiles": {"field": field, "percents": [50]}}
    elif operation == "last_value":
        sort = [{column["params"]["sortField"]: {"order": "desc"}}]
        inner = {"top_hits": {"size": 1, "sort": sort, "_source": [field]}}
    else:
        inner = {_METRICS[operation]: {"field": field}}
    if wanted is None:
        return inner
    return {"filter": kql.to_query(wanted["query"]), "aggs": {"value": inner}}
