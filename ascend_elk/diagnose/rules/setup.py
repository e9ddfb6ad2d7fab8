"""Set-up of a communicator: who is missing, who is set in another way."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from ascend_elk.diagnose.case import (
    Candidate,
    Case,
    Trouble,
    place,
    targets,
)
from ascend_elk.diagnose.members import Member
from ascend_elk.diagnose.model import Card
from ascend_elk.diagnose.rules.common import few, names


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
            f"{names(cards)} never reached the server of the communicator's set-up, the others waited",
            proof=[(trouble, "lists who was missing")],
            missing=[f"the logs of {names(unseen)}"] if unseen else [],
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
            f"{names(cards)} has another TLS setting than the rest",
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
                f"{names(cards)} has another TLS setting than the rest, and links could not be set up",
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
                f"{names(accused)} came with another {what} than its peers ({', '.join(remote) or '?'})",
                link=len(votes) > 1 and len(set(votes.values())) == 1,
                proof=[(trouble, f"the ranks disagree on {what}") for trouble in reports[:3]],
            )


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
            f"{names(cards)} got no connection at all, the others some",
            proof=[(trouble, "none of its links was set up") for trouble in none],
            missing=[
                "which rank each card waited for: the lines after the socket time-outs in log/debug/plog"
            ],
        )
