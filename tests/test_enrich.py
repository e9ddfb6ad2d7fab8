"""What the catalogue adds to one event."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_elk.cann import Version
from ascend_elk.codes import Catalogue
from ascend_elk.enrich import enrich

CATALOGUE = Catalogue.load()
TEXTS = ("meaning", "remediation", "meaning_zh", "remediation_zh")


def test_a_code_gives_all_fields() -> None:
    fields = {"message": "x", "event.severity": 3, "ascend.error.codes": ["cann:EI9999", "cann:EI0013"]}
    added = enrich(fields, CATALOGUE)
    (entry,) = CATALOGUE.lookup("cann:EI0013")
    assert added == {
        "error.code": "EI0013",
        "ascend.error.category": "network",
        "ascend.error.layer": "communication",
        "ascend.error.severity": "error",
        "ascend.error.meaning": entry.meaning,
        "ascend.error.remediation": entry.remediation,
        "ascend.error.meaning_zh": entry.meaning_zh,
        "ascend.error.remediation_zh": entry.remediation_zh,
        "ascend.error.reference": "/v1/codes/cann:EI0013",
        "ascend.error.catalogue": CATALOGUE.version,
        "ascend.signal": ["cqe", "link"],
    }
    assert fields == {
        "message": "x",
        "event.severity": 3,
        "ascend.error.codes": ["cann:EI9999", "cann:EI0013"],
    }


def test_signals_of_all_codes_join_those_of_the_event() -> None:
    fields = {"ascend.error.codes": ["cann:EI0002", "acl:507018"], "ascend.signal": ["hang", "timeout"]}
    assert enrich(fields, CATALOGUE)["ascend.signal"] == ["hang", "timeout", "aicpu"]


def test_signals_that_are_there_already_are_not_written_again() -> None:
    fields = {"ascend.error.codes": ["cann:EI0002"], "ascend.signal": ["timeout"]}
    assert "ascend.signal" not in enrich(fields, CATALOGUE)


def test_version_of_the_event_decides() -> None:
    fields = {"ascend.error.codes": ["cann:EI0006"], "ascend.cann.version": "8.0.RC3"}
    assert enrich(fields, CATALOGUE)["ascend.error.meaning"].startswith("Two ranks could not connect")
    old = enrich(fields, CATALOGUE, Version.parse("5.0.4"))
    assert old["ascend.error.meaning"] == "A resource that was passed in is wrong."


@pytest.mark.parametrize("version", [{}, {"ascend.cann.version": "nonsense"}])
def test_without_a_version_both_meanings_stand_with_their_ranges(version: dict[str, str]) -> None:
    meaning = enrich({"ascend.error.codes": ["cann:EI0006"], **version}, CATALOGUE)["ascend.error.meaning"]
    new, old = meaning.split("\n")
    assert new.startswith("[since 5.1.RC2")
    assert old.startswith("[since 5.0.2 or earlier, last seen in 5.1.RC1]")


def test_an_unknown_code_is_said_to_be_unknown() -> None:
    added = enrich({"ascend.error.codes": ["cann:EI0099"]}, CATALOGUE)
    assert added["error.code"] == "EI0099"
    assert "not in the catalogue" in added["ascend.error.meaning"]
    assert "HCCL" in added["ascend.error.meaning"]
    assert "错误码库中没有" in added["ascend.error.meaning_zh"]
    assert "ascend.error.severity" not in added


def test_a_code_of_ten_thousand_characters_stays_short() -> None:
    added = enrich({"ascend.error.codes": ["cann:" + "E" * 10_000]}, CATALOGUE)
    assert len(added["ascend.error.meaning"]) < 300


@pytest.mark.parametrize("code", ["dms:0x81078603", "dms:0x80e01801"])
def test_a_recovery_is_no_fault(code: str) -> None:
    raised = enrich({"ascend.error.codes": [code], "ascend.event.assertion": "raised"}, CATALOGUE)
    over = enrich({"ascend.error.codes": [code], "ascend.event.assertion": "recovered"}, CATALOGUE)
    assert raised["ascend.error.severity"] != "info"
    assert over["ascend.error.severity"] == "info"
    assert over["ascend.error.meaning"] == f"Recovered: {raised['ascend.error.meaning']}"
    assert over["ascend.error.meaning_zh"].startswith("已恢复：")
    # What was remembered for the fault is not touched by its recovery.
    assert (
        enrich({"ascend.error.codes": [code]}, CATALOGUE)["ascend.error.meaning"]
        == raised["ascend.error.meaning"]
    )


def test_a_message_without_a_code_is_known_by_its_signature() -> None:
    fields = {"message": "OSError: [Errno 28] No space left on device", "event.severity": 3}
    added = enrich(fields, CATALOGUE)
    assert added["ascend.error.category"] == "resource"
    assert added["ascend.error.reference"] == "/v1/codes/disk-full"
    assert added["ascend.signal"] == ["disk-full"]
    assert "error.code" not in added


def test_a_signature_counts_from_its_level_on() -> None:
    message = "retry to connect, task timeout"
    assert enrich({"message": message, "event.severity": 1}, CATALOGUE) == {}
    assert enrich({"message": message, "event.severity": 2}, CATALOGUE)
    assert enrich({"message": message}, CATALOGUE)


def test_lines_that_a_user_mutes_lose_their_alarm(tmp_path: Path) -> None:
    own = tmp_path / "own.yml"
    own.write_text("mute: [probe only]\n")
    catalogue = Catalogue.load([own])
    added = enrich({"message": "probe only: disk full", "ascend.error.codes": ["cann:EI0006"]}, catalogue)
    assert added == {"ascend.error.catalogue": catalogue.version, "ascend.error.severity": "info"}


def test_nothing_to_say() -> None:
    for fields in ({}, {"message": "all is well"}, {"message": "", "ascend.error.codes": []}):
        assert enrich(fields, CATALOGUE) == {}


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "message": st.text(),
            "event.severity": st.integers(-1, 9),
            "ascend.error.codes": st.lists(
                st.text() | st.from_regex(r"[a-z]{2,9}:[0-9A-Za-z]{1,12}"), max_size=4
            ),
            "ascend.cann.version": st.text(max_size=12),
            "ascend.event.assertion": st.sampled_from(["raised", "recovered", "occurred", "?"]),
            "ascend.signal": st.lists(st.sampled_from(["link", "oom"]), max_size=2, unique=True),
        },
    )
)
def test_any_event_is_answered(fields: dict[str, Any]) -> None:
    before = json.dumps(fields, sort_keys=True)
    added = enrich(fields, CATALOGUE)
    assert json.dumps(fields, sort_keys=True) == before
    json.dumps(added)
    if fields.get("ascend.error.codes") and "ascend.error.meaning" in added:
        assert all(added[f"ascend.error.{name}"] for name in TEXTS if f"ascend.error.{name}" in added)
