"""The incident: which lines of the job belong to one failure, and who waits for whom in it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Literal

from ascend_elk.diagnose.collect import Group, Record
from ascend_elk.diagnose.members import Cluster, Member
from ascend_elk.diagnose.model import Card

_INCIDENT_GAP = 7200.0
"""Seconds without trouble between two incidents: more than the usual limits together."""

EXEC_LIMIT = 1836.0
CONNECT_LIMIT = 120.0


@dataclass(frozen=True)
class Trouble:
    """A group of lines of one member, as part of the incident."""

    member: Member
    group: Group
    time: float | None

    @property
    def record(self) -> Record:
        """The earliest line."""
        return self.group.examples[0]


@dataclass
class Candidate:
    """Cards that a rule accuses.

    Attributes:
        rule: name of the rule.
        cards: those accused, most suspect first.
        score: 0 to 1.
        why: one sentence.
        link: the cards are the ends of a path, not each at fault by itself.
        proof: lines that carry it, each with what it proves.
        chain: who waits for whom, ending at the cause.
        missing: what would settle it.
    """

    rule: str
    cards: list[Card]
    score: float
    why: str
    link: bool = False
    proof: list[tuple[Trouble, str]] = field(default_factory=list)
    chain: list[Card] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    straggler: bool = False


@dataclass(frozen=True)
class Chain:
    """Where following the waits leads.

    Attributes:
        cards: from the first victim to the end; of a cycle the last stands in it twice.
        proofs: the line behind each step.
        state: what the end is: a ``cycle``; a card that reports no wait (``quiet``); one that waits for
            ``itself``; one that waits too, but for whom is lost (``cut``); one without logs (``unseen``).
        starts: waiting cards that end there.
        waiting: waiting cards that say for whom.
        loose: ends without logs of other chains, each with a card that waits for them.
    """

    cards: list[Card]
    proofs: list[Trouble]
    state: Literal["cycle", "quiet", "itself", "cut", "unseen"]
    starts: int
    waiting: int
    loose: list[tuple[list[Card], Card]]


@dataclass
class Case:
    """The incident that is judged.

    Attributes:
        troubles: by time.
        set_aside: troubles of other incidents.
        chain: where following the waits leads, see ``diagnose.waits``.
        first_effect: time of the first time-out or accusation.
    """

    cluster: Cluster
    troubles: list[Trouble]
    set_aside: int
    chain: Chain | None = None

    def __post_init__(self) -> None:
        """Index the troubles by role."""
        self.timeouts = [trouble for trouble in self.troubles if trouble.group.role == "timeout"]
        self.causes = [trouble for trouble in self.troubles if trouble.group.role == "cause"]
        self.errors = [trouble for trouble in self.troubles if trouble.group.role == "error"]
        self.pointers = [trouble for trouble in self.troubles if trouble.group.role == "pointer"]
        self.waiting: dict[int, list[Trouble]] = defaultdict(list)
        for trouble in self.timeouts:
            self.waiting[id(trouble.member)].append(trouble)
        self.accused = {id(trouble.member) for trouble in self.troubles}
        times = [trouble.time for trouble in [*self.timeouts, *self.pointers] if trouble.time is not None]
        self.first_effect = min(times) if times else None

    def waits(self, member: Member, phase: str | None = None) -> list[Trouble]:
        """Return a member's time-outs, earliest first."""
        found = [
            trouble
            for trouble in self.waiting.get(id(member), [])
            if phase is None or trouble.group.phase == phase
        ]
        return sorted(found, key=lambda trouble: trouble.time if trouble.time is not None else float("inf"))

    def signed(self, *signs: str) -> list[Trouble]:
        """Return the troubles of some signs, by time."""
        return [trouble for trouble in self.troubles if trouble.group.sign in signs]

    @property
    def limit(self) -> float:
        """The longest wait that the job allows, seconds."""
        limits = self.cluster.limits
        return max(limits.get("exec", EXEC_LIMIT), limits.get("connect", CONNECT_LIMIT))


def incident(cluster: Cluster) -> Case:
    """Cut the job's trouble into incidents; return the one that struck most cards, the latest of equals."""
    troubles: list[Trouble] = []
    for member in [*cluster.members, *cluster.system]:
        # Lines of no process and no card cannot wait or accuse; they can only tell what happened to a host.
        known = member.trace.key is not None or member.card.device is not None
        for group in member.of("timeout", "cause", "error", "pointer", "victim", "slow", "retry", "context"):
            if group.examples and (known or group.role == "cause"):
                troubles.append(Trouble(member, group, member.first(group)))
    timed = sorted((trouble for trouble in troubles if trouble.time is not None), key=_time)
    timeless = [trouble for trouble in troubles if trouble.time is None]
    incidents: list[list[Trouble]] = []
    end = float("-inf")
    for trouble in timed:
        if _time(trouble) - end > _INCIDENT_GAP:
            incidents.append([])
        incidents[-1].append(trouble)
        last = trouble.member.last(trouble.group)
        # A line that repeats for days must not glue two incidents together.
        end = max(end, _time(trouble), min(last or 0.0, _time(trouble) + _INCIDENT_GAP))

    def weight(troubles: list[Trouble]) -> tuple[int, float]:
        struck = {
            id(trouble.member)
            for trouble in troubles
            if trouble.group.role in ("timeout", "cause", "pointer")
        }
        return len(struck), _time(troubles[0])

    chosen = max(incidents, key=weight) if incidents else []
    others = sum(len(part) for part in incidents if part is not chosen)
    return Case(cluster, [*chosen, *timeless], others)


def _time(trouble: Trouble) -> float:
    return trouble.time if trouble.time is not None else float("inf")


@dataclass(frozen=True)
class Target:
    """Whom a line speaks of: a member where logs of it exist, a card in any case."""

    card: Card
    member: Member | None


def targets(case: Case, trouble: Trouble) -> list[Target]:
    """Return the cards on the far side of a line's examples, as exactly as their facts allow."""
    found: dict[Card, Target] = {}
    for record in trouble.group.examples:
        target = _target(case.cluster, trouble.member, record.facts)
        if target is not None:
            found.setdefault(target.card, target)
    return list(found.values())


def _target(cluster: Cluster, member: Member, facts: dict[str, str]) -> Target | None:
    server, physical = facts.get("remote_server"), facts.get("remote_physical")
    if server is not None and physical is not None:
        return place(cluster, server, int(physical))
    address = facts.get("remote_ip") or facts.get("remote_plain_ip")
    if address is not None:
        known = cluster.by_address.get(address)
        if known is not None and known is not member:
            return Target(known.card, known)
        owner = cluster.addresses.get(address)
        if owner is not None:
            host, device = owner
            known = cluster.by_device.get((host, device))
            if known is not member:
                card = known.card if known else Card(host=host, device=device, address=address)
                return Target(card, known)
    if physical is not None:
        known = cluster.by_device.get((member.card.host, int(physical)))
        if known is not None:
            return Target(known.card, known)
        return Target(Card(host=member.card.host, device=int(physical)), None)
    world = facts.get("remote_world")
    if world is not None and int(world) in cluster.by_world:
        known = cluster.by_world[int(world)]
        return Target(known.card, known)
    rank = facts.get("remote_rank")
    if rank is not None:
        return _by_rank(cluster, member, int(rank), facts, address)
    if address is not None:
        return Target(Card(address=address), None)
    return None


def place(cluster: Cluster, server: str, physical: int) -> Target:
    """Return the card of a server address and physical device."""
    known = cluster.by_place.get((server, physical))
    if known is not None:
        return Target(known.card, known)
    hosts = {member.card.host for member in cluster.members if member.server == server}
    if len(hosts) == 1:
        host = next(iter(hosts))
        known = cluster.by_device.get((host, physical))
        if known is not None:
            return Target(known.card, known)
        return Target(Card(host=host, device=physical), None)
    if server in {member.card.host for member in cluster.members}:
        known = cluster.by_device.get((server, physical))
        return Target(known.card if known else Card(host=server, device=physical), known)
    return Target(Card(device=physical, address=server), None)


def _by_rank(
    cluster: Cluster, member: Member, rank: int, facts: dict[str, str], address: str | None
) -> Target | None:
    comm = facts.get("comm") or _communicator_of(facts.get("tag", ""), member)
    own = facts.get("rank")
    if comm is None:
        fitting = [
            name
            for name, (own_rank, size) in member.ranks.items()
            if (own is None or own_rank == int(own)) and (not size or rank < size)
        ]
        comm = max(fitting, key=lambda name: member.ranks[name][1]) if fitting else None
    if comm is not None:
        known = cluster.by_rank.get((comm, rank))
        if known is None and comm == cluster.world:
            known = cluster.by_world.get(rank)
        if known is not None:
            return None if known is member else Target(known.card, known)
        if comm == cluster.world and (not cluster.size or rank < cluster.size):
            card = cluster.locate(rank)
            return Target(Card(card.host, card.device, card.rank, card.pid, address), None)
        return Target(Card(rank=rank if comm == cluster.world else None, address=address), None)
    if not any(other.ranks for other in cluster.members):
        known = cluster.by_world.get(rank)
        if known is not None and known is not member:
            return Target(known.card, known)
    return Target(Card(rank=rank, address=address), None)


def _communicator_of(tag: str, member: Member) -> str | None:
    for comm in member.ranks:
        if comm and comm in tag:
            return comm
    return None
