"""Writing back: bulk updates under a condition, and what each refusal means."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from ascend_elk.service.jsons import dumps
from ascend_elk.service.metrics import Metrics
from ascend_elk.service.moments import iso
from ascend_elk.service.queries import Query
from ascend_elk.service.store import BusyError, Store, Written
from ascend_elk.stack.http import ApiError

_log = logging.getLogger(__name__)

MAX_ASIDE = 1_000
"""Documents that are set aside at most; the oldest are tried again beyond that."""
_ASIDE_SECONDS = 3_600.0
_OWN = 100_000
_BLOCKED_SECONDS = 60.0
_REQUEST_BYTES = 8 << 20
_BUSY = {
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}
_TOO_LARGE = {HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.BAD_REQUEST}


@dataclass(frozen=True)
class Update:
    """A document that replaces the one that was read.

    A partial update would have Elasticsearch find and unpack the document once more, which takes it four
    times as long as this.

    Attributes:
        version: that was read; any other is a conflict.
        body: the whole document, nested.
    """

    __slots__ = ("body", "id", "index", "version")

    index: str
    id: str
    version: tuple[int, int]
    body: dict[str, Any]

    def lines(self) -> tuple[bytes, bytes]:
        """Action and body of a bulk request."""
        action = {
            "_index": self.index,
            "_id": self.id,
            "if_seq_no": self.version[0],
            "if_primary_term": self.version[1],
        }
        return dumps({"index": action}), dumps(self.body)


@dataclass
class Tally:
    """What became of some updates.

    Attributes:
        written: done.
        conflicts: the document had changed underneath: it is read again.
        busy: Elasticsearch had no room: they are tried again.
        refused: set aside, or their index is.
        looked_at: events read, whether or not they gain anything.
    """

    written: int = 0
    conflicts: int = 0
    busy: int = 0
    refused: int = 0

    looked_at: int = 0

    def add(self, other: Tally) -> None:
        """Add another's."""
        self.looked_at += other.looked_at
        self.written += other.written
        self.conflicts += other.conflicts
        self.busy += other.busy
        self.refused += other.refused


class Writer:
    """Sends updates by several threads, and remembers what cannot be written.

    Args:
        connect: makes a store for a thread.
        rejected: index that tells people what was set aside.
        metrics: counts.
        threads: bulk requests under way at once.
    """

    def __init__(self, connect: Callable[[], Store], rejected: str, metrics: Metrics, threads: int) -> None:
        """Prepare; threads start when they are needed."""
        self._local = threading.local()
        self._connect = connect
        self._rejected = rejected
        self._metrics = metrics
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="writer")
        self._under_way: list[tuple[Future[list[Written]], Sequence[Update], float]] = []
        self._own: dict[tuple[str, str], int] = {}
        self._older: dict[tuple[str, str], int] = {}
        # Document → when it is tried again; the oldest first.
        self._aside: dict[str, float] = {}
        self._blocked: dict[str, float] = {}

    # ------------------------------------------------------------ what is not read again

    def set_aside(self) -> list[Query]:
        """Queries of what is left out for now."""
        now = time.monotonic()
        self._blocked = {index: end for index, end in self._blocked.items() if end > now}
        self._aside = {name: end for name, end in self._aside.items() if end > now}
        queries: list[Query] = []
        if self._blocked:
            queries.append({"terms": {"_index": list(self._blocked)}})
        if self._aside:
            queries.append({"ids": {"values": list(self._aside)}})
        return queries

    def is_stale(self, index: str, name: str, version: tuple[int, int]) -> bool:
        """Whether a search has returned a document as it was before this service wrote it."""
        key = (index, name)
        return self._own.get(key, -1) >= version[0] or self._older.get(key, -1) >= version[0]

    def age(self) -> None:
        """Some time has passed: searches see what was written before the time before."""
        self._older, self._own = self._own, {}

    def distrust(self) -> None:
        """Elasticsearch was away: what it holds now counts, not what it said."""
        self._older, self._own = {}, {}

    def forget(self) -> None:
        """Try again what was set aside: the catalogue has changed."""
        self._aside.clear()

    def load(self, store: Store, catalogue: str) -> None:
        """Read what was set aside before a restart."""
        body = {
            "size": MAX_ASIDE,
            "query": {"term": {"catalogue": catalogue}},
            "sort": [{"@timestamp": "desc"}],
            "_source": ["id"],
        }
        for found in reversed(store.search(self._rejected, body)):
            self._aside[found.source["id"]] = time.monotonic() + _ASIDE_SECONDS

    def put_aside(self, store: Store, index: str, name: str, kind: str, reason: str, catalogue: str) -> None:
        """Note a document that cannot be written, so that it stops nothing else."""
        self._metrics.rejected.labels(reason=kind).inc()
        _log.warning("event %s of %s is set aside: %s: %s", name, index, kind, reason)
        self._aside.pop(name, None)
        self._aside[name] = time.monotonic() + _ASIDE_SECONDS
        while len(self._aside) > MAX_ASIDE:
            del self._aside[next(iter(self._aside))]
        note = {
            "@timestamp": iso(time.time()),
            "index": index,
            "id": name,
            "kind": kind,
            "reason": reason[:2_000],
            "catalogue": catalogue,
        }
        action = {"index": {"_index": self._rejected, "_id": name}}
        store.bulk([dumps(action), dumps(note)])

    # ------------------------------------------------------------ writing

    def submit(self, updates: Sequence[Update], began: float) -> None:
        """Send updates in the background; at most as many requests as there are threads are under way."""
        if updates:
            self._under_way.append((self._pool.submit(self._write, list(updates)), updates, began))

    @property
    def full(self) -> bool:
        """Whether all threads have work, and one page more."""
        return len(self._under_way) > self._threads

    def collect(self, store: Store, catalogue: str, *, everything: bool) -> Tally:
        """Wait for requests, all or the oldest; what they failed with is raised when all are done."""
        tally = Tally()
        failure: Exception | None = None
        while self._under_way and (everything or self.full):
            future, updates, began = self._under_way.pop(0)
            try:
                results = future.result()
            except Exception as error:  # raised again below, when the others have ended
                failure = failure or error
                continue
            tally.add(self._judge(store, updates, results, catalogue))
            self._metrics.batch_seconds.observe(time.monotonic() - began)
        if failure is not None:
            while self._under_way:
                future, updates, _ = self._under_way.pop(0)
                try:
                    tally.add(self._judge(store, updates, future.result(), catalogue))
                except Exception as error:  # the first failure is the one to raise
                    _log.debug("another request failed: %s", error)
            raise failure
        return tally

    def close(self) -> None:
        """End the threads; what is under way is finished."""
        self._pool.shutdown(wait=True)

    def _write(self, updates: Sequence[Update]) -> list[Written]:
        if not hasattr(self._local, "store"):
            self._local.store = self._connect()
        written: list[Written] = []
        lines: list[bytes] = []
        size = start = 0
        for number, update in enumerate(updates):
            pair = update.lines()
            lines += pair
            size += sum(map(len, pair))
            if size >= _REQUEST_BYTES or number == len(updates) - 1:
                written += self._send(self._local.store, updates[start : number + 1], lines)
                lines, size, start = [], 0, number + 1
        return written

    def _send(self, store: Store, updates: Sequence[Update], lines: Sequence[bytes]) -> list[Written]:
        try:
            # Parsed already: a pipeline that the index has by default must not do it again.
            return store.bulk(lines, pipeline="_none")
        except ApiError as error:
            if error.status not in _TOO_LARGE:
                raise
            if len(updates) == 1:
                return [Written(error.status, (-1, -1), f"request: {error.reason}")]
        middle = len(updates) // 2
        first = self._send(store, updates[:middle], lines[: 2 * middle])
        return first + self._send(store, updates[middle:], lines[2 * middle :])

    def _judge(
        self, store: Store, updates: Sequence[Update], results: Sequence[Written], catalogue: str
    ) -> Tally:
        if len(results) != len(updates):
            raise BusyError(f"Elasticsearch answered for {len(results)} of {len(updates)} events")
        tally = Tally()
        for update, result in zip(updates, results, strict=True):
            if result.status < HTTPStatus.BAD_REQUEST:
                tally.written += 1
                self._own[update.index, update.id] = result.version[0] - 1
            elif result.status == HTTPStatus.CONFLICT:
                tally.conflicts += 1
            elif "block_exception" in result.reason or result.status == HTTPStatus.FORBIDDEN:
                tally.refused += 1
                self._block(update.index, result.reason)
            elif result.status == HTTPStatus.NOT_FOUND:
                pass  # Deleted since.
            elif result.status in _BUSY:
                tally.busy += 1
            else:
                tally.refused += 1
                kind, _, reason = result.reason.partition(": ")
                self.put_aside(store, update.index, update.id, kind, reason, catalogue)
        self._metrics.events.inc(tally.written)
        self._metrics.conflicts.inc(tally.conflicts)
        self._metrics.retries.inc(tally.busy)
        if len(self._own) > _OWN:
            self.age()
        return tally

    def _block(self, index: str, reason: str) -> None:
        if index not in self._blocked:
            self._metrics.rejected.labels(reason="index").inc()
            _log.warning("%s takes no writes and is left out for %.0f s: %s", index, _BLOCKED_SECONDS, reason)
        self._blocked[index] = time.monotonic() + _BLOCKED_SECONDS
