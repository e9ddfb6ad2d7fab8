"""Lanes for the report: a lane per card, its trouble as marks, on one clock."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from datetime import datetime, timezone

from ascend_elk.diagnose.collect import Group
from ascend_elk.diagnose.members import Cluster, Member
from ascend_elk.diagnose.model import MAX_MARKS, MAX_TEXT, Card, Lane, Mark, MarkKind, Timeline

MAX_LANES = 4096

_KINDS: dict[str, MarkKind] = {
    "timeout": "timeout",
    "cause": "error",
    "error": "error",
    "victim": "error",
    "retry": "retry",
    "slow": "timeout",
}
_HEARTBEAT = {"heartbeat-relay", "exception-location", "heartbeat-dropped"}
# When a lane has too many marks, the earliest of the weightiest kinds stay.
_WEIGHT = {
    "hardware": 0,
    "error": 1,
    "timeout": 2,
    "heartbeat": 3,
    "late": 4,
    "retry": 5,
    "start": 6,
    "end": 6,
}


def iso(seconds: float | None) -> str | None:
    """Seconds since 1970 as ISO 8601 in UTC."""
    if seconds is None:
        return None
    try:
        moment = datetime.fromtimestamp(seconds, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"


def build_timeline(
    cluster: Cluster, accused: Iterable[Card], chain: list[Card], late: dict[int, list[Mark]]
) -> Timeline:
    """Draw the lanes.

    Args:
        cluster: the job.
        accused: cards that the verdict names.
        chain: who waits for whom.
        late: by ``id`` of a member: its late arrivals, in seconds since 1970 on the cluster's clock.
    """
    named = set(accused)
    members = sorted(cluster.members, key=_order)
    if len(members) > MAX_LANES:
        members = [m for m in members if m.card in named or m.of("timeout", "cause", "error")][:MAX_LANES]
    spans = [span for member in members if (span := _span(member)) is not None]
    if not spans:
        return Timeline(lanes=tuple(Lane(m.card, 0.0, 0.0, suspect=m.card in named) for m in members))
    start, end = min(span[0] for span in spans), max(span[1] for span in spans)
    system: dict[tuple[str | None, int | None], list[Member]] = {}
    for part in cluster.system:
        system.setdefault((part.card.host, part.card.device), []).append(part)
    lanes = []
    for member in members:
        parts = system.get((member.card.host, member.physical), []) if member.physical is not None else []
        lanes.append(_lane(member, parts, start, end, member.card in named, late.get(id(member), [])))
    index = {lane.card: number for number, lane in enumerate(lanes)}
    links = tuple(
        (index[one], index[other])
        for one, other in itertools.pairwise(chain)
        if one in index and other in index
    )
    return Timeline(iso(start), iso(end), round(end - start, 6), tuple(lanes), links)


def _order(member: Member) -> tuple[bool, int, str, int]:
    rank = member.world
    return rank is None, rank or 0, str(member.card.host), member.card.device or 0


def _span(member: Member) -> tuple[float, float] | None:
    first, last = member.aligned(member.trace.first), member.aligned(member.trace.last)
    return None if first is None or last is None else (first, last)


def _lane(
    member: Member, parts: list[Member], start: float, end: float, suspect: bool, late: list[Mark]
) -> Lane:
    marks = [
        mark
        for group in member.groups
        if (mark := _mark(member, group, start, group.role in ("cause",) and bool(_hardware(group))))
    ]
    marks += [
        mark
        for part in parts
        for group in part.groups
        if (mark := _mark(part, group, start, True)) and -600 <= mark.start <= end - start + 600
    ]
    marks += [
        Mark(
            m.kind,
            round(m.start - start, 6),
            round(m.end - start, 6),
            m.count,
            m.text,
            m.code,
            m.file,
            m.line,
        )
        for m in late
    ]
    marks.sort(key=lambda mark: (_WEIGHT[mark.kind], mark.start))
    shown = sorted(marks[:MAX_MARKS], key=lambda mark: mark.start)
    span = _span(member) or (start, start)
    return Lane(
        member.card,
        round(span[0] - start, 6),
        round(span[1] - start, 6),
        tuple(shown),
        suspect,
        sum(mark.count for mark in marks[MAX_MARKS:]),
    )


def _hardware(group: Group) -> bool:
    return bool(group.signals & {"hardware", "ecc", "device-lost"}) or group.sign in (
        "hbm-ecc",
        "device-lost",
    )


def _mark(member: Member, group: Group, start: float, hardware: bool) -> Mark | None:
    first, last = member.first(group), member.last(group)
    if first is None or last is None or not group.examples:
        return None
    kind = _KINDS.get(group.role)
    if group.sign in _HEARTBEAT:
        kind = "heartbeat"
    elif group.role == "pointer":
        kind = "error"
    elif group.sign == "destroy":
        kind = "end"
    elif group.sign in ("comm-init-entry", "setup-agent", "hcom-init"):
        kind = "start"
    if kind is None:
        return None
    if hardware and group.role == "cause":
        kind = "hardware"
    record = group.examples[0]
    return Mark(
        kind,
        round(first - start, 6),
        round(last - start, 6),
        group.count,
        record.text[:MAX_TEXT],
        record.codes[0] if record.codes else None,
        record.file,
        record.line,
    )
