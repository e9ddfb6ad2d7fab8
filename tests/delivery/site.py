"""A host with the rendered configuration: its log root, its Filebeat, and the data streams that it fills."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml
from elasticsearch import ApiError, helpers

from ascend_elk.render import RenderOptions, render, write
from ascend_elk.render.templates import render_templates
from ascend_elk.render.tree import documents
from tests.engines import substitutions
from tests.engines.elasticsearch import ElasticsearchServer
from tests.engines.filebeat import Filebeat


def header(number: int, module: str = "HCCL", writer: int = 0) -> str:
    """The first line of a record that is like no other."""
    time_of_day = f"11:{number // 60000 % 60:02}:{number // 1000 % 60:02}.{number % 1000:03}.{writer:03}"
    return f"[ERROR] {module}({100 + writer},python):2025-03-02-{time_of_day} [a.cc:{number}] [{writer}]record {number}"


@dataclass
class Site:
    """Where logs are written, and where they arrive."""

    server: ElasticsearchServer
    namespace: str
    logs: Path
    filebeat: Filebeat
    written: Counter[str] = field(default_factory=Counter)

    def plog(self, pid: int, mode: str = "debug") -> Path:
        """The path of a process's log."""
        path = self.logs / mode / "plog" / f"plog-{pid}_20250302112031120.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def append(self, path: Path, *records: str) -> None:
        """Append whole records, and remember them."""
        with path.open("a") as out:
            out.write("".join(f"{record}\n" for record in records))
        self.written.update(records)

    def stored(self) -> list[dict[str, Any]]:
        """All documents of the data streams of this site."""
        pattern = f"logs-ascend.*-{self.namespace}"
        client = self.server.client
        client.indices.refresh(index=pattern, ignore_unavailable=True, allow_no_indices=True)
        query = {"query": {"match_all": {}}}
        return list(helpers.scan(client, index=pattern, query=query, ignore_unavailable=True))

    def wait(self, count: int, timeout: float = 90) -> list[dict[str, Any]]:
        """Wait until at least so many documents are there, then a little for those that are too many."""
        pattern = f"logs-ascend.*-{self.namespace}"
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            client = self.server.client
            try:
                client.indices.refresh(index=pattern, ignore_unavailable=True, allow_no_indices=True)
                if client.count(index=pattern, ignore_unavailable=True)["count"] >= count:
                    break
            except ApiError as error:
                # A stream that is just being made has no shard to ask yet.
                if error.meta.status != HTTPStatus.SERVICE_UNAVAILABLE:
                    raise
            time.sleep(0.5)
        time.sleep(1)
        return self.stored()

    def check(self, hits: Iterable[dict[str, Any]]) -> None:
        """Every record is there exactly once, by id and by content, under its header's offset."""
        hits = list(hits)
        strange = [hit for hit in hits if "original" not in hit["_source"].get("event", {})]
        assert not strange, strange[:2]
        found = Counter(hit["_source"]["event"]["original"] for hit in hits)
        missing, doubled = self.written - found, found - self.written
        assert not missing, f"{len(missing)} of {len(self.written)} lost: {list(missing)[:3]}"
        assert not doubled, f"{len(doubled)} too many: {list(doubled)[:3]}"
        assert len({hit["_id"] for hit in hits}) == len(hits)

    def check_offsets(self, hits: Iterable[dict[str, Any]]) -> None:
        """The bytes at an event's offset are the event's."""
        for hit in hits:
            source = hit["_source"]
            data = Path(source["log"]["file"]["path"]).read_bytes()
            text = source["event"]["original"].encode()
            assert data[source["log"]["offset"] :].startswith(text), source["log"]


def install(server: ElasticsearchServer, options: RenderOptions) -> None:
    """Put templates and pipelines, as ``ascend-elk install`` does; the templates for this namespace only."""
    client, prefix = server.client, f"delivery-{options.namespace}"
    _, pipelines = documents(options)
    for name, body in reversed(pipelines.items()):
        client.ingest.put_pipeline(id=name, **json.loads(json.dumps(substitutions.pipeline(body))))
    templates = render_templates(options)
    for name, body in templates.components.items():
        client.cluster.put_component_template(name=f"{prefix}-{name}", **substitutions.template(body))
    for name, body in templates.indices.items():
        adapted = substitutions.template(body)
        adapted["composed_of"] = [f"{prefix}-{part}" for part in templates.components]
        adapted.pop("ignore_missing_component_templates", None)
        adapted["index_patterns"] = [f"logs-ascend.*-{options.namespace}"]
        adapted["priority"] = 500
        client.indices.put_index_template(name=f"{prefix}-{name}", **adapted)


def make_site(
    server: ElasticsearchServer,
    make_filebeat: Callable[..., Filebeat],
    directory: Path,
    namespace: str,
    change: Callable[[dict[str, Any]], None] = lambda _: None,
    **options: Any,
) -> Site:
    """Render, install, and leave of the inputs those below one log root.

    Args:
        server: Elasticsearch.
        make_filebeat: the fixture.
        directory: of the test.
        namespace: of the data streams.
        change: what a test changes in each input.
        options: further choices of the rendering.
    """
    logs = directory / "logs"
    logs.mkdir()
    chosen = RenderOptions(
        stack="7.17",
        parser="ingest",
        elasticsearch=(server.url,),
        tls=False,
        namespace=namespace,
        roots=(str(logs),),
        timezone="UTC",
        **options,
    )
    install(server, chosen)
    write(render(chosen), directory / "rendered", force=False)
    for path in (directory / "rendered" / "filebeat" / "inputs.d").glob("*.yml"):
        inputs = yaml.safe_load(path.read_text())
        for entry in inputs:
            entry["paths"] = [text for text in entry["paths"] if text.startswith(str(logs))]
            change(entry)
        kept = [entry for entry in inputs if entry["paths"]]
        path.write_text(yaml.safe_dump(kept)) if kept else path.unlink()
    beat = make_filebeat(directory / "rendered" / "filebeat" / "filebeat.yml", settings={})
    return Site(server, namespace, logs, beat)


def now() -> str:
    """Of the clock, in UTC."""
    return datetime.now(timezone.utc).isoformat()
