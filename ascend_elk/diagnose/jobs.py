"""Processes become jobs and runs, and the one that is diagnosed is chosen."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from ascend_elk.diagnose.collect import Trace
from ascend_elk.diagnose.members import TROUBLE_ROLES, Member

_AUTOMATIC = re.compile(r"%|\d{8,}|_\d{4,5}_\d")
_RUN_GAP = 5.0


def choose_job(members: list[Member]) -> tuple[list[Member], int]:
    """Split the processes into jobs and runs; return the newest that is in trouble, else the largest."""
    jobs = _jobs(members)
    if not jobs:
        return [], 0

    def weight(job: list[Member]) -> tuple[bool, int, float]:
        troubled = [member for member in job if member.of(*TROUBLE_ROLES)]
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
