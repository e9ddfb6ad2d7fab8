"""Which card each process drives, kept in Elasticsearch: one document a process.

What a service learns it writes at once, and it looks for what others have learnt. A document stays *open*
until the events that were written before the mapping was known have been given it, see ``Worker``.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from http import HTTPStatus
from typing import Any

from ascend_elk.identity import Process, ProcessKey, Registry, process_key
from ascend_elk.interest import Sign, load_signs
from ascend_elk.service.jsons import dumps
from ascend_elk.service.moments import seconds
from ascend_elk.service.store import Document, Store, Stored

_log = logging.getLogger(__name__)

MAPPINGS: Document = {
    "dynamic": False,
    "properties": {
        "changed": {"type": "date", "format": "epoch_millis"},
        "open": {"type": "boolean"},
        "host": {"properties": {"name": {"type": "keyword"}}},
        "process": {"properties": {"pid": {"type": "long"}}},
        "ascend": {
            "properties": {
                "device": {
                    "properties": {
                        "id": {"type": "long"},
                        "physical_id": {"type": "long"},
                        "key": {"type": "keyword"},
                        "ip": {"type": "keyword"},
                    }
                },
                "rank": {"properties": {"id": {"type": "long"}, "size": {"type": "long"}}},
                "communicator": {"properties": {"id": {"type": "keyword"}}},
            }
        },
        "contradictions": {"type": "text"},
        "state": {"type": "object", "enabled": False},
    },
}

_PAGE = 1_000
# Documents become visible late; looking back a little costs nothing.
_LOOK_BACK = 30.0
# A line that contradicts this long after the last that agreed is of another process that got the same number.
_REUSED = 600.0


_NOTHING: tuple[Any, ...] = (None, None, None, (None, None, None), 0, None, 0)


@dataclass
class _Entry:
    """One process beside what identity knows of it.

    Attributes:
        since: its lines begin here; earlier ones are of another process of that number.
        taught: time of the first and of the last line that told of it.
        started: a process began under this number, and no line has told yet which.
        written: version of its document; ``None`` where there is none.
        known: what the events get, as last written.
        changed: when that last changed, seconds since 1970.
        open: older events may lack it.
    """

    since: float | None = None
    taught: tuple[float, float] | None = None
    started: float | None = None
    written: tuple[int, int] | None = None
    known: tuple[Any, ...] = _NOTHING
    changed: float = 0.0
    open: bool = False


class ProcessBook:
    """The processes that all services know.

    Args:
        index: that holds them.
    """

    def __init__(self, index: str) -> None:
        """Start empty."""
        self.index = index
        self.registry = Registry()
        self._entries: dict[ProcessKey, _Entry] = {}
        self._children: dict[ProcessKey, set[ProcessKey]] = defaultdict(set)
        self._touched: set[ProcessKey] = set()
        self._signs = load_signs()
        self._looked = 0.0

    # ------------------------------------------------------------ learning

    def observe(self, fields: Mapping[str, Any]) -> None:
        """Learn from one event."""
        key = process_key(fields)
        if key is None:
            return
        recognised = self._signs.recognise(fields.get("message") or "")
        moment = seconds(fields.get("@timestamp"))
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
        elif moment is not None and not self._is_of(key, entry, recognised, moment):
            return
        process = self.registry.observe(fields, recognised)
        if process is None:
            return
        if recognised is not None and recognised[0].role == "identity" and moment is not None:
            first, last = entry.taught or (moment, moment)
            entry.taught = (min(first, moment), max(last, moment))
        if process.parent is not None:
            self._children[process.parent].add(key)
        self._touched.add(key)

    def _is_of(
        self, key: ProcessKey, entry: _Entry, recognised: tuple[Sign, dict[str, str]] | None, moment: float
    ) -> bool:
        """Whether a line is of this process; begins a new one where the number was given to another."""
        if entry.since is not None and moment < entry.since:
            return False
        if recognised is None or entry.taught is None:
            return True
        sign, facts = recognised
        first, last = entry.taught
        if sign.name == "process-start" and moment > last:
            entry.started = moment
        if sign.role != "identity":
            return True
        if entry.started is not None and moment >= entry.started:
            self._renew(key, entry, entry.started)
            return True
        device = facts.get("logical")
        known = self.registry.processes[key].device
        if device is not None and device.isdigit() and known is not None and known != int(device):
            if moment > last + _REUSED:
                self._renew(key, entry, moment)
            elif moment < first - _REUSED:
                entry.since = first - _REUSED
                return False
        return True

    def _renew(self, key: ProcessKey, entry: _Entry, moment: float) -> None:
        self.registry.processes.pop(key, None)
        entry.since, entry.taught, entry.started = moment, None, None

    def identify(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that an event gains from its process."""
        key = process_key(fields)
        entry = self._entries.get(key) if key is not None else None
        if entry is not None and entry.since is not None:
            moment = seconds(fields.get("@timestamp"))
            if moment is not None and moment < entry.since:
                return {}
        return self.registry.identify(fields)

    # ------------------------------------------------------------ keeping

    def save(self, store: Store) -> None:
        """Write the processes whose mapping has changed since."""
        changed = []
        for key in self._touched:
            process = self.registry.processes.get(key)
            entry = self._entries[key]
            if process is not None and self._known(process) != entry.known:
                changed.append((key, process, entry))
        self._touched.clear()
        now = time.time()
        for start in range(0, len(changed), _PAGE):
            part = changed[start : start + _PAGE]
            lines = []
            for key, process, entry in part:
                action: Document = {"_index": self.index, "_id": _name(key)}
                if entry.written is not None:
                    action["if_seq_no"], action["if_primary_term"] = entry.written
                lines.append(dumps({"index" if entry.written else "create": action}))
                lines.append(dumps(self._document(process, entry, now, is_open=True)))
            try:
                results = store.bulk(lines)
            except BaseException:
                self._touched.update(key for key, _, _ in changed)
                raise
            for (key, process, entry), result in zip(part, results, strict=True):
                if result.status < HTTPStatus.BAD_REQUEST:
                    entry.written, entry.changed, entry.open = result.version, now, True
                    entry.known = self._known(process)
                    for text in process.contradictions:
                        _log.warning("%s", text)
                else:
                    # Another service was faster: take what it knows, write both the next time.
                    self._touched.add(key)
                    if result.status == HTTPStatus.CONFLICT:
                        found = store.get(self.index, _name(key))
                        if found is not None:
                            self._take(found)

    def refresh(self, store: Store) -> None:
        """Read what other services have learnt since the last look, at the first time all."""
        start = max(0.0, self._looked - _LOOK_BACK)
        looked = time.time()
        after: list[Any] | None = None
        while True:
            body: Document = {
                "size": _PAGE,
                "query": {"range": {"changed": {"gte": int(start * 1000)}}},
                "sort": [{"changed": "asc"}, {"process.pid": "asc"}, {"host.name": "asc"}],
            }
            if after is not None:
                body["search_after"] = after
            page = store.search(self.index, body)
            for found in page:
                self._take(found)
            if len(page) < _PAGE:
                break
            after = page[-1].sort
        self._looked = looked

    def opened(self, older_than: float = 0.0) -> list[ProcessKey]:
        """Processes whose older events may lack their card; children of them too."""
        limit = time.time() - older_than
        found = [key for key, entry in self._entries.items() if entry.open and entry.changed <= limit]
        return [*found, *(child for key in found for child in self._children.get(key, ()))]

    def changed(self, key: ProcessKey) -> float:
        """When a process's mapping last changed, or its parent's, seconds since 1970."""
        entry = self._entries[key]
        process = self.registry.processes.get(key)
        parent = self._entries.get(process.parent) if process is not None and process.parent else None
        return max(entry.changed, parent.changed if parent is not None else 0.0)

    def close(self, store: Store, keys: Iterable[ProcessKey], settled_before: float) -> None:
        """Note that events have their card, for processes that have not changed since a moment."""
        closing = [
            (key, entry)
            for key in keys
            if (entry := self._entries[key]).open and entry.written and entry.changed < settled_before
        ]
        for start in range(0, len(closing), _PAGE):
            part = closing[start : start + _PAGE]
            lines = []
            for key, entry in part:
                assert entry.written is not None  # noqa: S101 - chosen above
                action = {
                    "_index": self.index,
                    "_id": _name(key),
                    "if_seq_no": entry.written[0],
                    "if_primary_term": entry.written[1],
                }
                lines += [dumps({"update": action}), b'{"doc":{"open":false}}']
            for (_, entry), result in zip(part, store.bulk(lines), strict=True):
                if result.status < HTTPStatus.BAD_REQUEST:
                    entry.written, entry.open = result.version, False

    def _take(self, found: Stored) -> None:
        """Take a document as another service, or this one, wrote it."""
        source = found.source
        try:
            key = ProcessKey(*source["key"])
            theirs = Process.of(key, source["state"])
            since, taught = source["since"], source["taught"]
            changed = float(source["changed"]) / 1000
        except (KeyError, TypeError, ValueError):
            _log.warning(
                "the document %s of %s is not one of a process and is left out", found.id, found.index
            )
            return
        entry = self._entries.setdefault(key, _Entry())
        if entry.written is not None and entry.written >= found.version:
            return
        ours = self.registry.processes.get(key)
        if ours is not None and key in self._touched and entry.since == since:
            theirs.merge(ours)
        self.registry.processes[key] = theirs
        if theirs.parent is not None:
            self._children[theirs.parent].add(key)
        entry.since = since
        entry.taught = tuple(taught) if taught else None
        entry.written, entry.changed, entry.open = found.version, changed, bool(source["open"])
        entry.known = self._known(Process.of(key, source["state"]))

    def _known(self, process: Process) -> tuple[Any, ...]:
        """What events get of a process; changes when they do."""
        return (
            self.registry.device_of(process),
            process.physical,
            process.address,
            process.world,
            len(process.ranks),
            process.parent,
            len(process.contradictions),
        )

    def _document(self, process: Process, entry: _Entry, now: float, *, is_open: bool) -> Document:
        key = process.key
        device = self.registry.device_of(process)
        rank, size, comm = process.world
        return {
            "changed": int(now * 1000),
            "@timestamp": datetime.fromtimestamp(now, timezone.utc).isoformat(timespec="milliseconds"),
            "open": is_open,
            "host": {"name": key.host},
            "process": {"pid": key.pid},
            "ascend": {
                "device": {
                    "id": device,
                    "physical_id": process.physical,
                    "key": f"{key.host}/{device}" if key.host is not None and device is not None else None,
                    "ip": process.address,
                },
                "rank": {"id": rank, "size": size},
                "communicator": {"id": comm},
            },
            "contradictions": process.contradictions,
            "key": list(key),
            "since": entry.since,
            "taught": entry.taught,
            "state": process.state(),
        }


def _name(key: ProcessKey) -> str:
    """The id of a process's document."""
    text = f"{key.host or ''}\0{key.root}\0{key.pid}"
    return base64.urlsafe_b64encode(
        hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:18]
    ).decode()
