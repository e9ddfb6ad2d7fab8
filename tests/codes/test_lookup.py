"""Look-up: every way of writing a code, and the version where a number was used again."""

from __future__ import annotations

import pytest

from ascend_elk.cann import Version
from ascend_elk.codes import Catalogue
from ascend_elk.errors import UserError


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue.load()


@pytest.mark.parametrize(
    ("written", "keys"),
    [
        ("EI0006", ["cann:EI0006", "cann:EI0006"]),
        ("ei0006", ["cann:EI0006", "cann:EI0006"]),
        (" [EI0009]: ", ["cann:EI0009"]),
        ("cann:EI0009", ["cann:EI0009"]),
        ("CANN:ei0009", ["cann:EI0009"]),
        ("0xE30009", ["cann:E30009", "foreign:0xe30009"]),
        ("507018", ["acl:507018"]),
        ("ret=507018", ["acl:507018"]),
        ("error code is 507018", ["acl:507018"]),
        ("161002", ["aclnn:161002"]),
        ("0x715005e", ["rt:0x0715005e"]),
        ("0x0715005E", ["rt:0x0715005e"]),
        ("retCode=0x7150026", ["rt:0x07150026"]),
        ("error code = 0x26", ["ts:0x26"]),
        ("drvRetCode=6", ["drv:6"]),
        ("errNo[0x0000000005010009]", ["hccl:0x0000000005010009"]),
        ("errNo[0x0000000000000009]", ["hccl:0x0000000005000009"]),
        ("0x5000009", ["hccl:0x0000000005000009"]),
        ("ret[1041]", ["hcclresult:1041"]),
        ("128203", ["hccp:128203"]),
        ("1343225857", []),
        ("0x50100005", ["ge:1343225861"]),
        ("-1", ["graph:4294967295"]),
        ("0xFFFFFFFF", ["graph:4294967295"]),
        ("errcode:(0, 0x8000, 0)", ["aicore:word1.bit15"]),
        ("(0x10,0,0x1)", ["aicore:word0.bit4", "aicore:word2.bit0"]),
        ("(0, 0, 0)", ["aicore:none"]),
        ("21008", ["aicpu:21008"]),
        ("81078603", ["dms:0x81078603"]),
        ("event_id:0x81078603", ["dms:0x81078603"]),
        ("0xA8028802", ["bbox:0xa8028802"]),
        ("[0x00f103b0,155907,na,na]", ["switch:[0x00f103b0,155907,na,na]"]),
        ("err00100", ["torch:ERR00100"]),
        ("MIE04E02041C", ["mindie:MIE04E02041C"]),
        ("cqe status[12]", ["cqe:12"]),
        ("cqe:0x15", ["cqe:12"]),
        ("cqeStatus=0x9", ["sdma:0x9"]),
        ("signal 11", ["signal:SIGSEGV"]),
        ("exit code 137", ["signal:SIGKILL"]),
        ("exit code -15", ["signal:SIGTERM"]),
        ("", []),
        ("hello", []),
        ("E" * 10_000, []),
    ],
)
def test_every_way_of_writing(catalogue: Catalogue, written: str, keys: list[str]) -> None:
    assert [entry.key for entry in catalogue.lookup(written)] == keys


@pytest.mark.parametrize(
    ("code", "version", "words"),
    [
        ("EI0002", "5.0.2", ["shared library"]),
        ("EI0002", "5.1.RC1", ["shared library"]),
        ("EI0002", "5.1.RC2", ["waited for a peer"]),
        ("EI0002", "8.0.RC3", ["waited for a peer"]),
        ("EI0006", "8.5.0", ["could not connect"]),
        ("E10042", "6.3", ["command-line"]),
        ("E10042", "8.0", ["offline model"]),
        ("E30005", "5.0.2", ["task could not be generated"]),
        ("E30005", "7.0", ["cannot be reached"]),
        # Between the last table with the old meaning and the first with the new one: both can be meant,
        # the new one only where the table of that time lacked the code.
        ("EE1002", "6.3", ["Waiting for a stream", "runtime call failed its check"]),
        ("EE1002", "8.0", ["Waiting for a stream"]),
        ("207019", "7.0.RC1", ["message to the device"]),
        ("207019", "9.0.0", ["cannot be updated"]),
    ],
)
def test_version_decides(catalogue: Catalogue, code: str, version: str, words: list[str]) -> None:
    found = catalogue.lookup(code, Version.parse(version))
    assert len(found) == len(words)
    for entry, text in zip(found, words, strict=True):
        assert text in entry.meaning


def test_without_a_version_all_meanings_come_the_newest_first(catalogue: Catalogue) -> None:
    new, old = catalogue.lookup("EI0002")
    assert (new.since, new.until) == ("5.1.RC2", None)
    assert (old.since, old.until) == ("5.0.2", "5.1.RC1")
    assert old.withdrawn


def test_a_code_outside_its_versions_is_still_explained(catalogue: Catalogue) -> None:
    assert catalogue.lookup("EI0015", Version.parse("6.3"))


def test_one_number_of_two_programs_keeps_both(catalogue: Catalogue) -> None:
    found = catalogue.lookup("21203", Version.parse("8.5.0"))
    assert [entry.emitter for entry in found] == ["aicpu_scheduler", "aicpu_custom_scheduler"]


def test_a_bare_number_of_several_families_needs_the_family(catalogue: Catalogue) -> None:
    assert {entry.family for entry in catalogue.lookup("16")} == {"drv", "hcclresult", "tsd"}
    assert [entry.key for entry in catalogue.lookup("16", family="drv")] == ["drv:16"]


def test_a_wrong_family_is_the_users_error(catalogue: Catalogue) -> None:
    with pytest.raises(UserError, match="no code family 'hcc'"):
        catalogue.lookup("16", family="hcc")


def test_the_answer_is_the_callers_own(catalogue: Catalogue) -> None:
    catalogue.lookup("EI0006").clear()
    assert catalogue.lookup("EI0006")


def test_search_finds_words_in_both_languages(catalogue: Catalogue) -> None:
    assert "cann:EI0006" in [entry.key for entry in catalogue.search("ranks connect links")]
    assert "cann:EI0006" in [entry.key for entry in catalogue.search("建链超时", "zh")]
    assert [entry.key for entry in catalogue.search("ACL_ERROR_RT_AICPU_EXCEPTION")][:1] == ["acl:507018"]
    assert catalogue.search("no such words anywhere") == []
    assert catalogue.search("  ") == []
    assert len(catalogue.search("memory", limit=5)) == 5


def test_the_version_follows_the_content(tmp_path) -> None:
    own = tmp_path / "own.yml"
    own.write_text("codes: [{family: cann, code: EI0006, severity: critical}]\n")
    first = Catalogue.load()
    assert first.version == Catalogue.load().version
    assert first.version != Catalogue.load([own]).version
