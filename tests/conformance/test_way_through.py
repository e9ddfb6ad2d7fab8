"""The whole way of real logs: files, a real Filebeat, the ingest pipelines of a real Elasticsearch, data streams.

Framing, offsets, ids from the path, tags and every parsed field are the parser's own, event by event.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from ascend_elk.formats import compile_program, load_definitions
from ascend_elk.layout import classify
from ascend_elk.parse import Parser
from tests.conformance.test_ingest import CORPUS, flat
from tests.delivery.site import Site, make_site

# Fields that only a stack gives
OF_THE_STACK = ("event.ingested", "data_stream.type", "data_stream.dataset", "data_stream.namespace")
DEFINITIONS = load_definitions()


def lay_out(site: Site) -> list[tuple[Path, str]]:
    """Real logs as a host would hold them: those with CANN's headers as plog and device log, all as console."""
    found = []
    for number, source in enumerate(sorted(CORPUS.glob("*.log"))):
        # A last line without its end is never sent.
        data = source.read_bytes().rpartition(b"\n")[0] + b"\n"
        places = {site.logs / "console" / source.name: "console"}
        if source.name.startswith(("oam_", "mc_", "issue_", "misc_")):
            name = f"{1000 + number}_20250302112031120.log"
            places[site.plog(1000 + number).with_name(f"plog-{name}")] = "plog"
            places[site.logs / "run" / f"device-{number % 8}" / f"device-{name}"] = "device"
        for path, kind in places.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            found.append((path, kind))
    return found


def expected(path: Path, source: str, host: str) -> dict[int, dict[str, Any]]:
    """The parser's events by offset."""
    parser = Parser(compile_program(DEFINITIONS))
    # A console is read because a person names it: its path tells nothing.
    of_path = {} if source == "console" else classify(path).fields
    fields = {"log.file.path": str(path), "host.name": host, **of_path}
    events = parser.events(io.BytesIO(path.read_bytes()), source, fields, datetime.now(timezone.utc))
    return {event.offset: event.fields for event in events}


def reason(ours: dict[str, Any] | None, theirs: dict[str, Any] | None, data: bytes) -> str | None:
    """Why an event may differ, by what docs/delivery.md lists; ``None``: it may not."""
    events = [event for event in (ours, theirs) if event is not None]
    offset, text = events[0]["log.offset"], events[0]["event.original"].encode()
    line_start = data.rfind(b"\n", 0, offset) + 1
    lines = [line for event in events for line in event["event.original"].encode().split(b"\n")]
    if any(line.count(b"):") > 1 for line in (data[line_start : data.find(b"\n", offset)], *lines)):
        return "two records on one line"
    if text.split(b"\n")[0] == b"":
        return "empty lines before anything else"
    if text.startswith((b" ", b"\t")):
        return "a header behind blanks, on a console"
    return None


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the shared corpus of real logs is not here")
def test_real_logs_all_the_way(
    elasticsearch: Any, filebeat: Callable[..., Any], tmp_path: Path, namespace: str
) -> None:
    site = make_site(
        elasticsearch, filebeat, tmp_path, namespace, consoles=(str(tmp_path / "logs" / "console" / "*.log"),)
    )
    files = lay_out(site)
    site.filebeat.start()
    site.filebeat.wait_until_read([path for path, _ in files], 180)
    hits = site.wait(4000, 60)
    by_path: dict[str, dict[int, dict[str, Any]]] = {}
    for hit in hits:
        fields = flat(hit["_source"])
        for name in OF_THE_STACK:
            fields.pop(name)
        by_path.setdefault(fields["log.file.path"], {})[fields["log.offset"]] = fields
    (host,) = {hit["_source"]["host"]["name"] for hit in hits}
    same, excused, wrong = 0, {}, []
    for path, source in files:
        data = path.read_bytes()
        ours, theirs = expected(path, source, host), by_path.get(str(path), {})
        for offset in sorted(ours.keys() | theirs.keys()):
            one, other = ours.get(offset), theirs.get(offset)
            if one is not None and other is not None:
                # A line without a time has that of reading.
                undated = "@timestamp" not in one or "ascend.clock.unsynchronised" in one
                skipped = {"@timestamp"} if undated else set()
                names = [n for n in one | other if n not in skipped and one.get(n) != other.get(n)]
                if not names:
                    same += 1
                    continue
            else:
                names = ["event"]
            why = reason(one, other, data)
            if why is None:
                values = [(n, (one or {}).get(n), (other or {}).get(n)) for n in names[:4]]
                wrong.append(f"{path.name} ({source}) at {offset}: {values}")
            else:
                excused[why] = excused.get(why, 0) + 1
    total = same + len(wrong) + sum(excused.values())
    assert not wrong, f"{len(wrong)} of {total} differ, {excused} excused\n" + "\n".join(wrong[:15])
    assert same > 4000
    assert sum(excused.values()) < total * 0.02, excused
