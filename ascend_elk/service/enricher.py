"""From a page of events to what is written on them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from ascend_elk.identity import ProcessKey, process_key
from ascend_elk.interest import load_signs
from ascend_elk.service import queries
from ascend_elk.service.catalogue import CatalogueHolder
from ascend_elk.service.changes import Fields, apply, flat, gain, is_unknown
from ascend_elk.service.metrics import Metrics
from ascend_elk.service.moments import seconds
from ascend_elk.service.processes import ProcessBook
from ascend_elk.service.queries import Query
from ascend_elk.service.store import Names, Point, Store, Stored
from ascend_elk.service.writing import Tally, Update, Writer

_log = logging.getLogger(__name__)

# Processes whose events one search looks for.
_TOGETHER = 64


class Enricher:
    """What one service knows, and how it writes that on events.

    Args:
        connect: makes a store for a thread.
        names: where it reads and writes.
        holder: the catalogue in force.
        metrics: counts.
        batch: events at a time.
        writers: bulk requests under way at once.
    """

    def __init__(
        self,
        connect: Callable[[], Store],
        names: Names,
        holder: CatalogueHolder,
        metrics: Metrics,
        batch: int,
        writers: int,
    ) -> None:
        """Prepare; nothing is sent yet."""
        self.store = connect()
        self.reader = connect()
        """For points in time, which are read ahead in another thread."""
        self.names = names
        self.book = ProcessBook(names.processes)
        self.writer = Writer(connect, names.rejected, metrics, writers)
        self.batch = batch
        self._holder = holder
        self._metrics = metrics
        self.use_catalogue()

    def use_catalogue(self) -> None:
        """Take the catalogue that the holder has now."""
        self.catalogue = self._holder.current
        self.worth: Query = queries.worth(self.catalogue, load_signs())
        self.teaching: Query = queries.teaching(load_signs())
        self.writer.forget()

    def todo(self, *, latest: bool, since_ingest: str | None = None, of: Query | None = None) -> Query:
        """What is not enriched yet, without what is set aside."""
        return queries.todo(
            of or self.worth,
            self.catalogue.version,
            latest=latest,
            since_ingest=since_ingest,
            without=self.writer.set_aside(),
        )

    def learn(self, hits: Iterable[Stored]) -> None:
        """Learn which card processes drive; nothing is written on the events."""
        for hit in hits:
            self._fields(hit)
        self.book.save(self.store)

    def enrich(self, hits: Sequence[Stored]) -> Tally:
        """Learn from a page, and send what its events gain; waits only while all writers have work.

        Returns:
            What became of requests that have ended.
        """
        began = time.monotonic()
        fresh = [hit for hit in hits if not self.writer.is_stale(hit.index, hit.id, hit.version)]
        # All of a page teach before any is identified.
        read = [(hit, fields) for hit in fresh if (fields := self._fields(hit)) is not None]
        updates = []
        for hit, fields in read:
            try:
                gained = gain(fields, self.catalogue, self.book.identify(fields))
            except Exception as error:  # whatever one event does to the code, the others are enriched
                self._put_aside(hit, error)
                continue
            if gained:
                apply(gained, hit.source)
                updates.append(Update(hit.index, hit.id, hit.version, hit.source))
                if is_unknown(fields, gained):
                    self._metrics.unknown_codes.inc()
        self.book.save(self.store)
        self.writer.submit(updates, began)
        self._note_lag(read)
        tally = self.collect(everything=False)
        tally.looked_at += len(hits)
        return tally

    def collect(self, *, everything: bool) -> Tally:
        """Wait for requests under way: all of them, or those that are too many."""
        return self.writer.collect(self.store, self.catalogue.version, everything=everything)

    def backfill(self, keys: Sequence[ProcessKey]) -> Tally:
        """Give events of some processes the card and the rank that were not known when they were enriched."""
        tally = Tally()
        rest = iter(sorted(set(keys), key=str))
        while part := list(islice(rest, _TOGETHER)):
            wanted = set(part)
            query = queries.nameless(
                self.worth, sorted({key.host for key in part if key.host}), sorted({key.pid for key in part})
            )
            with Point(self.store, self.names.streams) as point:
                for page in point.pages(query, self.batch):
                    tally.add(self._backfill(page, wanted))
            tally.add(self.collect(everything=True))
        return tally

    def _backfill(self, page: Sequence[Stored], wanted: set[ProcessKey]) -> Tally:
        began = time.monotonic()
        updates = []
        for hit in page:
            if self.writer.is_stale(hit.index, hit.id, hit.version):
                continue
            fields = flat(hit.source)
            try:
                gained = self.book.identify(fields) if process_key(fields) in wanted else {}
            except Exception as error:  # as in enrich
                self._put_aside(hit, error)
                continue
            if gained:
                apply(gained, hit.source)
                updates.append(Update(hit.index, hit.id, hit.version, hit.source))
        self.writer.submit(updates, began)
        return self.collect(everything=False)

    def _fields(self, hit: Stored) -> Fields | None:
        fields = flat(hit.source)
        try:
            self.book.observe(fields)
        except Exception as error:  # as in enrich
            self._put_aside(hit, error)
            return None
        return fields

    def _put_aside(self, hit: Stored, error: Exception) -> None:
        reason = f"{type(error).__name__}: {error}"
        self.writer.put_aside(self.store, hit.index, hit.id, "enrichment", reason, self.catalogue.version)

    def _note_lag(self, read: Sequence[tuple[Stored, Fields]]) -> None:
        ingested = [
            moment for _, fields in read if (moment := seconds(fields.get(queries.INGESTED))) is not None
        ]
        if ingested:
            self._metrics.lag_seconds.set(max(0.0, time.time() - min(ingested)))
