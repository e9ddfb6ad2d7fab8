"""The rules that accuse cards of a failure; each yields candidates and knows nothing of the others.

Where a rule comes from stands in docs/diagnosis.md. Scores order the candidates; they are no probabilities.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from ascend_elk.diagnose.arrivals import FEW_ENTRIES, missed_entries
from ascend_elk.diagnose.case import (
    CONNECT_LIMIT,
    EXEC_LIMIT,
    Candidate,
    Case,
    Trouble,
    place,
    targets,
)
from ascend_elk.diagnose.cluster import Member
from ascend_elk.diagnose.model import Card

Rule = Callable[[Case], Iterator[Candidate]]

_SLACK = 5.0
"""Seconds by which aligned clocks may still disagree."""
_FEW = 0.25
"""Share of the ranks up to which cards stand out; more of them are a common cause."""


def few(count: int, of: int | None) -> bool:
    """Tell whether some cards stand out among all: at least one may always."""
    return count == 1 or (of is not None and count <= max(1, int(of * _FEW)))


def _names(cards: list[Card], most: int = 4) -> str:
    shown = ", ".join(card.label() for card in cards[:most])
    return shown if len(cards) <= most else f"{shown} and {len(cards) - most} more"


def _before_effect(case: Case, trouble: Trouble) -> bool:
    return trouble.time is None or case.first_effect is None or trouble.time <= case.first_effect + _SLACK


# ---------------------------------------------------------------------------------- errors of their own


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
        member = _owner(case, trouble.member)
        if member is None and trouble.member.card.device is None:
            continue
        share = spread[group.sign] / cards
        score = group.weight * (1.0 if few(spread[group.sign], cards) or cards < 4 else max(0.3, 1 - share))
        if not _before_effect(case, trouble):
            score *= 0.5
        elif case.timeouts and member is not None and not case.waits(member):
            score += (1 - score) * 0.4  # and it is not among those that waited
        if trouble.time is not None and earliest is not None:
            score *= 1.0 if trouble.time <= earliest + _SLACK else 0.85
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
            why = f"{trouble.member.card.label()} names {_names(accused)} as the origin of its error"
        elif group.side == "link":
            accused = [*accused, *(target.card for target in far)]
            link = True
            why = f"the path between {_names(accused)} broke" if far else why
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
        if -_SLACK <= lead <= case.limit + 600:
            member = _owner(case, trouble.member)
            if member is not None:
                yield Candidate(
                    "unknown-error",
                    [member.card],
                    0.35,
                    f"{member.card.label()} wrote an error that hardly any other card wrote, "
                    "before the others gave up waiting",
                    proof=[(trouble, "an error that only few cards wrote")],
                )


def _owner(case: Case, member: Member) -> Member | None:
    """Return the job's card behind a device's or host's lines."""
    if member.trace.key is not None:
        return member
    if member.card.device is None:
        return None
    return case.cluster.by_device.get((member.card.host, member.card.device))


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


# ------------------------------------------------------------------------------- set-up of a communicator


def missing_at_init(case: Case) -> Iterator[Candidate]:
    """Ranks that never reached the server of the communicator's set-up."""
    for trouble in case.signed("missing-agents", "server-timeout", "waiting-sockets"):
        facts = trouble.group.facts
        size = int(facts["needed"]) if "needed" in facts else case.cluster.size
        missing: set[int] = set()
        if "missing" in facts:
            missing = {int(number) for number in re.findall(r"\d+", facts["missing"])}
        elif "list" in facts and size:
            missing = set(range(size)) - {int(number) for number in re.findall(r"\d+", facts["list"])}
        if not missing:
            continue
        cards, silent = _init_cards(case, trouble.member, sorted(missing))
        score = 0.9 if few(len(missing), size) else 0.6
        if trouble.group.sign == "waiting-sockets":
            score *= 0.8
        unseen = [card for card in cards if card.pid is None]
        yield Candidate(
            "missing-at-init",
            cards,
            score,
            f"{_names(cards)} never reached the server of the communicator's set-up, the others waited",
            proof=[(trouble, "lists who was missing")],
            missing=[f"the logs of {_names(unseen)}"] if unseen else [],
        )
        if silent:
            return


def _init_cards(case: Case, member: Member, ranks: list[int]) -> tuple[list[Card], bool]:
    comm = case.cluster.world
    for name, (_, size) in member.ranks.items():
        if size and max(ranks) < size:
            comm = name if comm is None or name == comm else comm
    cards = []
    for rank in ranks:
        known = case.cluster.by_rank.get((comm or "", rank))
        cards.append(known.card if known else case.cluster.locate(rank))
    return cards, any(card.pid is not None for card in cards)


def tls_minority(case: Case) -> Iterator[Candidate]:
    """TLS on at some cards and off at the rest: the fewer are set wrongly."""
    for trouble in case.signed("tls-differs"):
        facts = trouble.group.facts
        sides = [re.findall(r"([0-9A-Fa-f.:]+)/(\d+)", facts.get(name, "")) for name in ("tls_on", "tls_off")]
        if not all(sides):
            continue
        fewer = min(sides, key=len)
        cards = []
        for server, number in fewer:
            known = case.cluster.by_world.get(int(number))
            cards.append(known.card if known else place(case.cluster, server, int(number)).card)
        tie = len(sides[0]) == len(sides[1])
        yield Candidate(
            "tls-minority",
            cards,
            0.5 if tie else 0.95,
            f"{_names(cards)} has another TLS setting than the rest",
            proof=[(trouble, "lists the cards by TLS setting")],
        )
        return
    switches: dict[str, list[Member]] = defaultdict(list)
    for member in case.cluster.members:
        value = member.trace.settings.get("tls-switch")
        for group in member.signed("link-row"):
            value = value or group.facts.get("tls")
        if value is not None:
            switches["1" if value in ("1", "ENABLE") else "0"].append(member)
    if len(switches) == 2 and case.timeouts:
        fewer_members = min(switches.values(), key=len)
        waits = [trouble for trouble in case.timeouts if trouble.group.phase == "link"]
        if len(fewer_members) * 2 < sum(map(len, switches.values())) and waits:
            cards = [member.card for member in fewer_members]
            yield Candidate(
                "tls-minority",
                cards,
                0.85,
                f"{_names(cards)} has another TLS setting than the rest, and links could not be set up",
                proof=[(waits[0], "links that could not be set up")],
            )


def conflict_minority(case: Case) -> Iterator[Candidate]:
    """Ranks disagree on a parameter, an operation or a version: the fewer are wrong."""
    troubles = case.signed(
        "parameter-conflict", "parameter-conflict-report", "version-conflict", "op-inconsistent"
    )
    by_what: dict[str, list[Trouble]] = defaultdict(list)
    for trouble in troubles:
        by_what[trouble.group.facts.get("what", trouble.group.sign)].append(trouble)
    for what, reports in by_what.items():
        local = {
            id(trouble.member): (trouble.member, trouble.group.facts.get("local", ""))
            for trouble in reports
            if "local" in trouble.group.facts
        }
        votes = Counter(value for _, value in local.values())
        remote = Counter(
            trouble.group.facts["remote"] for trouble in reports if "remote" in trouble.group.facts
        )
        if not votes:
            continue
        accused: list[Card] = []
        if len(votes) > 1:
            common = votes.most_common(1)[0][0]
            accused = [member.card for member, value in local.values() if value != common]
            score = 0.8 if few(len(accused), max(4, len(local))) else 0.55
            if len(set(votes.values())) == 1:
                accused, score = [member.card for member, _ in local.values()], 0.5
        else:
            accused = [target.card for trouble in reports for target in targets(case, trouble)]
            score = 0.7
            if not accused:
                silent = [
                    member.card
                    for member in case.cluster.members
                    if id(member) not in local and not case.waits(member)
                ]
                accused, score = (silent, 0.6) if few(len(silent), case.cluster.size) else ([], 0.0)
        if accused:
            accused = list(dict.fromkeys(accused))
            yield Candidate(
                "conflict-minority",
                accused,
                score,
                f"{_names(accused)} came with another {what} than its peers ({', '.join(remote) or '?'})",
                link=len(votes) > 1 and len(set(votes.values())) == 1,
                proof=[(trouble, f"the ranks disagree on {what}") for trouble in reports[:3]],
            )


# ------------------------------------------------------------------------- lines that name other cards


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
            f"{_names(quiet)} could not be reached and reports nothing itself",
            proof=proof,
        )
    else:
        both = list(dict.fromkeys(card for pair in pairs for card in pair))
        yield Candidate(
            "detected-link",
            both,
            0.7 if len(both) == 2 else 0.4,
            f"no connection between {_names(both)}",
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
            f"{_names(top)} stopped answering the heartbeat of {most} other card{'s' if most > 1 else ''}",
            proof=[(first[card], "its heartbeat was lost") for card in top[:3]],
        )
    if stuck and few(len(stuck), size):
        cards = sorted(stuck, key=lambda card: first[card].time or 0)
        yield Candidate(
            "heartbeat-stuck",
            cards,
            0.88 if len(cards) == 1 else 0.7,
            f"{_names(cards)} was in no collective operation and issued none while the others waited in one",
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
    missing = [f"the logs of {_names(unseen)}, named by an RDMA completion error"] if unseen else []
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


# ------------------------------------------------------------------------------------ who waits for whom


def wait_chain(case: Case) -> Iterator[Candidate]:
    """A chain of waits ends at its cause, a cycle names its members."""
    chain = case.chain
    if chain is None:
        return
    cards = chain.cards
    proof = [(trouble, "waits for the next of the chain") for trouble in chain.proofs]
    missing = [
        f"the logs of {_names(lost)}, for which {waiting.label()} waits" for lost, waiting in chain.loose
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
            f"{_names(ring)} wait for each other: the path between them, or what they issued, is wrong",
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
        if trouble.time is not None and _before_effect(case, trouble)
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
    missing = [f"the logs of {_names(absent)}"] if absent else []
    if late:
        cards = [member.card for member in late]
        score = 0.86 if len(cards) == 1 else 0.7
        if missed[id(late[0])] > FEW_ENTRIES:
            score *= 0.7  # so many are missing rather because its log is cut
        why = (
            f"{_names(cards[:1])} entered {missed[id(late[0])]} collectives fewer than its peers and "
            f"reports nothing, while {len(failing)} cards timed out waiting"
        )
    elif unclear and few(len(unclear), size):
        cards = [member.card for member in unclear]
        score = 0.82 if len(cards) == 1 else 0.6
        if len(absent) > size // 4:
            score *= 0.8
        why = f"{_names(cards)} reports nothing, while {len(failing)} cards timed out waiting"
    elif absent and few(len(absent), size) and not silent and case.chain is None:
        cards = absent
        score = 0.55 if len(cards) == 1 else 0.35
        why = f"every card that left logs timed out; of {_names(cards)} there are none"
    else:
        return
    followed = case.chain
    if followed is not None and followed.state != "cut" and followed.cards[-1] not in cards:
        score *= 0.45  # the waits name others
    yield Candidate("silent-rank", cards, score, why, proof=proof, missing=missing)


def unconnected(case: Case) -> Iterator[Candidate]:
    """Old releases count open links only: a card of which every link stayed open stands out."""
    open_links: dict[int, tuple[Trouble, int, int]] = {}
    for trouble in case.signed("socket-timeout"):
        facts = trouble.group.facts
        if "total" in facts and "remain" in facts:
            open_links[id(trouble.member)] = (trouble, int(facts["remain"]), int(facts["total"]))
    none = [trouble for trouble, remain, total in open_links.values() if remain == total > 1]
    if none and len(none) < len(open_links):
        cards = [trouble.member.card for trouble in none]
        yield Candidate(
            "unconnected",
            cards,
            0.6 if len(cards) == 1 else 0.32,
            f"{_names(cards)} got no connection at all, the others some",
            proof=[(trouble, "none of its links was set up") for trouble in none],
            missing=[
                "which rank each card waited for: the lines after the socket time-outs in log/debug/plog"
            ],
        )


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
                    f"{_names(cards)} had come to operation {least} of {comm}, the others further",
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
                    f"{_names(cards)} came with another {label} than the others at the same point",
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
            f"every other card reports that it waits, {_names(cards)} does not",
            proof=[(waiting[0], "waits")],
        )


FAILURE_RULES: tuple[Rule, ...] = (
    first_error,
    host_event,
    missing_at_init,
    tls_minority,
    conflict_minority,
    detected_link,
    heartbeat,
    cqe,
    wait_chain,
    silent_rank,
    unconnected,
    behind,
    last_to_fail,
    lagging_reports,
    unknown_error,
)
