"""Who waits for whom, as the time-outs say it, followed to its end."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

from ascend_elk.diagnose.case import Case, Chain, Target, Trouble, targets
from ascend_elk.diagnose.members import Member
from ascend_elk.diagnose.model import Card


@dataclass(frozen=True)
class _Wait:
    time: float
    trouble: Trouble
    target: Target


@dataclass(frozen=True)
class _Walk:
    cards: list[Card]
    proofs: list[Trouble]
    cycle: bool
    last: Target

    @property
    def end(self) -> frozenset[Card]:
        """The cards it ends in: one, or those of a cycle."""
        start = self.cards.index(self.cards[-1]) if self.cycle else -1
        return frozenset(self.cards[start:])


def follow(case: Case) -> Chain | None:
    """Follow each card's earliest wait; return where most of them end, ``None`` where none says for whom."""
    members = {id(trouble.member): trouble.member for trouble in case.timeouts}
    waits = _earliest(case)
    if not waits:
        return None
    walks = {start: _walk(waits, members, start) for start in waits}
    ends: dict[frozenset[Card], list[int]] = defaultdict(list)
    for start, walk in walks.items():
        ends[walk.end].append(start)
    (_, starts), *rest = sorted(
        ends.items(), key=lambda item: (-len(item[1]), min(waits[start].time for start in item[1]))
    )
    earliest = min(waits[start].time for start in starts)
    # Of those that gave up together, the one furthest from the cause shows most of the chain.
    together = [start for start in starts if waits[start].time <= earliest + 1]
    walk = walks[max(together, key=lambda start: (len(walks[start].cards), -waits[start].time))]
    loose = []
    for end, others in rest:
        lost = [card for card in end if card.pid is None]
        if lost:
            loose.append((lost, members[others[0]].card))
    return Chain(walk.cards, walk.proofs, _state(case, walk), len(starts), len(waits), loose)


def _earliest(case: Case) -> dict[int, _Wait]:
    waits: dict[int, _Wait] = {}
    for trouble in case.timeouts:
        if trouble.group.phase == "init":
            continue
        time = trouble.time or 0.0
        known = waits.get(id(trouble.member))
        if known is None or time < known.time:
            found = targets(case, trouble)
            if found:
                waits[id(trouble.member)] = _Wait(time, trouble, found[0])
    return waits


def _walk(waits: dict[int, _Wait], members: dict[int, Member], start: int) -> _Walk:
    cards = [members[start].card]
    proofs: list[Trouble] = []
    seen = {cards[0]}
    wait = waits[start]
    while True:
        target = wait.target
        proofs.append(wait.trouble)
        cards.append(target.card)
        following = waits.get(id(target.member)) if target.member is not None else None
        if target.card in seen or following is None:
            return _Walk(cards, proofs, target.card in seen, target)
        seen.add(target.card)
        wait = following


def _state(case: Case, walk: _Walk) -> Literal["cycle", "quiet", "itself", "cut", "unseen"]:
    if walk.cycle:
        return "cycle"
    if walk.last.member is None:
        return "unseen"
    own = case.waits(walk.last.member)
    if not own:
        return "quiet"
    return "itself" if any("remote_self" in trouble.group.facts for trouble in own) else "cut"
