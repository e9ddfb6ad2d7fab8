"""Incidents: where events tell of failures, the same diagnosis as on files, over what Elasticsearch holds."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ascend_elk.content import content_dir
from ascend_elk.diagnose import Collector, Verdict, conclude
from ascend_elk.errors import UserError
from ascend_elk.interest import load_signs
from ascend_elk.service import queries, state
from ascend_elk.service.backoff import Backoff
from ascend_elk.service.catalogue import CatalogueHolder
from ascend_elk.service.changes import flat
from ascend_elk.service.metrics import Metrics
from ascend_elk.service.moments import iso
from ascend_elk.service.processes import ProcessBook
from ascend_elk.service.store import BusyError, Document, Names, Point, Store, Stored, own_index
from ascend_elk.service.verdicts import communicator_of, incident, set_aside, span
from ascend_elk.service.windows import INTERVAL, Count, Window, windows
from ascend_elk.stack.http import ApiError

_log = logging.getLogger(__name__)

_EVERY = 15.0
_NEWS = 86_400.0
"""Seconds back in which trouble is looked for; older windows have been judged."""
_BEFORE, _AFTER = 3_600.0, 600.0
"""Seconds around a window that are read: entries of collectives, hardware events just before."""
_PACE, _PACE_EVERY = 1_800.0, 600.0
"""Seconds of a job's run by which slow cards are told, and between two such looks."""
_LEASE = 60.0
_MAX_EVENTS = 1_000_000
_MAX_JOBS = 8
_PAGE = 2_000
_FIELDS = (
    *queries.FIELDS,
    "event.original",
    "log.offset",
    "ascend.clock.unsynchronised",
    "ascend.error.codes",
    "ascend.module",
)
# Lines of one file in their order, whatever the times of others.
_SORT = ({"@timestamp": "asc"}, {"log.offset": {"order": "asc", "missing": "_first"}}, {"_shard_doc": "asc"})


@dataclass(frozen=True)
class _Read:
    """An event as diagnosis takes it."""

    __slots__ = ("fields",)

    fields: dict[str, Any]


class Watcher:
    """Looks for trouble and writes verdicts.

    Args:
        connect: makes a store for a thread.
        names: where it reads and writes.
        holder: the catalogue in force.
        metrics: counts.
        stop: set by whoever wants it to end.
    """

    def __init__(
        self,
        connect: Callable[[], Store],
        names: Names,
        holder: CatalogueHolder,
        metrics: Metrics,
        stop: threading.Event,
        every: float = _EVERY,
    ) -> None:
        """Prepare; nothing is sent yet."""
        self._store = connect()
        self._names = names
        self._holder = holder
        self._metrics = metrics
        self._stop = stop
        self._every = every
        self._name = str(uuid.uuid4())
        self._book = ProcessBook(names.processes)
        # Window → failures in it when it was judged, and when it may be judged again.
        self._judged: dict[tuple[str | None, str | None, float], tuple[int, float]] = {}
        self._paced = float("-inf")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Look again and again, in a thread, until told to stop."""
        thread = threading.Thread(target=self._run, name="incidents", daemon=True)
        thread.start()
        try:
            yield
        finally:
            thread.join(30)

    def _run(self) -> None:
        backoff = Backoff(first=2.0)
        while not self._stop.wait(self._every):
            try:
                if self._leads():
                    self.look(newer_than=iso(time.time() - _NEWS))
                    if time.monotonic() - self._paced >= _PACE_EVERY:
                        self._paced = time.monotonic()
                        self.look_at_pace(newer_than=iso(time.time() - _PACE))
                backoff.reset()
            except (BusyError, ApiError, UserError) as error:
                _log.warning("incidents: %s", error)
                self._stop.wait(backoff.pause())
            except Exception:  # a verdict that fails must not end the service
                _log.exception("incidents: a diagnosis failed")
                self._stop.wait(backoff.pause())

    def look(self, *, newer_than: str | None = None) -> int:
        """Judge every window of trouble that has changed since it was judged.

        Args:
            newer_than: only trouble taken in, or written, since then; ``None``: of all times.

        Returns:
            Incidents that were written.
        """
        written = 0
        self._store.create_index(self._names.incidents, _index())
        found = windows(self._counts(queries.trouble(newer_than)))
        for window in found:
            if self._stop.is_set():
                break
            key = (window.cluster, window.job, window.start)
            events, again = self._judged.get(key, (0, 0.0))
            if events == window.events or time.monotonic() < again:
                continue
            began = time.monotonic()
            written += self._judge(window)
            # A long diagnosis of a window that still grows is not repeated all the time.
            now = time.monotonic()
            self._judged[key] = (window.events, now + 4 * (now - began))
        current = {(window.cluster, window.job, window.start) for window in found}
        self._judged = {key: value for key, value in self._judged.items() if key in current}
        return written

    def look_at_pace(self, *, newer_than: str | None = None) -> int:
        """Judge jobs that run without trouble: one of their cards may be slow.

        Args:
            newer_than: by the entries of collective operations since then; ``None``: of all times.

        Returns:
            Incidents that were written.
        """
        self._store.create_index(self._names.incidents, _index())
        troubled = windows(self._counts(queries.trouble(newer_than)))
        written = 0
        for window in windows(self._counts(queries.entries(newer_than))):
            if self._stop.is_set():
                break
            if not any(
                (other.cluster, other.job) == (window.cluster, window.job)
                and other.start - _BEFORE <= window.end
                and other.end + _AFTER >= window.start
                for other in troubled
            ):
                written += self._judge(window, pace=True)
        return written

    # ------------------------------------------------------------ finding trouble

    def _leads(self) -> bool:
        """Whether this service is the one that judges; another takes over when it falls silent."""
        self._store.create_index(self._names.state, own_index(state.MAPPINGS))
        known = self._store.get(self._names.state, "incidents")
        now = time.time()
        if known is not None and known.source.get("holder") != self._name and known.source["until"] > now:
            return False
        lease = {"kind": "lease", "holder": self._name, "until": now + _LEASE, "@timestamp": iso(now)}
        return self._store.put(self._names.state, "incidents", lease, known)

    def _counts(self, query: Document) -> Iterator[Count]:
        sources = [
            {"cluster": {"terms": {"field": "orchestrator.cluster.name", "missing_bucket": True}}},
            {"job": {"terms": {"field": "ascend.job.id", "missing_bucket": True}}},
            {"time": {"date_histogram": {"field": "@timestamp", "fixed_interval": f"{INTERVAL:.0f}s"}}},
        ]
        after: Document | None = None
        while True:
            composite: Document = {"size": 1_000, "sources": sources}
            if after is not None:
                composite["after"] = after
            answer = self._store.aggregate(
                self._names.streams, query, {"counts": {"composite": composite}}
            ).get("counts", {})
            for bucket in answer.get("buckets", ()):
                key = bucket["key"]
                yield Count(key["cluster"], key["job"], key["time"] / 1000, bucket["doc_count"])
            after = answer.get("after_key")
            if after is None:
                return

    # ------------------------------------------------------------ judging

    def _judge(self, window: Window, *, pace: bool = False) -> int:
        """Diagnose a window; with ``pace`` only what is slow counts."""
        collector = self._read(window, 0.0 if pace else _BEFORE)
        catalogue = self._holder.current
        earlier = self._earlier(window)
        written: set[str] = set()
        changed = 0
        for number in range(_MAX_JOBS):
            verdict = conclude(collector, catalogue=catalogue)
            if verdict.kind == "healthy" or not verdict.timeline.lanes:
                break
            if pace and verdict.kind != "straggler":
                break
            # What else went on at that time is an incident only where it is clear.
            if number == 0 or verdict.cards:
                communicator = communicator_of(verdict, collector)
                name = self._id(window, communicator, verdict, earlier)
                written.add(name)
                bounds = (iso(window.start), iso(window.end))
                document = incident(name, verdict, window, communicator, catalogue, bounds)
                changed += self._put(name, document)
            if not set_aside(verdict, collector):
                break
        for old in () if pace else earlier:
            if old.id not in written and old.source["ascend"]["incident"]["kind"] != "healthy":
                # More lines have shown that it was none.
                old.source["ascend"]["incident"]["kind"] = "healthy"
                changed += self._store.put(self._names.incidents, old.id, old.source, old)
        self._metrics.incidents.inc(changed)
        return changed

    def _read(self, window: Window, before: float) -> Collector:
        """Collect what diagnosis needs of a window, and of some seconds before."""
        collector = Collector()
        labels = {"orchestrator.cluster.name": window.cluster, "ascend.job.id": window.job}
        query = queries.telling(load_signs(), iso(window.start - before), iso(window.end + _AFTER), labels)
        with Point(self._store, self._names.streams) as point:
            for page in point.pages(query, _PAGE, fields=_FIELDS, sort=_SORT):
                for hit in page:
                    collector.observe(_Read(flat(hit.source)))
                if self._stop.is_set():
                    raise BusyError("told to stop")
                if collector.events >= _MAX_EVENTS:
                    _log.warning(
                        "the window from %s holds more than %d lines; the later ones are left out",
                        iso(window.start),
                        _MAX_EVENTS,
                    )
                    break
        self._book.refresh(self._store)
        for trace in collector.traces.values():
            # Long before the trouble, its process has said who it is.
            known = self._book.registry.processes.get(trace.key) if trace.key is not None else None
            process = collector.registry.processes.get(trace.key) if trace.key is not None else None
            if known is not None and process is not None and process.device is None and not process.ranks:
                process.merge(known)
        return collector

    # ------------------------------------------------------------ writing

    def _earlier(self, window: Window) -> list[Stored]:
        """Incidents that were written for a window, earlier in its growth."""
        overlap: list[Document] = [
            {"range": {"ascend.incident.start": {"lte": iso(window.end + INTERVAL)}}},
            {"range": {"ascend.incident.end": {"gte": iso(window.start - INTERVAL)}}},
        ]
        absent: list[Document] = []
        for name, value in (("orchestrator.cluster.name", window.cluster), ("ascend.job.id", window.job)):
            if value is None:
                absent.append({"exists": {"field": name}})
            else:
                overlap.append({"term": {name: value}})
        body = {
            "size": 100,
            "query": {"bool": {"filter": overlap, "must_not": absent}},
            "sort": [{"ascend.incident.start": "asc"}],
        }
        self._store.refresh(self._names.incidents)
        return self._store.search(self._names.incidents, body)

    def _id(self, window: Window, communicator: str | None, verdict: Verdict, earlier: list[Stored]) -> str:
        for old in earlier:
            if old.source["ascend"].get("communicator", {}).get("id") == communicator:
                return old.id
        start, _ = span(verdict, (iso(window.start), iso(window.end)))
        text = "\0".join(str(part) for part in (window.cluster, window.job, communicator, start))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]

    def _put(self, name: str, document: Document) -> bool:
        """Write an incident where it is new or has changed."""
        known = self._store.get(self._names.incidents, name)
        if known is not None and known.source == json.loads(json.dumps(document)):
            return False
        kind = document["ascend"]["incident"]
        if not self._store.put(self._names.incidents, name, document, known):
            return False
        _log.info("incident %s: %s", name, kind["sentence"])
        return True


def _index() -> Document:
    """Settings and mapping, as the installer's template has them."""
    path = content_dir("kibana") / "incidents" / "index-template.json"
    body: Document = json.loads(path.read_text("utf-8"))["template"]
    return body
