"""Traces become cards: copies and old runs are set aside, jobs are told apart, clocks are aligned."""

from __future__ import annotations

import copy
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median, median_low

from ascend_elk.diagnose.collect import Collector, Group, Trace
from ascend_elk.diagnose.model import Card, Clock
from ascend_elk.identity import Process

_TROUBLE_ROLES = {"timeout", "cause", "pointer"}
_AUTOMATIC = re.compile(r"%|\d{8,}|_\d{4,5}_\d")
_HALF_HOUR = 1800.0
_RUN_GAP = 5.0


@dataclass
class Member:
    """One card of the job, with what it wrote.

    Attributes:
        groups: its lines of interest, those of earlier runs left out.
        offset: seconds to take from its host's times.
        device_offset: seconds to take from times of its device side, on top.
        world: its rank in the job's largest communicator.
    """

    card: Card
    trace: Trace
    process: Process | None
    groups: list[Group] = field(default_factory=list)
    physical: int | None = None
    offset: float = 0.0
    device_offset: float = 0.0
    world: int | None = None

    @property
    def from_start(self) -> bool:
        """Its log begins with the start of the job: no earlier file of it is lost."""
        return bool(self.signed(*_STARTS))

    @property
    def ranks(self) -> dict[str, tuple[int, int]]:
        """Communicator → (rank, size)."""
        return self.process.ranks if self.process else {}

    @property
    def server(self) -> str | None:
        """Address of its host as HCCL names it."""
        return self.process.server if self.process else None

    @property
    def addresses(self) -> set[str]:
        """Network addresses of the card."""
        if self.process is None:
            return set()
        own = {self.process.address} if self.process.address else set()
        return own | self.process.listens

    def first(self, group: Group) -> float | None:
        """Return the aligned time of a group's first line."""
        return self.aligned(group.first, group)

    def last(self, group: Group) -> float | None:
        """Return the aligned time of a group's last line."""
        return self.aligned(group.last, group)

    def aligned(self, time: float | None, group: Group | None = None) -> float | None:
        """Return a time of this card's logs on the cluster's clock."""
        if time is None:
            return None
        return time - self.offset - (self.device_offset if group is not None and group.on_device else 0.0)

    def of(self, *roles: str) -> list[Group]:
        """Return its groups of some roles."""
        return [group for group in self.groups if group.role in roles]

    def signed(self, *signs: str) -> list[Group]:
        """Return its groups of some signs."""
        return [group for group in self.groups if group.sign in signs]


@dataclass
class Cluster:
    """The job that is diagnosed.

    Attributes:
        members: its cards.
        system: lines of devices and hosts outside any process; device ``None`` is the host.
        size: ranks of the job as its communicators say.
        world: its largest communicator.
        clocks: offsets that were removed.
        notes: what was set aside.
        limits: seconds by name: ``connect`` and ``exec``.
        addresses: network address → (host, device), from reports of the hosts.
        clock_noise: host → seconds by which its clock may still be wrong; infinite where nothing says.
    """

    members: list[Member]
    system: list[Member]
    size: int | None
    world: str | None
    clocks: list[Clock]
    notes: list[str]
    limits: dict[str, float]
    addresses: dict[str, tuple[str | None, int]]
    clock_noise: dict[str | None, float]

    def __post_init__(self) -> None:
        """Index the members."""
        self.by_rank: dict[tuple[str, int], Member] = {}
        self.by_address: dict[str, Member] = {}
        self.by_place: dict[tuple[str, int], Member] = {}
        self.by_device: dict[tuple[str | None, int], Member] = {}
        for member in self.members:
            for comm, (rank, _) in member.ranks.items():
                self.by_rank.setdefault((comm, rank), member)
            for address in member.addresses:
                self.by_address.setdefault(address, member)
            physical = member.physical
            if member.server is not None and physical is not None:
                self.by_place.setdefault((member.server, physical), member)
            if physical is not None:
                self.by_device.setdefault((member.card.host, physical), member)
        self.by_world = {member.world: member for member in self.members if member.world is not None}
        self.unseen: list[int] = []
        if self.world is not None and self.size is not None:
            self.unseen = [rank for rank in range(min(self.size, 65536)) if rank not in self.by_world]

    def locate(self, rank: int) -> Card:
        """Return the card of a world rank; one without logs where its neighbours' numbering puts it."""
        member = self.by_world.get(rank)
        if member is not None:
            return member.card
        bases, width = _numbering(self.members)
        for host, base in bases.items():
            if base <= rank < base + width:
                return Card(host, rank - base, rank)
        return Card(rank=rank)


def _numbering(members: list[Member]) -> tuple[dict[str, int], int]:
    """Ranks usually run along the devices of a host: rank = base of the host + device.

    Returns:
        Host → base, and devices of a host; nothing where the ranks are numbered in another way.
    """
    bases: dict[str, set[int]] = defaultdict(set)
    devices: set[int] = set()
    for known in members:
        if known.world is not None and known.card.device is not None and known.card.host is not None:
            bases[known.card.host].add(known.world - known.card.device)
            devices.add(known.card.device)
    if not devices or any(len(values) > 1 for values in bases.values()):
        return {}, 0
    return {host: next(iter(values)) for host, values in bases.items()}, max(devices) + 1


def _complete(job: list[Member]) -> None:
    """Give cards whose identity lines are lost the rank that their place has in the numbering."""
    bases, width = _numbering(job)
    taken = {member.world for member in job}
    for member in job:
        card = member.card
        if member.world is None and card.host in bases and card.device is not None and card.device < width:
            rank = bases[card.host] + card.device
            if rank not in taken:
                taken.add(rank)
                member.world = rank
                member.card = Card(card.host, card.device, rank, card.pid)


def build(collector: Collector) -> Cluster:
    """Find the job in what was collected."""
    notes: list[str] = []
    traces = _without_copies(list(collector.traces.values()), notes)
    registry = collector.registry
    members: list[Member] = []
    system: list[Member] = []
    orphans: list[Trace] = []
    for trace in _with_consoles(traces):
        if trace.key is None:
            card = Card(trace.host, trace.device, trace.rank)
            system.append(Member(card, trace, None, list(trace.groups.values()), trace.device))
            continue
        process = registry.processes.get(trace.key)
        if process is None:
            continue
        device = registry.device_of(process)
        rank, _, _ = process.world
        if process.parent is not None and not process.ranks and process.device is None:
            orphans.append(trace)
            continue
        troubled = any(
            group.role in _TROUBLE_ROLES or group.role == "error" for group in trace.groups.values()
        )
        if device is None and rank is None and not troubled:
            continue
        shown = process.physical if device is None else device
        card = Card(trace.host, shown, rank, trace.key.pid)
        physical = process.physical if process.physical is not None else device
        members.append(Member(card, trace, process, _current(trace), physical))
    _adopt(members, orphans)
    notes.extend(registry.contradictions[:20])
    job, others = _choose_job(members)
    if others:
        notes.append(
            f"{others} of {others + len(job)} processes belong to other or earlier jobs and were set aside"
        )
    world, size = _world(job)
    for member in job:
        member.world = member.ranks[world][0] if world in member.ranks else member.card.rank
        if member.world != member.card.rank:
            member.card = Card(member.card.host, member.card.device, member.world, member.card.pid)
    _complete(job)
    system = _with_rank_consoles(job, system)
    clocks, noise = _align(job, system)
    hosts = {member.card.host for member in job}
    system = [member for member in system if not hosts or member.card.host in hosts]
    return Cluster(job, system, size, world, clocks, notes, _limits(job), collector.addresses, noise)


def _with_consoles(traces: list[Trace]) -> list[Trace]:
    """Join what a process printed on a console, anywhere on the host, to its own logs."""
    own: dict[tuple[str | None, int], list[int]] = defaultdict(list)
    for index, trace in enumerate(traces):
        if trace.key is not None and not _is_console(trace):
            own[trace.host, trace.key.pid].append(index)
    joined = list(traces)
    consoles = set()
    for index, trace in enumerate(traces):
        if trace.key is not None and _is_console(trace):
            owners = own.get((trace.host, trace.key.pid), [])
            if len(owners) == 1:
                consoles.add(index)
                if joined[owners[0]] is traces[owners[0]]:
                    joined[owners[0]] = copy.deepcopy(traces[owners[0]])
                joined[owners[0]].merge(trace)
    return [trace for index, trace in enumerate(joined) if index not in consoles]


def _is_console(trace: Trace) -> bool:
    return trace.sources <= {"console", ""}


def _with_rank_consoles(job: list[Member], system: list[Member]) -> list[Member]:
    """Give what stands in a console file named by its rank to that rank's card; return the rest."""
    by_rank = {(member.card.host, member.world): member for member in job if member.world is not None}
    rest = []
    for part in system:
        owner = by_rank.get((part.card.host, part.card.rank)) if part.card.rank is not None else None
        if owner is None:
            rest.append(part)
        else:
            owner.groups = [*owner.groups, *part.groups]
    return rest


def _without_copies(traces: list[Trace], notes: list[str]) -> list[Trace]:
    """Drop traces whose files are a copy of another's: the same names, the same lines."""
    seen: dict[tuple[str, int], Trace] = {}
    kept: list[Trace] = []
    copies = 0
    for trace in sorted(traces, key=lambda t: (-len(t.files), str(t.host), str(t.key))):
        marks = [(path.rpartition("/")[2].removesuffix(".gz"), check) for path, check in trace.files.items()]
        pid = trace.key.pid if trace.key else None
        owners = {id(seen[mark]): seen[mark] for mark in marks if mark in seen}
        same = [owner for owner in owners.values() if (owner.key.pid if owner.key else None) == pid]
        if marks and all(check and mark in seen for mark in marks for check in (mark[1],)) and same:
            copies += 1
            continue
        for mark in marks:
            seen.setdefault(mark, trace)
        kept.append(trace)
    if copies:
        notes.append(f"the logs of {copies} processes or devices are copies of others and were counted once")
    return kept


def _current(trace: Trace) -> list[Group]:
    """Return the groups since the last start that anything followed."""
    groups = list(trace.groups.values())
    for start in reversed(trace.starts):
        later = [group for group in groups if group.last is not None and group.last > start]
        if any(group.role in _TROUBLE_ROLES for group in later):
            return [group for group in groups if group.last is None or group.last >= start]
    return groups


def _adopt(members: list[Member], orphans: list[Trace]) -> None:
    """Give lines of forked children that drive no card of their own to the process they forked from."""
    by_key = {member.trace.key: member for member in members}
    for trace in orphans:
        if trace.key is None:
            continue
        for member in by_key.values():
            parent = member.process
            if parent is not None and parent.key.host == trace.host and parent.key.root == trace.key.root:
                names = {path.rpartition("/")[2] for path in trace.files}
                if any(f"-{parent.key.pid}_" in name for name in names):
                    member.groups.extend(trace.groups.values())
                    break


def _choose_job(members: list[Member]) -> tuple[list[Member], int]:
    """Split the processes into jobs and runs; return the newest that is in trouble, else the largest."""
    jobs = _jobs(members)
    if not jobs:
        return [], 0

    def weight(job: list[Member]) -> tuple[bool, int, float]:
        troubled = [member for member in job if member.of(*_TROUBLE_ROLES)]
        latest = max((member.trace.last or 0.0) for member in job)
        ranked = sum(1 for member in job if member.ranks or member.card.rank is not None)
        return bool(troubled), ranked or len(troubled), latest

    largest = max(weight(job)[1] for job in jobs)
    # A run of about the size of the largest is a run of the job; the newest troubled one is meant.
    runs = [job for job in jobs if weight(job)[1] * 2 >= largest]
    best = max(runs, key=lambda job: (weight(job)[0], weight(job)[2]))
    if not weight(best)[0]:
        troubled_jobs = [job for job in jobs if weight(job)[0]]
        if troubled_jobs:
            best = max(troubled_jobs, key=weight)
    return best, len(members) - len(best)


def _jobs(members: list[Member]) -> list[list[Member]]:
    parent = list(range(len(members)))

    def find(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    def join(indices: Iterable[int]) -> None:
        first, *rest = [find(index) for index in indices] or [0]
        for other in rest:
            parent[other] = first

    by_comm: dict[tuple[str, int], list[int]] = defaultdict(list)
    for index, member in enumerate(members):
        for comm, (_, size) in member.ranks.items():
            by_comm[comm, size if not _AUTOMATIC.search(comm) else 0].append(index)
    for (comm, _), indices in by_comm.items():
        if _AUTOMATIC.search(comm):
            join(indices)
    for (comm, _), indices in by_comm.items():
        if not _AUTOMATIC.search(comm):
            for run in _runs(members, comm, indices):
                join(run)
    anonymous = [index for index, member in enumerate(members) if not member.ranks]
    groups: dict[int, list[int]] = defaultdict(list)
    for index, member in enumerate(members):
        if member.ranks:
            groups[find(index)].append(index)
    _place(members, anonymous, groups)
    return [[members[index] for index in group] for group in groups.values()]


def _runs(members: list[Member], comm: str, indices: list[int]) -> list[list[int]]:
    """Split the users of a named communicator into runs: in each a rank stands once."""
    by_rank: dict[int, list[int]] = defaultdict(list)
    for index in indices:
        by_rank[members[index].ranks[comm][0]].append(index)
    runs: dict[int, list[int]] = defaultdict(list)
    for same in by_rank.values():
        same.sort(key=lambda index: members[index].trace.last or 0.0, reverse=True)
        for age, index in enumerate(same):
            runs[age].append(index)
    return list(runs.values())


def _place(members: list[Member], anonymous: list[int], groups: dict[int, list[int]]) -> None:
    """Put processes that name no communicator to the job they ran beside; else in one of their own."""
    for index in anonymous:
        member = members[index]
        candidates = []
        for key, group in groups.items():
            same_host = [members[other] for other in group if members[other].card.host == member.card.host]
            if any(other.card.device == member.card.device is not None for other in same_host):
                continue
            overlap = max((_overlap(member.trace, other.trace) for other in same_host), default=-1.0)
            if same_host and member.trace.first is None:
                overlap = 0.001  # nothing but the device side's lines: it ran some time
            if overlap > 0:
                candidates.append((overlap, key))
        if candidates:
            groups[max(candidates)[1]].append(index)
        else:
            groups[-1].append(index)
    if not groups[-1]:
        del groups[-1]


def _overlap(one: Trace, other: Trace) -> float:
    if one.first is None or one.last is None or other.first is None or other.last is None:
        return 0.0
    return min(one.last, other.last) - max(one.first, other.first) + _RUN_GAP


def _world(job: list[Member]) -> tuple[str | None, int | None]:
    sizes: Counter[str] = Counter()
    users: Counter[str] = Counter()
    for member in job:
        for comm, (_, size) in member.ranks.items():
            sizes[comm] = max(sizes[comm], size)
            users[comm] += 1
    if not sizes:
        ranks = [member.card.rank for member in job if member.card.rank is not None]
        return None, max(ranks) + 1 if ranks else None
    world = max(sizes, key=lambda comm: (sizes[comm], users[comm], comm))
    return world, sizes[world] or None


def _limits(job: list[Member]) -> dict[str, float]:
    limits: dict[str, float] = {}
    for short, name in (("connect", "HCCL_CONNECT_TIMEOUT"), ("exec", "HCCL_EXEC_TIMEOUT")):
        values = [
            float(member.trace.settings[name])
            for member in job
            if member.trace.settings.get(name, "").isdigit()
        ]
        logged = [
            float(group.facts["limit"])
            for member in job
            for group in member.of("timeout")
            if "limit" in group.facts and (group.phase == "execution") == (short == "exec")
        ]
        if values or logged:
            limits[short] = median(values or logged)
    return limits


# ------------------------------------------------------------------------------------------------ clocks

_BARRIERS = ("key-info", "local-key-info", "comm-init-success", "sub-comm")
_STARTS = ("setup-agent", "comm-init-entry", "hcom-init")
_NOISE = 0.5
_HOSTS_TO_COMPARE = 4
_FIRST_ENTRIES = 64


def _align(job: list[Member], system: list[Member]) -> tuple[list[Clock], dict[str | None, float]]:
    """Set every member's offsets; return those of hosts whose clock was off, and what may still be wrong."""
    hosts = sorted({member.card.host for member in job if member.card.host is not None})
    offsets, pairs, noise = _host_offsets(job, hosts)
    for member in [*job, *system]:
        host = member.card.host
        if host is not None:
            member.offset = offsets.get(host, 0.0)
    shift = _device_shift(job)
    for member in job:
        member.device_offset = shift.get(member.card.host, shift.get(None, 0.0))
    for member in system:
        member.offset += (
            shift.get(member.card.host, shift.get(None, 0.0)) if member.card.device is not None else 0
        )
    clocks = [
        Clock(host, round(offset, 3), pairs[host])
        for host, offset in sorted(offsets.items())
        if abs(offset) >= _NOISE
    ]
    return clocks, noise


def _host_offsets(
    job: list[Member], hosts: list[str]
) -> tuple[dict[str, float], dict[str, int], dict[str | None, float]]:
    """Estimate how far each host's clock runs ahead of the cluster's median.

    Leaving a communicator's set-up is a barrier: all ranks do it within milliseconds, so those lines are
    pairs. Entering one is not: a difference there is taken only where it is a whole half-hour, a time zone.
    """
    offsets = dict.fromkeys(hosts, 0.0)
    pairs = dict.fromkeys(hosts, 0)
    noise: dict[str | None, float] = dict.fromkeys(hosts, float("inf"))
    if len(hosts) < 2:
        return offsets, pairs, noise
    spread = max(_spread_on_hosts(job, _BARRIERS), 0.002)
    exact = _differences(job, _BARRIERS)
    rough = _differences(job, _STARTS)
    entries = _entry_differences(job)
    early, certainty = _early_starts(rough, entries, _spread_on_hosts(job, _STARTS))
    for host in hosts:
        if exact.get(host):
            offsets[host] = median(exact[host])
            pairs[host] = len(exact[host])
            noise[host] = spread
        elif entries.get(host):
            offsets[host] = median(entries[host]) - early.get(host, 0.0)
            pairs[host] = len(entries[host])
            noise[host] = certainty
        elif rough.get(host):
            difference = median(rough[host])
            zone = round(difference / _HALF_HOUR) * _HALF_HOUR
            if zone and abs(difference - zone) <= 300:
                offsets[host] = zone
                pairs[host] = len(rough[host])
    return offsets, pairs, noise


def _early_starts(
    rough: dict[str, list[float]], entries: dict[str, list[float]], spread: float
) -> tuple[dict[str, float], float]:
    """Tell hosts that come late to every collective from clocks that run ahead.

    Both show alike in the entries. But a clock that runs ahead stamps the start of the job ahead as well,
    and a slow host does not: a host whose entries lag behind its starts, by far more than hosts usually
    differ in that, is slow.

    Returns:
        Host → seconds of its entries' lag that are no clock's; and how far hosts usually differ.
    """
    gaps = {host: median(entries[host]) - median(rough[host]) for host in entries if rough.get(host)}
    if len(gaps) < _HOSTS_TO_COMPARE:
        return {}, float("inf")
    middle = median(gaps.values())
    # Of few hosts the differences may agree by chance: not better than the starts on one host do.
    usual = max(median(abs(gap - middle) for gap in gaps.values()) * 1.4826, spread / 2)
    return {host: gap - middle for host, gap in gaps.items() if gap - middle > 4 * usual}, usual


def _spread_on_hosts(job: list[Member], signs: tuple[str, ...]) -> float:
    """How far apart the ranks of one host, on one clock, write lines that belong together."""
    moments: dict[tuple[str, str | None], list[float]] = defaultdict(list)
    for member in job:
        for group in member.signed(*signs):
            if group.first is not None:
                moments[group.sign, member.card.host].append(group.first)
    spreads = [
        median(abs(time - median(times)) for time in times) * 1.4826
        for times in moments.values()
        if len(times) > 2
    ]
    return median(spreads) if spreads else float("inf")


def _differences(job: list[Member], signs: tuple[str, ...]) -> dict[str, list[float]]:
    """Host → its differences to the median host, one for each communicator and sign."""
    moments: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for member in job:
        if member.card.host is None:
            continue
        for group in member.signed(*signs):
            for record in group.examples:
                comm = record.facts.get("comm") or "hccl_world_group"
                if record.time is not None:
                    moments[group.sign, comm][member.card.host].append(record.time)
                    break
    result: dict[str, list[float]] = defaultdict(list)
    for by_host in moments.values():
        if len(by_host) < 2:
            continue
        centres = {host: median(times) for host, times in by_host.items()}
        middle = median(centres.values())
        for host, centre in centres.items():
            result[host].append(centre - middle)
    return result


def _entry_differences(job: list[Member]) -> dict[str, list[float]]:
    """Host → differences of its first entries of each communicator to the median host's."""
    result: dict[str, list[float]] = defaultdict(list)
    by_comm: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for member in job:
        for comm, entries in member.trace.entries.items():
            # The k-th entry of all ranks is the same operation only while none has lost lines.
            if member.card.host is not None and entries.total == len(entries.times):
                by_comm[comm][member.card.host].append(sorted(entries.times)[:_FIRST_ENTRIES])
    for by_host in by_comm.values():
        if len(by_host) < 2:
            continue
        for k in range(_FIRST_ENTRIES):
            centres = {
                host: median(known)
                for host, lists in by_host.items()
                if (known := [times[k] for times in lists if len(times) > k])
            }
            if len(centres) < 2:
                break
            middle = median(centres.values())
            for host, centre in centres.items():
                result[host].append(centre - middle)
    steady = {}
    for host, differences in result.items():
        centre = median(differences)
        # Where lines are lost the differences jump by whole steps.
        if median(abs(difference - centre) for difference in differences) < 1.0:
            steady[host] = differences
    return steady


def _device_shift(job: list[Member]) -> dict[str | None, float]:
    """Host → whole half-hours by which its devices' clocks differ from its own; ``None`` → the usual."""
    votes: dict[str | None, list[float]] = defaultdict(list)
    for member in job:
        trace = member.trace
        if (
            trace.first is None
            or trace.last is None
            or trace.device_first is None
            or trace.device_last is None
        ):
            continue

        def outside(shift: float, trace: Trace = trace) -> float:
            """Seconds by which the device side, shifted back, sticks out of its host process's life."""
            first, last = (trace.device_first or 0.0) - shift, (trace.device_last or 0.0) - shift
            return max(0.0, (trace.first or 0.0) - first) + max(0.0, last - (trace.last or 0.0))

        # No shift at all, else whole hours, else half ones.
        shifts = sorted(
            (half * _HALF_HOUR for half in range(-30, 31)), key=lambda s: (s != 0, s % 3600 != 0, abs(s))
        )
        least = min(outside(shift) for shift in shifts)
        if outside(0.0) <= 600:
            votes[member.card.host].append(0.0)
        elif least <= 600:
            votes[member.card.host].append(next(shift for shift in shifts if outside(shift) <= least + 60))
    found: dict[str | None, float] = {host: median_low(values) for host, values in votes.items()}
    if found:
        found[None] = median_low(found.values())
    return found
