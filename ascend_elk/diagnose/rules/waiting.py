"""Ranks that waited in vain: for whom, and who did not wait?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from ascend_elk.diagnose.arrivals import FEW_ENTRIES, missed_entries
from ascend_elk.diagnose.case import (
    CONNECT_LIMIT,
    EXEC_LIMIT,
    Candidate,
    Case,
    Trouble,
)
from ascend_elk.diagnose.members import Member
from ascend_elk.diagnose.rules.common import before_effect, few, names


def wait_chain(case: Case) -> Iterator[Candidate]:
    """A chain of waits ends at its cause, a cycle names its members."""
    chain = case.chain
    if chain is None:
        return
    cards = chain.cards
    proof = [(trouble, "waits for the next of the chain") for trouble in chain.proofs]
    missing = [
        f"the logs of {names(lost)}, for which {waiting.label()} waits" for lost, waiting in chain.loose
    ]
    agree = chain.starts / chain.waiting
    share = f"{chain.starts} of {chain.waiting} waiting cards"
    end = cards[-1]
    if chain.state == "cycle":
        ring = cards[cards.index(end) : -1]
        yield Candidate(
            "wait-cycle",
            ring,
            0.6 + 0.26 * agree if chain.waiting > len(ring) else 0.7,
            f"{names(ring)} wait for each other: the path between them, or what they issued, is wrong",
            True,
            proof,
            cards,
            missing,
        )
    elif chain.state == "unseen":
        missing.insert(0, f"the logs of {end.label()}, for which {cards[-2].label()} waits")
        if chain.starts > 1:
            why = f"{end.label()} is what {share} wait for; there are no logs of it"
            yield Candidate("wait-chain", [end], 0.5 + 0.25 * agree, why, False, proof, cards, missing)
        else:
            why = f"{cards[-2].label()} waits for {end.label()}, of which there are no logs"
            yield Candidate("wait-chain", [cards[-2], end], 0.4, why, True, proof, cards, missing)
    else:
        says = {
            "quiet": "and reports no wait itself",
            "itself": "and waits for no other card",
            "cut": "and waits as well, but the line that says for whom is lost",
        }[chain.state]
        yield Candidate(
            "wait-chain",
            [end],
            (0.55 + 0.33 * agree) * (0.65 if chain.state == "cut" else 1.0),
            f"{end.label()} is what {share} wait for, directly or through others, {says}",
            proof=proof,
            chain=cards,
            missing=missing,
        )


def silent_rank(case: Case) -> Iterator[Candidate]:
    """Of ranks that timed out together, those that report nothing: the others waited for them.

    Logs get lost, so a card can be silent and innocent. Where entries of collectives were logged they tell:
    who entered the last one waited like all others, who did not is the one they waited for.
    """
    waits = [trouble for trouble in case.timeouts if trouble.group.phase in ("execution", "link", None)]
    failing = {id(trouble.member) for trouble in waits}
    cluster = case.cluster
    size = cluster.size or len(cluster.members)
    if not failing or len(failing) < (size - len(cluster.unseen)) // 2:
        return
    comms = {comm for member in cluster.members if id(member) in failing for comm in member.ranks}
    if not comms and len(failing) < 3:
        return  # nothing says that these processes belong together
    struck = {
        id(trouble.member)
        for trouble in case.causes
        if trouble.time is not None and before_effect(case, trouble)
    }
    silent = [
        member
        for member in cluster.members
        if id(member) not in failing
        and id(member) not in struck
        and (not comms or any(comm in comms for comm in member.ranks) or not member.ranks)
    ]
    missed = missed_entries(cluster)
    late = sorted(
        (member for member in silent if missed.get(id(member))), key=lambda member: missed[id(member)]
    )
    unclear = [member for member in silent if id(member) not in missed]
    proof = [(waits[0], "waited for ranks that report nothing")]
    absent = [cluster.locate(rank) for rank in cluster.unseen]
    missing = [f"the logs of {names(absent)}"] if absent else []
    if late:
        cards = [member.card for member in late]
        score = 0.86 if len(cards) == 1 else 0.7
        if missed[id(late[0])] > FEW_ENTRIES:
            score *= 0.7  # so many are missing rather because its log is cut
        why = (
            f"{names(cards[:1])} entered {missed[id(late[0])]} collectives fewer than its peers and "
            f"reports nothing, while {len(failing)} cards timed out waiting"
        )
    elif unclear and few(len(unclear), size):
        cards = [member.card for member in unclear]
        score = 0.82 if len(cards) == 1 else 0.6
        if len(absent) > size // 4:
            score *= 0.8
        why = f"{names(cards)} reports nothing, while {len(failing)} cards timed out waiting"
    elif absent and few(len(absent), size) and not silent and case.chain is None:
        cards = absent
        score = 0.55 if len(cards) == 1 else 0.35
        why = f"every card that left logs timed out; of {names(cards)} there are none"
    else:
        return
    followed = case.chain
    if followed is not None and followed.cards[-1] not in cards:
        # The waits name others; where it is lost for whom the last one waits, it may be for these.
        score *= 0.75 if followed.state == "cut" else 0.45
    yield Candidate("silent-rank", cards, score, why, proof=proof, missing=missing)


def behind(case: Case) -> Iterator[Candidate]:
    """All ranks timed out: who stood at an earlier operation, or in another one?"""
    by_comm: dict[str, dict[int, tuple[Member, dict[str, str], Trouble]]] = defaultdict(dict)
    for trouble in case.signed("task-base", "notify-report"):
        facts = trouble.group.facts
        comm = facts.get("comm") or _tag_communicator(facts.get("tag", ""), trouble.member)
        if comm is not None:
            by_comm[comm].setdefault(id(trouble.member), (trouble.member, facts, trouble))
    for comm, reports in by_comm.items():
        if len(reports) < 3 and len(reports) * 2 < len(case.cluster.members):
            continue
        values = list(reports.values())
        indexes = {id(member): int(facts["index"]) for member, facts, _ in values if "index" in facts}
        if len(set(indexes.values())) > 1:
            least = min(indexes.values())
            late = [(member, trouble) for member, _, trouble in values if indexes.get(id(member)) == least]
            if few(len(late), len(indexes)):
                cards = [member.card for member, _ in late]
                yield Candidate(
                    "behind",
                    cards,
                    0.87,
                    f"{names(cards)} had come to operation {least} of {comm}, the others further",
                    proof=[(trouble, f"stands at operation {least}") for _, trouble in late[:3]],
                )
                continue
        for name, label in (("tag", "operation"), ("count", "count"), ("dtype", "data type")):
            votes = Counter(facts[name] for _, facts, _ in values if name in facts)
            if len(votes) < 2:
                continue
            common = votes.most_common(1)[0][0]
            odd = [
                (member, trouble) for member, facts, trouble in values if facts.get(name, common) != common
            ]
            if few(len(odd), len(values)) and len(odd) * 2 < len(values):
                cards = [member.card for member, _ in odd]
                yield Candidate(
                    "odd-operation",
                    cards,
                    0.87,
                    f"{names(cards)} came with another {label} than the others at the same point",
                    proof=[(trouble, f"another {label} than the others'") for _, trouble in odd[:3]],
                )
                break


def _tag_communicator(tag: str, member: Member) -> str | None:
    for comm in member.ranks:
        if comm in tag:
            return comm
    return tag.partition("_")[2] or None


def last_to_fail(case: Case) -> Iterator[Candidate]:
    """All ranks timed out, one of them by more than the limit after the first: it came last."""
    for phase, limit in (
        ("execution", case.cluster.limits.get("exec", EXEC_LIMIT)),
        ("link", case.cluster.limits.get("connect", CONNECT_LIMIT)),
        ("init", case.cluster.limits.get("connect", CONNECT_LIMIT)),
    ):
        times: dict[int, tuple[float, Trouble]] = {}
        for trouble in case.timeouts:
            if trouble.group.phase == phase and trouble.time is not None:
                known = times.get(id(trouble.member))
                if known is None or trouble.time < known[0]:
                    times[id(trouble.member)] = (trouble.time, trouble)
        if len(times) < 2 or limit <= 0:
            continue
        ordered = sorted(times.values(), key=lambda item: item[0])
        (first, _), (last, trouble) = ordered[0], ordered[-1]
        # The last stands alone: the one before it is nearer to the first than to it.
        if last - first > limit and last - ordered[-2][0] > limit / 2:
            yield Candidate(
                "last-to-fail",
                [trouble.member.card],
                0.6,
                f"{trouble.member.card.label()} timed out {last - first:.0f} s after the first, more than "
                f"the limit of {limit:.0f} s: it had begun to wait last",
                proof=[(ordered[0][1], "the first to time out"), (trouble, "the last to time out")],
            )


def lagging_reports(case: Case) -> Iterator[Candidate]:
    """No error, only waits reported every few minutes: who does not report them lags."""
    if case.timeouts or case.causes:
        return
    waiting = case.signed("report-timeout")
    last: dict[int, float] = {}
    for trouble in waiting:
        time = trouble.member.last(trouble.group)
        if time is not None:
            last[id(trouble.member)] = max(time, last.get(id(trouble.member), time))
    if not last:
        return
    newest = max(last.values())
    lagging = [
        member for member in case.cluster.members if last.get(id(member), float("-inf")) < newest - 900
    ]
    if lagging and few(len(lagging), case.cluster.size or len(case.cluster.members)):
        cards = [member.card for member in lagging]
        yield Candidate(
            "lagging",
            cards,
            0.65 if len(cards) == 1 else 0.45,
            f"every other card reports that it waits, {names(cards)} does not",
            proof=[(waiting[0], "waits")],
        )
