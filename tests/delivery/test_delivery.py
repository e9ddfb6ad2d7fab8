"""A real Filebeat and a real Elasticsearch under faults: every record arrives once, under its header's offset."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.delivery.site import Site, header, make_site


@pytest.fixture
def site(elasticsearch: Any, filebeat: Callable[..., Any], tmp_path: Path, namespace: str) -> Site:
    return make_site(elasticsearch, filebeat, tmp_path, namespace)


def record(number: int, writer: int = 0) -> str:
    """Every third record has more lines, some of them empty."""
    text = header(number, writer=writer)
    return f"{text}\n        EI0006: detail {number}\n\n  last line of {number}" if number % 3 == 0 else text


class Writers:
    """Threads that append records, each to its own file, until they are told to stop.

    After a first burst they write slowly: a slow machine then gets no more records, only more time.
    """

    BURST, PAUSE, SLOW_PAUSE = 1000, 0.002, 0.1

    def __init__(self, site: Site, count: int) -> None:
        self.site = site
        self.stopped = threading.Event()
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(writer,)) for writer in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self, writer: int) -> None:
        path, number = self.site.plog(1000 + writer), 0
        with path.open("ab", buffering=0) as out:
            while not self.stopped.is_set():
                text = record(number, writer)
                # CANN's log library writes a record by one call.
                out.write(f"{text}\n".encode())
                with self.lock:
                    self.site.written[text] += 1
                number += 1
                time.sleep(self.PAUSE if number < self.BURST else self.SLOW_PAUSE)

    def stop(self) -> int:
        self.stopped.set()
        for thread in self.threads:
            thread.join()
        return sum(self.site.written.values())


def test_kill_each_in_turn_while_several_write(site: Site) -> None:
    writers = Writers(site, 3)
    for turn in range(3):
        site.filebeat.start()
        time.sleep(2.5)
        if turn == 1:
            site.server.kill()
            time.sleep(1)
            site.server.start()
            time.sleep(1)
        site.filebeat.kill()
    site.filebeat.start()
    count = writers.stop()
    assert count > 1500
    hits = site.wait(count, 240)
    site.check(hits)
    site.check_offsets(hits)


def test_an_orderly_stop_in_mid_record(site: Site) -> None:
    """Every line of the record arrives, and none twice, though Filebeat stops between its lines."""
    path = site.plog(57)
    site.append(path, header(1))
    site.filebeat.start()
    site.filebeat.wait_until_read([path])
    with path.open("a") as out:
        out.write(f"{header(2)}\n  first half\n")
    time.sleep(8)
    site.filebeat.stop()
    with path.open("a") as out:
        out.write(f"  second half\n{header(3)}\n")
    site.filebeat.start()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        texts = [hit["_source"]["event"]["original"] for hit in site.stored()]
        if any(text == header(3) for text in texts):
            break
        time.sleep(1)
    lines = [line for text in texts for line in text.split("\n")]
    assert sorted(lines) == sorted([header(1), header(2), "  first half", "  second half", header(3)])
    site.check_offsets(site.stored())


def test_truncated_and_written_anew(site: Site) -> None:
    """The same path and the same offsets, other content: none hides the other."""
    path = site.plog(57)
    site.append(path, *(record(number) for number in range(20)))
    site.filebeat.start()
    site.wait(20)
    os.truncate(path, 0)
    # Filebeat sees a truncation by the size, when it next looks at the file.
    time.sleep(12)
    site.append(path, *(record(number) for number in range(100, 110)))
    site.check(site.wait(30))


def test_rotated_by_renaming(site: Site) -> None:
    path = site.plog(57)
    site.append(path, *(record(number) for number in range(10)))
    site.filebeat.start()
    site.wait(10)
    path.rename(path.with_name("plog-57_20250302112031120.log.1"))
    site.append(path.with_name("plog-57_20250302112031120.log.1"), *(record(n) for n in range(10, 15)))
    site.append(path, *(record(number) for number in range(100, 110)))
    site.check(site.wait(25))


def test_a_file_of_one_short_line(site: Site) -> None:
    path = site.plog(57)
    text = "[ERROR] GE(7,a):2025-03-02-11:20:31.120.004 [a.cc:1]7 R:x"
    assert len(text) < 64
    site.append(path, text)
    site.filebeat.start()
    site.check(site.wait(1))


def test_a_thousand_files_at_once(site: Site) -> None:
    for number in range(1000):
        site.append(site.plog(5000 + number), header(number), f"{header(number, 'GE')}\n  more")
    site.filebeat.start()
    hits = site.wait(2000, 120)
    site.check(hits)
    pids = {hit["_source"]["log"]["file"]["path"] for hit in hits}
    assert len(pids) == 1000


def test_a_full_queue_while_elasticsearch_stands_still(site: Site) -> None:
    path = site.plog(57)
    site.append(path, *(record(number) for number in range(10)))
    site.filebeat.start()
    site.wait(10)
    site.server.pause()
    # More than the queue of 8,192 events holds
    site.append(path, *(record(number) for number in range(10, 12_000)))
    time.sleep(15)
    site.server.resume()
    hits = site.wait(12_000, 180)
    site.check(hits)
    site.check_offsets(hits[::50])


def test_a_mapping_conflict_costs_nothing(
    elasticsearch: Any, filebeat: Callable[..., Any], tmp_path: Path, namespace: str
) -> None:
    """A field that the strict mapping refuses: the events are kept as text beside the others."""

    def add_unknown_field(entry: dict[str, Any]) -> None:
        if entry["id"].startswith("ascend-plog"):
            entry["fields"]["ascend"]["of_a_later_version"] = 1

    site = make_site(elasticsearch, filebeat, tmp_path, namespace, add_unknown_field)
    path = site.plog(57)
    site.append(path, *(record(number) for number in range(10)))
    device = site.logs / "debug" / "device-3" / "device-57_20250302112031120.log"
    device.parent.mkdir(parents=True)
    site.append(device, *(record(number) for number in range(20, 30)))
    site.filebeat.start()
    hits = site.wait(20)
    refused = [hit["_source"] for hit in hits if "deadletter" in hit["_index"]]
    stored = [hit["_source"] for hit in hits if "deadletter" not in hit["_index"]]
    assert {source["ascend"]["device"]["id"] for source in stored} == {3}
    assert len(stored) == len(refused) == 10
    for number in range(10):
        assert sum(f"record {number}" in source["message"] for source in refused) == 1
    assert all("strict" in str(source) for source in refused), refused[0]


def test_the_line_as_read_is_left_out_where_the_host_says_so(
    elasticsearch: Any, filebeat: Callable[..., Any], tmp_path: Path, namespace: str
) -> None:
    site = make_site(elasticsearch, filebeat, tmp_path, namespace, original=False)
    site.append(site.plog(57), header(1), header(2))
    site.filebeat.start()
    sources = [hit["_source"] for hit in site.wait(2)]
    assert {source["message"] for source in sources} == {
        "[a.cc:1] [0]record 1",
        "[a.cc:2] [0]record 2",
    }
    assert not any("original" in source["event"] for source in sources)
