"""What the diagnosis is measured against: two ways of a hurried reader, and the public rules of faultdiag.

All take what one :class:`~ascend_elk.diagnose.Collector` holds, so they read the same lines with the same
identities as the engine; only the judgement differs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ascend_elk.diagnose import Card, Collector
from ascend_elk.diagnose.case import Case, Trouble, incident, targets
from ascend_elk.diagnose.cluster import build
from ascend_elk.diagnose.members import Cluster, Member

_ERRORS = ("ERROR", "CRITICAL", "FATAL")


def first_error_line(collector: Collector) -> list[Card]:
    """The card that wrote the first line of level ERROR, by the clocks as they are."""
    cluster = build(collector)
    firsts = [
        (record.time, index)
        for index, member in enumerate(cluster.members)
        for group in member.groups
        for record in group.examples
        if record.level in _ERRORS and record.time is not None
    ]
    return [cluster.members[min(firsts)[1]].card] if firsts else []


def most_errors(collector: Collector) -> list[Card]:
    """The card that wrote most lines of level ERROR."""
    counts = [
        (sum(member.trace.levels.get(level, 0) for level in _ERRORS), member)
        for member in build(collector).members
    ]
    most = max((count for count, _ in counts), default=0)
    return [member.card for count, member in counts if count == most][:1] if most else []


def faultdiag(collector: Collector) -> list[Card]:
    """The order of tests that faultdiag publishes, on clocks as they are.

    Written anew from the description of its root-cluster step; its limits are kept: no alignment of clocks,
    no hardware events, no late arrivals. Every line of level ERROR that nothing calls ignorable is an error
    to it, so it accuses somebody in most healthy runs too; the tool itself may know more harmless lines.
    """
    cluster = build(collector)
    for member in [*cluster.members, *cluster.system]:
        member.offset = member.device_offset = 0.0
    case = incident(cluster)
    troubles = [*case.timeouts, *case.causes, *case.errors, *case.signed("cqe", "exception-location")]
    troubles = [trouble for trouble in troubles if trouble.member.trace.key is not None]
    if not troubles:
        return _lagging(case)
    return (
        _completion_errors(case)
        or _exception_location(case)
        or _transport(case, cluster)
        or _timeouts(case, cluster, troubles)
    )


def _lagging(case: Case) -> list[Card]:
    last: dict[int, float] = {}
    for trouble in case.signed("report-timeout"):
        if trouble.group.last is not None:
            last[id(trouble.member)] = max(last.get(id(trouble.member), 0.0), trouble.group.last)
    if not last:
        return []
    newest = max(last.values())
    return [member.card for member in case.cluster.members if last.get(id(member), 0.0) < newest - 900]


def _completion_errors(case: Case) -> list[Card]:
    pairs = {
        (trouble.member.card, target.card)
        for trouble in case.signed("cqe")
        for target in targets(case, trouble)
    }
    if not pairs:
        return []
    remotes = {remote for _, remote in pairs}
    if len(remotes) == 1 and len(pairs) > 1:
        return list(remotes)
    return list(dict.fromkeys(card for pair in sorted(pairs, key=repr) for card in pair))


def _exception_location(case: Case) -> list[Card]:
    found = [target.card for t in case.signed("exception-location") for target in targets(case, t)]
    return list(dict.fromkeys(found))


def _transport(case: Case, cluster: Cluster) -> list[Card]:
    return _chain(case, case.signed("transport-init"))


def _chain(case: Case, waits: list[Trouble]) -> list[Card]:
    edges: dict[Card, Card] = {}
    for trouble in sorted(waits, key=lambda t: t.time or 0.0):
        for target in targets(case, trouble)[:1]:
            edges.setdefault(trouble.member.card, target.card)
    if not edges:
        return []
    at = next(iter(edges))
    walk = [at]
    while at in edges:
        at = edges[at]
        if at in walk:
            return walk[walk.index(at) :]
        walk.append(at)
    return [at]


def _timeouts(case: Case, cluster: Cluster, troubles: list[Trouble]) -> list[Card]:
    timed = [trouble for trouble in troubles if trouble.time is not None]
    if not timed:
        return []
    first = min(timed, key=lambda trouble: trouble.time or 0.0)
    if first.group.role != "timeout":
        if case.timeouts:
            struck = {id(trouble.member) for trouble in case.timeouts}
            return _cards(
                t.member for t in timed if t.group.role != "timeout" and id(t.member) not in struck
            ) or (_cards(t.member for t in timed if t.group.role != "timeout"))
        return _cards(trouble.member for trouble in timed)
    phase = first.group.phase
    waits = [trouble for trouble in case.timeouts if trouble.group.phase == phase]
    failing = {id(trouble.member) for trouble in waits}
    quiet = [member for member in cluster.members if id(member) not in failing]
    if phase == "init":
        listed = _listed(case, cluster)
        if listed:
            return listed
    if quiet:
        return _cards(quiet)
    limit = (
        cluster.limits.get("exec", 1800.0) if phase == "execution" else cluster.limits.get("connect", 120.0)
    )
    times = sorted(((t.time or 0.0), index) for index, t in enumerate(waits) if t.time is not None)
    if times and times[-1][0] - times[0][0] > limit > 0:
        return [waits[times[-1][1]].member.card]
    if phase == "execution":
        indexes: dict[int, list[Member]] = defaultdict(list)
        tags: dict[str, list[Member]] = defaultdict(list)
        for trouble in waits:
            facts = trouble.group.facts
            if "index" in facts:
                indexes[int(facts["index"])].append(trouble.member)
            if "tag" in facts:
                tags[facts["tag"]].append(trouble.member)
        if len(indexes) > 1:
            return _cards(indexes[min(indexes)])
        if len(tags) > 1:
            return _cards(min(tags.values(), key=len))
    return _chain(case, waits)


def _listed(case: Case, cluster: Cluster) -> list[Card]:
    import re

    for trouble in case.signed("missing-agents"):
        numbers = re.findall(r"\d+", trouble.group.facts.get("missing", ""))
        if numbers:
            return [cluster.locate(int(number)) for number in numbers]
    return []


def _cards(members: Iterable[Member]) -> list[Card]:
    return list(dict.fromkeys(member.card for member in members))
