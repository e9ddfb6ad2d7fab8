"""Traces become cards: copies and old runs are set aside, jobs are told apart, clocks are aligned."""

from __future__ import annotations

from collections import Counter
from statistics import median

from ascend_elk.diagnose.clocks import align
from ascend_elk.diagnose.collect import Collector, Trace
from ascend_elk.diagnose.jobs import choose_job
from ascend_elk.diagnose.members import TROUBLE_ROLES, Cluster, Member, numbering
from ascend_elk.diagnose.model import Card
from ascend_elk.diagnose.traces import adopt, current, with_consoles, without_copies


def build(collector: Collector) -> Cluster:
    """Find the job in what was collected."""
    notes: list[str] = []
    traces = without_copies(list(collector.traces.values()), notes)
    registry = collector.registry
    members: list[Member] = []
    system: list[Member] = []
    orphans: list[Trace] = []
    for trace in with_consoles(traces):
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
            group.role in TROUBLE_ROLES or group.role == "error" for group in trace.groups.values()
        )
        if device is None and rank is None and not troubled:
            continue
        shown = process.physical if device is None else device
        card = Card(trace.host, shown, rank, trace.key.pid)
        physical = process.physical if process.physical is not None else device
        members.append(Member(card, trace, process, current(trace), physical))
    adopt(members, orphans)
    notes.extend(registry.contradictions[:20])
    job, others = choose_job(members)
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
    clocks, noise = align(job, system)
    hosts = {member.card.host for member in job}
    system = [member for member in system if not hosts or member.card.host in hosts]
    return Cluster(job, system, size, world, clocks, notes, _limits(job), collector.addresses, noise)


def _complete(job: list[Member]) -> None:
    """Give cards whose identity lines are lost the rank that their place has in the numbering."""
    bases, width = numbering(job)
    taken = {member.world for member in job}
    for member in job:
        card = member.card
        if member.world is None and card.host in bases and card.device is not None and card.device < width:
            rank = bases[card.host] + card.device
            if rank not in taken:
                taken.add(rank)
                member.world = rank
                member.card = Card(card.host, card.device, rank, card.pid)


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
