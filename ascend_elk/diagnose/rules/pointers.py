"""Lines that name other cards: link detection, heartbeats, RDMA completion errors."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from ascend_elk.diagnose.case import (
    Candidate,
    Case,
    Trouble,
    place,
    targets,
)
from ascend_elk.diagnose.model import Card
from ascend_elk.diagnose.rules.common import few, names


def detected_link(case: Case) -> Iterator[Candidate]:
    """The detection after a link time-out names who could not connect to whom."""
    pairs: dict[tuple[Card, Card], list[Trouble]] = defaultdict(list)
    for trouble in case.signed("detect-result"):
        for record in trouble.group.examples:
            facts = record.facts
            if "local_server" not in facts:
                continue
            source = place(case.cluster, facts["local_server"], int(facts["local_physical"]))
            target = place(case.cluster, facts["remote_server"], int(facts["remote_physical"]))
            pairs[source.card, target.card].append(trouble)
    if not pairs:
        return
    ends: Counter[Card] = Counter()
    incoming: dict[Card, set[Card]] = defaultdict(set)
    for source_card, target_card in pairs:
        ends[source_card] += 1
        ends[target_card] += 1
        incoming[target_card].add(source_card)
    proof = [(troubles[0], "names who could not connect to whom") for troubles in list(pairs.values())[:4]]
    top, count = ends.most_common(1)[0]
    failing = {trouble.member.card for trouble in case.timeouts}
    quiet = [card for card in incoming if card not in failing]
    if count >= 2 and [seen for seen in ends.values() if seen == count] == [count]:
        yield Candidate(
            "detected-link",
            [top],
            0.85,
            f"{top.label()} is an end of every connection that failed",
            proof=proof,
        )
    elif quiet:
        yield Candidate(
            "detected-link",
            quiet,
            0.8 if len(quiet) == 1 else 0.5,
            f"{names(quiet)} could not be reached and reports nothing itself",
            proof=proof,
        )
    else:
        both = list(dict.fromkeys(card for pair in pairs for card in pair))
        yield Candidate(
            "detected-link",
            both,
            0.7 if len(both) == 2 else 0.4,
            f"no connection between {names(both)}",
            True,
            proof,
        )


def heartbeat(case: Case) -> Iterator[Candidate]:
    """Cards that others lost, or that report themselves stuck; two that accuse each other lost the path."""
    lost: dict[Card, set[str]] = defaultdict(set)
    stuck: dict[Card, list[Trouble]] = defaultdict(list)
    first: dict[Card, Trouble] = {}
    accusers: dict[Card, set[Card]] = defaultdict(set)
    for trouble in case.signed("heartbeat-relay", "exception-location"):
        for target in targets(case, trouble):
            status = trouble.group.facts.get("status", "").lower()
            if "lost" in status:
                informer = trouble.group.facts.get("informer", trouble.member.card.label())
                lost[target.card].add(informer.partition("%")[0])
                accusers[target.card].add(_informer_card(case, informer))
            elif "stuck" in status:
                stuck[target.card].append(trouble)
            else:
                continue
            known = first.get(target.card)
            if known is None or (trouble.time or 0) < (known.time or 0):
                first[target.card] = trouble
    size = case.cluster.size or len(case.cluster.members)
    mutual = [
        (one, other)
        for one in lost
        for other in accusers[one]
        if one in accusers.get(other, ()) and one != other
    ]
    if mutual and len(lost) == 2:
        one, other = mutual[0]
        yield Candidate(
            "heartbeat-mutual",
            [one, other],
            0.75,
            f"{one.label()} and {other.label()} lost each other's heartbeat: the path between them",
            True,
            [(first[one], "accuses the other end"), (first[other], "accuses the other end")],
        )
    elif lost and few(len(lost), size):
        ranked = sorted(lost, key=lambda card: (-len(lost[card]), first[card].time or 0))
        most = len(lost[ranked[0]])
        top = [card for card in ranked if len(lost[card]) == most]
        yield Candidate(
            "heartbeat-lost",
            top,
            (0.88 if most > 1 else 0.7) * (1.0 if len(top) == 1 else 0.8),
            f"{names(top)} stopped answering the heartbeat of {most} other card{'s' if most > 1 else ''}",
            proof=[(first[card], "its heartbeat was lost") for card in top[:3]],
        )
    if stuck and few(len(stuck), size):
        cards = sorted(stuck, key=lambda card: first[card].time or 0)
        yield Candidate(
            "heartbeat-stuck",
            cards,
            0.88 if len(cards) == 1 else 0.7,
            f"{names(cards)} was in no collective operation and issued none while the others waited in one",
            proof=[(first[card], "reports itself stuck") for card in cards[:3]],
        )


def _informer_card(case: Case, informer: str) -> Card:
    server, _, physical = informer.partition("/")
    if physical.isdigit():
        return place(case.cluster, server.partition("%")[0], int(physical)).card
    return Card(address=informer)


def cqe(case: Case) -> Iterator[Candidate]:
    """RDMA retries ran out: who is an end of all the broken connections?"""
    pairs: dict[Card, set[Card]] = defaultdict(set)
    proof: dict[Card, Trouble] = {}
    for trouble in case.signed("cqe"):
        reporter = trouble.member.card
        proof.setdefault(reporter, trouble)
        for target in targets(case, trouble):
            pairs[reporter].add(target.card)
    if not pairs:
        return
    remotes: Counter[Card] = Counter(card for named in pairs.values() for card in named)
    lines = [(trouble, "its RDMA retries ran out") for trouble in list(proof.values())[:4]]
    top, count = remotes.most_common(1)[0]
    unseen = [card for card in remotes if card.pid is None]
    missing = [f"the logs of {names(unseen)}, named by an RDMA completion error"] if unseen else []
    if len(pairs) > 1 and count == len(pairs.keys() - {top}):
        yield Candidate(
            "cqe-common-remote",
            [top],
            0.85,
            f"all {count} cards with an RDMA completion error name {top.label()}",
            proof=lines,
            missing=missing,
        )
    elif len(pairs) == 1 and len(remotes) > 1:
        reporter = next(iter(pairs))
        yield Candidate(
            "cqe-one-reporter",
            [reporter],
            0.75,
            f"{reporter.label()} lost {len(remotes)} different peers at once",
            proof=lines,
        )
    elif len({*pairs, *remotes}) == 2:
        reporter = next(iter(pairs))
        both = [reporter, *(card for card in {*pairs, *remotes} if card != reporter)]
        yield Candidate(
            "cqe-pair",
            both,
            0.65,
            f"the RDMA path between {both[0].label()} and {both[1].label()} broke",
            True,
            lines,
            missing=missing,
        )
    elif count > 1 and [seen for seen in remotes.values() if seen == count] == [count]:
        yield Candidate(
            "cqe-common-remote",
            [top],
            0.7 * count / len(pairs) + 0.1,
            f"{count} of {len(pairs)} cards with an RDMA completion error name {top.label()}",
            proof=lines,
            missing=missing,
        )
    else:
        yield Candidate(
            "cqe-scattered",
            [card for card, _ in remotes.most_common()],
            0.3,
            f"{len(pairs)} cards report RDMA completion errors and name {len(remotes)} different peers",
            proof=lines,
            missing=missing,
        )
