from __future__ import annotations

from datetime import datetime, timezone
from zoneinfo import ZoneInfo

import pytest

from ascend_elk.parse.times import Clock

READ_AT = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("kind", "written", "expected"),
    [
        ("plog", "2025-03-02-11:20:31.120.004", "2025-03-02T11:20:31.120004Z"),
        ("plog", "2025-13-02-11:20:31.120.004", None),
        ("plog", "2025-02-30-11:20:31.120.004", None),
        ("plog", "2025-03-02-25:20:31.120.004", None),
        ("plog", "2025-03-02-11:20:99.120.004", None),
        ("plog-seconds", "2025-03-02-11:20:31", "2025-03-02T11:20:31.000000Z"),
        ("iso", "2025-06-23 10:53:57.023+0800", "2025-06-23T02:53:57.023000Z"),
        ("iso", "2025-06-23T10:53:57Z", "2025-06-23T10:53:57.000000Z"),
        ("iso", "2025-09-29 10:40:46,975", "2025-09-29T10:40:46.975000Z"),
        ("iso", "2025-12-12 12:10:10:654", "2025-12-12T12:10:10.654000Z"),
        ("iso", "2025-06-23 10:53:57+9900", None),
        ("iso", "2025-06-23 10:53:60", None),
        ("iso", "9999-06-23 10:53:57", None),
        ("plog", "2262-03-02-11:20:31.120.004", None),
        ("slash", "2024/01/10 03:29:09.354927", "2024-01-10T03:29:09.354927Z"),
        ("glog", "20260608 14:45:44.404089", "2026-06-08T14:45:44.404089Z"),
        ("glog", "730 06:16:22.869118032", "2025-07-30T06:16:22.869118032Z"),
        ("glog", "1212 06:16:22.869118", "2025-12-12T06:16:22.869118Z"),
        ("glog", "301 06:16:22.869118", "2026-03-01T06:16:22.869118Z"),
        ("month-day", "01-07 10:46:57", "2026-01-07T10:46:57.000000Z"),
        ("month-day", "12-31 10:46:57", "2025-12-31T10:46:57.000000Z"),
        ("syslog", "Jul  9 10:11:12", "2025-07-09T10:11:12.000000Z"),
        ("syslog", "Foo  9 10:11:12", None),
    ],
)
def test_written_times_become_utc(kind: str, written: str, expected: str | None) -> None:
    assert Clock(timezone.utc, READ_AT).readers[kind](written) == expected


def test_zone_is_applied_with_its_history() -> None:
    clock = Clock(ZoneInfo("Asia/Shanghai"), READ_AT)
    assert clock.readers["plog"]("2025-03-02-07:20:31.120.004") == "2025-03-01T23:20:31.120004Z"
    summer = Clock(ZoneInfo("Europe/Berlin"), READ_AT)
    assert summer.readers["plog"]("2025-07-02-07:20:31.120.004") == "2025-07-02T05:20:31.120004Z"


def test_times_of_all_writers_compare_as_text() -> None:
    clock = Clock(timezone.utc, READ_AT)
    times = [
        clock.readers["iso"]("2025-06-23 10:53:57"),
        clock.readers["plog"]("2025-06-23-10:53:57.000.001"),
        clock.readers["iso"]("2025-06-23 10:53:57.2"),
    ]
    assert times == sorted(times)  # type: ignore[type-var]
