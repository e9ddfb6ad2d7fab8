"""Data streams with the product's own mapping, events in them, and services that enrich them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
import pytest

from ascend_elk.parse import nested
from ascend_elk.render import RenderOptions
from ascend_elk.render.templates import render_templates
from ascend_elk.service.catalogue import CatalogueHolder
from ascend_elk.service.changes import flat
from ascend_elk.service.health import Health
from ascend_elk.service.metrics import Metrics
from ascend_elk.service.settings import Settings
from ascend_elk.service.store import Names, Store
from ascend_elk.service.worker import Worker
from ascend_elk.service.writing import Tally
from ascend_elk.stack.http import Credentials, Server
from tests.engines import substitutions
from tests.engines.elasticsearch import ElasticsearchServer

Fields = dict[str, Any]

PLOG = "/root/ascend/log/debug/plog/plog-{pid}_20250302112029000.log"
SETUP = (
    "SetupAgent rankNum[8], rank[{rank}], rootInfo identifier[192.0.2.7%eth0_60000_0_17], "
    "server[192.0.2.8%eth0], logicDevId[{device}], phydevId[{device}], deviceIp[198.51.100.{device}]"
)


def install(server: ElasticsearchServer, namespace: str, settings: Fields | None = None) -> None:
    """Put the templates of the product, for one namespace only."""
    client, prefix = server.client, f"service-{namespace}"
    templates = render_templates(RenderOptions())
    for name, body in templates.components.items():
        client.cluster.put_component_template(name=f"{prefix}-{name}", **substitutions.template(body))
    for name, body in templates.indices.items():
        adapted = substitutions.template(body)
        adapted["composed_of"] = [f"{prefix}-{part}" for part in templates.components]
        adapted.pop("ignore_missing_component_templates", None)
        adapted["index_patterns"] = [f"logs-ascend.*-{namespace}"]
        adapted["priority"] = 500
        index = {"number_of_replicas": 0, "refresh_interval": "200ms", **(settings or {})}
        adapted["template"] = {"settings": {"index": index}}
        client.indices.put_index_template(name=f"{prefix}-{name}", **adapted)


def error(pid: int, number: int = 0, **more: Any) -> Fields:
    """An ERROR line with a code, as the stack writes it."""
    return {
        "@timestamp": f"2025-03-02T11:{20 + number // 60 % 40:02}:{number % 60:02}.{number % 1000:03}000000Z",
        "event.module": "ascend",
        "event.dataset": "ascend.plog",
        "event.severity": 3,
        "event.ingested": now(),
        "log.level": "ERROR",
        "host.name": "worker-0",
        "process.pid": pid,
        "log.file.path": PLOG.format(pid=pid),
        "log.offset": number * 200,
        "ascend.source": "plog",
        "ascend.module": "HCCL",
        "message": f"call failed, error code EI0006, record {number}",
        "event.original": f"[ERROR] record {number}",
        "ascend.error.codes": ["cann:EI0006"],
        **more,
    }


def setup(pid: int, rank: int, device: int, **more: Any) -> Fields:
    """The line that says which card a process drives."""
    return {
        **error(pid),
        "@timestamp": "2025-03-02T11:19:00.000000000Z",
        "log.level": "INFO",
        "event.severity": 1,
        "message": SETUP.format(rank=rank, device=device),
        "ascend.rank.id": rank,
        "ascend.rank.size": 8,
        "ascend.device.id": device,
        "ascend.communicator.id": "192.0.2.7%eth0_60000_0_17",
        "ascend.error.codes": None,
        "log.offset": 1,
        **more,
    }


def info(pid: int, number: int) -> Fields:
    """A line that can gain nothing."""
    return {
        **error(pid, number),
        "log.level": "DEBUG",
        "event.severity": 0,
        "message": f"enter, record {number}",
        "ascend.error.codes": None,
    }


@lru_cache(maxsize=1)
def own_catalogue() -> CatalogueHolder:
    """The package's catalogue; reading it takes a second."""
    return CatalogueHolder()


def now() -> str:
    """As the stack writes it, in whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@dataclass
class Site:
    """One namespace of data streams, and its services."""

    server: ElasticsearchServer
    namespace: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> Names:
        return Names.of(self.namespace)

    def write(self, events: Iterable[Fields], *, refresh: bool = True, dataset: str = "plog") -> list[str]:
        """Create events, as the shippers do; returns their ids."""
        client, ids = self.server.client, []
        lines: list[Any] = []
        for event in events:
            lines += [
                {"create": {}},
                nested({name: value for name, value in event.items() if value is not None}),
            ]
        for start in range(0, len(lines), 4_000):
            answer = client.bulk(
                index=f"logs-ascend.{dataset}-{self.namespace}",
                operations=lines[start : start + 4_000],
                refresh=refresh,
            )
            assert not answer["errors"], answer["items"][0]
            ids += [item["create"]["_id"] for item in answer["items"]]
        return ids

    def events(self) -> list[Fields]:
        """All events, flat, with ``_id``, ``_index`` and ``_version``."""
        self.server.client.indices.refresh(index=self.names.streams)
        found: list[Fields] = []
        after = None
        while True:
            page = self.server.client.search(
                index=self.names.streams,
                size=5_000,
                sort=["@timestamp", "log.offset"],
                version=True,
                search_after=after,
            )["hits"]["hits"]
            for hit in page:
                extra = {"_id": hit["_id"], "_index": hit["_index"], "_version": hit["_version"]}
                found.append({**flat(hit["_source"]), **extra})
            if len(page) < 5_000:
                return found
            after = page[-1]["sort"]

    def documents(self, index: str) -> list[Fields]:
        """All documents of one of the service's indices."""
        self.server.client.indices.refresh(index=index, ignore_unavailable=True)
        hits = self.server.client.search(index=index, size=1_000, ignore_unavailable=True)["hits"]["hits"]
        return [hit["_source"] for hit in hits]

    def connect(self) -> Store:
        return Store(Server("Elasticsearch", self.server.url, Credentials(), ca=self.server.ca))

    def service(self, holder: CatalogueHolder | None = None, **options: Any) -> Service:
        """A service that does not run yet."""
        settings = Settings(
            self.server.url,
            namespace=self.namespace,
            **{"poll": 0.1, "sweep": 0.5, "incidents": False, **self.options, **options},
        )
        return Service(settings, self.connect, holder or own_catalogue())

    def catch_up(self, holder: CatalogueHolder | None = None, **options: Any) -> Tally:
        """Run a service once over everything."""
        since = options.pop("since", None)
        return self.service(holder, **options).worker.catch_up(lambda _: None, since=since)


class Service:
    """A worker with all that it needs."""

    def __init__(self, settings: Settings, connect: Callable[[], Store], holder: CatalogueHolder) -> None:
        self.metrics = Metrics()
        self.health = Health()
        self.stop = threading.Event()
        self.worker = Worker(settings, connect, holder, self.metrics, self.health, self.stop)

    def value(self, name: str, **labels: str) -> float:
        """A metric."""
        return self.metrics.registry.get_sample_value(f"ascend_elk_{name}", labels) or 0.0

    @contextmanager
    def running(self, **options: Any) -> Iterator[Service]:
        """Run it in a thread; it must end in order."""
        thread = threading.Thread(target=self.worker.run, kwargs=options, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.stop.set()
            thread.join(60)
            assert not thread.is_alive()


def until(condition: Callable[[], Any], seconds: float = 120, what: str = "it") -> Any:
    """Wait for something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    pytest.fail(f"{what} did not happen within {seconds} s")


def user_codes(path: Path, meaning: str) -> Path:
    """A catalogue file of a user's, with another meaning of EI0006."""
    path.write_bytes(b"codes:\n- " + orjson.dumps({"family": "cann", "code": "EI0006", "meaning": meaning}))
    return path
