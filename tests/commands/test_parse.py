from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest


def ndjson(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_ndjson_holds_every_event_with_its_place_and_bytes(run, cluster: Path) -> None:
    result = run("parse", cluster, "--format", "ndjson")
    assert result.code == 0
    events = ndjson(result.out)
    assert len(events) == 4 + 4 + 2
    for event in events:
        data = Path(event["log"]["file"]["path"]).read_bytes()
        original = event["event"]["original"].encode()
        assert data[event["log"]["offset"] :].startswith(original)


def test_device_and_rank_come_from_the_identity_line(run, cluster: Path) -> None:
    events = ndjson(run("parse", cluster, "--format", "ndjson", "--level", "ERROR").out)
    host_side = [event for event in events if event["ascend"]["source"] == "plog"]
    assert {event["host"]["name"] for event in host_side} == {"worker-0", "worker-1"}
    for event in host_side:
        assert event["ascend"]["device"]["id"] == 1
        assert event["ascend"]["rank"] == {"id": 9, "size": 16}
        assert event["ascend"]["device"]["key"] == f"{event['host']['name']}/1"


def test_device_side_carries_the_host_process(run, cluster: Path) -> None:
    (event, _) = ndjson(run("parse", cluster / "worker-1", "--format", "ndjson", "--module", "CCECPU").out)
    assert event["process"]["pid"] == 4021
    assert event["ascend"]["device"]["pid"] == 77
    assert event["event"]["dataset"] == "ascend.slog"


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (["--level", "ERROR"], 3),
        (["--level", "error"], 3),
        (["--level", "EVENT"], 0),
        (["--pid", 4021], 10),
        (["--pid", 1], 0),
        (["--device", 1], 10),
        (["--device", 2], 0),
        (["--since", "2025-03-02T11:20:32"], 2),
        (["--since", "2025-03-02-11:20:31.119.500", "--until", "2025-03-02 11:20:31.5"], 2),
        (["--since", "2025-03-02T19:20:32", "--timezone", "Asia/Shanghai"], 0),
    ],
)
def test_filters(run, cluster: Path, arguments: list, count: int) -> None:
    assert len(ndjson(run("parse", cluster, "--format", "ndjson", *arguments).out)) == count


def test_zone_moves_the_time(run, cluster: Path) -> None:
    (event, *_) = ndjson(run("parse", cluster, "--format", "ndjson", "--timezone", "+08:00").out)
    assert event["@timestamp"] == "2025-03-02T03:20:29.100004Z"


def test_context_shows_the_process_on_both_sides(run, cluster: Path) -> None:
    result = run(
        "parse",
        cluster / "worker-1",
        "--format",
        "ndjson",
        "--module",
        "CCECPU",
        "--level",
        "ERROR",
        "--context",
        1,
    )
    modules = [event["ascend"]["module"] for event in ndjson(result.out)]
    assert modules == ["CCECPU", "CCECPU", "RUNTIME"]


def test_table_is_plain_in_a_pipe_and_shows_one_row_per_event(run, cluster: Path) -> None:
    result = run("parse", cluster, "--level", "ERROR")
    head, *rows = result.out.splitlines()
    assert head.startswith("TIME (UTC)")
    assert len(rows) == 3
    assert "\x1b" not in result.out
    assert "⏎  its second line" in rows[0]


def test_gzip_is_read_and_a_damaged_one_is_reported_with_what_could_be_read(run, cluster: Path) -> None:
    (plain,) = (cluster / "worker-0").rglob("plog-*.log")
    packed = plain.with_name(plain.name + ".gz")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    assert len(ndjson(run("parse", cluster / "worker-0", "--format", "ndjson").out)) == 4
    packed.write_bytes(packed.read_bytes()[:-20])
    result = run("parse", cluster / "worker-0", "--format", "ndjson")
    assert result.code == 0
    assert "damaged" in result.err


def test_control_characters_do_not_reach_the_terminal(run, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(
        b"[ERROR] GE(1,a):2025-03-02-11:20:31.120.004 [a.cc:1]7 Run:\x1b[2Jgone\x07\n"
    )
    assert "\x1b" not in run("parse", tmp_path).out
