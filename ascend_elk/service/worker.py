"""The loop: new events at once, everything else in between, and nothing lost whatever fails."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from threading import Event

from ascend_elk.errors import UserError
from ascend_elk.service import processes, state
from ascend_elk.service.backoff import Backoff
from ascend_elk.service.catalogue import CatalogueHolder
from ascend_elk.service.enricher import Enricher
from ascend_elk.service.health import Health
from ascend_elk.service.history import History
from ascend_elk.service.metrics import Metrics
from ascend_elk.service.moments import iso
from ascend_elk.service.queries import FIELDS
from ascend_elk.service.settings import Settings
from ascend_elk.service.state import State
from ascend_elk.service.store import BusyError, Document, Names, Point, Store, Stored, ahead, own_index
from ascend_elk.service.writing import Tally
from ascend_elk.stack.http import ApiError, UnreachableError

_log = logging.getLogger(__name__)

TROUBLE = (BusyError, UnreachableError, ApiError, UserError)
"""What another try may mend."""

_RECENT = 600.0
"""Seconds back that each look at what is new covers; the sweep over everything finds what came later."""
_TURN = 2.0
"""Seconds that work in the background may take before it is looked at what is new."""
_REFRESH = 2.0
_SETTLED = 30.0
"""Seconds after which all services know a mapping: events written since have it."""
_NEVER = float("inf")


class Worker:
    """One service.

    Args:
        settings: what it was told.
        connect: makes a store for a thread.
        holder: the catalogue in force.
        metrics: counts.
        health: what ``/healthz`` and ``/readyz`` say.
        stop: set by whoever wants it to end; it finishes what is under way.
    """

    def __init__(
        self,
        settings: Settings,
        connect: Callable[[], Store],
        holder: CatalogueHolder,
        metrics: Metrics,
        health: Health,
        stop: Event,
    ) -> None:
        """Prepare; nothing is sent yet."""
        self.names = Names.of(settings.namespace)
        self._settings = settings
        self._holder = holder
        self._metrics = metrics
        self._health = health
        self._stop = stop
        self.enricher = Enricher(connect, self.names, holder, metrics, settings.batch, settings.writers)
        self._store = self.enricher.store
        self._state = State(self.names.state)
        self._backoff = Backoff()
        self._sweep: Iterator[bool] | None = None
        self._next_sweep = 0.0
        self._refreshed = float("-inf")
        self._latest = True
        self._prepared = False
        self._backfilled: dict[object, float] = {}

    # ------------------------------------------------------------ running

    def run(self, *, since: str | None = None) -> None:
        """Work until told to stop.

        Args:
            since: first enrich the events of a time on again, whatever catalogue has seen them.
        """
        history = self.history(since) if since is not None else None
        try:
            while not self._stop.is_set():
                if not self._guarded(lambda: self._step(history)):
                    self._wait(self._settings.poll)
        finally:
            self.end()

    def catch_up(self, progress: Callable[[Tally], None], *, since: str | None = None) -> Tally:
        """Enrich everything that is there, and return.

        Args:
            progress: told what became of each page.
            since: also events that this catalogue has seen, of a time on.
        """
        total = Tally()

        def note(tally: Tally) -> None:
            total.add(tally)
            progress(tally)

        try:
            if since is not None:
                history = self.history(since)
                while not self._stop.is_set() and not history.done:
                    self._guarded(lambda: self._go_on(history, note))
            complete = False

            def sweep() -> bool:
                nonlocal complete
                self._prepare()
                self._look_around()
                before = total.written
                clean = all(list(self._swept(note)))
                # What was written last must be seen by the looks that follow.
                self._store.refresh(self.names.streams)
                self._backfill(_SETTLED)
                complete = clean and (total.written == before or not self.left())
                return True

            while not self._stop.is_set() and not complete:
                self._guarded(sweep)
            return total
        finally:
            self.end()

    def _go_on(self, history: History, note: Callable[[Tally], None]) -> None:
        self._prepare()
        history.turn(_NEVER, note)

    @property
    def stopped(self) -> bool:
        """Whether someone wants it to end."""
        return self._stop.is_set()

    def history(self, since: str) -> History:
        """The run over history from a time on."""
        return History(self.enricher, self._state, since, self._stop)

    def _guarded(self, work: Callable[[], object]) -> bool:
        """Do some work; after trouble, wait. Returns whether there is more to do at once."""
        self._health.beat()
        try:
            more = bool(work())
        except TROUBLE as error:
            self._metrics.retries.inc()
            self._sweep = None
            self.enricher.writer.distrust()
            self._prepared = self._prepared and not isinstance(error, ApiError)
            pause = self._backoff.pause()
            self._health.not_ready(str(error))
            _log.warning("%s; next try in %.1f s", error, pause)
            self._wait(pause)
            return True
        self._backoff.reset()
        self._health.become_ready()
        return more

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (rest := end - time.monotonic()) > 0 and not self._stop.is_set():
            self._health.beat()
            self._stop.wait(min(rest, 5.0))

    def end(self) -> None:
        """Finish what is under way, and tell the others."""
        try:
            self.enricher.collect(everything=True)
            self.enricher.book.save(self._store)
            self._state.leave(self._store)
        except TROUBLE as error:
            _log.warning(
                "the end was not orderly: %s; nothing is lost, what is not marked is read again", error
            )
        self.enricher.writer.close()

    # ------------------------------------------------------------ one turn

    def _step(self, history: History | None) -> bool:
        """One look at what is new, and a turn of what goes on in the background."""
        self._prepare()
        self._look_around()
        tally = self._recent()
        more = tally.written >= self._settings.batch
        if history is not None and not history.done:
            history.turn(_TURN)
            more = True
        if time.monotonic() >= self._next_sweep:
            more = self._turn_of_sweep() or more
        self._backfill(_SETTLED)
        if tally.busy:
            raise BusyError(f"Elasticsearch had no room for {tally.busy} events")
        return more

    def _prepare(self) -> None:
        """Make the indices of the service and read what earlier ones have left."""
        if self._prepared:
            return
        self._store.ready()
        for index, mappings in (
            (self.names.state, state.MAPPINGS),
            (self.names.processes, processes.MAPPINGS),
            (self.names.rejected, _REJECTED),
        ):
            self._store.create_index(index, own_index(mappings))
        # What a service has written just before it ended must be seen by the one that follows.
        for index in (self.names.processes, self.names.rejected):
            self._store.refresh(index)
        self._state.adopt(self._store, self.enricher.catalogue.version)
        self.enricher.book.refresh(self._store)
        self.enricher.writer.load(self._store, self.enricher.catalogue.version)
        self._prepared = True

    def _look_around(self) -> None:
        """What people and other services have changed."""
        if self._holder.reload_if_changed() or self._holder.current is not self.enricher.catalogue:
            self.enricher.use_catalogue()
            self._state.adopt(self._store, self.enricher.catalogue.version)
            self._sweep, self._next_sweep = None, 0.0
        now = time.monotonic()
        if now - self._refreshed < _REFRESH:
            return
        self._refreshed = now
        self.enricher.book.refresh(self._store)

    def _look_at_catalogue(self) -> bool:
        """Whether this service's catalogue is the one in force.

        Asked after a point in time was opened: a service that has put another one in force since has written
        nothing that this point shows, so none undoes the other's work.
        """
        in_force = self._state.in_force(self._store)
        latest = in_force in (None, self.enricher.catalogue.version)
        if latest != self._latest and not latest:
            _log.warning(
                "another service has put catalogue %s in force; this one, with %s, leaves to it what is "
                "enriched already",
                in_force,
                self.enricher.catalogue.version,
            )
        self._latest = latest
        return latest

    def _recent(self) -> Tally:
        """Enrich what has come in since the last look, newest catalogue first."""
        since = iso(time.time() - _RECENT)
        tally = Tally()
        found = False
        with Point(self.enricher.reader, self.names.streams) as point:
            query = self.enricher.todo(latest=self._look_at_catalogue(), since_ingest=since)
            for page in ahead(point.pages(query, self._settings.batch, part=self._share())):
                found = True
                tally.add(self._page(page))
                if self._stop.is_set():
                    break
        tally.add(self.enricher.collect(everything=True))
        if not found:
            self._metrics.lag_seconds.set(0)
        if not tally.busy:
            self._metrics.last_success.set(time.time())
        return tally

    def _page(self, page: list[Stored]) -> Tally:
        self._health.beat()
        return self.enricher.enrich(page)

    def _turn_of_sweep(self) -> bool:
        """Go on with the look at everything, for a while; returns whether it goes on."""
        if self._sweep is None:
            self._sweep = self._swept(lambda _: None, self._share())
        end = time.monotonic() + _TURN
        for _ in self._sweep:
            if time.monotonic() >= end or self._stop.is_set():
                self.enricher.collect(everything=True)
                return True
        self._sweep = None
        self.enricher.writer.age()
        self._next_sweep = time.monotonic() + self._settings.sweep
        return False

    def _share(self) -> tuple[int, int]:
        return self._state.share(self._store, self.enricher.catalogue.version)

    def _swept(self, note: Callable[[Tally], None], part: tuple[int, int] = (0, 1)) -> Iterator[bool]:
        """Enrich everything that lacks the mark; tells after each page whether it went well.

        What tells of processes is read first, so that events are written once, with their card.
        """
        with Point(self.enricher.reader, self.names.streams) as point:
            latest = self._look_at_catalogue()
            teaching = self.enricher.todo(latest=latest, of=self.enricher.teaching)
            for page in point.pages(teaching, self._settings.batch, fields=FIELDS):
                self._health.beat()
                self.enricher.learn(page)
                yield True
                if self._stop.is_set():
                    return
            query = self.enricher.todo(latest=latest)
            for page in ahead(point.pages(query, self._settings.batch, part=part)):
                tally = self._page(page)
                note(tally)
                yield not tally.busy
                if self._stop.is_set():
                    break
            tally = self.enricher.collect(everything=True)
            note(tally)
            yield point.complete and not tally.busy

    def left(self) -> int:
        """How many events are not enriched, but for those set aside."""
        return self._store.count(self.names.streams, self.enricher.todo(latest=self._latest))

    def _backfill(self, settled: float) -> None:
        """Give events their card that were enriched before it was known.

        At once, for what has changed since the last time; and once more when every service must have learnt
        of the change, so that an event that one of them wrote meanwhile is not left without.
        """
        book = self.enricher.book
        opened = book.opened()
        due = [key for key in opened if self._backfilled.get(key) != book.changed(key)]
        old = book.opened(older_than=settled)
        if not due and not old:
            return
        began = time.time()
        self.enricher.backfill([*due, *old])
        for key in due:
            self._backfilled[key] = book.changed(key)
        book.close(self._store, old, began - settled)
        for key in old:
            self._backfilled.pop(key, None)


_REJECTED: Document = {
    "dynamic": False,
    "properties": {
        "@timestamp": {"type": "date"},
        "index": {"type": "keyword"},
        "id": {"type": "keyword"},
        "kind": {"type": "keyword"},
        "reason": {"type": "text"},
        "catalogue": {"type": "keyword"},
    },
}
