"""Trouble in Elasticsearch becomes incidents: the same verdict as on the files, one document each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import timezone
from pathlib import Path
from typing import Any

import pytest

from ascend_elk.cann import Version
from ascend_elk.codes import Catalogue
from ascend_elk.diagnose import Verdict, diagnose
from ascend_elk.opening import open_logs
from ascend_elk.service.incidents import Watcher
from ascend_elk.service.windows import Count, windows
from ascend_elk.simulate import simulate
from tests.engines.elasticsearch import ElasticsearchServer

from .site import Fields, Site, info, install, now, own_catalogue

HOUR = 3_600.0


def test_windows_end_where_trouble_pauses() -> None:
    counts = [Count("a", None, start * HOUR, 1) for start in (0, 1, 2.5, 8)]
    counts.append(Count("b", None, 1.5 * HOUR, 5))
    found = windows(counts)
    assert [(one.cluster, one.start / HOUR, one.events) for one in found] == [
        ("a", 0, 3),
        ("a", 8, 1),
        ("b", 1.5, 5),
    ]
    assert windows([]) == []


def simulated(directory: Path, scenario: str, steps: int = 6) -> tuple[list[Fields], Verdict]:
    """The events of a simulated job, parsed and no more, and the verdict on its files."""
    version = Version.parse("8.0")
    simulate(directory, scenario, hosts=2, devices=4, cann=version, seed=5, steps=steps)
    logs = open_logs([directory], "8.0", timezone.utc)
    events = []
    for event in logs.reader.events(logs.files):
        fields = {name: value for name, value in event.fields.items() if value is not None}
        fields.setdefault("@timestamp", "2025-03-02T11:00:00.000000Z")
        fields |= {"event.ingested": now(), "event.module": "ascend"}
        events.append(fields)
    verdict = diagnose(logs.reader.events(logs.files), catalogue=Catalogue.load(), version=version)
    return events, verdict


@pytest.fixture
def site(elasticsearch: ElasticsearchServer, namespace: str) -> Site:
    install(elasticsearch, namespace)
    return Site(elasticsearch, namespace)


def watcher(site: Site) -> Watcher:
    service = site.service()
    return Watcher(site.connect, site.names, own_catalogue(), service.metrics, service.stop)


def write(site: Site, events: list[Fields], **more: Any) -> None:
    for dataset, group in itertools.groupby(
        sorted(events, key=lambda event: str(event["event.dataset"])),
        key=lambda event: str(event["event.dataset"]),
    ):
        site.write(({**event, **more} for event in group), dataset=dataset.removeprefix("ascend."))


def incidents(site: Site) -> list[Fields]:
    return sorted(site.documents(site.names.incidents), key=lambda one: str(one["@timestamp"]))


def cards(document: Fields) -> list[tuple[Any, Any]]:
    return [(card["host"], card["device"]) for card in document["ascend"]["incident"]["cards"]]


@pytest.mark.parametrize("scenario", ["aicore-exception", "socket-timeout-silent", "out-of-memory"])
def test_the_verdict_is_that_on_the_files(site: Site, tmp_path: Path, scenario: str) -> None:
    events, verdict = simulated(tmp_path, scenario)
    write(site, events, **{"ascend.job.id": scenario, "orchestrator.cluster.name": "blue"})
    site.catch_up()
    watching = watcher(site)
    watching.look()
    (document,) = incidents(site)
    told = document["ascend"]["incident"]
    assert (told["kind"], told["rule"]) == (verdict.kind, verdict.rule)
    assert cards(document) == [(card.host, card.device) for card in verdict.cards]
    assert told["confidence"] == pytest.approx(verdict.confidence, abs=0.1)
    assert told["evidence"][0]["text"] == verdict.evidence[0].text
    assert document["orchestrator"]["cluster"]["name"] == "blue"
    assert document["ascend"]["job"]["id"] == scenario
    assert document["event"] == {"module": "ascend", "dataset": "ascend.incident"}
    assert told["start"] <= told["end"]
    # Nothing new: nothing is written.
    assert watching.look() == 0
    assert watcher(site).look() == 0


def test_a_slow_card_is_an_incident_without_any_error(site: Site, tmp_path: Path) -> None:
    events, verdict = simulated(tmp_path, "slow-card-double", steps=30)
    assert verdict.kind == "straggler"
    write(site, [event for event in events if event.get("event.severity", 0) < 3])
    watching = watcher(site)
    assert watching.look() == 0
    assert watching.look_at_pace() == 1
    (document,) = incidents(site)
    assert document["ascend"]["incident"]["kind"] == "straggler"
    assert cards(document) == [(card.host, card.device) for card in verdict.cards]
    assert watching.look_at_pace() == 0


def test_every_field_is_one_of_the_mapping(site: Site, tmp_path: Path) -> None:
    events, _ = simulated(tmp_path, "aicore-exception")
    write(site, events)
    watcher(site).look()
    (document,) = incidents(site)
    mapping = site.server.client.indices.get_mapping(index=site.names.incidents)[site.names.incidents][
        "mappings"
    ]
    assert mapping["dynamic"] == "false"

    def unknown(node: Any, properties: dict[str, Any], path: str) -> Iterator[str]:
        for name, value in node.items():
            known = properties.get(name)
            if known is None:
                yield f"{path}{name}"
            elif "properties" in known:
                for item in value if isinstance(value, list) else [value]:
                    yield from unknown(item, known["properties"], f"{path}{name}.")

    assert list(unknown(document, mapping["properties"], "")) == []
    assert document["ascend"]["device"]["key"] == [f"{host}/{device}" for host, device in cards(document)]


def test_more_lines_change_an_incident_and_make_no_second(site: Site, tmp_path: Path) -> None:
    events, verdict = simulated(tmp_path, "aicore-exception")
    (culprit,) = verdict.cards
    late = [event for event in events if event["host.name"] == culprit.host]
    assert late
    write(site, [event for event in events if event["host.name"] != culprit.host])
    watching = watcher(site)
    watching.look()
    before = [one["ascend"]["incident"] for one in incidents(site)]
    write(site, late)
    watching._judged.clear()
    watching.look()
    (after,) = [one for one in incidents(site) if one["ascend"]["incident"]["kind"] != "healthy"]
    assert cards(after) == [(culprit.host, culprit.device)]
    assert {one["id"] for one in before} <= {after["ascend"]["incident"]["id"]}


def test_a_quiet_cluster_makes_none(site: Site, tmp_path: Path) -> None:
    events, verdict = simulated(tmp_path, "healthy")
    assert verdict.kind == "healthy"
    write(site, events)
    site.write(info(57, number) for number in range(20))
    assert watcher(site).look() == 0
    assert incidents(site) == []


def test_identity_from_long_before_the_trouble(site: Site, tmp_path: Path) -> None:
    """Lines that say which card a process drives are days old, beyond what a diagnosis reads."""
    events, verdict = simulated(tmp_path, "aicore-exception")
    first = min(event["@timestamp"] for event in events if event.get("event.severity", 0) >= 3)
    moved = [
        {**event, "@timestamp": event["@timestamp"].replace("2025-", "2024-")}
        if event["@timestamp"] < first and event.get("event.severity", 1) < 2
        else event
        for event in events
    ]
    write(site, moved)
    site.catch_up()
    watcher(site).look()
    found = [one for one in incidents(site) if one["ascend"]["incident"]["kind"] != "healthy"]
    assert [cards(one) for one in found] == [[(card.host, card.device) for card in verdict.cards]]


def test_one_of_several_services_judges(site: Site) -> None:
    service = site.service()
    service.worker._prepare()
    one, other = watcher(site), watcher(site)
    assert one._leads()
    assert not other._leads()
    assert one._leads()
