"""Events come in, bounded aggregates stay: what each process and each device wrote that matters.

Nothing here grows with the length of the logs: repeats are counted in groups, a trace keeps at most
``MAX_GROUPS`` groups and ``MAX_ENTRIES`` entries of collectives per communicator. Collectors of several
readers merge, in any order, to the same result as one reader.
"""

from __future__ import annotations

import re
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Protocol

from ascend_elk.identity import Process, ProcessKey, Registry, log_root
from ascend_elk.interest import Role, Sign, Signs, load_signs

MAX_GROUPS = 256
MAX_ENTRIES = 2048
MAX_COMMUNICATORS = 64
MAX_EXAMPLES = 4
_MAX_TEXT = 600
_EXAMPLE = 10
_TABLE_WINDOW = 5.0  # seconds between a line and the rows that detail it

_TROUBLE = {"ERROR", "CRITICAL", "FATAL"}
_HARMLESS = {"DEBUG", "INFO", "WARNING", "WARN", "TRACE"}
_CAUSE_SIGNALS = {"ecc", "oom", "aicore", "aicpu", "device-lost", "hardware", "disk-full", "compile", "sdma"}
_TIMEOUT_SIGNALS = {"timeout", "hang"}


class EventLike(Protocol):
    """What the diagnosis needs of an event."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """The flat fields, see docs/fields.md."""


@dataclass
class Record:
    """One line that was kept.

    Attributes:
        time: seconds since 1970, as its clock had it; ``None`` without one.
        facts: what its sign captured.
    """

    __slots__ = ("codes", "facts", "file", "level", "line", "module", "offset", "text", "time")

    time: float | None
    text: str
    level: str
    module: str
    file: str
    line: int | None
    offset: int | None
    codes: tuple[str, ...]
    facts: dict[str, str]


@dataclass
class Group:
    """Lines of one kind by one writer.

    Attributes:
        sign: name of the sign, or the masked text of an error that bears none.
        known: it is a sign.
        role: what such a line means.
        on_device: written by the device side, with its clock.
        unsynchronised: written before the device's clock was set.
        first, last: seconds since 1970.
        examples: the earliest lines.
    """

    sign: str
    role: Role | str
    weight: float = 0.0
    side: str | None = None
    phase: str | None = None
    known: bool = True
    on_device: bool = False
    unsynchronised: bool = False
    count: int = 0
    first: float | None = None
    last: float | None = None
    signals: set[str] = field(default_factory=set)
    examples: list[Record] = field(default_factory=list)

    def add(self, record: Record) -> None:
        """Count one line and keep it if it is among the earliest."""
        self.count += 1
        time = record.time
        if time is not None:
            if self.first is None or time < self.first:
                self.first = time
            if self.last is None or time > self.last:
                self.last = time
        self._keep(record)

    def _keep(self, record: Record) -> None:
        examples = self.examples
        if len(examples) < MAX_EXAMPLES or _moment(record) < _moment(examples[-1]):
            examples.append(record)
            examples.sort(key=_moment)
            del examples[MAX_EXAMPLES:]

    def merge(self, other: Group) -> None:
        """Add another reader's lines."""
        self.count += other.count
        for time in (other.first, other.last):
            if time is not None:
                self.first = time if self.first is None else min(self.first, time)
                self.last = time if self.last is None else max(self.last, time)
        self.signals |= other.signals
        self.unsynchronised |= other.unsynchronised
        for record in other.examples:
            self._keep(record)

    @property
    def facts(self) -> dict[str, str]:
        """Facts of the earliest line that has each."""
        merged: dict[str, str] = {}
        for record in self.examples:
            for name, value in record.facts.items():
                merged.setdefault(name, value)
        return merged

    @property
    def codes(self) -> tuple[str, ...]:
        """Codes of the examples, each once."""
        return tuple(dict.fromkeys(code for record in self.examples for code in record.codes))


def _moment(record: Record) -> float:
    return record.time if record.time is not None else float("inf")


@dataclass
class Entries:
    """When one process entered the collectives of one communicator, the latest ``MAX_ENTRIES`` of them."""

    times: array[float] = field(default_factory=lambda: array("d"))
    shapes: array[int] = field(default_factory=lambda: array("L"))
    total: int = 0
    example: Record | None = None
    """Its tenth entry: past the warm-up, and the same operation on every rank that lost no lines."""

    def add(self, time: float, shape: int) -> None:
        """Note one entry."""
        self.times.append(time)
        self.shapes.append(shape)
        self.total += 1
        if len(self.times) >= 2 * MAX_ENTRIES:
            self.trim()

    def trim(self) -> None:
        """Sort by time and keep the latest."""
        order = sorted(range(len(self.times)), key=self.times.__getitem__)[-MAX_ENTRIES:]
        self.times = array("d", (self.times[index] for index in order))
        self.shapes = array("L", (self.shapes[index] for index in order))

    def merge(self, other: Entries) -> None:
        """Add what another reader found in other files of the process."""
        self.times.extend(other.times)
        self.shapes.extend(other.shapes)
        self.total += other.total
        self.example = self.example or other.example
        self.trim()


@dataclass
class Trace:
    """What one process wrote; or a device or host, for lines of no process."""

    key: ProcessKey | None
    host: str | None
    device: int | None = None
    rank: int | None = None
    first: float | None = None
    last: float | None = None
    device_first: float | None = None
    device_last: float | None = None
    levels: Counter[str] = field(default_factory=Counter)
    sources: set[str] = field(default_factory=set)
    groups: dict[tuple[str, ...], Group] = field(default_factory=dict)
    entries: dict[str, Entries] = field(default_factory=dict)
    costs: dict[str, tuple[int, float]] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    starts: list[float] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)
    """File → checksum of what was seen of it, to tell a copy."""

    def span(self, time: float, on_device: bool = False) -> None:
        """Widen the time in which it wrote; the device side has a clock of its own."""
        if on_device:
            if self.device_first is None or time < self.device_first:
                self.device_first = time
            if self.device_last is None or time > self.device_last:
                self.device_last = time
            return
        if self.first is None or time < self.first:
            self.first = time
        if self.last is None or time > self.last:
            self.last = time

    def group(self, key: tuple[str, ...], sign: str, role: str) -> Group:
        """Return the group of a key; the one for the rest once there are too many."""
        found = self.groups.get(key)
        if found is None:
            if len(self.groups) >= MAX_GROUPS:
                key = (sign,)
                found = self.groups.get(key)
                if found is not None:
                    return found
                if len(self.groups) >= 2 * MAX_GROUPS:
                    key = ("…",)
                    found = self.groups.get(key)
                    if found is not None:
                        return found
            found = self.groups[key] = Group(sign, role)
        return found

    def merge(self, other: Trace) -> None:
        """Add what another reader found."""
        for time, on_device in (
            (other.first, False),
            (other.last, False),
            (other.device_first, True),
            (other.device_last, True),
        ):
            if time is not None:
                self.span(time, on_device)
        self.levels.update(other.levels)
        self.sources |= other.sources
        for key, group in other.groups.items():
            known = self.group(key, group.sign, group.role)
            if known.count == 0:
                known.weight, known.side, known.phase = group.weight, group.side, group.phase
                known.on_device, known.known = group.on_device, group.known
            known.merge(group)
        for comm, entries in other.entries.items():
            self.entries.setdefault(comm, Entries()).merge(entries)
        for op, (count, seconds) in other.costs.items():
            known_count, known_seconds = self.costs.get(op, (0, 0.0))
            self.costs[op] = (known_count + count, known_seconds + seconds)
        self.settings.update(other.settings)
        self.starts = sorted({*self.starts, *other.starts})[-16:]
        for path, checksum in other.files.items():
            self.files[path] = self.files.get(path, 0) ^ checksum


class Collector:
    """Takes events, keeps traces.

    Attributes:
        registry: who is who.
        traces: what each process, device and host wrote.
        events: events taken.
        addresses: network address → (host, device), from reports of ``hccn_tool``.
    """

    def __init__(self, signs: Signs | None = None) -> None:
        """Start empty, with the product's signs unless others are given."""
        self.registry = Registry()
        self.traces: dict[tuple[Any, ...], Trace] = {}
        self.events = 0
        self.addresses: dict[str, tuple[str | None, int]] = {}
        self._asked: dict[str, int] = {}
        self._signs = signs or load_signs()
        self._seconds = _Seconds()
        self._last: dict[str, Group] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the aggregates only: readers hand them over."""
        return {
            "registry": self.registry,
            "traces": self.traces,
            "events": self.events,
            "addresses": self.addresses,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Unpickle."""
        self.__init__()  # type: ignore[misc]  # no subclass has another
        self.__dict__.update(state)

    def feed(self, events: Iterable[EventLike]) -> Collector:
        """Observe every event; returns itself."""
        for event in events:
            self.observe(event)
        return self

    def merge(self, other: Collector) -> None:
        """Add what another reader collected."""
        self.registry.merge(other.registry)
        self.events += other.events
        self.addresses.update(other.addresses)
        for key, trace in other.traces.items():
            known = self.traces.setdefault(key, trace)
            if known is not trace:
                known.merge(trace)

    def observe(self, event: EventLike) -> None:
        """Take one event."""
        fields = event.fields
        self.events += 1
        message = fields.get("message") or ""
        recognised = self._signs.recognise(message)
        process = self.registry.observe(fields, recognised)
        trace = self._trace(fields, process.key if process else None, recognised[1] if recognised else {})
        time = self._seconds(fields.get("@timestamp"))
        if fields.get("ascend.clock.unsynchronised"):
            time = None  # a clock of 1970 places nothing
        level = fields.get("log.level") or ""
        path = fields.get("log.file.path") or ""
        trace.levels[level] += 1
        checksum = zlib.crc32(message.encode("utf-8", "replace")) + (fields.get("log.offset") or 0)
        trace.files[path] = trace.files.get(path, 0) ^ checksum
        if time is not None:
            trace.span(time, trace.key is not None and fields.get("ascend.source") == "device")
        if recognised is not None:
            self._recognised(event, trace, process, time, level, path, *recognised)
        elif level in _TROUBLE or (
            level not in _HARMLESS and (fields.get("ascend.error.codes") or fields.get("ascend.signal"))
        ):
            self._unrecognised(event, trace, time, level, path)

    def _trace(self, fields: Mapping[str, Any], key: ProcessKey | None, facts: Mapping[str, str]) -> Trace:
        host = fields.get("host.name")
        source = fields.get("ascend.source") or ""
        device = fields.get("ascend.device.id")
        if key is not None and source not in _SYSTEM_SOURCES:
            name: tuple[Any, ...] = key
        else:
            key = None
            if device is None:
                device = fields.get("ascend.device.physical_id")
            if device is None and "device" in facts:
                device = int(facts["device"])
            path = fields.get("log.file.path") or ""
            rank = _RANK_FILE.search(path) if source == "console" and device is None else None
            name = (host, log_root(path), "device", device, rank.group(1) if rank else None)
        trace = self.traces.get(name)
        if trace is None:
            trace = self.traces[name] = Trace(key, host, None if key else device)
            if key is None and name[4] is not None:
                trace.rank = int(name[4])
        trace.sources.add(source)
        return trace

    def _recognised(
        self,
        event: EventLike,
        trace: Trace,
        process: Process | None,
        time: float | None,
        level: str,
        path: str,
        sign: Sign,
        facts: dict[str, str],
    ) -> None:
        role = sign.role
        if sign.weigh and not sign.weight_of(facts):
            role = "context"
        if role == "begin":
            if time is not None:
                entries = _enter(trace, time, facts)
                if entries is not None and entries.total == _EXAMPLE:
                    entries.example = _record(event, time, level, path, facts)
                    if process is not None:
                        process.learn(sign, facts)
            return
        if role == "end":
            if "cost" in facts and (facts["op"] in trace.costs or len(trace.costs) < MAX_COMMUNICATORS):
                count, seconds = trace.costs.get(facts["op"], (0, 0.0))
                trace.costs[facts["op"]] = (count + 1, seconds + int(facts["cost"]) * 1e-6)
            return
        if role == "noise":
            return
        if "asked" in facts:
            self._asked[path] = int(facts["asked"])
            return
        if "answered" in facts:
            if path in self._asked:
                self.addresses[facts["answered"]] = (trace.host, self._asked.pop(path))
            return
        if role == "setting":
            for short, name in (("connect", "HCCL_CONNECT_TIMEOUT"), ("exec", "HCCL_EXEC_TIMEOUT")):
                if short in facts:
                    trace.settings.setdefault(name, facts[short])
            trace.settings.setdefault(facts.get("name", sign.name), facts.get("value", facts.get("tls", "")))
            return
        if sign.name == "process-start" and time is not None:
            trace.starts = sorted({*trace.starts, time})[-16:]
        if sign.name in _OWN_RANK and process is not None:
            process.learn(sign, facts)
        if role == "table":
            last = self._last.get(path)
            if last is not None and last.examples:
                record = last.examples[-1]
                if time is None or record.time is None or abs(time - record.time) <= _TABLE_WINDOW:
                    for name, value in facts.items():
                        record.facts[name] = (
                            _joined(record.facts.get(name), value)
                            if name == "list"
                            else (record.facts.get(name) or value)
                        )
                    return
        side = "device" if event.fields.get("ascend.source") == "device" else "host"
        key = (sign.name, side, *(f"{name}={facts[name]}" for name in _KEY_FACTS if name in facts))
        group = trace.group(key, sign.name, role)
        if group.count == 0:
            group.weight, group.side, group.phase = sign.weight_of(facts), sign.side, sign.phase
            group.on_device = side == "device"
        group.unsynchronised |= bool(event.fields.get("ascend.clock.unsynchronised"))
        group.signals.update(event.fields.get("ascend.signal") or ())
        group.add(_record(event, time, level, path, facts))
        if role == "timeout":
            self._last[path] = group

    def _unrecognised(
        self, event: EventLike, trace: Trace, time: float | None, level: str, path: str
    ) -> None:
        fields = event.fields
        signals = set(fields.get("ascend.signal") or ())
        codes = fields.get("ascend.error.codes") or ()
        role, weight = _judge(self._signs, signals, codes, level)
        if role is None:
            return
        template = _masked(fields.get("message") or "")
        on_device = fields.get("ascend.source") == "device"
        group = trace.group(("error", template, str(on_device)), template, role)
        if group.count == 0:
            group.known = False
            group.weight = weight
            group.on_device = on_device
        group.unsynchronised |= bool(fields.get("ascend.clock.unsynchronised"))
        group.signals |= signals
        group.add(_record(event, time, level, path, {}))


_RANK_FILE = re.compile(r"rank[-_]?(\d{1,6})[^/]*$")
_SYSTEM_SOURCES = {"device-os", "firmware", "event", "host-kernel", "hisi-history", "host-syslog"}
_OWN_RANK = {"task-group", "notify-report"}
"""Signs of errors that also say who wrote them."""
_KEY_FACTS = (
    "remote_rank",
    "remote_ip",
    "remote_plain_ip",
    "remote_server",
    "remote_physical",
    "local_server",
    "local_physical",
    "status",
    "informer",
    "what",
    "host_pid",
    "event",
    "assertion",
)


def _enter(trace: Trace, time: float, facts: dict[str, str]) -> Entries | None:
    tag = facts.get("tag", "")
    # The tag is the operation's name, an underscore and the communicator.
    comm = facts.get("comm") or tag.partition("_")[2] or tag
    entries = trace.entries.get(comm)
    if entries is None:
        if len(trace.entries) >= MAX_COMMUNICATORS:
            return None
        entries = trace.entries[comm] = Entries()
    shape = f"{facts.get('op')} {facts.get('count')} {facts.get('dtype')}"
    entries.add(time, zlib.crc32(shape.encode()))
    return entries


def _record(event: EventLike, time: float | None, level: str, path: str, facts: dict[str, str]) -> Record:
    fields = event.fields
    text = fields.get("event.original") or fields.get("message") or ""
    return Record(
        time=time,
        text=text[:_MAX_TEXT],
        level=level,
        module=fields.get("ascend.module") or "",
        file=path,
        line=getattr(event, "line", None),
        offset=fields.get("log.offset"),
        codes=tuple(fields.get("ascend.error.codes") or ()),
        facts=dict(facts),
    )


def _joined(known: str | None, value: str) -> str:
    return f"{known}{value}" if known else value


def _judge(signs: Signs, signals: set[str], codes: Sequence[str], level: str) -> tuple[str | None, float]:
    """Role and weight of an error line without a sign, from what the parser found in it."""
    if signals & _CAUSE_SIGNALS and not signals & _TIMEOUT_SIGNALS:
        return "cause", 0.7
    role = signs.role_of(codes)
    if role == "timeout" or signals & _TIMEOUT_SIGNALS:
        return "timeout", 0.0
    if role == "wrapper":
        return "wrapper", 0.0
    if codes:
        return "cause", 0.5
    if level in ("CRITICAL", "FATAL"):
        return "cause", 0.45
    return ("error", 0.2) if level in _TROUBLE else (None, 0.0)


_DIGITS = str.maketrans("0123456789", "##########")


def _masked(message: str) -> str:
    """A message without its numbers, cut: its like have the same."""
    masked = message[:160].translate(_DIGITS)
    while "##" in masked:
        masked = masked.replace("##", "#")
    return masked[:100]


class _Seconds:
    """ISO 8601 in UTC to seconds since 1970; the minute is worked out once."""

    def __init__(self) -> None:
        self._minutes: dict[str, float | None] = {}

    def __call__(self, value: Any) -> float | None:
        if isinstance(value, str):
            minute = value[:16]
            base = self._minutes.get(minute, 0.0)
            if base == 0.0:
                base = self._minute(minute)
            if base is None:
                return None
            try:
                return base + float(value[17:].rstrip("Z") or 0)
            except ValueError:
                return _general(value)
        if isinstance(value, datetime):
            return value.timestamp()
        return float(value) if isinstance(value, (int, float)) else None

    def _minute(self, minute: str) -> float | None:
        if len(self._minutes) > 100_000:
            self._minutes.clear()
        try:
            base: float | None = datetime.fromisoformat(minute).replace(tzinfo=timezone.utc).timestamp()
        except ValueError:
            base = None
        self._minutes[minute] = base
        return base


def _general(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
