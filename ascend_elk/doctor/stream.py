"""What the data streams tell: do logs arrive, how late, are they understood and enriched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ascend_elk.doctor.findings import Finding, duration
from ascend_elk.stack.elasticsearch import Elasticsearch

_DATASETS = ("ascend.plog", "ascend.slog", "ascend.console")
_DEAD_LETTERS = "ascend.deadletter"
_SILENT = 15 * 60
_LATE = 60
_UNPARSED_SHARE = 0.01
_DEBUG_SHARE = 0.05
# The service is given this long to look at an event.
_UNENRICHED_MINUTES = 10
_LAG = (
    "if (doc.containsKey('event.ingested') && doc['event.ingested'].size() > 0"
    " && doc['@timestamp'].size() > 0) {"
    " emit(Duration.between(doc['@timestamp'].value, doc['event.ingested'].value).toMillis() / 1000.0); }"
)


def check_stream(elasticsearch: Elasticsearch, now: float, namespace: str = "*") -> Iterator[Finding]:
    """Look at the events of the last day.

    Args:
        elasticsearch: where they are.
        now: seconds since 1970.
        namespace: of the data streams; a pattern too.
    """
    streams = ",".join(f"logs-{dataset}-{namespace}" for dataset in _DATASETS)
    answer = _search(elasticsearch, streams, _question())
    found = answer.get("aggregations")
    if not found or found["newest"]["value"] is None:
        yield Finding(
            "arrival",
            "error",
            streams,
            "no log has arrived yet",
            "start Filebeat on the hosts and look into its log; ascend-elk doctor there tells more",
        )
        return
    yield from _arrival(found, now)
    day = found["day"]
    total = day["doc_count"]
    yield from _parsing(day, total)
    yield from _enrichment(day, total)
    yield from _dead_letters(elasticsearch, f"logs-{_DEAD_LETTERS}-{namespace}")


def _arrival(found: dict[str, Any], now: float) -> Iterator[Finding]:
    silent = now - found["newest"]["value"] / 1000
    bad = silent > _SILENT
    yield Finding(
        "arrival",
        "warning" if bad else "ok",
        "logs-ascend.*",
        f"the newest event is {duration(silent)} old" if silent >= 0 else "the newest event is of the future",
        "no job may be running; else look at Filebeat and Logstash" if bad else "",
        {"seconds": round(silent, 1)},
    )
    if silent < -_LATE:
        yield Finding(
            "zone",
            "warning",
            "logs-ascend.*",
            f"events are {duration(-silent)} ahead of this clock",
            "render with the --timezone in which the hosts' processes write, or mend the clocks",
        )
    lag = found["hour"]["lag"]["values"].get("50.0")
    if lag is not None:
        late = abs(lag) > _LATE
        yield Finding(
            "lag",
            "warning" if late else "ok",
            "logs-ascend.*",
            f"half of the events of the last hour took {duration(lag)} or more to Elasticsearch",
            "old logs that are shipped late are no fault; else see docs/scale.md, and check --timezone"
            if late
            else "",
            {"median_seconds": round(lag, 1)},
        )


def _parsing(day: dict[str, Any], total: int) -> Iterator[Finding]:
    if not total:
        yield Finding("parsing", "note", "logs-ascend.*", "no event of the last 24 hours: nothing to judge")
        return
    unparsed, failed = day["unparsed"]["doc_count"], day["failed"]["doc_count"]
    share = unparsed / total
    where = ", ".join(f"{item['key']} ({item['doc_count']})" for item in day["unparsed"]["source"]["buckets"])
    yield Finding(
        "parsing",
        "warning" if share > _UNPARSED_SHARE else "ok",
        "logs-ascend.*",
        f"{share:.2%} of {total:,} events of 24 hours are lines that no format knows"
        + (f": {where}" if where else ""),
        "ascend-elk check on such a file shows the lines; --cann may name the wrong version"
        if share > _UNPARSED_SHARE
        else "",
        {"events": total, "unparsed": unparsed},
    )
    if failed:
        yield Finding(
            "parsing",
            "warning",
            "logs-ascend.*",
            f"{failed:,} events failed in the pipeline; they are kept (event.kind: pipeline_error)",
            "error.message of such an event names the step",
            {"failed": failed},
        )
    share = day["debug"]["doc_count"] / total
    hosts = ", ".join(item["key"] for item in day["debug"]["host"]["buckets"])
    if share > _DEBUG_SHARE:
        yield Finding(
            "level",
            "warning",
            hosts or "logs-ascend.*",
            f"{share:.0%} of the events are DEBUG",
            "unset ASCEND_GLOBAL_LOG_LEVEL on these hosts, or render with --level INFO",
            {"share": round(share, 3)},
        )


def _enrichment(day: dict[str, Any], total: int) -> Iterator[Finding]:
    if not total:
        return
    waiting = day["unenriched"]["doc_count"]
    yield Finding(
        "enrichment",
        "warning" if waiting else "ok",
        "logs-ascend.*",
        f"{waiting:,} events with a code wait for the enrichment service, over {_UNENRICHED_MINUTES} min"
        if waiting
        else "no event with a code waits for the enrichment service",
        "start ascend-elk enrich; its /readyz and /metrics say what holds it up" if waiting else "",
        {"waiting": waiting},
    )


def _dead_letters(elasticsearch: Elasticsearch, target: str) -> Iterator[Finding]:
    body = {"size": 0, "track_total_hits": True}
    count = _search(elasticsearch, target, body)["hits"]["total"]["value"]
    if count:
        yield Finding(
            "dead-letters",
            "warning",
            target,
            f"Elasticsearch refused {count:,} events; they are kept as text",
            "look at the reasons in these events; often a template was changed",
            {"events": count},
        )


def _search(elasticsearch: Elasticsearch, target: str, body: dict[str, Any]) -> dict[str, Any]:
    path = f"/{target}/_search?ignore_unavailable=true&allow_no_indices=true"
    return dict(elasticsearch.server.request("POST", path, json=body).json())


def _question() -> dict[str, Any]:
    since = {"range": {"@timestamp": {"gte": "now-24h"}}}
    unenriched = [
        {"exists": {"field": "ascend.error.codes"}},
        {"range": {"@timestamp": {"lte": f"now-{_UNENRICHED_MINUTES}m"}}},
    ]
    day = {
        "unparsed": {
            "filter": {"term": {"tags": "ascend_unparsed"}},
            "aggs": {"source": {"terms": {"field": "ascend.source", "size": 3}}},
        },
        "failed": {"filter": {"term": {"event.kind": "pipeline_error"}}},
        "debug": {
            "filter": {"term": {"log.level": "DEBUG"}},
            "aggs": {"host": {"terms": {"field": "host.name", "size": 5}}},
        },
        "unenriched": {
            "filter": {
                "bool": {
                    "filter": unenriched,
                    "must_not": {"exists": {"field": "ascend.error.catalogue"}},
                }
            }
        },
    }
    return {
        "size": 0,
        "runtime_mappings": {"ascend_elk_lag": {"type": "double", "script": {"source": _LAG}}},
        "aggs": {
            "newest": {"max": {"field": "@timestamp"}},
            "day": {"filter": since, "aggs": day},
            "hour": {
                "filter": {"range": {"event.ingested": {"gte": "now-1h"}}},
                "aggs": {"lag": {"percentiles": {"field": "ascend_elk_lag", "percents": [50]}}},
            },
        },
    }
