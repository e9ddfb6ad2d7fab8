"""What goes wrong on a cluster: every event is enriched in the end, once, and nothing else is harmed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest
import requests

from ascend_elk.service import writing
from ascend_elk.service.store import BusyError, Store, Written
from ascend_elk.service.writing import Tally
from tests.engines.elasticsearch import ElasticsearchServer
from tests.engines.processes import free_port

from .site import Site, error, info, install, setup, until

COMMAND = (sys.executable, "-c", "from ascend_elk.cli import main; main()", "enrich")


@pytest.fixture
def site(elasticsearch: ElasticsearchServer, namespace: str) -> Site:
    install(elasticsearch, namespace)
    return Site(elasticsearch, namespace)


def check_once(site: Site, count: int) -> None:
    """Every event is enriched, and was written once after it was created."""
    events = site.events()
    assert len(events) == count
    assert all("ascend.error.catalogue" in event for event in events)
    assert {event["_version"] for event in events} == {2}


def command(site: Site, *arguments: str, **env: str) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    options = ["--elasticsearch", site.server.url, "--namespace", site.namespace, "--no-incidents"]
    return subprocess.Popen(
        [*COMMAND, *options, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **env},
    )


def marked(site: Site) -> int:
    site.server.client.indices.refresh(index=site.names.streams)
    query = {"exists": {"field": "ascend.error.catalogue"}}
    return int(site.server.client.count(index=site.names.streams, query=query)["count"])


def test_elasticsearch_is_killed_during_a_backfill_and_comes_back(site: Site) -> None:
    site.write([setup(57, 3, 2), *(error(57, number) for number in range(1, 1_500))])
    service = site.service(batch=50)
    seen = threading.Event()

    def progress(tally: Tally) -> None:
        if tally.written and not seen.is_set():
            seen.set()
            time.sleep(0.3)

    done: list[Tally] = []
    thread = threading.Thread(target=lambda: done.append(service.worker.catch_up(progress)), daemon=True)
    thread.start()
    assert seen.wait(120)
    site.server.kill()
    until(lambda: not service.health.ready, what="noticing the loss")
    assert service.health.alive
    site.server.start()
    thread.join(300)
    assert done
    assert service.health.ready
    assert service.value("elasticsearch_retries_total") > 0
    check_once(site, 1_500)


def test_the_service_is_killed_in_the_middle_of_its_writing(site: Site) -> None:
    site.write([setup(57, 3, 2), *(error(57, number) for number in range(1, 3_000))])
    process = command(site, "--once", "--batch", "20")
    try:
        until(lambda: marked(site) > 100 or process.poll() is not None)
    finally:
        process.kill()
    process.wait()
    assert 100 < marked(site) < 3_000
    output, _ = command(site, "--once").communicate(timeout=300)
    assert "events enriched" in output
    check_once(site, 3_000)
    assert all(event["ascend.device.key"] == "worker-0/2" for event in site.events())


def test_asked_to_stop_it_finishes_and_says_goodbye(site: Site) -> None:
    site.write([error(57, number) for number in range(200)])
    url = f"http://127.0.0.1:{free_port()}"
    process = command(site, "--listen", url.removeprefix("http://"), "--poll", "0.1")
    until(lambda: marked(site) == 200 or process.poll() is not None)
    assert until(lambda: requests.get(f"{url}/readyz", timeout=30).ok)
    assert requests.get(f"{url}/healthz", timeout=30).ok
    assert "ascend_elk_events_enriched_total 200.0" in requests.get(f"{url}/metrics", timeout=30).text
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    check_once(site, 200)
    assert not [one for one in site.documents(site.names.state) if one["kind"] == "service"]


def test_two_services_share_the_work(site: Site) -> None:
    one, other = site.service(batch=50), site.service(batch=50)
    with one.running(), other.running():

        def both() -> bool:
            return all(service.worker._state._part[1] == 2 for service in (one, other))

        until(both, what="knowing of each other")
        site.write([error(57, number) for number in range(800)])
        until(lambda: marked(site) == 800)
    check_once(site, 800)
    done = [service.value("events_enriched_total") for service in (one, other)]
    assert sum(done) == 800
    assert min(done) > 200


def test_two_services_that_do_not_know_of_each_other_do_no_harm(site: Site) -> None:
    site.write([error(57, number) for number in range(600)])
    services = [site.service(batch=50) for _ in range(2)]
    for service in services:
        service.worker._state.share = lambda *_: (0, 1)  # type: ignore[method-assign]
    threads = [
        threading.Thread(target=service.worker.catch_up, args=(lambda _: None,)) for service in services
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(200)
    check_once(site, 600)
    assert sum(service.value("events_enriched_total") for service in services) == 600


def test_services_with_different_catalogues_do_not_undo_each_other(site: Site, tmp_path: Any) -> None:
    from ascend_elk.service.catalogue import CatalogueHolder

    from .site import user_codes

    site.write([error(57, number) for number in range(5)])
    old = site.service()
    with old.running():
        until(lambda: marked(site) == 5)
        new = site.service(CatalogueHolder([user_codes(tmp_path / "codes.yml", "newer")]))
        with new.running():
            until(lambda: {event["ascend.error.meaning"] for event in site.events()} == {"newer"})
            time.sleep(3)
    assert {event["ascend.error.meaning"] for event in site.events()} == {"newer"}
    assert {event["_version"] for event in site.events()} == {3}


class Interrupting(Store):
    """Does something before each bulk request for events."""

    before: Any = staticmethod(lambda store: None)

    def bulk(self, lines: Sequence[bytes], *, pipeline: str | None = None) -> list[Written]:
        if pipeline is not None:
            answer = type(self).before(self)
            if answer is not None:
                return list(answer)
        return super().bulk(lines, pipeline=pipeline)


def interrupted(site: Site, before: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make services of a site do something before each bulk request."""
    kind = type("Once", (Interrupting,), {"before": staticmethod(before)})
    plain = site.connect

    def connect() -> Store:
        return kind(plain()._server)

    monkeypatch.setattr(Site, "connect", lambda _: connect())


def test_a_document_changes_underneath(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    (name, *_) = site.write([error(57, number) for number in range(3)])
    calls: list[int] = []

    def change(_: Store) -> None:
        calls.append(1)
        if len(calls) == 1:
            (event, *_) = [event for event in site.events() if event["_id"] == name]
            site.server.client.update(index=event["_index"], id=name, doc={"labels": {"seen": "by me"}})

    interrupted(site, change, monkeypatch)
    service = site.service()
    service.worker.catch_up(lambda _: None)
    assert service.value("write_conflicts_total") == 1
    events = {event["_id"]: event for event in site.events()}
    assert all("ascend.error.meaning" in event for event in events.values())
    assert events[name]["labels.seen"] == "by me"
    assert events[name]["_version"] == 3


def test_elasticsearch_has_no_room_for_a_while(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.write([error(57, number) for number in range(10)])
    calls: list[int] = []

    def busy(_: Store) -> list[Written] | None:
        calls.append(1)
        if len(calls) == 1:
            raise BusyError("rejected (HTTP 429)")
        if len(calls) == 2:
            return [Written(429, (-1, -1), "es_rejected_execution_exception")] * 10
        return None

    interrupted(site, busy, monkeypatch)
    service = site.service()
    service.worker.catch_up(lambda _: None)
    assert service.value("elasticsearch_retries_total") >= 11
    check_once(site, 10)


def test_a_read_only_index_stops_no_other(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_BLOCKED_SECONDS", 1.0)
    site.write([error(57, number) for number in range(5)])
    site.write([error(58, number) for number in range(5)], dataset="slog")
    (index,) = {event["_index"] for event in site.events() if event["process.pid"] == 57}
    client = site.server.client
    client.indices.put_settings(index=index, settings={"index.blocks.write": True})
    service = site.service()
    with service.running():
        until(lambda: marked(site) == 5)
        assert service.value("events_rejected_total", reason="index") >= 1
        client.indices.put_settings(index=index, settings={"index.blocks.write": None})
        until(lambda: marked(site) == 10)
        until(lambda: service.health.ready)
    check_once(site, 10)


def test_a_poison_document_is_set_aside(site: Site) -> None:
    """One that Elasticsearch refuses, one that the code cannot take, one that is no UTF-8."""
    client = site.server.client
    client.ingest.put_pipeline(
        id=site.namespace,
        processors=[{"fail": {"if": "ctx.message.contains('poison')", "message": "will not have it"}}],
    )
    site.write([error(57, number) for number in range(5)])
    site.write([error(57, 6, message="poison"), error(57, 7, **{"host.name": ["a", "b"]})])
    raw = '{"create":{}}\n{"@timestamp":"2025-03-02T11:20:00Z","event":{"severity":3},"message":"half \\ud83d"}\n'
    answer = requests.post(
        f"{site.server.url}/logs-ascend.plog-{site.namespace}/_bulk?refresh=true",
        data=raw,
        headers={"Content-Type": "application/x-ndjson"},
        timeout=30,
    )
    assert not answer.json()["errors"], answer.text
    (index,) = {event["_index"] for event in site.events()}
    client.indices.put_settings(index=index, settings={"index.final_pipeline": site.namespace})
    service = site.service()
    tally = service.worker.catch_up(lambda _: None)
    assert tally.written == 6
    assert marked(site) == 6
    rejected = site.documents(site.names.rejected)
    assert {one["kind"] for one in rejected} == {"enrichment", "fail_processor_exception"}
    assert all(one["index"] == index and one["reason"] for one in rejected)
    # A restart does not stumble over them again.
    again = site.service()
    again.worker.catch_up(lambda _: None)
    assert again.value("events_rejected_total", reason="fail_processor_exception") == 0
    assert again.value("events_rejected_total", reason="enrichment") == 0


def test_history_goes_on_where_it_was_interrupted(site: Site) -> None:
    site.write([error(57, number) for number in range(400)])
    service = site.service(batch=10)
    looked = 0

    def progress(tally: Tally) -> None:
        nonlocal looked
        looked += tally.looked_at
        if looked >= 250:
            service.stop.set()

    service.worker.catch_up(progress, since="2025-03-01T00:00:00Z")
    (kept,) = [one for one in site.documents(site.names.state) if one["kind"] == "history"]
    assert not kept["done"]
    again = site.service(batch=10)
    assert again.worker.history("2025-03-01T00:00:00Z").count() < 250
    total = again.worker.catch_up(lambda _: None, since="2025-03-01T00:00:00Z")
    # From the beginning it would be all of them, and what the look for leftovers still sees unwritten.
    assert total.looked_at < 400
    check_once(site, 400)


def test_least_privilege(secure_elasticsearch: ElasticsearchServer, namespace: str) -> None:
    from elasticsearch import ApiError

    from ascend_elk.service.catalogue import CatalogueHolder  # noqa: F401 - keeps the import cost out of the timing
    from ascend_elk.stack.access import ROLES
    from ascend_elk.stack.http import Credentials, Server

    server = secure_elasticsearch
    install(server, namespace)
    site = Site(server, namespace)
    site.write([error(57, 0), setup(57, 3, 2), info(57, 9)])
    role = {"enricher": dict(ROLES["ascend_elk_enricher"])}
    key = server.client.security.create_api_key(name=namespace, role_descriptors=role)
    plain = Credentials(api_key=f"{key['id']}:{key['api_key']}")

    class Keyed(Site):
        def connect(self) -> Store:
            return Store(Server("Elasticsearch", server.url, plain, ca=server.ca))

    keyed = Keyed(server, namespace)
    assert keyed.catch_up().written == 2
    enricher = server.connect(api_key=(key["id"], key["api_key"]))
    server.client.index(index=f"other-{namespace}", document={"a": 1}, refresh=True)
    (event, *_) = site.events()
    forbidden = (
        lambda: enricher.search(index=f"other-{namespace}"),
        lambda: enricher.index(index=f"other-{namespace}", document={}),
        lambda: enricher.delete(index=event["_index"], id=event["_id"]),
        lambda: enricher.delete_by_query(index=event["_index"], query={"match_all": {}}),
        lambda: enricher.indices.delete(index=event["_index"]),
        lambda: enricher.indices.delete(index=site.names.state),
        lambda: enricher.indices.put_settings(index=event["_index"], settings={"index.blocks.write": True}),
        lambda: enricher.indices.put_mapping(index=event["_index"], properties={"x": {"type": "keyword"}}),
        lambda: enricher.indices.put_index_template(name=namespace, index_patterns=["x"]),
        lambda: enricher.cluster.put_settings(persistent={"cluster.routing.allocation.enable": "all"}),
        lambda: enricher.ingest.put_pipeline(id=namespace, processors=[]),
        lambda: enricher.security.create_api_key(name="more"),
        lambda: enricher.security.put_user(username="me", password="123456", roles=["superuser"]),
        lambda: enricher.snapshot.get_repository(),
    )
    allowed = []
    for number, attempt in enumerate(forbidden):
        try:
            attempt()
        except ApiError as refusal:
            assert refusal.status_code == 403, (number, refusal)
        else:
            allowed.append(number)
    assert allowed == []
