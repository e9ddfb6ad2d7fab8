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

from ascend_elk.diagnose.case import Candidate, Case
from ascend_elk.diagnose.cluster import Cluster, Member
from ascend_elk.diagnose.model import Card, Mark

MIN_OPERATIONS = 8
MAX_OPERATIONS = 400
_MIN_SHARE = 0.02  # lateness below this share of the time between operations is nobody's fault
_MAD = 1.4826  # makes the median absolute deviation comparable to a standard deviation


@dataclass(frozen=True)
class Lateness:
    """How late one rank entered the collectives of one communicator.

    Attributes:
        seconds: median over the operations, against the median rank.
        error: standard error of that median.
        last: share of the operations in which it came last.
        share: ``seconds`` as a share of the time between operations.
        operations: operations that were paired.
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
    worst: tuple[tuple[float, float], ...]


def latenesses(cluster: Cluster) -> dict[str, list[Lateness]]:
    """Communicator → lateness of each rank that left entries in it."""
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


def _measure(comm: str, members: list[Member]) -> list[Lateness]:
    sequences = [_sorted(member, comm) for member in members]
    rows = _paired(sequences)
    if len(rows) < MIN_OPERATIONS:
        return []
    if len(rows) > MAX_OPERATIONS:
        step = len(rows) / MAX_OPERATIONS
        rows = [rows[int(index * step)] for index in range(MAX_OPERATIONS)]
    count = len(members)
    late: list[list[float]] = [[] for _ in members]
    worst: list[list[tuple[float, float]]] = [[] for _ in members]
    lasts = [0] * count
    for row in rows:
        known = [time for time in row if time is not None]
        # Against the median; of two ranks each is measured against the other.
        middle = median(known) if len(known) > 2 else min(known)
        latest = max(known)
        for index, time in enumerate(row):
            if time is None:
                continue
            late[index].append(time - middle)
            worst[index].append((time, time - middle))
            if time == latest:
                lasts[index] += 1
    gap = _gap(rows)
    result = []
    for index, member in enumerate(members):
        values = late[index]
        if len(values) < MIN_OPERATIONS:
            continue
        centre = median(values)
        spread = median(abs(value - centre) for value in values) * _MAD
        result.append(
            Lateness(
                member,
                comm,
                centre,
                spread / len(values) ** 0.5,
                lasts[index] / len(values),
                centre / gap if gap > 0 else 0.0,
                len(values),
                count,
                tuple(sorted(sorted(worst[index], key=lambda item: -item[1])[:8])),
            )
        )
    return result


def _sorted(member: Member, comm: str) -> tuple[list[float], list[int]]:
    entries = member.trace.entries[comm]
    starts = member.trace.starts
    since = starts[-1] if starts and starts[-1] < max(entries.times) else float("-inf")
    order = sorted(range(len(entries.times)), key=entries.times.__getitem__)
    kept = [index for index in order if entries.times[index] >= since]
    return (
        [entries.times[index] - member.offset for index in kept],
        [entries.shapes[index] for index in kept],
    )


def _paired(sequences: list[tuple[list[float], list[int]]]) -> list[list[float | None]]:
    """Bring the entries of the same operation together: one row for each operation, one column a rank."""
    first_shapes = sequences[0][1]
    if all(shapes == first_shapes for _, shapes in sequences):
        return [list(row) for row in zip(*(times for times, _ in sequences), strict=True)]
    # Lines are missing somewhere: pair by what was entered and by nearness in time to a full rank.
    times, shapes = max(sequences, key=lambda sequence: len(sequence[0]))
    rows: list[list[float | None]] = [[None] * len(sequences) for _ in times]
    for column, (other_times, other_shapes) in enumerate(sequences):
        by_shape: dict[int, array[float]] = defaultdict(lambda: array("d"))
        for time, shape in zip(other_times, other_shapes, strict=True):
            by_shape[shape].append(time)
        lag = _lag(times, shapes, by_shape)
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
    return [row for row in rows if sum(time is not None for time in row) >= enough]


def _lag(times: list[float], shapes: list[int], by_shape: dict[int, array[float]]) -> float:
    """Estimate by how much a rank runs behind the full one; the rarest operations are unmistakable."""
    seen: dict[int, int] = defaultdict(int)
    for shape in shapes:
        seen[shape] += 1
    differences = []
    for time, shape in zip(times, shapes, strict=True):
        near = _nearest(by_shape.get(shape), time)
        if near is not None:
            differences.append((near - time, seen[shape]))
    if not differences:
        return 0.0
    rarest = min(count for _, count in differences)
    return median(difference for difference, count in differences if count <= 2 * rarest)


def _nearest(times: array[float] | None, time: float) -> float | None:
    if not times:
        return None
    index = bisect_left(times, time)
    options = times[max(0, index - 1) : index + 1]
    return min(options, key=lambda option: abs(option - time))


def _gap(rows: list[list[float | None]]) -> float:
    moments = [median(time for time in row if time is not None) for row in rows]
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments) if later > earlier]
    # The typical step: short gaps within a step say nothing about how long a step computes.
    return sum(gaps) / len(gaps) if gaps else 0.0


def late_arrivals(case: Case, measured: dict[str, list[Lateness]]) -> Iterator[Candidate]:
    """Accuse the ranks that come late in every communicator they share; those late in some only follow."""
    by_member: dict[int, list[Lateness]] = defaultdict(list)
    usual: dict[str, float] = {}
    for comm, found in measured.items():
        centres = [lateness.seconds for lateness in found]
        middle = median(centres)
        usual[comm] = median(abs(centre - middle) for centre in centres) * _MAD if len(found) > 2 else 0.0
        for lateness in found:
            by_member[id(lateness.member)].append(lateness)
    late: list[tuple[float, Member, list[Lateness]]] = []
    for found in by_member.values():
        if all(_is_late(lateness, usual[lateness.comm]) for lateness in found):
            weight = sum(lateness.seconds * lateness.operations for lateness in found)
            late.append((weight, found[0].member, found))
    if not late:
        return
    late.sort(key=lambda item: -item[0])
    worst = late[0][0]
    named = [item for item in late if item[0] >= worst / 3]
    hosts = {member.card.host for _, member, _ in named}
    total = len(by_member)
    if len(named) > max(1, total // 2):
        return
    cards = [member.card for _, member, _ in named]
    main = max(late[0][2], key=lambda lateness: lateness.operations)
    whole = len(hosts) == 1 and len(named) > 1
    subject = f"every card of {named[0][1].card.host}" if whole else cards[0].label()
    confidence = min(0.93, 0.55 + 0.2 * main.last + 0.2 * min(1.0, main.operations / 50))
    if len(named) > 1 and not whole:
        confidence *= 0.8
    yield Candidate(
        "late-arrival",
        cards,
        confidence,
        f"{subject} entered the collectives {main.seconds * 1000:.0f} ms after the others in the median of "
        f"{main.operations} operations ({main.share:.0%} of the time between them), "
        f"and last in {main.last:.0%} of them",
        straggler=True,
    )


def _is_late(lateness: Lateness, usual: float) -> bool:
    noise = max(lateness.error, 1e-6)
    fair = 1.0 / lateness.ranks
    return (
        lateness.seconds > 6 * noise
        and lateness.seconds > 4 * usual
        and lateness.share >= _MIN_SHARE
        and lateness.last > min(0.5, 3 * fair)
    )


def marks(measured: dict[str, list[Lateness]], accused: set[Card]) -> dict[int, list[Mark]]:
    """Late entries for the lanes of the accused, in seconds since 1970."""
    result: dict[int, list[Mark]] = defaultdict(list)
    for found in measured.values():
        for lateness in found:
            if lateness.member.card not in accused:
                continue
            for time, seconds in lateness.worst:
                text = (
                    f"entered a collective of {lateness.comm} {seconds * 1000:.1f} ms after the median rank"
                )
                result[id(lateness.member)].append(Mark("late", time - max(seconds, 0.0), time, 1, text))
    return result


def never_entered(case: Case) -> Iterator[Candidate]:
    """Ranks timed out in a collective: who never entered it?"""
    if not case.timeouts:
        return
    users: dict[str, list[Member]] = defaultdict(list)
    for member in case.cluster.members:
        for comm in member.trace.entries:
            users[comm].append(member)
    behind: dict[int, tuple[Member, int]] = {}
    ahead: set[int] = set()
    for comm, members in users.items():
        totals = {id(member): member.trace.entries[comm].total for member in members}
        most = max(totals.values())
        lagging = [member for member in members if totals[id(member)] < most]
        ahead.update(id(member) for member in members if totals[id(member)] == most)
        if not lagging or len(lagging) * 2 >= len(members):
            continue
        for member in lagging:
            missing = most - totals[id(member)]
            if id(member) not in behind or missing > behind[id(member)][1]:
                behind[id(member)] = (member, missing)
    guilty = [member for key, (member, _) in behind.items() if key not in ahead]
    if len(guilty) == 1:
        member = guilty[0]
        missing = behind[id(member)][1]
        waits = case.waits(member)
        yield Candidate(
            "never-entered",
            [member.card],
            0.72 if waits else 0.84,
            f"{member.card.label()} entered {missing} collective{'s' if missing > 1 else ''} fewer than "
            "its peers, which waited for it",
            proof=[(case.timeouts[0], "waited in a collective")],
        )
