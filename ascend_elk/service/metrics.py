"""What the service counts, for Prometheus."""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

# Seconds that one batch takes: from a few events to a full bulk against a busy cluster.
_BATCH_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_HTTP_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The service's metrics; names begin with ``ascend_elk_``, times are in seconds.

    Attributes:
        registry: where they are registered.
        events: events enriched, by the worker and by ``POST /v1/enrich``.
        unknown_codes: events whose headline code the catalogue does not know.
        conflicts: writes refused because the document had changed underneath.
        retries: requests to Elasticsearch sent again.
        rejected: events that Elasticsearch refused for good, by ``reason``.
        lag_seconds: age of the oldest event that waits for its enrichment; 0 when none waits.
        batch_seconds: duration of one batch, from reading to the answer of the bulk request.
        incidents: incidents written.
        last_success: Unix time of the last batch that succeeded.
        reloads: reloads of the catalogue, by ``result``: loaded, refused.
        catalogue: 1 for the catalogue in force, by ``version``.
        requests: HTTP requests by ``method``, ``route`` and ``status``.
        request_seconds: duration of HTTP requests by ``route``.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Register the metrics in a registry of their own, or in the one given."""
        if registry is None:
            registry = CollectorRegistry()
            ProcessCollector(registry=registry)
            PlatformCollector(registry=registry)
        self.registry = registry
        self.events = Counter("ascend_elk_events_enriched", "Events enriched.", registry=registry)
        self.unknown_codes = Counter(
            "ascend_elk_unknown_codes",
            "Events whose headline code is not in the catalogue.",
            registry=registry,
        )
        self.conflicts = Counter(
            "ascend_elk_write_conflicts",
            "Writes refused because the document had changed underneath.",
            registry=registry,
        )
        self.retries = Counter(
            "ascend_elk_elasticsearch_retries", "Requests to Elasticsearch sent again.", registry=registry
        )
        self.rejected = Counter(
            "ascend_elk_events_rejected",
            "Events that Elasticsearch refused for good.",
            ["reason"],
            registry=registry,
        )
        self.lag_seconds = Gauge(
            "ascend_elk_lag_seconds",
            "Age of the oldest event that waits for its enrichment.",
            registry=registry,
        )
        self.batch_seconds = Histogram(
            "ascend_elk_batch_duration_seconds",
            "Duration of one batch, from reading to the answer of the bulk request.",
            buckets=_BATCH_BUCKETS,
            registry=registry,
        )
        self.incidents = Counter("ascend_elk_incidents_written", "Incidents written.", registry=registry)
        self.last_success = Gauge(
            "ascend_elk_last_success_timestamp_seconds",
            "Unix time of the last batch that succeeded.",
            registry=registry,
        )
        self.reloads = Counter(
            "ascend_elk_catalogue_reloads",
            "Reloads of the catalogue by result: loaded, refused.",
            ["result"],
            registry=registry,
        )
        self.catalogue = Gauge(
            "ascend_elk_catalogue_info", "1 for the catalogue in force.", ["version"], registry=registry
        )
        self.requests = Counter(
            "ascend_elk_http_requests", "HTTP requests.", ["method", "route", "status"], registry=registry
        )
        self.request_seconds = Histogram(
            "ascend_elk_http_request_duration_seconds",
            "Duration of HTTP requests.",
            ["route"],
            buckets=_HTTP_BUCKETS,
            registry=registry,
        )

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)
