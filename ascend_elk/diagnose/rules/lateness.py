"""Stragglers, and entries of collectives that do not fit: who is late, stalls, or enters something else."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from statistics import median

from ascend_elk.diagnose.arrivals import FEW_ENTRIES, MAD, MIN_SHARE, Lateness, Measured, missed_entries
from ascend_elk.diagnose.case import Candidate, Case, Trouble
from ascend_elk.diagnose.collect import Group
from ascend_elk.diagnose.members import Member

_MIN_STALLS = 4
_MIN_HOST_SHARE = 0.05


def late_arrivals(case: Case, measured: dict[str, list[Measured]]) -> Iterator[Candidate]:
    """Accuse the ranks that come late in every communicator they share; those late in some only follow."""
    by_member: dict[int, dict[str, Lateness]] = defaultdict(dict)
    clear: set[tuple[int, str]] = set()
    for comm, kinds in measured.items():
        for found in kinds:
            centres = [lateness.seconds for lateness in found.ranks]
            middle = median(centres) if centres else 0.0
            usual = median(abs(centre - middle) for centre in centres) * MAD if len(centres) > 2 else 0.0
            for lateness in found.ranks:
                key = id(lateness.member)
                noise = case.cluster.clock_noise.get(lateness.member.card.host, float("inf"))
                if _is_late(lateness, usual) and (not lateness.clocked or lateness.seconds > 3 * noise):
                    clear.add((key, comm))
                known = by_member[key].get(comm)
                if known is None or lateness.seconds > known.seconds:
                    by_member[key][comm] = lateness
    late: list[tuple[float, list[Lateness]]] = []
    for key, own in by_member.items():
        if all((key, comm) in clear for comm in own):
            late.append((sum(lateness.seconds for lateness in own.values()), list(own.values())))
    late.sort(key=lambda item: -item[0])
    named = [own for weight, own in late if weight >= late[0][0] / 3]
    if named and len(named) <= max(1, len(by_member) // 4):
        yield _late_cards(case, named)
    elif not named:
        yield from _stalling(case, by_member)
    yield from _late_hosts(case, measured)


def _stalling(case: Case, by_member: dict[int, dict[str, Lateness]]) -> Iterator[Candidate]:
    """Accuse a rank that is not always late, but the only one that ever is, again and again."""
    found = [
        own
        for own in by_member.values()
        if all(
            lateness.stalls >= _MIN_STALLS
            and lateness.stalled >= MIN_SHARE / 2
            and (not lateness.clocked or case.cluster.clock_noise.get(lateness.member.card.host) is not None)
            for lateness in own.values()
        )
    ]
    if len(found) != 1:
        return
    main = max(found[0].values(), key=lambda lateness: lateness.stalls)
    yield Candidate(
        "stalls",
        [main.member.card],
        min(0.9, 0.6 + 0.03 * main.stalls),
        f"{main.member.card.label()} kept the others waiting in {main.stalls} of {main.operations} "
        f"operations, {main.stalled:.0%} of the time; hardly any other card ever did",
        straggler=True,
        proof=_proof(case, main.comm, main.member),
    )


def _late_cards(case: Case, named: list[list[Lateness]]) -> Candidate:
    cards = [own[0].member.card for own in named]
    main = max(named[0], key=lambda lateness: lateness.operations)
    score = min(0.93, 0.55 + 0.2 * main.last + 0.2 * min(1.0, main.operations / 50))
    return Candidate(
        "late-arrival",
        cards,
        score if len(cards) == 1 else score * 0.85,
        f"{cards[0].label()} entered the collectives {main.seconds * 1000:.0f} ms after the others in the "
        f"median of {main.operations} operations ({main.share:.0%} of the time between them), "
        f"and last in {main.last:.0%} of them",
        straggler=True,
        proof=_proof(case, main.comm, main.member),
    )


def _proof(case: Case, comm: str, member: Member) -> list[tuple[Trouble, str]]:
    """Show the same entry of the late card and of a peer."""
    proof = []
    for one, what in ((member, "the late card enters"), (_peer(case, comm, member), "a peer enters")):
        example = one.trace.entries[comm].example if one is not None else None
        if one is not None and example is not None:
            group = Group("collective", "begin", count=one.trace.entries[comm].total, examples=[example])
            group.first = group.last = example.time
            proof.append((Trouble(one, group, one.aligned(example.time)), f"{what} its tenth operation"))
    return proof


def _peer(case: Case, comm: str, member: Member) -> Member | None:
    peers = [
        other
        for other in case.cluster.members
        if other is not member and comm in other.trace.entries and other.trace.entries[comm].example
    ]
    return min(peers, key=lambda other: other.card.host != member.card.host, default=None)


def _late_hosts(case: Case, measured: dict[str, list[Measured]]) -> Iterator[Candidate]:
    """Accuse a host whose cards come late together, by more than the clocks may be wrong."""
    for comm, found in ((comm, kind) for comm, kinds in measured.items() for kind in kinds):
        centres = [host.seconds for host in found.hosts]
        if len(centres) < 2:
            continue
        usual = median(abs(centre) for centre in centres) * MAD
        for host in found.hosts:
            name = host.members[0].card.host
            noise = case.cluster.clock_noise.get(name, float("inf"))
            if (
                host.seconds > 4 * usual
                and host.seconds > 3 * noise
                and host.share >= _MIN_HOST_SHARE
                and host.last > 0.5
            ):
                yield Candidate(
                    "late-host",
                    [member.card for member in host.members],
                    min(0.9, 0.5 + 0.2 * host.last + 0.2 * min(1.0, host.operations / 50)),
                    f"all cards of {name} entered the collectives {host.seconds * 1000:.0f} ms after the "
                    f"others in the median of {host.operations} operations ({host.share:.0%} of the time "
                    "between them): the host is slow",
                    straggler=True,
                    proof=_proof(case, comm, host.members[0]),
                )


def _is_late(lateness: Lateness, usual: float) -> bool:
    noise = max(lateness.error, 1e-6)
    fair = 1.0 / lateness.ranks
    return (
        lateness.seconds > 6 * noise
        and lateness.seconds > 4 * usual
        and lateness.share >= MIN_SHARE
        and lateness.last > min(0.5, 3 * fair)
    )


def odd_entry(case: Case) -> Iterator[Candidate]:
    """All timed out in the same operation, but one had entered another one, or with another count."""
    if not case.timeouts:
        return
    users: dict[str, list[Member]] = defaultdict(list)
    for member in case.cluster.members:
        for comm in member.trace.entries:
            if member.from_start:
                users[comm].append(member)
    for comm, members in users.items():
        most = max(member.trace.entries[comm].total for member in members)
        last = {}
        for member in members:
            entries = member.trace.entries[comm]
            if entries.total == most:
                last[id(member)] = (member, entries.shapes[entries.times.index(max(entries.times))])
        votes = Counter(shape for _, shape in last.values())
        if len(votes) < 2:
            continue
        common = votes.most_common(1)[0][0]
        odd = [member for member, shape in last.values() if shape != common]
        if len(odd) * 4 <= len(last):
            yield Candidate(
                "odd-entry",
                [member.card for member in odd],
                0.86 if len(odd) == 1 else 0.7,
                f"{odd[0].card.label()} entered another operation, or one with another count, than the "
                f"others in their last, number {most}",
                proof=[(case.timeouts[0], "waited in a collective")],
            )


def never_entered(case: Case) -> Iterator[Candidate]:
    """All ranks timed out, but one had not entered what the others waited in."""
    if not case.timeouts:
        return
    # A log that is cut misses many entries, a rank that waits in another collective few.
    missed = missed_entries(case.cluster)
    behind = [m for m in case.cluster.members if 0 < missed.get(id(m), 0) <= FEW_ENTRIES and case.waits(m)]
    if len(behind) == 1 and len(missed) > 2:
        member = behind[0]
        number = missed[id(member)]
        yield Candidate(
            "never-entered",
            [member.card],
            0.45 if case.causes or len(case.waiting) < len(case.cluster.members) * 0.9 else 0.72,
            f"{member.card.label()} entered {number} collective{'s' if number > 1 else ''} fewer than "
            "its peers, which waited for it",
            proof=[(case.timeouts[0], "waited in a collective")],
        )
