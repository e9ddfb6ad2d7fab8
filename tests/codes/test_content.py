"""The content of the catalogue, both ways: what logs show is known, and what is known can be reached."""

from __future__ import annotations

import collections
import csv
import io
import itertools
import re
from datetime import datetime, timezone
from pathlib import Path

import pytest
import yaml

from ascend_elk.cann import Version, VersionRange
from ascend_elk.codes import Catalogue, Entry
from ascend_elk.codes.loader import read
from ascend_elk.codes.models import CodeFile, SharedRemedies
from ascend_elk.content import content_dir
from ascend_elk.formats import compile_program, load_definitions
from ascend_elk.parse import Parser
from ascend_elk.parse.extraction import Extraction

SHARED = Path(__file__).parents[3] / "shared"
CODES = content_dir("codes")
CATALOGUE = Catalogue.load()
ENTRIES = list(CATALOGUE.entries())
BY_CODE: dict[str, list[Entry]] = {}
for _entry in ENTRIES:
    BY_CODE.setdefault(_entry.key, []).append(_entry)
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def bad(check) -> list[str]:
    return [entry.key for entry in ENTRIES if not check(entry)]


def test_meanings_are_sentences_in_both_languages() -> None:
    assert bad(lambda entry: entry.meaning.endswith((".", "!"))) == []
    assert bad(lambda entry: CHINESE.search(entry.meaning_zh)) == []
    assert bad(lambda entry: not CHINESE.search(entry.meaning + entry.remediation)) == []
    assert bad(lambda entry: CHINESE.search(entry.remediation_zh)) == []
    assert bad(lambda entry: len(entry.meaning) > 12 and len(entry.remediation) > 8) == []


def test_no_slot_is_left_in_a_text() -> None:
    texts = "{entry.meaning} {entry.meaning_zh}"
    assert bad(lambda entry: not re.search(r"\{[a-z_]+\}", texts.format(entry=entry))) == []


def test_chinese_is_no_copy_of_the_english() -> None:
    assert (
        bad(lambda entry: entry.meaning_zh != entry.meaning and entry.remediation_zh != entry.remediation)
        == []
    )


def test_commands_are_the_same_in_both_languages() -> None:
    """A command of one text stands in the other; only words meant for the reader may differ."""

    def commands(text: str) -> list[str]:
        tools = re.findall(
            r"`((?:npu-smi|hccn_tool|msnpureport|asys|dmesg|free|df|ulimit|nc|ss|atc) ?[^`]*)`", text
        )
        return sorted({re.split(r" [A-Z]{2,}|路径|目录|文件", command)[0].strip() for command in tools})

    different = [
        entry.key for entry in ENTRIES if commands(entry.remediation) != commands(entry.remediation_zh)
    ]
    assert different == []


def test_most_remedies_are_specific() -> None:
    generic = sum(entry.generic for entry in ENTRIES)
    assert generic < len(ENTRIES) * 0.1


def test_catch_alls_are_exactly_the_inner_codes() -> None:
    shape = re.compile(r"[EW].(?:9999|8888)")
    caught = {entry.code for entry in ENTRIES if entry.family == "cann" and entry.catch_all}
    inner = {entry.code for entry in ENTRIES if entry.family == "cann" and shape.fullmatch(entry.code)}
    assert caught - inner == {"E10042"}
    assert inner <= caught


def test_every_row_has_a_source_and_every_source_is_used() -> None:
    for path in CODES.glob("*.yml"):
        if path.stem in ("families", "remedies", "signatures"):
            continue
        file = read(path, CodeFile)
        assert {row.source for row in file.codes} == set(file.sources), path.name


def test_no_remedy_and_no_phrase_is_dead() -> None:
    used: set[str] = set()
    for name in CATALOGUE.families:
        file = read(CODES / f"{name}.yml", CodeFile)
        here = {row.remedy for row in file.codes if row.remedy}
        assert set(file.remedies) <= here, f"{name}: {set(file.remedies) - here}"
        used |= here
    assert set(read(CODES / "remedies.yml", SharedRemedies).remedies) <= used


def test_numbers_used_again_have_ranges_apart() -> None:
    reused = 0
    for entries in BY_CODE.values():
        for one, other in itertools.combinations(entries, 2):
            if one.emitter != other.emitter:
                continue
            reused += 1
            ranges = [VersionRange.of(entry.since, entry.until) for entry in (one, other)]
            assert not ranges[0].overlaps(ranges[1]), one.key
            assert sum(entry.until is None or entry.withdrawn for entry in (one, other)) == 2
    assert reused >= 37


def test_versions_in_rows_are_in_order() -> None:
    for entry in ENTRIES:
        if entry.since and entry.since_after:
            assert Version.parse(entry.since_after) < Version.parse(entry.since), entry.key
        if entry.since and entry.until:
            assert not Version.parse(entry.until) < Version.parse(entry.since), entry.key


def test_links_lead_to_codes() -> None:
    for entry in ENTRIES:
        for target in (*entry.effects, *filter(None, [entry.returned_as])):
            assert CATALOGUE.lookup(target), f"{entry.key} → {target}"
        for target in entry.wraps:
            assert target in CATALOGUE.families or CATALOGUE.lookup(target), f"{entry.key} → {target}"


def test_every_row_is_reached_by_its_own_code() -> None:
    for key, entries in BY_CODE.items():
        code = entries[0].code.rstrip("*")
        found = CATALOGUE.lookup(f"{entries[0].family}:{code}")
        assert [entry.meaning for entry in found] == [entry.meaning for entry in entries], key


# How a log line carries a code of each family.
LINES = {
    "cann": ("HCCL", "{}: the text of the report"),
    "acl": ("RUNTIME", "call failed, error code is {}"),
    "aclnn": ("OP", "errno[{}] OpName:[A_0] Check failed"),
    "rt": ("RUNTIME", "task failed, retCode={}."),
    "ts": ("RUNTIME", "Kernel task happen error, retCode={}, [text]."),
    "drv": ("DRV", "halMemAlloc failed, drvRetCode={}, device_id=2"),
    "hccl": ("HCCL", "[Init]errNo[{}] hccl initialize failed"),
    "hcclresult": ("HCCL", "call trace: hcclRet -> {}"),
    "hccp": ("HCCL", "ra socket batch connect failed, ret({})"),
    "ge": ("GE", "LoadLib: ErrorNo: {}(text) failed."),
    "graph": ("GE", "LoadLib: ErrorNo: {}(text) failed."),
    "aicpu": ("CCECPU", "exception occurred during AICPU execution, errcode:{}, msg:inner error."),
    "dms": ("DRV", "event_id={}; device_id=0"),
    "bbox": ("DRV", "system exception code [{}]: ModuleName [TS]"),
    "bmc": ("DRV", "[device type: BMC]-[device id: 255]-[error code: {}]"),
    "switch": ("DRV", 'AssembledFaultCode:"{}", Severity:0x1'),
    "torch": ("APP", "{} PTA call acl api failed"),
    "mindie": ("APP", "[{}] [endpoint] failed"),
    "cqe": ("HCCL", "cqe err status[{}], time:[now]"),
    "sdma": ("RUNTIME", "there is a sdma error, sdma channel is 2, cqeStatus={}"),
    "tsd": ("TDT", "tsd client wait response fail, device response code[{}]. text"),
}
# Families that no plog line carries: they come from tools, other programs' tables or articles.
WITHOUT_LINE = {"aicore", "mcu", "public", "tsdstatus", "detail", "signal", "foreign"}


# Rows that no extractor finds yet: its literals for report codes leave out W4 and WE.
UNREACHED = {"cann": ["W40000", "W40001", "W40002", "W40010", "W40011", "W40012", "WE0001"]}


def test_every_family_has_a_line_or_a_reason() -> None:
    assert set(LINES) | WITHOUT_LINE == set(CATALOGUE.families)
    assert not set(LINES) & WITHOUT_LINE


@pytest.mark.parametrize("family", LINES)
def test_every_row_is_reached_by_its_familys_extractor(family: str) -> None:
    program = compile_program(load_definitions())
    extraction = Extraction(program.extractors, program.definitions.headline, program.definitions.grok)
    module, line = LINES[family]
    missed = []
    for entry in CATALOGUE.entries(family):
        code = entry.code.replace("*", "000001")
        written = code[2:].upper() if family == "bmc" else code.replace("l2", "L2")
        fields = {"ascend.module": module}
        extraction.apply(line.format(written), fields)
        found = fields.get("ascend.error.codes", [])
        if not any(
            entry.meaning == one.meaning for found_code in found for one in CATALOGUE.lookup(found_code)
        ):
            missed.append(code)
    assert missed == UNREACHED.get(family, [])


def test_ai_core_bits_are_reached_by_the_extractor() -> None:
    program = compile_program(load_definitions())
    extraction = Extraction(program.extractors, program.definitions.headline, program.definitions.grok)
    for entry in CATALOGUE.entries("aicore"):
        if entry.code == "none":
            continue
        word, bit = map(int, re.findall(r"\d+", entry.code))
        words = [0, 0, 0]
        words[word] = 1 << bit
        fields: dict[str, object] = {}
        text = ", ".join(f"{value:#x}" if value else "0" for value in words)
        extraction.apply(f"The extend info: errcode:({text}) errorStr: x", fields)
        (code,) = fields["ascend.error.codes"]
        assert [one.code for one in CATALOGUE.lookup(code)] == [entry.code]


def test_codes_of_real_lines_are_known_or_listed() -> None:
    corpus = SHARED / "corpus"
    if not corpus.is_dir():
        pytest.skip(f"real logs are not at hand: {corpus}")
    listed = yaml.safe_load((Path(__file__).parent / "known-unknown.yml").read_text())
    parser = Parser(compile_program(load_definitions()))
    read_at = datetime(2026, 11, 30, tzinfo=timezone.utc)
    seen: collections.Counter[str] = collections.Counter()
    for path in corpus.glob("*.log"):
        for event in parser.events(
            io.BytesIO(path.read_bytes()), "console", {"log.file.path": path.name}, read_at
        ):
            seen.update(event.fields.get("ascend.error.codes", []))
    assert sum(seen.values()) > 300
    unknown = {code for code in seen if not CATALOGUE.lookup(code)}
    assert unknown <= set(listed)
    assert not [code for code in listed if CATALOGUE.lookup(code)], "known by now: take it off the list"


def test_every_row_of_the_table_is_here() -> None:
    table = SHARED / "facts" / "codes.tsv"
    if not table.is_file():
        pytest.skip(f"the table of codes is not at hand: {table}")
    names = {family.table: family.name for family in CATALOGUE.families.values()}
    with table.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    wanted: collections.Counter[str] = collections.Counter()
    for row in rows:
        family = names[row["family"]]
        code = row["code"]
        if family == "aicore":
            code = re.sub(r"word(\d) bit(\d+).*", r"word\1.bit\2", code)
        elif family == "sdma":
            code = code.split("/")[1].strip()
        elif family == "cqe":
            code = {"0x15 / [12]": "12", "[5] (A5)": "5"}[code]
        elif family == "foreign":
            # Real codes stand in their own family.
            found = CATALOGUE.lookup(code)
            assert found, code
            continue
        keys = CATALOGUE.normalise(code, family)
        assert len(keys) == 1, (family, code)
        (key,) = keys
        wanted[key + ("*" if family == "mindie" else "")] += 1
    missing = {key: count for key, count in wanted.items() if len(BY_CODE.get(key, [])) != count}
    assert missing == {}
    assert sum(wanted.values()) > 3_500
