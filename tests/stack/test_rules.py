"""Alert rules hold to the contract of the API that creates them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ascend_elk.stack.dashboards import investigation_text
from ascend_elk.stack.rules import rule_body, rule_id
from ascend_elk.stack.source import Rule, Source, load_source
from ascend_elk.stack.targets import TARGETS
from tests.kibana import kql
from tests.kibana.contract import documented_fields, fields_of_request

from .fake_kibana import contract_problems

VERSIONS = [("7.17", (7, 17)), ("7.17", (8, 5)), ("8.x", (8, 9)), ("8.x", (8, 19)), ("9.x", (9, 4))]
SOURCE = load_source()


@pytest.fixture
def source() -> Source:
    return SOURCE


def body_of(rule: Rule, target: str, version: tuple[int, int]) -> dict[str, Any]:
    return rule_body(rule, TARGETS[target], version, space="default")  # type: ignore[index]


@pytest.mark.parametrize(("target", "version"), VERSIONS)
@pytest.mark.parametrize("name", SOURCE.rules)
def test_bodies_hold_to_the_contract(
    source: Source, name: str, target: str, version: tuple[int, int]
) -> None:
    body = body_of(source.rules[name], target, version)
    generation = "7" if target == "7.17" else "8"
    assert contract_problems(f"rule_create_{generation}", body) == []
    assert body["enabled"] is False
    assert body["actions"] == []
    assert contract_problems(f"rule_create_{generation}", {**body, "surprise": 1})
    assert contract_problems(f"rule_create_{generation}", {**body, "params": {**body["params"], "size": -1}})
    assert contract_problems(f"rule_create_{generation}", {**body, "params": {}})


def test_the_seven_rules_exist_on_every_target(source: Source) -> None:
    assert set(source.rules) == {
        "ascend-first-fatal-code",
        "ascend-timeout-burst",
        "ascend-retry-storm",
        "ascend-hardware",
        "ascend-silent-card",
        "ascend-log-flood",
        "ascend-parse-failures",
    }


def test_cards_are_counted_where_kibana_can(source: Source) -> None:
    rule = source.rules["ascend-timeout-burst"]
    old, new = body_of(rule, "8.x", (8, 12)), body_of(rule, "8.x", (8, 13))
    assert old["rule_type_id"] == ".es-query"
    assert new["rule_type_id"] == "observability.rules.custom_threshold"
    (criterion,) = new["params"]["criteria"]
    assert criterion["metrics"][0]["field"] == "ascend.device.key"
    assert (criterion["comparator"], criterion["threshold"]) == (">=", [4])
    assert new["params"]["searchConfiguration"]["index"] in source.data_views
    in_space = rule_body(rule, TARGETS["9.x"], (9, 4), space="team-a")
    assert in_space["params"]["searchConfiguration"]["index"] == "ascend-all-team-a"
    # A rule keeps its type for life.
    kept = rule_body(rule, TARGETS["9.x"], (9, 4), space="default", old_type=".es-query")
    assert kept["params"] == old["params"]


def test_generations_differ(source: Source) -> None:
    rule = source.rules["ascend-retry-storm"]
    assert contract_problems("rule_create_7", body_of(rule, "8.x", (8, 9)))
    assert "groupBy" not in body_of(rule, "7.17", (7, 17))["params"]


def test_ids_are_uuids_of_their_space(source: Source) -> None:
    ids = {rule_id(rule, space) for rule in source.rules.values() for space in ("default", "team-a")}
    assert len(ids) == 2 * len(source.rules)
    for identifier in ids:
        assert re.fullmatch(
            r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", identifier
        )


def test_fields_are_documented(source: Source) -> None:
    for rule in source.rules.values():
        named = set(fields_of_request(rule.query)) | ({rule.group_by} - {None})
        if rule.distinct is not None:
            named |= {rule.distinct.field} | kql.fields(rule.distinct.query)
        assert named <= documented_fields(), rule.id


def test_verdicts_that_rules_look_for_exist(source: Source) -> None:
    manual = (Path(__file__).parents[2] / "docs" / "diagnosis.md").read_text("utf-8")
    (alternatives,) = (
        part["terms"]["ascend.incident.rule"]
        for part in source.rules["ascend-silent-card"].query["bool"]["should"]
        if "terms" in part
    )
    for verdict in alternatives:
        assert f"`{verdict}`" in manual


def test_each_has_a_text_that_the_dashboard_shows(source: Source) -> None:
    shown = {panel.rule for panel in source.dashboards["ascend-alerts"].panels} - {None}
    assert shown == set(source.rules)
    for rule in source.rules.values():
        text = investigation_text(rule)
        for heading in ("What fired", "Why it matters", "Triage", "Remediation", "Tuning"):
            assert f"**{heading}.**" in text
        for name in re.findall(r"Open \*([^*]+)\*", text):
            assert f"[Ascend] {name}" in {dashboard.title for dashboard in source.dashboards.values()}


def test_the_manual_lists_each_with_its_numbers(source: Source) -> None:
    rows = {
        cells[1].strip(): cells[2]
        for line in (Path(__file__).parents[2] / "docs" / "install.md").read_text("utf-8").splitlines()
        if len(cells := line.split("|")) == 5
    }
    for rule in source.rules.values():
        text = rows[rule.name.removeprefix("[Ascend] ")]
        count = rule.distinct.at_least if rule.distinct is not None else rule.at_least
        assert count == 1 or f"{count:,}" in text, rule.id
        window = "an hour" if rule.window == "60m" else rule.window.removesuffix("m") + " minutes"
        assert window in text, rule.id


def test_queries_are_what_elasticsearch_gets(source: Source) -> None:
    body = body_of(source.rules["ascend-hardware"], "9.x", (9, 4))
    assert json.loads(body["params"]["esQuery"]) == {"query": source.rules["ascend-hardware"].query}
