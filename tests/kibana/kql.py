"""KQL as Kibana reads it: the fields of a query, and the query that Elasticsearch gets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from kibana_ql.kql import KqlParser

_RANGES = {">=": "gte", ">": "gt", "<=": "lte", "<": "lt"}


@cache
def _parser() -> KqlParser:
    return KqlParser()


def parse(text: str) -> Any:
    """The syntax tree; `None` for an empty query. Raises on a syntax error."""
    return _parser().ast(_parser().parse(text)) or None


def fields(text: str) -> set[str]:
    """Every field that a query names."""
    return {_text(node["field"]) for node in _nodes(parse(text)) if "field" in node}


def free_text(text: str) -> bool:
    """Whether some value stands without a field, and is looked for in all of them."""
    return any("value" in node and "field" not in node for node in _nodes(parse(text)))


def to_query(text: str) -> dict[str, Any]:
    """The query that Kibana sends for a KQL text."""
    tree = parse(text)
    return {"match_all": {}} if tree is None else _query(tree)


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if "op" in node and "field" not in node:
            for part in _operands(node):
                yield from _nodes(part)
        else:
            yield node


def _operands(node: dict[str, Any]) -> list[Any]:
    if node["op"] == "not":
        return [node["expr"]]
    if "exprs" in node:
        return list(node["exprs"])
    right = node["right"]
    # Three and more operands: the rest comes as one list.
    rest = right["exprs"] if isinstance(right, dict) and "exprs" in right else [right]
    return [node["left"], *rest]


def _query(node: dict[str, Any]) -> dict[str, Any]:
    if "field" in node:
        return _field_query(node)
    parts = [_query(part) for part in _operands(node)]
    if node["op"] == "not":
        return {"bool": {"must_not": parts}}
    if node["op"] == "and":
        return {"bool": {"filter": parts}}
    return {"bool": {"should": parts, "minimum_should_match": 1}}


def _field_query(node: dict[str, Any]) -> dict[str, Any]:
    field, value = _text(node["field"]), node["value"]
    if "op" in node:
        return {"range": {field: {_RANGES[node["op"]]: _text(value)}}}
    return _values(field, value)


def _values(field: str, value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        parts = [_values(field, part) for part in _operands(value)]
        if value["op"] == "not":
            return {"bool": {"must_not": parts}}
        if value["op"] == "and":
            return {"bool": {"filter": parts}}
        return {"bool": {"should": parts, "minimum_should_match": 1}}
    if isinstance(value, str):
        return {"match_phrase": {field: value}}
    text = _text(value)
    if text == "*":
        return {"exists": {"field": field}}
    if "*" in text:
        return {"query_string": {"fields": [field], "query": text.replace("/", "\\/")}}
    return {"match": {field: text}}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else " ".join(value)
