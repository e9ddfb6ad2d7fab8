from __future__ import annotations

import io
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

import pytest

from ascend_elk.cann import Version
from ascend_elk.formats import compile_program, load_definitions
from ascend_elk.parse import Event, Parser, nested

READ_AT = datetime(2026, 11, 30, tzinfo=timezone.utc)
DEFINITIONS = load_definitions()


def parse(text: str | bytes, source: str = "plog", cann: str | None = None, **zones: ZoneInfo) -> list[Event]:
    program = compile_program(DEFINITIONS, Version.parse(cann) if cann else None)
    data = text if isinstance(text, bytes) else text.encode()
    return list(
        Parser(program, **zones).events(io.BytesIO(data), source, {"log.file.path": "x.log"}, READ_AT)
    )


def one(text: str | bytes, source: str = "plog", **options: ZoneInfo) -> dict:
    (event,) = parse(text, source, **options)
    return event.fields


HEADER = "[ERROR] HCCL(7,python3):2025-03-02-11:20:31.120.004 "


def test_a_whole_event() -> None:
    fields = one(
        HEADER + "[a.cc:5] [9][Wait]wait socket establish timeout, role[1] rank[12] timeout[120 s]\n"
    )
    assert fields == {
        "event.module": "ascend",
        "event.dataset": "ascend.plog",
        "ascend.source": "plog",
        "log.file.path": "x.log",
        "log.level": "ERROR",
        "event.severity": 3,
        "ascend.module": "HCCL",
        "ascend.layer": "communication",
        "process.pid": 7,
        "process.name": "python3",
        "process.thread.id": 9,
        "@timestamp": "2025-03-02T11:20:31.120004Z",
        "log.origin.file.name": "a.cc",
        "log.origin.file.line": 5,
        "ascend.format": "plog/hccl-thread",
        "message": "[a.cc:5] [9][Wait]wait socket establish timeout, role[1] rank[12] timeout[120 s]",
        "ascend.rank.id": 12,
        "ascend.hccl.role": "client",
        "ascend.timeout.seconds": 120.0,
        "ascend.signal": ["timeout", "link"],
        "log.offset": 0,
        "event.original": HEADER
        + "[a.cc:5] [9][Wait]wait socket establish timeout, role[1] rank[12] timeout[120 s]",
    }


def test_an_error_block_behind_a_header_is_one_event_with_its_headline() -> None:
    text = (
        '[ERROR] APP(7,):2026-03-02-11:20:31.120.004 742 Exec:OpMaker.cpp:359: "[PTA]:"call failed, detail:'
        "EZ9999: Inner Error!\nEZ9999  first[FUNC:A][FILE:a.cc][LINE:1]\n        TraceBack (most recent call last):\n"
        "        EI0002: wait\n"
    )
    fields = one(text)
    assert fields["ascend.error.codes"] == ["cann:EZ9999", "cann:EI0002"]
    assert fields["error.code"] == "EI0002"
    assert fields["message"].count("\n") == 3


def test_an_unknown_line_is_kept_and_marked() -> None:
    fields = one("what is this\n")
    assert fields["message"] == fields["event.original"] == "what is this"
    assert fields["tags"] == ["ascend_unparsed"]
    assert "@timestamp" not in fields


@pytest.mark.parametrize("length", [1022, 1023])
def test_a_line_cut_by_the_log_library_is_marked(length: int) -> None:
    line = (HEADER + "[a.cc:5] [9]" + "x" * 2000)[:length]
    assert one(line + "\n")["tags"] == ["ascend_truncated"]
    assert "tags" not in one(line[:-5] + "\n")


def test_bytes_that_are_not_utf8_are_marked_and_a_real_replacement_character_is_not() -> None:
    assert one(HEADER.encode() + b"[a.cc:5] [9]\xe9\x94\n")["tags"] == ["ascend_invalid_utf8"]
    assert "tags" not in one(HEADER + "[a.cc:5] [9]\ufffd\n")


def test_a_clock_before_its_synchronisation_shows_the_time_of_reading() -> None:
    fields = one("[EVENT] DRV(9,x):1970-01-01-08:00:14.551.081 [a.c:1][hdc] [main 1] start\n", "device-os")
    assert fields["ascend.clock.unsynchronised"] is True
    assert fields["ascend.clock.written"] == "1970-01-01-08:00:14.551.081"
    assert fields["@timestamp"] == "2026-11-30T00:00:00.000000Z"
    assert fields["ascend.device.pid"] == 9


def test_zones_of_hosts_and_devices_differ() -> None:
    zones = {"host_zone": ZoneInfo("Asia/Shanghai"), "device_zone": ZoneInfo("UTC")}
    assert one(HEADER + "x\n", **zones)["@timestamp"] == "2025-03-02T03:20:31.120004Z"
    assert one(HEADER + "x\n", "device", **zones)["@timestamp"] == "2025-03-02T11:20:31.120004Z"


def test_mindspore_is_no_cann_and_look_alikes_are_no_plog() -> None:
    mindspore = (
        "[ERROR] KERNEL(62,fffe557fa160,python):2021-10-11-22:37:53.881.210 [mindspore/a.cc:99] Build] x\n"
    )
    assert one(mindspore, "console")["ascend.layer"] == "framework"
    assert one(mindspore, "plog")["tags"] == ["ascend_unparsed"]
    for line in (
        "[INFO]  acl init success\n",
        "[ERROR] aclrtSynchronizeStream(stream) failed: 507034 (a.cpp:1)\n",
    ):
        assert not one(line, "console").get("ascend.format", "").startswith("plog")


def test_a_version_knows_only_its_own_styles_and_keeps_the_rest() -> None:
    old = "[ERROR] HCCL(7,python3):2023-03-02-11:20:31.120.004 [a.cc:5][7][9][Wait]x\n"
    assert parse(old, cann="6.0")[0].fields["ascend.format"] == "plog/hccl-process-thread"
    assert parse(old, cann="8.5")[0].fields["ascend.format"] == "plog/hccl-thread"
    ddk = "[ERROR] FMK:2019-09-12-04:53:55.522.553 Load:a/b.cpp:116:gone\n"
    assert parse(ddk, cann="8.5")[0].fields["tags"] == ["ascend_unparsed"]


def test_console_lines_stand_alone_unless_they_continue() -> None:
    events = parse("step 1 loss 2.0\n  more of it\nstep 2 loss 1.9\n", "console")
    assert [event.fields["message"] for event in events] == [
        "step 1 loss 2.0\n  more of it",
        "step 2 loss 1.9",
    ]


def test_what_stands_before_a_line_names_its_worker() -> None:
    fields = one(f"(Worker_TP0 pid=10412) {HEADER}[a.cc:5] [9]x\n", "console")
    assert fields["process.name"] == "python3"
    assert fields["ascend.format"] == "plog/hccl-thread"
    plain = one("(Worker_TP0 pid=10412) hello\n", "console")
    assert (plain["process.name"], plain["process.pid"], plain["message"]) == ("Worker_TP0", 10412, "hello")


def test_nested_keeps_every_field() -> None:
    fields = {"a.b.c": 1, "a.b.d": [1, 2], "a.e": "x", "f": None}
    assert nested(fields) == {"a": {"b": {"c": 1, "d": [1, 2]}, "e": "x"}, "f": None}
