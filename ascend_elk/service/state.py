"""Checkpoints of all services of a cluster, in one small index."""

from __future__ import annotations

import logging
import time
import uuid
from typing import Any

from ascend_elk.service.moments import iso
from ascend_elk.service.store import Store

_log = logging.getLogger(__name__)

MAPPINGS: dict[str, Any] = {
    "dynamic": False,
    "properties": {
        "@timestamp": {"type": "date"},
        "kind": {"type": "keyword"},
        "catalogue": {"type": "keyword"},
    },
}

_CATALOGUE = "catalogue"
_HISTORY = "history"
_BEAT = 5.0
_SILENT = 20.0


class State:
    """What services tell each other.

    Args:
        index: that holds it.
    """

    def __init__(self, index: str) -> None:
        """Prepare; nothing is sent yet."""
        self.index = index
        self._name = f"service-{uuid.uuid4()}"
        self._beaten = float("-inf")
        self._part = (0, 1)
        self._catalogue: str | None = None

    # ------------------------------------------------------------ the catalogue in force

    def adopt(self, store: Store, version: str) -> None:
        """Put a catalogue in force: the one that a service began with last."""
        while True:
            known = store.get(self.index, _CATALOGUE)
            if known is not None and known.source.get("version") == version:
                return
            document = {"@timestamp": iso(time.time()), "kind": _CATALOGUE, "version": version}
            if store.put(self.index, _CATALOGUE, document, known):
                return

    def in_force(self, store: Store) -> str | None:
        """Version of the catalogue in force."""
        known = store.get(self.index, _CATALOGUE)
        return str(known.source["version"]) if known is not None else None

    # ------------------------------------------------------------ sharing the work

    def share(self, store: Store, catalogue: str) -> tuple[int, int]:
        """This service's part of the work: number and count of the services that live, with this catalogue.

        Who counts wrongly for a moment does work that is another's too; the condition on every write keeps
        that harmless.
        """
        now = time.monotonic()
        if now - self._beaten < _BEAT and catalogue == self._catalogue:
            return self._part
        self._beaten, self._catalogue = now, catalogue
        alive = {"@timestamp": iso(time.time()), "kind": "service", "catalogue": catalogue}
        store.call("PUT", f"/{self.index}/_doc/{self._name}", alive)
        query = {
            "bool": {
                "filter": [
                    {"term": {"kind": "service"}},
                    {"term": {"catalogue": catalogue}},
                    {"range": {"@timestamp": {"gte": iso(time.time() - _SILENT)}}},
                ]
            }
        }
        found = store.search(self.index, {"size": 1_000, "query": query, "_source": False})
        names = sorted({self._name, *(one.id for one in found)})
        part = (names.index(self._name), len(names))
        if part != self._part:
            _log.info("part %d of %d of the work", part[0] + 1, part[1])
        self._part = part
        return part

    def leave(self, store: Store) -> None:
        """Tell the others that this service ends."""
        if self._catalogue is None:
            return  # It never said that it lives.
        store.call("DELETE", f"/{self.index}/_doc/{self._name}")

    # ------------------------------------------------------------ history

    def position(self, store: Store, since: str, catalogue: str) -> str | None:
        """Where an interrupted run over history stopped; ``None`` where there was none, or it is complete."""
        known = store.get(self.index, _HISTORY)
        if known is None or known.source.get("done"):
            return None
        if (known.source.get("since"), known.source.get("catalogue")) != (since, catalogue):
            return None
        position = known.source.get("position")
        return str(position) if position is not None else None

    def keep_position(
        self, store: Store, since: str, catalogue: str, position: str | None, *, done: bool = False
    ) -> None:
        """Note up to where history is done."""
        document = {
            "@timestamp": iso(time.time()),
            "kind": _HISTORY,
            "since": since,
            "catalogue": catalogue,
            "position": position,
            "done": done,
        }
        store.call("PUT", f"/{self.index}/_doc/{_HISTORY}", document)
