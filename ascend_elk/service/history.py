"""Enriching history again, from a time on, in the order of time: interrupted, it goes on where it stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Event

from ascend_elk.service import queries
from ascend_elk.service.enricher import Enricher
from ascend_elk.service.queries import FIELDS
from ascend_elk.service.state import State
from ascend_elk.service.store import BusyError, Point, ahead
from ascend_elk.service.writing import Tally

# By the nanosecond: what the position keeps must not skip events of the same millisecond.
_SORT = ({"@timestamp": {"order": "asc", "format": "strict_date_optional_time_nanos"}}, {"_shard_doc": "asc"})
_PAGES = 8


class History:
    """One run over history.

    Args:
        enricher: does the work.
        state: keeps the position.
        since: where it begins, ISO 8601.
        stop: set by whoever wants it to end.
    """

    def __init__(self, enricher: Enricher, state: State, since: str, stop: Event) -> None:
        """Prepare; nothing is sent yet."""
        self.done = False
        self._enricher = enricher
        self._state = state
        self._since = since
        self._stop = stop
        self._work: Iterator[Tally] | None = None

    def count(self) -> int:
        """Events that are left."""
        enricher = self._enricher
        start = self._state.position(enricher.store, self._since, enricher.catalogue.version) or self._since
        return enricher.store.count(enricher.names.streams, queries.since(enricher.worth, start))

    def turn(self, seconds: float, note: Callable[[Tally], None] = lambda _: None) -> None:
        """Work for a while; after an exception the next turn begins at the position that was kept."""
        if self._work is None:
            self._work = self._run()
        end = time.monotonic() + seconds
        try:
            for tally in self._work:
                note(tally)
                if time.monotonic() >= end or self._stop.is_set():
                    return
        except BaseException:
            self._work = None
            raise

    def _run(self) -> Iterator[Tally]:
        enricher = self._enricher
        store, catalogue = enricher.store, enricher.catalogue.version
        start = self._state.position(store, self._since, catalogue) or self._since
        with Point(enricher.reader, enricher.names.streams) as point:
            teaching = queries.since(enricher.teaching, self._since)
            for page in point.pages(teaching, enricher.batch, fields=FIELDS):
                enricher.learn(page)
                yield Tally()
            wanted = queries.since(enricher.worth, start)
            pages = ahead(point.pages(wanted, enricher.batch, sort=_SORT))
            for number, page in enumerate(pages, 1):
                tally = enricher.enrich(page)
                _refuse(tally)
                if number % _PAGES == 0:
                    tally.add(self._kept(str(page[-1].sort[0])))
                yield tally
            tally = enricher.collect(everything=True)
            _refuse(tally)
            if not point.complete:
                raise BusyError("not every shard has answered")
        self._state.keep_position(store, self._since, catalogue, None, done=True)
        self.done = True
        yield tally

    def _kept(self, position: str) -> Tally:
        """Wait for what is under way, then note how far it is done."""
        enricher = self._enricher
        tally = enricher.collect(everything=True)
        _refuse(tally)
        self._state.keep_position(enricher.store, self._since, enricher.catalogue.version, position)
        return tally


def _refuse(tally: Tally) -> None:
    if tally.busy:
        raise BusyError(f"Elasticsearch had no room for {tally.busy} events")
