"""Alert rules hold to the contract of the API that creates them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from ascend_elk.stack.dashboards import investigation_text
from ascend_elk.stack.rules import rule_body, rule_id
from ascend_elk.stack.source import Rule, Source, load_source
from ascend_elk.stack.targets import TARGETS
from tests.kibana.contract import documented_fields, fields_of_request

from .fake_kibana import contract_problems

VERSIONS = [("7.17", (7, 17)), ("7.17", (8, 5)), ("8.x", (8, 9)), ("8.x", (8, 18)), ("9.x", (9, 4))]
SOURCE = load_source()


@pytest.fixture
def source() -> Source:
    return SOURCE


def body_of(rule: Rule, target: str, version: tuple[int, int]) -> dict[str, Any] | None:
    return rule_body(rule, TARGETS[target], version)  # type: ignore[index]


@pytest.mark.parametrize(("target", "version"), VERSIONS)
@pytest.mark.parametrize("name", SOURCE.rules)
def test_bodies_hold_to_the_contract(
    source: Source, name: str, target: str, version: tuple[int, int]
) -> None:
    body = body_of(source.rules[name], target, version)
    if body is None:
        assert source.rules[name].query is None
        assert version < (8, 18)
        return
    generation = "7" if target == "7.17" else "8"
    assert contract_problems(f"rule_create_{generation}", body) == []
    assert body["enabled"] is False
    assert body["actions"] == []
    assert contract_problems(f"rule_create_{generation}", {**body, "surprise": 1})
    assert contract_problems(f"rule_create_{generation}", {**body, "params": {**body["params"], "size": -1}})


def test_generations_differ(source: Source) -> None:
    rule = source.rules["ascend-retry-storm"]
    assert contract_problems("rule_create_7", body_of(rule, "8.x", (8, 9)))
    old = body_of(rule, "7.17", (7, 17))
    assert old is not None
    assert "groupBy" not in old["params"]


def test_ids_are_uuids_of_their_space(source: Source) -> None:
    ids = {rule_id(rule, space) for rule in source.rules.values() for space in ("default", "team-a")}
    assert len(ids) == 2 * len(source.rules)
    for identifier in ids:
        assert re.fullmatch(
            r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", identifier
        )


def test_fields_are_documented(source: Source) -> None:
    for rule in source.rules.values():
        named = set(fields_of_request(rule.query or {})) | ({rule.group_by} - {None})
        if rule.esql is not None:
            named |= set(re.findall(r"\b(?:ascend\.[a-z_]+\.[a-z_]+|ascend\.signal|@timestamp)\b", rule.esql))
        assert named <= documented_fields(), rule.id


def test_each_has_a_text_that_the_dashboard_shows(source: Source) -> None:
    shown = {panel.rule for panel in source.dashboards["ascend-alerts"].panels} - {None}
    assert shown == set(source.rules)
    for rule in source.rules.values():
        text = investigation_text(rule)
        for heading in ("What fired", "Why it matters", "Triage", "Remediation", "Tuning"):
            assert f"**{heading}.**" in text
        for name in re.findall(r"Open \*([^*]+)\*", text):
            assert f"[Ascend] {name}" in {dashboard.title for dashboard in source.dashboards.values()}


def test_queries_are_what_elasticsearch_gets(source: Source) -> None:
    body = body_of(source.rules["ascend-hardware"], "9.x", (9, 4))
    assert body is not None
    assert json.loads(body["params"]["esQuery"]) == {"query": source.rules["ascend-hardware"].query}
