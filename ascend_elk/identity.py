"""Who is who: which device, rank and communicators a process has.

A plog line carries a pid, not a device, so "by device" is a join over identity lines: a pass over the events
fills a :class:`Registry`, and every event of the process can then be given its device and rank. Two lines
that contradict each other leave the fact open, and the contradiction is kept to be reported.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from ascend_elk.interest import Sign, load_signs

NO_RANK = 4294967295
"""HCCL's "no rank"."""

_FILE_PID = re.compile(r"(?:plog|device)-(\d{1,10})_")
_RANK_DIRECTORY = re.compile(r"(?:^|/)rank_(\d{1,9})(?=/)")
_LOG_PARTS = re.compile(r"(?:^|/)(?:debug|run|security|plog|device-\d+|device-os(?:-\d+)?)(?:/|$)")
_MAX_CONTRADICTIONS = 8
_MAX_COMMUNICATORS = 1024
_MAX_ADDRESSES = 64


class ProcessKey(NamedTuple):
    """What tells two processes apart: the same pid lives on two hosts, and in two containers of one host."""

    host: str | None
    root: str
    pid: int


@dataclass
class Process:
    """What the identity lines say of one process.

    Attributes:
        key: the process.
        device: logical device id.
        physical: physical device id.
        ranks: communicator → (rank in it, size); size 0 where no line says it.
        server: address of the host as HCCL names it.
        address: address of the device's network port.
        listens: every address that it listens on.
        parent: the process whose file it writes to.
        contradictions: facts that two lines state differently, one sentence each.
    """

    key: ProcessKey
    device: int | None = None
    physical: int | None = None
    ranks: dict[str, tuple[int, int]] = field(default_factory=dict)
    server: str | None = None
    address: str | None = None
    listens: set[str] = field(default_factory=set)
    parent: ProcessKey | None = None
    contradictions: list[str] = field(default_factory=list)
    root_of: bool = False
    path_rank: int | None = None
    _disputed: set[str] = field(default_factory=set)
    _weak_devices: Counter[int] = field(default_factory=Counter)
    _key_info: tuple[str, int] | None = None

    def settle(self, name: str, value: Any) -> None:
        """Take a fact, or open it again when two lines disagree."""
        if value is None or name in self._disputed:
            return
        known = getattr(self, name)
        if known is None:
            setattr(self, name, value)
        elif known != value:
            self._disputed.add(name)
            setattr(self, name, None)
            where = f"process {self.key.pid} on {self.key.host or 'this host'}"
            self.contradictions.append(f"{where}: its logs give {name} as {known} and as {value}")

    @property
    def known_device(self) -> int | None:
        """The logical device: as stated, else as most of its lines mention it."""
        if self.device is not None or "device" in self._disputed:
            return self.device
        if self._weak_devices:
            (device, votes), *others = self._weak_devices.most_common(2)
            if not others or others[0][1] * 2 <= votes:
                return device
        return None

    @property
    def world(self) -> tuple[int | None, int | None, str | None]:
        """Rank, size and name of its largest communicator; the path's rank where no line says one."""
        if self.ranks:
            comm, (rank, size) = max(self.ranks.items(), key=lambda item: item[1][1])
            if self.path_rank is None or size:
                return rank, size or None, comm
        return self.path_rank, None, None

    def merge(self, other: Process) -> None:
        """Add what another reader of the same process found."""
        for name in ("device", "physical", "server", "address"):
            self.settle(name, getattr(other, name))
        for comm, (rank, size) in other.ranks.items():
            self._rank(comm, rank, size)
        self.listens |= other.listens
        self.parent = self.parent or other.parent
        self.root_of = self.root_of or other.root_of
        self.path_rank = other.path_rank if self.path_rank is None else self.path_rank
        self._weak_devices.update(other._weak_devices)
        self.contradictions += [text for text in other.contradictions if text not in self.contradictions]

    def _rank(self, comm: str, rank: int, size: int) -> None:
        if rank == NO_RANK:
            return
        known = self.ranks.get(comm)
        if known is None and len(self.ranks) >= _MAX_COMMUNICATORS:
            return
        if known is None or (known[0] == rank and not known[1]):
            self.ranks[comm] = (rank, size)
        elif known[0] != rank and len(self.contradictions) < _MAX_CONTRADICTIONS:
            # The first stays: a restarted process of the same pid may come back with another rank.
            self.contradictions.append(
                f"process {self.key.pid} on {self.key.host or 'this host'}: rank {known[0]} and rank {rank} "
                f"in communicator {comm}"
            )

    def state(self) -> dict[str, Any]:
        """All that is known, as JSON: what ``of`` makes a process of again."""
        return {
            "device": self.device,
            "physical": self.physical,
            "ranks": {comm: list(pair) for comm, pair in self.ranks.items()},
            "server": self.server,
            "address": self.address,
            "listens": sorted(self.listens),
            "parent": list(self.parent) if self.parent else None,
            "contradictions": self.contradictions,
            "root_of": self.root_of,
            "path_rank": self.path_rank,
            "disputed": sorted(self._disputed),
            "mentions": [list(pair) for pair in self._weak_devices.most_common()],
        }

    @classmethod
    def of(cls, key: ProcessKey, state: Mapping[str, Any]) -> Process:
        """The process whose ``state`` was kept."""
        return cls(
            key,
            device=state["device"],
            physical=state["physical"],
            ranks={comm: (rank, size) for comm, (rank, size) in state["ranks"].items()},
            server=state["server"],
            address=state["address"],
            listens=set(state["listens"]),
            parent=ProcessKey(*state["parent"]) if state["parent"] else None,
            contradictions=list(state["contradictions"]),
            root_of=state["root_of"],
            path_rank=state["path_rank"],
            _disputed=set(state["disputed"]),
            _weak_devices=Counter(dict(map(tuple, state["mentions"]))),
        )

    def learn(self, sign: Sign, facts: Mapping[str, str]) -> None:
        """Take an identity line."""
        name = sign.name
        rank = _number(facts.get("rank"))
        size = _number(facts.get("size")) or 0
        comm = facts.get("comm")
        if name == "key-info":
            self._key_info = (comm, size) if comm else None
            return
        if name == "local-key-info" and self._key_info is not None:
            comm, size = self._key_info
            self._key_info = None
        if name == "hcom-init":
            comm = "hccl_world_group"
        if name == "listen" and "listen_ip" in facts and len(self.listens) < _MAX_ADDRESSES:
            self.listens.add(facts["listen_ip"].partition("%")[0])
        if name == "collective" and comm is None:
            comm = facts.get("tag", "").partition("_")[2] or None
        if name == "root-info":
            self.root_of = True
        if comm and rank is not None:
            self._rank(comm, rank, size)
        self.settle("device", _number(facts.get("logical")))
        self.settle("physical", _number(facts.get("physical")))
        server = facts.get("server")
        if server:
            self.settle("server", server.partition("%")[0])
        address = facts.get("ip")
        if address and address != "0.0.0.0":  # noqa: S104 - "no address", not a bind
            self.settle("address", address.partition("%")[0])


class Registry:
    """The processes that events speak of."""

    def __init__(self) -> None:
        """Start empty."""
        self.processes: dict[ProcessKey, Process] = {}

    def observe(
        self, fields: Mapping[str, Any], recognised: tuple[Sign, Mapping[str, str]] | bool | None = False
    ) -> Process | None:
        """Learn from one event.

        Args:
            fields: the flat event.
            recognised: sign and facts of its message, where the caller has them; ``False`` to find them here.

        Returns:
            The process that the event belongs to, ``None`` where it names none.
        """
        key = process_key(fields)
        if key is None:
            return None
        process = self.processes.get(key)
        if process is None:
            process = self.processes[key] = Process(key)
            path = fields.get("log.file.path", "")
            file_pid = _FILE_PID.search(path.rpartition("/")[2])
            if file_pid is not None and int(file_pid.group(1)) != key.pid:
                process.parent = ProcessKey(key.host, key.root, int(file_pid.group(1)))
            directory = _RANK_DIRECTORY.search(path)
            if directory is not None:
                process.path_rank = int(directory.group(1))
        if recognised is False:
            recognised = load_signs().recognise(fields.get("message", ""))
        if recognised and not isinstance(recognised, bool) and recognised[0].role == "identity":
            process.learn(*recognised)
        elif fields.get("event.dataset") != "ascend.console":
            device = fields.get("ascend.device.id")
            if isinstance(device, int) and device >= 0:
                process._weak_devices[device] += 1
        return process

    def merge(self, other: Registry) -> None:
        """Add what another registry knows."""
        for key, process in other.processes.items():
            known = self.processes.setdefault(key, process)
            if known is not process:
                known.merge(process)

    def process_of(self, fields: Mapping[str, Any]) -> Process | None:
        """Return the process of an event."""
        key = process_key(fields)
        return self.processes.get(key) if key else None

    def device_of(self, process: Process) -> int | None:
        """Return a process's logical device; a forked child without one has its parent's."""
        if process.known_device is None and process.parent is not None and "device" not in process._disputed:
            parent = self.processes.get(process.parent)
            return parent.known_device if parent else None
        return process.known_device

    def identify(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields that the registry adds to an event; those it already has are left alone.

        Returns:
            ``ascend.device.id``, ``.physical_id``, ``.key``, ``.ip``, ``ascend.rank.id``, ``.size`` and
            ``ascend.communicator.id``, each where it is known.
        """
        added: dict[str, Any] = {}
        process = self.process_of(fields)
        device = fields.get("ascend.device.id")
        if process is not None:
            if device is None:
                device = added["ascend.device.id"] = self.device_of(process)
            added["ascend.device.physical_id"] = process.physical
            added["ascend.device.ip"] = process.address
            comm = fields.get("ascend.communicator.id")
            if comm in process.ranks:
                added["ascend.rank.id"], size = process.ranks[comm]
                added["ascend.rank.size"] = size or None
            elif comm is None:
                rank, size_of_world, world = process.world
                added["ascend.rank.id"] = rank
                added["ascend.rank.size"] = size_of_world
                added["ascend.communicator.id"] = world
        host = fields.get("host.name")
        if device is not None and host is not None:
            added["ascend.device.key"] = f"{host}/{device}"
        return {name: value for name, value in added.items() if value is not None and name not in fields}

    @property
    def contradictions(self) -> list[str]:
        """Every contradiction, one sentence each."""
        return [text for process in self.processes.values() for text in process.contradictions]


@lru_cache(maxsize=65536)
def log_root(path: str) -> str:
    """Return the directory that holds ``debug``, ``run`` … of a log file: one log tree, one pid namespace."""
    match = _LOG_PARTS.search(path)
    return path[: match.start()] if match else path.rpartition("/")[0]


def process_key(fields: Mapping[str, Any]) -> ProcessKey | None:
    """Return the host process of an event; ``None`` for lines of no process (kernel, firmware)."""
    pid = fields.get("process.pid")
    if not isinstance(pid, int) or pid < 0:
        return None
    return ProcessKey(fields.get("host.name"), log_root(fields.get("log.file.path", "")), pid)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
