"""Errors of a card's own, in its process, its device or its host's kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ascend_elk.diagnose.case import (
    Candidate,
    Case,
    Trouble,
    targets,
)
from ascend_elk.diagnose.rules.common import SLACK, before_effect, few, names, owner


def first_error(case: Case) -> Iterator[Candidate]:
    """The earliest error that is no time-out beats every time-out; what many cards write stands back."""
    spread: Counter[str] = Counter()
    for sign, _ in {(trouble.group.sign, id(trouble.member)) for trouble in case.causes}:
        spread[sign] += 1
    cards = max(1, len(case.cluster.members))
    earliest = min((t.time for t in case.causes if t.time is not None), default=None)
    for trouble in case.causes:
        group = trouble.group
        if group.side == "pair" or group.sign == "tls-differs":
            continue
        member = owner(case, trouble.member)
        if member is None and trouble.member.card.device is None:
            continue
        share = spread[group.sign] / cards
        score = group.weight * (1.0 if few(spread[group.sign], cards) or cards < 4 else max(0.3, 1 - share))
        if not before_effect(case, trouble):
            score *= 0.5
        elif case.timeouts and member is not None and not case.waits(member):
            score += (1 - score) * 0.4  # and it is not among those that waited
        if trouble.time is not None and earliest is not None:
            score *= 1.0 if trouble.time <= earliest + SLACK else 0.85
        if trouble.time is None:
            # It may be of any day, unless a process of the job printed it or the clock was not set yet. Of
            # those that waited for others as well it may be the end of the wait.
            printed = member is not None and member is trouble.member
            if printed and not case.waits(trouble.member):
                score *= 0.9
            elif printed or trouble.group.unsynchronised:
                score *= 0.5 if printed else 0.8
            else:
                score *= 0.2
        accused = [member.card if member else trouble.member.card]
        link = False
        others = " before the others gave up waiting" if case.timeouts else ""
        why = f"{accused[0].label()} failed by itself ({_what(trouble)}){others}"
        far = targets(case, trouble)
        if group.side == "remote" and not far:
            continue  # it is another's fault, and nobody says whose
        if group.side == "remote":
            accused = [target.card for target in far]
            why = f"{trouble.member.card.label()} names {names(accused)} as the origin of its error"
        elif group.side == "link":
            accused = [*accused, *(target.card for target in far)]
            link = True
            why = f"the path between {names(accused)} broke" if far else why
        yield Candidate("first-error", accused, score, why, link, [(trouble, "the first error of its own")])


def _what(trouble: Trouble) -> str:
    """Name an error by its sign, else by its code or signal."""
    group = trouble.group
    if group.known:
        return group.sign
    names = [code.partition(":")[2] for code in group.codes] + sorted(group.signals)
    return names[0] if names else "an error of level " + (trouble.record.level or "ERROR")


def unknown_error(case: Case) -> Iterator[Candidate]:
    """An error no sign knows, written by few cards just before the others gave up."""
    if case.first_effect is None:
        return
    spread: Counter[str] = Counter(trouble.group.sign for trouble in case.errors)
    cards = max(1, len(case.cluster.members))
    for trouble in case.errors:
        if trouble.time is None or not few(spread[trouble.group.sign], cards):
            continue
        lead = case.first_effect - trouble.time
        if -SLACK <= lead <= case.limit + 600:
            member = owner(case, trouble.member)
            if member is not None:
                yield Candidate(
                    "unknown-error",
                    [member.card],
                    0.35,
                    f"{member.card.label()} wrote an error that hardly any other card wrote, "
                    "before the others gave up waiting",
                    proof=[(trouble, "an error that only few cards wrote")],
                )


def host_event(case: Case) -> Iterator[Candidate]:
    """The kernel killed a process of the job."""
    by_pid = {(member.card.host, member.card.pid): member for member in case.cluster.members}
    for trouble in case.signed("host-oom"):
        pid = trouble.group.facts.get("host_pid")
        known = by_pid.get((trouble.member.card.host, int(pid))) if pid else None
        if known is not None:
            yield Candidate(
                "host-kill",
                [known.card],
                0.95,
                f"the host's kernel killed the process of {known.card.label()} for want of memory",
                proof=[(trouble, "the kernel killed it")],
            )
