"""Late arrivals: when ranks entered the same collective, who came last, time after time?

A collective ends for all when the last rank has come, so the slow card is the one that enters late while the
others wait inside. One late entry says nothing; the same card late over many operations does.
"""

from __future__ import annotations

import itertools
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from ascend_elk.diagnose.members import Cluster, Member
from ascend_elk.diagnose.model import Card, Mark

MIN_OPERATIONS = 8
MAX_OPERATIONS = 400
_MAX_KINDS = 4
FEW_ENTRIES = 8
MIN_SHARE = 0.02  # lateness below this share of the time between operations is nobody's fault
_HOST_RANKS = 3  # ranks a host needs for what they have in common to be told from one slow card
MAD = 1.4826  # makes the median absolute deviation comparable to a standard deviation


@dataclass(frozen=True)
class Lateness:
    """How late one rank entered the collectives of one communicator.

    Attributes:
        seconds: median over the operations, against the median rank; what all cards of its host have in
            common is left out, it may be the clock.
        error: standard error of that median.
        last: share of the operations in which it came last.
        share: ``seconds`` as a share of the time between operations.
        operations: operations that were paired.
        stalls: operations in which it came last by a clear margin, 0 unless hardly any other rank ever did.
        stalled: those margins together, as a share of the whole time.
        clocked: the estimate rests on the clocks of several hosts.
        worst: up to 8 (time, seconds late, on the cluster's clock) of its latest entries.
    """

    member: Member
    comm: str
    seconds: float
    error: float
    last: float
    share: float
    operations: int
    ranks: int
    clocked: bool
    stalls: int
    stalled: float
    worst: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class HostLateness:
    """How late the cards of one host entered the collectives of one communicator, all together.

    Attributes:
        seconds: median, against the median host.
        last: share of the operations in which the host came last.
        share: ``seconds`` as a share of the time between operations.
    """

    members: tuple[Member, ...]
    seconds: float
    last: float
    share: float
    operations: int
    hosts: int


@dataclass(frozen=True)
class Measured:
    """What the entries of one communicator say."""

    ranks: tuple[Lateness, ...]
    hosts: tuple[HostLateness, ...]


def latenesses(cluster: Cluster) -> dict[str, list[Measured]]:
    """Communicator → lateness of each rank and host that left entries in it, by kind of operation."""
    users: dict[str, list[Member]] = defaultdict(list)
    for member in cluster.members:
        for comm, entries in member.trace.entries.items():
            if len(entries.times) >= MIN_OPERATIONS:
                users[comm].append(member)
    return {
        comm: found
        for comm, members in users.items()
        if len(members) > 1 and (found := _measure(comm, members))
    }


def _measure(comm: str, members: list[Member]) -> list[Measured]:
    """Measure each kind of operation apart: only those after a stretch of computing show who is slow."""
    sequences = [_sorted(member, comm) for member in members]
    rows, shapes = _paired(sequences)
    moments = [median(time for time in row if time is not None) for row in rows]
    kinds: dict[int, list[int]] = defaultdict(list)
    before: dict[int, float] = defaultdict(float)
    for index, shape in enumerate(shapes):
        kinds[shape].append(index)
        if index:
            before[shape] += max(0.0, moments[index] - moments[index - 1])
    usable = [shape for shape, indices in kinds.items() if len(indices) >= MIN_OPERATIONS]
    if not usable:
        usable, kinds = [0], {0: list(range(len(rows)))}
    usable.sort(key=lambda shape: -before[shape])
    result = []
    for shape in usable[:_MAX_KINDS]:
        chosen = [rows[index] for index in kinds[shape]]
        if len(chosen) >= MIN_OPERATIONS:
            result.append(_measure_kind(comm, members, chosen))
    return result


def _measure_kind(comm: str, members: list[Member], rows: list[list[float | None]]) -> Measured:
    gap = _gap(rows)
    if len(rows) > MAX_OPERATIONS:
        step = len(rows) / MAX_OPERATIONS
        rows = [rows[int(index * step)] for index in range(MAX_OPERATIONS)]
    # Lateness against the median; of two ranks each is measured against the first.
    late = [[None if time is None else time - centre for time in row] for row, centre in _centred(rows)]
    common = _host_medians(members, late)
    hosts = _hosts(members, late, common, gap)
    base = [common.get(member.card.host, 0.0) for member in members]
    lasts = [0] * len(members)
    margins: list[list[float]] = [[] for _ in members]
    usual: list[float] = []
    for row in late:
        own = [-1e18 if value is None else value - base[index] for index, value in enumerate(row)]
        last = own.index(max(own))
        lasts[last] += 1
        margins[last].append(own[last] - max(own[:last] + own[last + 1 :]))
        usual.append(median(abs(value) for value in own if value > -1e17))
    clear = max(MIN_SHARE * gap, 8 * median(usual))
    stalls = [[margin for margin in found if margin > clear] for found in margins]
    every = sum(map(len, stalls))
    ranks = []
    for index, member in enumerate(members):
        values = [value - base[index] for row in late if (value := row[index]) is not None]
        if len(values) < MIN_OPERATIONS:
            continue
        centre = median(values)
        spread = median(abs(value - centre) for value in values) * MAD
        entered = [
            (time, value - base[index])
            for row, own in zip(rows, late, strict=True)
            if (time := row[index]) is not None and (value := own[index]) is not None
        ]
        ranks.append(
            Lateness(
                member,
                comm,
                centre,
                spread / len(values) ** 0.5,
                lasts[index] / len(values),
                centre / gap if gap > 0 else 0.0,
                len(values),
                len(members),
                member.card.host not in common and len({m.card.host for m in members}) > 1,
                len(stalls[index]) if len(stalls[index]) >= 0.8 * every else 0,
                sum(stalls[index]) / (gap * len(rows)) if gap > 0 else 0.0,
                tuple(sorted(sorted(entered, key=lambda item: -item[1])[:8])),
            )
        )
    return Measured(tuple(ranks), hosts)


def _centred(rows: list[list[float | None]]) -> Iterator[tuple[list[float | None], float]]:
    for row in rows:
        known = [time for time in row if time is not None]
        yield row, median(known) if len(known) > 2 else min(known)


def _host_medians(members: list[Member], late: list[list[float | None]]) -> dict[str | None, float]:
    """Host → what its ranks' lateness has in common; only of hosts with enough ranks to tell."""
    columns: dict[str | None, list[int]] = defaultdict(list)
    for index, member in enumerate(members):
        columns[member.card.host].append(index)
    if len(columns) < 2:
        return {}
    common = {}
    for host, indices in columns.items():
        if len(indices) < _HOST_RANKS:
            continue
        centres = [
            median(values)
            for index in indices
            if (values := [value for row in late if (value := row[index]) is not None])
        ]
        if centres:
            common[host] = median(centres)
    return common


def _hosts(
    members: list[Member], late: list[list[float | None]], common: dict[str | None, float], gap: float
) -> tuple[HostLateness, ...]:
    if len(common) < 2:
        return ()
    columns = {
        host: [index for index, member in enumerate(members) if member.card.host == host] for host in common
    }
    lasts: dict[str | None, int] = dict.fromkeys(common, 0)
    for row in late:
        centres = {
            host: median(values)
            for host, indices in columns.items()
            if (values := [value for index in indices if (value := row[index]) is not None])
        }
        lasts[max(centres, key=centres.__getitem__)] += 1
    middle = median(common.values())
    return tuple(
        HostLateness(
            tuple(members[index] for index in columns[host]),
            seconds - middle,
            lasts[host] / len(late),
            (seconds - middle) / gap if gap > 0 else 0.0,
            len(late),
            len(common),
        )
        for host, seconds in common.items()
    )


def _sorted(member: Member, comm: str) -> tuple[list[float], list[int], bool]:
    """Return times on the cluster's clock, kinds of operation, and whether they begin with the first."""
    entries = member.trace.entries[comm]
    starts = member.trace.starts
    since = starts[-1] if starts and starts[-1] < max(entries.times) else float("-inf")
    order = sorted(range(len(entries.times)), key=entries.times.__getitem__)
    kept = [index for index in order if entries.times[index] >= since]
    return (
        [entries.times[index] - member.offset for index in kept],
        [entries.shapes[index] for index in kept],
        member.from_start and entries.total == len(kept),
    )


def _paired(
    sequences: list[tuple[list[float], list[int], bool]],
) -> tuple[list[list[float | None]], list[int]]:
    """Bring the entries of the same operation together.

    Returns:
        One row for each operation, one column a rank; and the kind of each row's operation.
    """
    times, shapes, _ = max(sequences, key=lambda sequence: (sequence[2], len(sequence[0])))
    rows: list[list[float | None]] = [[None] * len(sequences) for _ in times]
    full = _by_shape(times, shapes)
    for column, (other_times, other_shapes, from_start) in enumerate(sequences):
        whole = from_start and other_shapes == shapes[: len(other_shapes)]
        if whole and _keeps_step(other_times, times):
            # Whole from the first on, perhaps cut at the end: the k-th entry is the k-th operation.
            for row, time in enumerate(other_times):
                rows[row][column] = time
            continue
        # Lines are missing somewhere: pair by what was entered and by nearness in time to a full rank.
        by_shape = _by_shape(other_times, other_shapes)
        lag = _lag(by_shape, full)
        used: dict[float, tuple[float, int]] = {}
        for row, (time, shape) in enumerate(zip(times, shapes, strict=True)):
            near = _nearest(by_shape.get(shape), time + lag)
            if near is None:
                continue
            distance = abs(near - time - lag)
            if near not in used or distance < used[near][0]:
                used[near] = (distance, row)
        for near, (_, row) in used.items():
            rows[row][column] = near
    enough = max(2, len(sequences) // 2)
    kept = [index for index, row in enumerate(rows) if sum(time is not None for time in row) >= enough]
    return [rows[index] for index in kept], [shapes[index] for index in kept]


def _keeps_step(other_times: list[float], times: list[float]) -> bool:
    """Tell whether two ranks' entries run in parallel; where lines are lost between, the distance grows."""
    if len(other_times) < 2:
        return True
    apart = [other - time for other, time in zip(other_times, times, strict=False)]
    centre = median(apart)
    steps = sorted(later - earlier for earlier, later in itertools.pairwise(times[: len(apart)]))
    return median(abs(distance - centre) for distance in apart) <= 0.25 * max(steps[len(steps) * 3 // 4 :])


def _lag(by_shape: dict[int, array[float]], full: dict[int, array[float]]) -> float:
    """Estimate by how much a rank runs behind the full one; the rarest operations are unmistakable."""
    shared = [shape for shape in by_shape if shape in full]
    if not shared:
        return 0.0
    rarest = min(len(full[shape]) for shape in shared)
    return median(
        time - near
        for shape in shared
        if len(full[shape]) <= 2 * rarest
        for time in by_shape[shape]
        if (near := _nearest(full[shape], time)) is not None
    )


def _by_shape(times: list[float], shapes: list[int]) -> dict[int, array[float]]:
    result: dict[int, array[float]] = defaultdict(lambda: array("d"))
    for time, shape in zip(times, shapes, strict=True):
        result[shape].append(time)
    return result


def _nearest(times: array[float] | None, time: float) -> float | None:
    if not times:
        return None
    index = bisect_left(times, time)
    options = times[max(0, index - 1) : index + 1]
    return min(options, key=lambda option: abs(option - time))


def _gap(rows: list[list[float | None]]) -> float:
    moments = [median(time for time in row if time is not None) for row in rows]
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments) if later > earlier]
    return sum(gaps) / len(gaps) if gaps else 0.0


def marks(measured: dict[str, list[Measured]], accused: set[Card]) -> dict[int, list[Mark]]:
    """Late entries for the lanes of the accused, in seconds since 1970."""
    result: dict[int, list[Mark]] = defaultdict(list)
    for found in (kind for kinds in measured.values() for kind in kinds):
        for lateness in found.ranks:
            if lateness.member.card not in accused:
                continue
            for time, seconds in lateness.worst:
                text = (
                    f"entered a collective of {lateness.comm} {seconds * 1000:.1f} ms after the median rank"
                )
                result[id(lateness.member)].append(Mark("late", time - max(seconds, 0.0), time, 1, text))
    return result


def missed_entries(cluster: Cluster) -> dict[int, int]:
    """By ``id`` of a member: how many collectives it entered fewer than its peers, 0 for none.

    Only of members whose log begins with the start of the job; of the others nobody knows. Who has entered
    all that its peers entered in one of its communicators only follows another rank, and counts as 0.
    """
    users: dict[str, list[Member]] = defaultdict(list)
    for member in cluster.members:
        for comm in member.trace.entries:
            users[comm].append(member)
    missing: dict[int, list[int]] = defaultdict(list)
    for comm, members in users.items():
        if len(members) < 2:
            continue
        most = max(member.trace.entries[comm].total for member in members)
        for member in members:
            if member.from_start:
                missing[id(member)].append(most - member.trace.entries[comm].total)
    return {key: max(numbers) if min(numbers) else 0 for key, numbers in missing.items()}
