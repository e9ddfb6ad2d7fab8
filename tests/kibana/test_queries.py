"""Every query and aggregation of the content, run on a real Elasticsearch that holds simulated clusters."""

from __future__ import annotations

import json
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from elasticsearch.helpers import bulk

from ascend_elk.parse import nested
from ascend_elk.stack.rules import rule_body
from ascend_elk.stack.source import Source, load_source
from ascend_elk.stack.targets import TARGETS
from tests.engines.elasticsearch import ElasticsearchServer

from . import kql, lens_query, threshold_query
from .cluster import INGEST_LAG, Fields, events_of, later, mapping

pytestmark = pytest.mark.engines

Object = dict[str, Any]

SCENARIOS = (
    "aicore-exception",
    "hbm-ecc",
    "out-of-memory",
    "heartbeat-lost",
    "socket-timeout-silent",
    "nic-down",
    "retry-storm",
    "slow-card-double",
)

INDICES = ("logs-ascend.plog", "logs-ascend.slog", "logs-ascend.console", "ascend-incidents")

# What a simulated job does not write.
_BASE: Fields = {
    "@timestamp": "2025-03-02T10:30:00.000001Z",
    "event.module": "ascend",
    "event.dataset": "ascend.plog",
    "ascend.source": "plog",
    "host.name": "worker-9",
    "log.file.path": "/extra/plog-9_20250302.log",
    "process.pid": 9,
    "message": "text",
}
EXTRA: tuple[Fields, ...] = tuple(
    {**_BASE, "log.offset": number, **fields}
    for number, fields in enumerate(
        (
            {"tags": ["ascend_unparsed"]},
            {"tags": ["ascend_truncated", "other"]},
            {"tags": ["ascend_pipeline_error"], "event.kind": "pipeline_error"},
            {"tags": ["other"]},
            {"event.duration": 1_500_000_000, "log.level": "EVENT"},
            {"event.duration": 20, "log.level": "INFO", "event.severity": 1},
            {"ascend.signal": ["compile"], "event.duration": 90_000_000_000},
            {"ascend.signal": ["slow", "timeout"]},
            {"error.code": "EX9999", "ascend.error.codes": ["cann:EX9999"], "ascend.error.catalogue": "1"},
            {"error.code": "EX9998", "ascend.error.codes": ["cann:EX9998"]},
            {
                "ascend.event.assertion": "recovered",
                "ascend.signal": ["hardware"],
                "ascend.error.severity": "info",
            },
            {"ascend.event.assertion": "raised", "event.severity": 3},
            {"ascend.heartbeat.suspect": "10.0.0.1/3"},
            {"event.severity": 3, "ascend.error.severity": "info", "error.code": "EI0001"},
        )
    )
)

INCIDENTS: tuple[Fields, ...] = tuple(
    {
        "@timestamp": "2025-03-02T10:10:00Z",
        "event.module": "ascend",
        "event.dataset": "ascend.incident",
        "ascend.incident.id": str(number),
        "ascend.incident.kind": kind,
        "ascend.incident.confidence": 0.9,
        "ascend.incident.sentence": "worker-0 device 3 failed first",
        "ascend.incident.rule": rule,
        "ascend.device.key": ["worker-0/3"],
        "ascend.communicator.id": "group",
    }
    for number, (kind, rule) in enumerate(
        (
            ("first-failure", "silent-rank"),
            ("first-failure", "heartbeat-lost"),
            ("first-failure", "first-error"),
            ("healthy", "none"),
            ("undetermined", "none"),
        )
    )
)


@dataclass(frozen=True)
class Cluster:
    """What the server holds, by document id."""

    server: ElasticsearchServer
    namespace: str
    documents: dict[str, Fields]

    def index(self, pattern: str) -> str:
        """The indices of a data view that belong to this test run."""
        if pattern.startswith("ascend-incidents"):
            return f"ascend-incidents-{self.namespace}"
        return pattern.removesuffix("*") + self.namespace

    def ids(self, pattern: str, query: Object, **options: Any) -> list[str]:
        found = self.server.client.search(
            index=self.index(pattern), query=query, size=10_000, source=False, **options
        )
        assert found["hits"]["total"]["value"] < 10_000
        return [hit["_id"] for hit in found["hits"]["hits"]]


@pytest.fixture(scope="module")
def cluster(
    elasticsearch: ElasticsearchServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    namespace = f"k{uuid.uuid4().hex[:10]}"
    documents: dict[str, Fields] = {}
    for scenario in SCENARIOS:
        directory = tmp_path_factory.mktemp(scenario)
        level = "info" if scenario.startswith("slow") else "error"
        for fields in events_of(directory, scenario, hosts=2, devices=4, steps=20, level=level):
            documents[f"e{len(documents)}"] = fields
    for fields in (*EXTRA, *INCIDENTS):
        documents[f"x{len(documents)}"] = fields
    client = elasticsearch.client
    for index in INDICES:
        incidents = load_source().incidents["template"]["mappings"]
        client.indices.create(
            index=f"{index}-{namespace}",
            mappings=incidents if index == "ascend-incidents" else mapping(),
            settings={"number_of_replicas": 0},
        )
    bulk(
        client,
        (
            {
                "_index": f"ascend-incidents-{namespace}"
                if fields["event.dataset"] == "ascend.incident"
                else f"logs-{fields['event.dataset']}-{namespace}",
                "_id": name,
                "_source": nested(fields),
            }
            for name, fields in documents.items()
        ),
        refresh="wait_for",
    )
    yield Cluster(elasticsearch, namespace, documents)
    client.indices.delete(index=[f"{index}-{namespace}" for index in INDICES])


# ---------------------------------------------------------------- saved searches


def signals(fields: Fields) -> set[str]:
    return set(fields.get("ascend.signal") or ())


def error(fields: Fields) -> bool:
    return fields.get("event.severity", 0) >= 3 and fields.get("ascend.error.severity") != "info"


def tagged(fields: Fields, *tags: str) -> bool:
    return bool({*tags} & {*(fields.get("tags") or ())})


# Written by hand from what each search promises, not from its KQL.
WANTED: dict[str, Callable[[Fields], bool]] = {
    "ascend-errors-by-code": lambda f: "error.code" in f and f.get("ascend.error.severity") != "info",
    "ascend-timeouts": lambda f: "timeout" in signals(f),
    "ascend-retries": lambda f: "retry" in signals(f),
    "ascend-slow-operations": lambda f: (
        bool({"slow", "compile"} & signals(f)) or f.get("event.duration", 0) > 0
    ),
    "ascend-link-failures": lambda f: bool({"link", "cqe", "sdma"} & signals(f)),
    "ascend-hardware-events": lambda f: (
        bool({"hardware", "ecc", "device-lost"} & signals(f)) or "ascend.event.assertion" in f
    ),
    "ascend-out-of-memory": lambda f: "oom" in signals(f),
    "ascend-heartbeat": lambda f: bool({"heartbeat", "hang"} & signals(f)) or "ascend.heartbeat.suspect" in f,
    "ascend-first-errors": error,
    "ascend-unparsed": lambda f: tagged(
        f,
        "ascend_unparsed",
        "ascend_time_unparsed",
        "ascend_pipeline_error",
        "ascend_truncated",
        "ascend_split",
        "ascend_invalid_utf8",
    ),
    "ascend-process": lambda f: "process.pid" in f,
    "ascend-timeline": lambda f: f.get("event.severity", 0) >= 2 or bool(signals(f)),
    "ascend-incidents": lambda f: f.get("ascend.incident.kind") in ("first-failure", "link", "undetermined"),
    "ascend-unknown-codes": lambda f: (
        "error.code" in f and "ascend.error.catalogue" in f and "ascend.error.category" not in f
    ),
}


def test_all_searches_are_proved(source: Source) -> None:
    assert set(WANTED) == set(source.searches)


@pytest.mark.parametrize("name", WANTED)
def test_saved_search_finds_the_right_documents(cluster: Cluster, source: Source, name: str) -> None:
    search = source.searches[name]
    pattern = source.data_views[search.data_view].title
    incidents = search.data_view == "ascend-incidents"
    wanted = {
        key
        for key, fields in cluster.documents.items()
        if (fields["event.dataset"] == "ascend.incident") == incidents and WANTED[name](fields)
    }
    sort = [{field: {"order": order}} for field, order in search.sort]
    found = cluster.ids(pattern, kql.to_query(search.query), sort=sort)
    assert set(found) == wanted
    assert 0 < len(wanted) < len(cluster.documents)
    key, order = search.sort[0]
    values = [cluster.documents[one][key] for one in found if key in cluster.documents[one]]
    assert values == sorted(values, reverse=order == "desc")


def test_data_views_split_the_sides(cluster: Cluster, source: Source) -> None:
    counts = Counter(fields["event.dataset"] for fields in cluster.documents.values())
    for name in ("plog", "slog"):
        pattern = source.data_views[f"ascend-{name}"].title
        assert len(cluster.ids(pattern, {"match_all": {}})) == counts[f"ascend.{name}"] > 0


def test_columns_hold_something(cluster: Cluster, source: Source) -> None:
    """A column that is empty in every document that a search finds is a wrong name, or not worth its place."""
    seen: set[str] = set()
    for fields in cluster.documents.values():
        seen |= set(fields)
    empty = {
        (search.id, column)
        for search in source.searches.values()
        for column in search.columns
        if not any(
            column in cluster.documents[key]
            for key in cluster.documents
            if WANTED[search.id](cluster.documents[key])
        )
    }
    # Known to be written by other faults than the simulated ones.
    assert {pair for pair in empty if pair[1] not in seen | {"ascend.heartbeat.informer"}} <= {
        ("ascend-incidents", "ascend.incident.codes"),
        ("ascend-incidents", "ascend.incident.remediation"),
        ("ascend-slow-operations", "ascend.kernel.name"),
    }


# ---------------------------------------------------------------- charts


def charts(objects: list[Object]) -> Iterator[tuple[str, Object]]:
    for item in objects:
        if item["type"] == "dashboard":
            for panel in json.loads(item["attributes"]["panelsJSON"]):
                if panel["type"] == "lens":
                    yield f"{item['id']}: {panel['title']}", panel["embeddableConfig"]["attributes"]


def run_chart(cluster: Cluster, source: Source, attributes: Object) -> Object:
    request = lens_query.request(attributes)
    runtime = {
        name: {"type": field.type, "script": {"source": field.script}}
        for name, field in source.data_views["ascend-all"].runtime.items()
    }
    return cluster.server.client.search(
        index=cluster.index("logs-ascend.*-*"), runtime_mappings=runtime, track_total_hits=True, **request
    ).body


def test_every_chart_runs_and_shows_something(
    cluster: Cluster, source: Source, objects: list[Object]
) -> None:
    ran = 0
    for name, attributes in charts(objects):
        answer = run_chart(cluster, source, attributes)
        assert not answer["timed_out"]
        assert answer["_shards"]["failed"] == 0, name
        assert answer["hits"]["total"]["value"] > 0, name
        for column, result in answer["aggregations"].items():
            assert result.get("buckets", True), (name, column)
        ran += 1
    assert ran > 25


def chart(objects: list[Object], wanted: str) -> Object:
    (found,) = [attributes for name, attributes in charts(objects) if name == wanted]
    return found


def test_top_codes_count_what_is_there(cluster: Cluster, source: Source, objects: list[Object]) -> None:
    answer = run_chart(cluster, source, chart(objects, "ascend-overview: Top error codes"))
    logs = [f for f in cluster.documents.values() if f["event.dataset"] != "ascend.incident"]
    coded = [f for f in logs if WANTED["ascend-errors-by-code"](f)]
    counts = Counter(f["error.code"] for f in coded)
    buckets = answer["aggregations"]["c0"]["buckets"]
    assert {bucket["key"]: bucket["doc_count"] for bucket in buckets} == dict(counts.most_common(25))
    for bucket in buckets:
        cards = {
            f["ascend.device.key"]
            for f in coded
            if f["error.code"] == bucket["key"] and "ascend.device.key" in f
        }
        assert bucket["c2"]["value"] == len(cards)
        meanings = [
            f["ascend.error.meaning"]
            for f in coded
            if f["error.code"] == bucket["key"] and "ascend.error.meaning" in f
        ]
        hits = bucket["c5"]["value"]["hits"]["hits"]
        assert [hit["_source"]["ascend"]["error"]["meaning"] in meanings for hit in hits] == [True] * bool(
            meanings
        )


def test_health_counts_each_card(cluster: Cluster, source: Source, objects: list[Object]) -> None:
    answer = run_chart(cluster, source, chart(objects, "ascend-overview: Health by host and card"))
    logs = [f for f in cluster.documents.values() if f["event.dataset"] != "ascend.incident"]
    rows = {
        card["key"]: [card[column]["doc_count"] for column in ("c2", "c3", "c4")]
        for host in answer["aggregations"]["c0"]["buckets"]
        for card in host["c1"]["buckets"]
    }
    cards = {f["ascend.device.key"] for f in logs if "ascend.device.key" in f}
    assert rows == {
        key: [
            sum(error(f) for f in logs if f.get("ascend.device.key") == key),
            sum("timeout" in signals(f) for f in logs if f.get("ascend.device.key") == key),
            sum("retry" in signals(f) for f in logs if f.get("ascend.device.key") == key),
        ]
        for key in cards
    }
    assert any(row[0] for row in rows.values())


def test_first_errors_are_those_of_each_process(
    cluster: Cluster, source: Source, objects: list[Object]
) -> None:
    title = "ascend-one-process: First error of each process, to sort and to filter"
    answer = run_chart(cluster, source, chart(objects, title))
    first: dict[tuple[str, int], Fields] = {}
    for fields in sorted(cluster.documents.values(), key=lambda f: f["@timestamp"]):
        if fields["event.dataset"] != "ascend.incident" and error(fields) and "process.pid" in fields:
            first.setdefault((fields["host.name"], fields["process.pid"]), fields)
    assert len(first) > 30
    hosts = answer["aggregations"]["c0"]["buckets"]
    rows = [(host["key"], process) for host in hosts for process in host["c1"]["buckets"]]
    assert {(host, process["key"]) for host, process in rows} == set(first)
    for host, process in rows:
        # A process of a host writes several lines in one millisecond.
        (hit,) = process["c5"]["value"]["hits"]["hits"]
        assert hit["_source"]["message"] == first[host, process["key"]]["message"]
        assert process["c2"]["value_as_string"][:23] == first[host, process["key"]]["@timestamp"][:23]
    for host in hosts:
        times = [process["c2"]["value"] for process in host["c1"]["buckets"]]
        assert times == sorted(times)


def test_lag_is_computed(cluster: Cluster, source: Source, objects: list[Object]) -> None:
    answer = run_chart(
        cluster, source, chart(objects, "ascend-pipeline-health: Lag in seconds, median and longest")
    )
    medians = [
        bucket["c1"]["values"]["50.0"]
        for bucket in answer["aggregations"]["c0"]["buckets"]
        if bucket["doc_count"]
    ]
    assert [value for value in medians if value is not None] == pytest.approx(
        [INGEST_LAG] * sum(value is not None for value in medians), abs=0.002
    )
    assert medians[0] is not None


# ---------------------------------------------------------------- Vega, rules


def test_every_vega_request_runs(cluster: Cluster, source: Source) -> None:
    for name, spec in source.vega.items():
        for data in spec["data"]:
            if "url" not in data:
                continue
            url = data["url"]
            answer: Any = cluster.server.client.search(index=cluster.index(url["index"]), **url["body"]).body
            assert answer["_shards"]["failed"] == 0
            for part in data["format"]["property"].split("."):
                answer = answer[part]
            assert answer, name


def test_rules_count_what_they_should(cluster: Cluster, source: Source) -> None:
    wanted: dict[str, Callable[[Fields], bool]] = {
        "ascend-first-fatal-code": lambda f: (
            f["event.dataset"] != "ascend.incident"
            and f.get("event.severity", 0) >= 3
            and "error.code" in f
            and "ascend.communicator.id" in f
            and "timeout" not in signals(f)
            and f.get("ascend.error.severity") not in ("info", "warning")
        ),
        "ascend-timeout-burst": lambda f: "timeout" in signals(f) and "ascend.communicator.id" in f,
        "ascend-retry-storm": lambda f: "retry" in signals(f) and "ascend.device.key" in f,
        "ascend-hardware": lambda f: (
            bool({"ecc", "hardware", "device-lost"} & signals(f))
            and f.get("ascend.event.assertion") != "recovered"
            and f.get("ascend.error.severity") != "info"
        ),
        "ascend-log-flood": lambda f: f["event.dataset"] != "ascend.incident",
        "ascend-parse-failures": lambda f: tagged(f, "ascend_unparsed", "ascend_pipeline_error"),
        "ascend-silent-card": lambda f: (
            (
                "ascend.heartbeat.suspect" in f
                and bool({"heartbeat", "hang"} & signals(f))
                and "cqe" not in signals(f)
            )
            or f.get("ascend.incident.rule") in ("silent-rank", "heartbeat-lost", "heartbeat-stuck")
        ),
    }
    assert set(wanted) == set(source.rules)
    for name, fits in wanted.items():
        rule = source.rules[name]
        expected = {key for key, fields in cluster.documents.items() if fits(fields)}
        assert expected, name
        found = {one for pattern in rule.indices for one in cluster.ids(pattern, rule.query)}
        assert found == expected, name
        if rule.group_by is not None:
            assert all(rule.group_by in cluster.documents[key] for key in expected), name
    silent = {
        cluster.documents[key]["event.dataset"]
        for key in cluster.documents
        if wanted["ascend-silent-card"](cluster.documents[key])
    }
    assert silent == {"ascend.plog", "ascend.incident"}


def test_rules_that_count_cards(cluster: Cluster, source: Source) -> None:
    rule = source.rules["ascend-timeout-burst"]
    assert rule.distinct is not None
    body = rule_body(rule, TARGETS["9.x"], (9, 4), space="default")
    timeouts = {
        key: fields
        for key, fields in cluster.documents.items()
        if "timeout" in signals(fields) and "ascend.communicator.id" in fields
    }
    # Counting lines and counting cards start from the same lines.
    assert set(cluster.ids("logs-ascend.*-*", kql.to_query(rule.distinct.query))) == set(timeouts)
    assert set(cluster.ids("logs-ascend.*-*", rule.query)) == set(timeouts)
    ends = sorted(fields["@timestamp"] for fields in timeouts.values())
    fired = set()
    for end in (ends[0], ends[len(ends) // 2], ends[-1]):
        start = later(end, -60 * int(rule.window.removesuffix("m")))
        cards = defaultdict(set)
        for fields in timeouts.values():
            if start <= fields["@timestamp"] <= end and "ascend.device.key" in fields:
                cards[fields["ascend.communicator.id"]].add(fields["ascend.device.key"])
        expected = {group for group, keys in cards.items() if len(keys) >= 4}
        request = threshold_query.request(body["params"], kql.to_query, start, end)
        index = cluster.index(source.data_views[body["params"]["searchConfiguration"]["index"]].title)
        answer = cluster.server.client.search(index=index, **request).body
        assert set(threshold_query.groups_that_fire(answer)) == expected
        fired |= expected
    everyone = {fields["ascend.communicator.id"] for fields in timeouts.values()}
    assert set() < fired < everyone


def test_what_the_files_of_a_host_and_its_device_share(cluster: Cluster, source: Source) -> None:
    """One filter on host and process shows both sides of it."""
    fields = next(
        f for f in cluster.documents.values() if f["event.dataset"] == "ascend.slog" and "process.pid" in f
    )
    query = f'host.name: "{fields["host.name"]}" and process.pid: {fields["process.pid"]} and ascend.job.id: {fields["ascend.job.id"]}'
    found = {
        cluster.documents[key]["event.dataset"] for key in cluster.ids("logs-ascend.*-*", kql.to_query(query))
    }
    assert found >= {"ascend.plog", "ascend.slog"}


def test_the_simulation_has_every_fault(cluster: Cluster) -> None:
    seen = {signal for fields in cluster.documents.values() for signal in signals(fields)}
    assert {"timeout", "retry", "link", "oom", "heartbeat", "aicore", "ecc"} <= seen
