"""Cards that stand out by counts and costs: retries, throttling, time to issue operations."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from statistics import median

from ascend_elk.diagnose.case import Candidate, Case, Trouble, targets
from ascend_elk.diagnose.model import Card

_LEAST = 10
"""Retries below which no card stands out."""
_TIMES = 5
"""How many times the usual count stands out."""


def retries(case: Case) -> Iterator[Candidate]:
    """A card, or a pair, that retries many times more often than the others."""
    counts: Counter[Card] = Counter()
    pairs: Counter[tuple[Card, Card]] = Counter()
    examples: dict[Card, Trouble] = {}
    for trouble in case.troubles:
        if trouble.group.role != "retry":
            continue
        card = _card(case, trouble)
        if card is None:
            continue
        counts[card] += trouble.group.count
        examples.setdefault(card, trouble)
        for target in targets(case, trouble):
            pairs[card, target.card] += trouble.group.count
    if not counts:
        return
    every = [counts.get(member.card, 0) for member in case.cluster.members]
    usual = median(every) if every else 0
    outliers = [card for card, count in counts.most_common() if count >= max(_LEAST, _TIMES * (usual + 1))]
    if not outliers or len(outliers) > max(2, len(every) // 4):
        return
    proof = [(examples[card], f"retried {counts[card]} times, usual are {usual:g}") for card in outliers[:3]]
    # Retries towards one card from several sides are that card's.
    towards: Counter[Card] = Counter(
        {card: len({one for one, other in pairs if other == card}) for _, card in pairs}
    )
    if towards:
        top, sides = towards.most_common(1)[0]
        if sides >= 2 and list(towards.values()).count(sides) == 1:
            yield Candidate(
                "retries", [top], 0.72, f"{sides} cards retry towards {top.label()}", False, proof
            )
            return
        (one, other), _ = pairs.most_common(1)[0]
        if set(outliers) <= {one, other} and len(towards) == 1:
            yield Candidate(
                "retries",
                [one, other],
                0.62,
                f"the path between {one.label()} and {other.label()} retries far more than any other",
                True,
                proof,
            )
            return
    yield Candidate(
        "retries",
        outliers,
        0.65 if len(outliers) == 1 else 0.5,
        f"{outliers[0].label()} retried {counts[outliers[0]]} times, the usual card {usual:g} times",
        False,
        proof,
        straggler=not case.timeouts,
    )


def throttled(case: Case) -> Iterator[Candidate]:
    """A card that reports a lowered frequency or too high a temperature."""
    found: dict[Card, Trouble] = {}
    for trouble in case.signed("throttled"):
        card = _card(case, trouble)
        if card is not None:
            found.setdefault(card, trouble)
    if found and len(found) <= max(1, len(case.cluster.members) // 4):
        cards = list(found)
        yield Candidate(
            "throttled",
            cards,
            0.62 if len(cards) == 1 else 0.5,
            f"{cards[0].label()} lowered its frequency",
            False,
            [(trouble, "the card slows itself down") for trouble in found.values()],
            straggler=True,
        )


def issue_cost(case: Case) -> Iterator[Candidate]:
    """A card whose host takes many times as long as the others' to issue the same operations."""
    means: dict[str, dict[Card, float]] = defaultdict(dict)
    for member in case.cluster.members:
        for op, (count, seconds) in member.trace.costs.items():
            if count >= _LEAST:
                means[op][member.card] = seconds / count
    for op, by_card in means.items():
        if len(by_card) < 4:
            continue
        usual = median(by_card.values())
        spread = median(abs(mean - usual) for mean in by_card.values())
        slow = [
            card for card, mean in by_card.items() if mean > _TIMES * usual and mean > usual + 10 * spread
        ]
        if len(slow) == 1:
            yield Candidate(
                "issue-cost",
                slow,
                0.5,
                f"the host of {slow[0].label()} takes {by_card[slow[0]] * 1e6:.0f} us to issue {op}, the "
                f"usual {usual * 1e6:.0f} us",
                straggler=True,
            )
            return


def _card(case: Case, trouble: Trouble) -> Card | None:
    member = trouble.member
    if member.trace.key is not None:
        return member.card
    if member.card.device is None:
        return None
    known = case.cluster.by_device.get((member.card.host, member.card.device))
    return known.card if known else member.card
