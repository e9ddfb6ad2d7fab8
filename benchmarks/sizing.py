"""Cost of an event on its way: ``python -m benchmarks.sizing [--events 60000] [--write]``, then ``--table``.

Processor time (not wall time, which other work on the machine stretches) of a real Filebeat with the rendered
inputs and of a real Elasticsearch with the rendered pipelines, and bytes on disk per event. ``--write``
keeps the figures in ``sizing.json``; ``--table`` prints the table of ``docs/scale.md`` out of them.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from elasticsearch import helpers

from ascend_elk.render import RenderOptions, render, write
from ascend_elk.simulate.bulk import write_info_log
from benchmarks.pipeline import BYTES_PER_LINE, as_match_only_text, documents, records
from tests.delivery.site import install
from tests.engines.elasticsearch import ElasticsearchServer
from tests.engines.filebeat import Filebeat, file_output

FIGURES = Path(__file__).with_name("sizing.json")
CARDS = (8, 128, 1_024, 10_000)
# Events a second of one card: assumptions, to be replaced by what doctor measures on the site's own hosts.
RATES = (1, 10, 100)
CARDS_PER_HOST = 8
# A core of Elasticsearch is planned to be half busy: merges, searches and bursts take the rest.
BUSY = 0.5
COPIES = 2
DAYS = 30


def processor_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def filebeat(directory: Path, log: Path, events: int) -> dict[str, float]:
    """Processor seconds per event from start to the last acknowledgement, and the highest memory."""
    root = str(log.parents[2])
    options = RenderOptions(stack="7.17", tls=False, roots=(root,))
    write(render(options), directory / "rendered", force=False)
    for path in (directory / "rendered/filebeat/inputs.d").glob("*.yml"):
        entries = yaml.safe_load(path.read_text())
        for entry in entries:
            entry["paths"] = [text for text in entry["paths"] if text.startswith(root)]
        path.write_text(yaml.safe_dump([entry for entry in entries if entry["paths"]]))
    settings = {**file_output(directory / "output"), "output.logstash.enabled": False}
    beat = Filebeat(directory, directory / "rendered/filebeat/filebeat.yml", settings=settings)
    beat.start()
    try:
        pid = _pid(beat)
        time.sleep(3)
        idle = processor_seconds(pid)
        beat.wait_until_read([log], timeout=900)
        spent = processor_seconds(pid)
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line
        )
    finally:
        beat.stop()
    # The first seconds read, too: both ends are given, the truth lies between.
    return {
        "seconds_per_event": spent / events,
        "seconds_per_event_without_start": (spent - min(idle, spent)) / events,
        "peak_memory_bytes": int(status["VmHWM"].split()[0]) * 1024,
    }


def _pid(beat: Filebeat) -> int:
    process = beat._process
    if process is None:
        raise RuntimeError("Filebeat is not running")
    for child in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(child.name)) == process.pid and (child / "comm").read_text().startswith(
                "filebeat"
            ):
                return int(child.name)
        except (ProcessLookupError, FileNotFoundError):
            continue
    return process.pid


def elasticsearch(
    server: ElasticsearchServer, log: Path, *, original: bool, pipeline: bool
) -> dict[str, float]:
    """Processor seconds per event, from the first bulk request to the refresh, and bytes on disk."""
    namespace = f"b{uuid.uuid4().hex[:10]}"
    options = RenderOptions(parser="ingest", elasticsearch=(server.url,), tls=False, namespace=namespace)
    install(server, options)
    as_match_only_text(server, namespace)
    client = server.client.options(request_timeout=600)
    actions = list(documents(log, namespace, original))
    stream = f"logs-ascend.plog-{namespace}"
    before = _server_seconds(server)
    name = {"pipeline": "ascend-elk"} if pipeline else {}
    for ok, answer in helpers.parallel_bulk(client, actions, thread_count=2, chunk_size=1000, **name):
        if not ok:
            raise SystemExit(json.dumps(answer)[:500])
    client.indices.refresh(index=stream)
    spent = _server_seconds(server) - before
    client.indices.forcemerge(index=stream, max_num_segments=1)
    client.indices.flush(index=stream, force=True)
    size = client.indices.stats(index=stream, metric="store")["_all"]["primaries"]["store"]["size_in_bytes"]
    return {"seconds_per_event": spent / len(actions), "bytes_per_event": size / len(actions)}


def _server_seconds(server: ElasticsearchServer) -> float:
    (node,) = server.client.nodes.stats(metric="process")["nodes"].values()
    return float(node["process"]["cpu"]["total_in_millis"]) / 1000


def measure(events: int) -> dict[str, Any]:
    """Run everything once, Elasticsearch after a warm-up."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        log = directory / "log/debug/plog/plog-4021_20250302112029000.log"
        log.parent.mkdir(parents=True)
        write_info_log(log, events * BYTES_PER_LINE, seed=1)
        count = sum(1 for _ in records(log))
        figures: dict[str, Any] = {
            "events": count,
            "bytes_per_record": log.stat().st_size / count,
            "processor": _processor(),
            "filebeat": filebeat(directory / "filebeat", log, count),
        }
        server = ElasticsearchServer(heap="1g")
        try:
            elasticsearch(server, log, original=True, pipeline=True)
            figures["stored"] = elasticsearch(server, log, original=True, pipeline=False)
            figures["ingest"] = elasticsearch(server, log, original=True, pipeline=True)
            figures["ingest_without_original"] = elasticsearch(server, log, original=False, pipeline=True)
        finally:
            server.close()
    return figures


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {len(names)} threads" if names else "unknown"


def rows(figures: Mapping[str, Any]) -> list[list[str]]:
    """Rows of the table: what so many cards at such a rate need, by the formulas of ``docs/scale.md``."""
    found = []
    ingest, beat = figures["ingest"], figures["filebeat"]
    for cards in CARDS:
        for rate in RATES:
            events = cards * rate
            daily = events * 86_400
            cores = events * ingest["seconds_per_event"] / BUSY
            share = CARDS_PER_HOST * rate * beat["seconds_per_event"]
            disk = daily * DAYS * COPIES
            found.append(
                [
                    f"{cards:,}",
                    f"{rate}",
                    f"{events:,}",
                    f"{share:.2%}",
                    f"{cores:.1f}" if cores >= 0.1 else "< 0.1",
                    f"{disk * ingest['bytes_per_event'] / 1e12:,.2f}",
                    f"{disk * figures['ingest_without_original']['bytes_per_event'] / 1e12:,.2f}",
                ]
            )
    return found


HEADER = [
    "cards",
    "events/s per card",
    "events/s",
    "Filebeat, of one core per host",
    "Elasticsearch cores for ingest",
    "disk, TB",
    "without `event.original`, TB",
]


def table(figures: Mapping[str, Any]) -> str:
    """The table as Markdown."""
    lines = [HEADER, ["---:"] * len(HEADER), *rows(figures)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    """Measure and print, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=60_000)
    parser.add_argument("--write", action="store_true", help="keep the figures")
    parser.add_argument("--table", action="store_true", help="only the table, from the figures that are kept")
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(FIGURES.read_text())))
        return
    figures = measure(options.events)
    print(json.dumps(figures, indent=2))
    if options.write:
        FIGURES.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
