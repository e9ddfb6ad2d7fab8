"""Speed and size on the way to Elasticsearch: ``python -m benchmarks.pipeline [--events 60000]``.

A real Filebeat with the rendered inputs, writing to files; a real Elasticsearch with the rendered templates
and ingest pipelines, fed by bulk requests; and what its indices take on disk, forced to one segment, against
the bytes of the lines. The log is INFO-heavy and generated. The servers are those of ``tests/engines``.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from elasticsearch import helpers
from rich.console import Console
from rich.table import Table

from ascend_elk.render import RenderOptions, render, write
from ascend_elk.simulate.bulk import write_info_log
from tests.delivery.site import install
from tests.engines.elasticsearch import ElasticsearchServer
from tests.engines.filebeat import Filebeat, file_output

BYTES_PER_LINE = 150


def filebeat_speed(directory: Path, log: Path, events: int) -> float:
    """Events per second through Filebeat alone, from the first acknowledgement to the last."""
    options = RenderOptions(stack="7.17", tls=False, roots=(str(log.parents[2]),))
    write(render(options), directory / "rendered", force=False)
    inputs = directory / "rendered" / "filebeat" / "inputs.d"
    for path in inputs.glob("*.yml"):
        entries = yaml.safe_load(path.read_text())
        for entry in entries:
            entry["paths"] = [text for text in entry["paths"] if text.startswith(str(log.parents[2]))]
        path.write_text(yaml.safe_dump([entry for entry in entries if entry["paths"]]))
    settings = {**file_output(directory / "output"), "output.logstash.enabled": False}
    beat = Filebeat(directory, directory / "rendered" / "filebeat" / "filebeat.yml", settings=settings)
    last = log.stat().st_size - 10_000
    beat.start()
    try:
        start = _when(beat, 1)
        # The last record waits for a rest that does not come.
        return events / (_when(beat, last) - start)
    finally:
        beat.stop()


def _when(beat: Filebeat, offset: int) -> float:
    """The moment at which so many bytes are acknowledged."""
    while not any(
        (state.get("cursor") or {}).get("offset", 0) >= offset for state in beat.registry().values()
    ):
        time.sleep(0.05)
    return time.perf_counter()


def records(log: Path) -> Iterator[tuple[int, str]]:
    """Offset of the last line and text of each record, as Filebeat gives them."""
    offset, pending, last = 0, b"", 0
    for line in log.open("rb"):
        if line.startswith(b"[") and pending:
            yield last, pending.removesuffix(b"\n").decode()
            pending = b""
        pending, last = pending + line, offset
        offset += len(line)
    yield last, pending.removesuffix(b"\n").decode()


def documents(log: Path, namespace: str, original: bool) -> Iterator[dict[str, Any]]:
    """What Filebeat sends, as bulk actions."""
    for offset, text in records(log):
        yield {
            "_op_type": "create",
            "_index": f"logs-ascend.plog-{namespace}",
            "@timestamp": "2026-11-30T12:00:00.000Z",
            "message": text,
            "log": {
                "file": {"path": "/root/ascend/log/debug/plog/plog-4021_20250302112029000.log"},
                "offset": offset,
            },
            "host": {"name": "worker-0"},
            "ascend": {"source": "plog"},
            "process": {"pid": 4021},
            "event": {"timezone": "+08:00"},
            "data_stream": {"type": "logs", "dataset": "ascend.plog", "namespace": namespace},
            **({} if original else {"_ascend": {"original": False}}),
        }


def as_match_only_text(server: ElasticsearchServer, namespace: str) -> None:
    """Make texts as large as a full Elasticsearch makes them, whose match_only_text stores no positions."""
    name = f"delivery-{namespace}-ascend-elk-mappings"
    (found,) = server.client.cluster.get_component_template(name=name)["component_templates"]
    body = found["component_template"]

    def patch(node: Any) -> None:
        if isinstance(node, dict):
            if node.get("type") == "text":
                node["index_options"] = "docs"
            for value in node.values():
                patch(value)

    patch(body)
    server.client.cluster.put_component_template(name=name, template=body["template"])


def ingest(
    server: ElasticsearchServer, log: Path, *, original: bool, pipeline: bool = True
) -> tuple[float, float]:
    """Events per second into Elasticsearch, and bytes on disk per event."""
    namespace = f"b{uuid.uuid4().hex[:10]}"
    options = RenderOptions(parser="ingest", elasticsearch=(server.url,), tls=False, namespace=namespace)
    install(server, options)
    as_match_only_text(server, namespace)
    client = server.client.options(request_timeout=300)
    actions = list(documents(log, namespace, original))
    start = time.perf_counter()
    name = {"pipeline": "ascend-elk"} if pipeline else {}
    for ok, answer in helpers.parallel_bulk(client, actions, thread_count=2, chunk_size=1000, **name):
        if not ok:
            raise SystemExit(json.dumps(answer)[:500])
    seconds = time.perf_counter() - start
    stream = f"logs-ascend.plog-{namespace}"
    client.indices.refresh(index=stream)
    stored = client.count(index=stream)["count"]
    if stored != len(actions):
        raise SystemExit(f"{stored} of {len(actions)} stored")
    client.indices.forcemerge(index=stream, max_num_segments=1)
    client.indices.flush(index=stream, force=True)
    size = client.indices.stats(index=stream, metric="store")["_all"]["primaries"]["store"]["size_in_bytes"]
    return len(actions) / seconds, size / len(actions)


def main() -> None:
    """Generate, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=60_000)
    options = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "log" / "debug" / "plog" / "plog-4021_20250302112029000.log"
        log.parent.mkdir(parents=True)
        write_info_log(log, options.events * BYTES_PER_LINE, seed=1)
        events = sum(1 for _ in records(log))
        raw = log.stat().st_size / events
        speed = filebeat_speed(Path(directory) / "filebeat", log, events)
        server = ElasticsearchServer(heap="1g")
        try:
            # Warm the server up.
            ingest(server, log, original=True)
            bare, _ = ingest(server, log, original=True, pipeline=False)
            kept, with_original = ingest(server, log, original=True)
            left, without = ingest(server, log, original=False)
        finally:
            server.close()
    table = Table(title=f"{events:,} events, {raw:.0f} bytes per record", box=None)
    for column in ("", "events/s", "bytes on disk per event", "against the bytes of its lines"):
        table.add_column(column, justify="left" if not column else "right")
    table.add_row("Filebeat alone", f"{speed:,.0f}", "", "")
    table.add_row("Elasticsearch, stored as sent", f"{bare:,.0f}", "", "")
    table.add_row(
        "ingest, event.original kept", f"{kept:,.0f}", f"{with_original:.0f}", f"{with_original / raw:.2f}×"
    )
    table.add_row("ingest, without it", f"{left:,.0f}", f"{without:.0f}", f"{without / raw:.2f}×")
    console.print(table)


if __name__ == "__main__":
    main()
