"""What is collected is bounded, and the same whoever reads it."""

from __future__ import annotations

import pickle
import random

import pytest

from ascend_elk.diagnose import conclude
from ascend_elk.diagnose.collect import MAX_ENTRIES, MAX_EXAMPLES, MAX_GROUPS, Collector
from ascend_elk.diagnose.model import MAX_MARKS
from tests.diagnose.job import Job


def failing_job() -> Job:
    job = Job(hosts=2, devices=2)
    job.start()
    for step in range(30):
        for rank in range(4):
            job.collective(rank, 10 + step + rank * 0.001)
    job.line(3, 50, "an exception occurred during AICPU execution, stream_id:2", module="RUNTIME")
    for rank in range(3):
        job.notify_timeout(rank, 1900 + rank)
        job.socket_timeout(rank, 3, 1950)
    return job


def test_repeats_are_counted_not_kept() -> None:
    job = Job(hosts=1, devices=1)
    job.start()
    for number in range(5000):
        job.line(0, number, f"recv fail, data[0x{number:x}], size[{number}]")
        job.line(0, number, f"no sign knows error number {number}")
    collector = Collector().feed(job.events)
    (trace,) = collector.traces.values()
    counts = {group.sign: group.count for group in trace.groups.values()}
    assert counts["peer-closed"] == 5000
    assert counts["no sign knows error number #"] == 5000
    assert all(len(group.examples) <= MAX_EXAMPLES for group in trace.groups.values())
    assert len(pickle.dumps(collector)) < 50_000


def test_kinds_without_end_are_bounded() -> None:
    job = Job(hosts=1, devices=1)
    job.start()
    words = ["".join(random.Random(n).choices("abcdefghij", k=12)) for n in range(3000)]
    for number, word in enumerate(words):
        job.line(0, number, f"{word} went wrong")
        job.line(
            0,
            number,
            f"   |  192.0.2.{number % 250}({number})   |   192.0.2.1(0)   |  client  | no connect |",
        )
    (trace,) = Collector().feed(job.events).traces.values()
    assert len(trace.groups) <= 2 * MAX_GROUPS + 1
    assert sum(group.count for group in trace.groups.values()) >= 6000


def test_entries_are_bounded_and_the_latest_stay() -> None:
    job = Job(hosts=1, devices=1)
    for number in range(3 * MAX_ENTRIES):
        job.collective(0, number * 0.01)
    (trace,) = Collector().feed(job.events).traces.values()
    (entries,) = trace.entries.values()
    assert entries.total == 3 * MAX_ENTRIES
    assert len(entries.times) < 2 * MAX_ENTRIES
    assert max(entries.times) - min(entries.times) < 2 * MAX_ENTRIES * 0.01


@pytest.mark.parametrize("seed", range(5))
def test_readers_of_parts_merge_to_the_verdict_of_one(seed: int) -> None:
    events = failing_job().events
    whole = conclude(Collector().feed(events))
    by_file: dict[str, list[object]] = {}
    for event in events:
        by_file.setdefault(event.fields["log.file.path"], []).append(event)
    files = list(by_file.values())
    random.Random(seed).shuffle(files)
    merged = Collector()
    for start in range(0, len(files), 3):
        part = Collector()
        for file in files[start : start + 3]:
            part.feed(file)  # type: ignore[arg-type]
        merged.merge(pickle.loads(pickle.dumps(part)))
    assert conclude(merged).to_json() == whole.to_json()


def test_verdict_on_a_thousand_cards_with_millions_of_lines_stays_small() -> None:
    import json

    job = Job(hosts=128, devices=8)
    job.start()
    for rank in range(1, job.size):
        job.notify_timeout(rank, 1900 + rank * 0.001)
        job.socket_timeout(rank, 0, 1950)
    collector = Collector().feed(job.events)
    for trace in collector.traces.values():
        for group in trace.groups.values():
            group.count *= 1000
    verdict = conclude(collector)
    assert (verdict.cards[0].host, verdict.cards[0].device) == ("worker-0", 0)
    assert len(verdict.timeline.lanes) == 1024
    assert all(len(lane.marks) <= MAX_MARKS for lane in verdict.timeline.lanes)
    assert len(json.dumps(verdict.to_json())) < 8_000_000


def test_json_is_plain_and_has_every_documented_key() -> None:
    import json

    document = json.loads(json.dumps(conclude(Collector().feed(failing_job().events)).to_json()))
    assert {
        "kind",
        "cards",
        "confidence",
        "chain",
        "episodes",
        "evidence",
        "missing",
        "remediation",
        "remediation_zh",
    } <= document.keys()
    assert {"host", "device", "rank", "pid"} <= document["cards"][0].keys()
    assert {"file", "line", "text"} <= document["evidence"][0].keys()
