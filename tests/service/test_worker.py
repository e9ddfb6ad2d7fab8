"""The normal way: events gain what the catalogue and the processes' cards say, once, and nothing else is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ascend_elk.service.catalogue import CatalogueHolder
from tests.engines.elasticsearch import ElasticsearchServer

from .site import Site, error, info, install, own_catalogue, setup, until, user_codes


@pytest.fixture
def site(elasticsearch: ElasticsearchServer, namespace: str) -> Site:
    install(elasticsearch, namespace)
    return Site(elasticsearch, namespace)


def test_events_gain_what_is_known_and_others_stay_as_they_are(site: Site) -> None:
    site.write([setup(57, 3, 2), *(error(57, number) for number in range(1, 4)), info(57, 9)])
    tally = site.catch_up()
    assert (tally.written, tally.conflicts, tally.refused) == (4, 0, 0)
    version = own_catalogue().current.version
    events = site.events()
    errors = [event for event in events if event["log.level"] == "ERROR"]
    assert len(errors) == 3
    for event in errors:
        assert event["error.code"] == "EI0006"
        assert event["ascend.error.category"] == "timeout"
        assert event["ascend.error.meaning_zh"] != event["ascend.error.meaning"]
        assert event["ascend.error.catalogue"] == version
        assert event["ascend.device.key"] == "worker-0/2"
        assert event["ascend.device.ip"] == "198.51.100.2"
        assert (event["ascend.rank.id"], event["ascend.rank.size"]) == (3, 8)
        assert event["ascend.communicator.id"] == "192.0.2.7%eth0_60000_0_17"
        assert event["event.original"].startswith("[ERROR] record")
    (plain,) = [event for event in events if event["log.level"] == "DEBUG"]
    assert plain["_version"] == 1
    assert "ascend.device.key" not in plain


def test_a_second_run_writes_nothing(site: Site) -> None:
    site.write([setup(57, 3, 2), *(error(57, number) for number in range(20))])
    assert site.catch_up().written == 21
    before = site.events()
    assert site.catch_up().written == 0
    assert site.events() == before
    assert {event["_version"] for event in before} == {2}


def test_no_data_yet(site: Site) -> None:
    assert site.catch_up().written == 0


def test_a_running_service_enriches_what_comes(site: Site) -> None:
    service = site.service()
    with service.running():
        for number in range(3):
            site.write([error(7, number)], refresh=False)
            until(lambda: all("ascend.error.meaning" in event for event in site.events()))
        until(lambda: service.health.ready)
        until(lambda: service.value("lag_seconds") == 0)
    assert service.value("events_enriched_total") == 3
    assert service.value("write_conflicts_total") == 0
    assert service.value("last_success_timestamp_seconds") > 1e9


def test_late_events_and_those_without_a_time_of_arrival_are_found(site: Site) -> None:
    with site.service().running():
        site.write([error(7)])
        until(lambda: all("ascend.error.meaning" in event for event in site.events()))
        site.write(
            [
                error(7, 1, **{"event.ingested": None}),
                error(7, 2, **{"event.ingested": "2020-01-01T00:00:00Z"}),
                error(7, 3, **{"@timestamp": "1970-01-01T00:00:05.000Z"}),
            ]
        )
        until(lambda: all("ascend.error.meaning" in event for event in site.events()))


def test_a_mapping_that_arrives_late_reaches_earlier_events(site: Site) -> None:
    service = site.service()
    with service.running():
        site.write([error(7, number) for number in range(5)] + [error(8), info(7, 6)])
        until(lambda: all("ascend.error.catalogue" in e for e in site.events() if e["log.level"] == "ERROR"))
        assert not any("ascend.device.key" in event for event in site.events())
        site.write([setup(7, 3, 2)])
        until(
            lambda: all(
                event.get("ascend.device.key") == "worker-0/2" and event.get("ascend.rank.id") == 3
                for event in site.events()
                if event["process.pid"] == 7 and event["log.level"] == "ERROR"
            )
        )
    for event in site.events():
        if event["process.pid"] == 8 or event["log.level"] == "DEBUG":
            assert "ascend.device.key" not in event
    (process,) = site.documents(site.names.processes)
    assert process["ascend"]["device"] == {
        "id": 2,
        "physical_id": 2,
        "key": "worker-0/2",
        "ip": "198.51.100.2",
    }


def test_a_mapping_outlives_the_service(site: Site) -> None:
    site.write([setup(7, 3, 2)])
    site.catch_up()
    site.write([error(7, 1)])
    site.catch_up()
    assert all(event["ascend.device.key"] == "worker-0/2" for event in site.events())


def test_a_contradiction_is_reported_not_guessed(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    other = {"@timestamp": "2025-03-02T11:19:01.000Z", "ascend.device.id": None, "log.offset": 2}
    site.write([setup(7, 3, 2), setup(7, 3, 5, **other)])
    site.catch_up()
    site.write([error(7, 1)])
    site.catch_up()
    (event,) = [event for event in site.events() if event["log.level"] == "ERROR"]
    assert "ascend.device.key" not in event
    (process,) = site.documents(site.names.processes)
    assert "device as 2 and as 5" in process["contradictions"][0]
    assert "device as 2 and as 5" in caplog.text


def test_a_number_that_is_used_again_is_another_process(site: Site) -> None:
    later = {"@timestamp": "2025-03-05T08:00:00.000Z", "log.offset": 2}
    site.write([setup(7, 3, 2), error(7, 1)])
    site.catch_up()
    site.write([setup(7, 1, 5, **later), error(7, 2, **{"@timestamp": "2025-03-05T08:10:00.000Z"})])
    site.catch_up()
    cards = [event.get("ascend.device.key") for event in site.events()]
    assert cards == ["worker-0/2", "worker-0/2", "worker-0/5", "worker-0/5"]


def test_a_new_catalogue_enriches_again(site: Site, tmp_path: Path) -> None:
    codes = user_codes(tmp_path / "codes.yml", "first")
    holder = CatalogueHolder([codes])
    site.write([error(7, number) for number in range(3)])
    with site.service(holder).running():
        until(lambda: {event.get("ascend.error.meaning") for event in site.events()} == {"first"})
        user_codes(codes, "second")
        os.utime(codes, (1, 1))
        until(lambda: {event.get("ascend.error.meaning") for event in site.events()} == {"second"})
    assert {event["ascend.error.catalogue"] for event in site.events()} == {holder.current.version}


def test_what_a_catalogue_no_longer_says_goes(site: Site, tmp_path: Path) -> None:
    site.write([error(7, **{"message": "odd code", "ascend.error.codes": ["cann:EI7777"]})])
    codes = tmp_path / "codes.yml"
    row = "codes: [{family: cann, code: EI7777, layer: device, category: timeout, severity: error, "
    codes.write_text(
        row + "meaning: mine, meaning_zh: mine, remediation: restart the job, remediation_zh: x}]\n"
    )
    site.catch_up(CatalogueHolder([codes]))
    (event,) = site.events()
    assert (event["ascend.error.category"], event["ascend.error.meaning"]) == ("timeout", "mine")
    service = site.service()
    service.worker.catch_up(lambda _: None)
    (event,) = site.events()
    assert "not in the catalogue" in event["ascend.error.meaning"]
    assert not event.keys() & {"ascend.error.category", "ascend.error.remediation", "ascend.error.layer"}
    assert service.value("unknown_codes_total") == 1


def test_history_is_enriched_again_from_a_time_on(site: Site) -> None:
    site.write([error(7, number) for number in range(100)])
    site.catch_up()
    # As an older release of the package would have left them, under the same catalogue.
    site.server.client.update_by_query(
        index=site.names.streams,
        script={"source": "ctx._source.ascend.error.remove('layer')"},
        refresh=True,
    )
    assert site.catch_up().written == 0
    tally = site.catch_up(since="2025-03-02T11:21:00Z", batch=7)
    assert tally.written == 40
    with_layer = [event["@timestamp"] for event in site.events() if "ascend.error.layer" in event]
    assert len(with_layer) == 40
    assert min(with_layer) >= "2025-03-02T11:21:00"
    assert site.catch_up(since="2025-03-02T11:21:00Z").written == 0
