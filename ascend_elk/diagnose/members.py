"""The cards of a job, and the job."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from ascend_elk.diagnose.collect import Group, Trace
from ascend_elk.diagnose.model import Card, Clock
from ascend_elk.identity import Process

TROUBLE_ROLES = {"timeout", "cause", "pointer"}
BARRIERS = ("key-info", "local-key-info", "comm-init-success", "sub-comm")
STARTS = ("setup-agent", "comm-init-entry", "hcom-init")


@dataclass
class Member:
    """One card of the job, with what it wrote.

    Attributes:
        groups: its lines of interest, those of earlier runs left out.
        offset: seconds to take from its host's times.
        device_offset: seconds to take from times of its device side, on top.
        world: its rank in the job's largest communicator.
    """

    card: Card
    trace: Trace
    process: Process | None
    groups: list[Group] = field(default_factory=list)
    physical: int | None = None
    offset: float = 0.0
    device_offset: float = 0.0
    world: int | None = None

    @property
    def from_start(self) -> bool:
        """Its log begins with the start of the job: no earlier file of it is lost."""
        return bool(self.signed(*STARTS))

    @property
    def ranks(self) -> dict[str, tuple[int, int]]:
        """Communicator → (rank, size)."""
        return self.process.ranks if self.process else {}

    @property
    def server(self) -> str | None:
        """Address of its host as HCCL names it."""
        return self.process.server if self.process else None

    @property
    def addresses(self) -> set[str]:
        """Network addresses of the card."""
        if self.process is None:
            return set()
        own = {self.process.address} if self.process.address else set()
        return own | self.process.listens

    def first(self, group: Group) -> float | None:
        """Return the aligned time of a group's first line."""
        return self.aligned(group.first, group)

    def last(self, group: Group) -> float | None:
        """Return the aligned time of a group's last line."""
        return self.aligned(group.last, group)

    def aligned(self, time: float | None, group: Group | None = None) -> float | None:
        """Return a time of this card's logs on the cluster's clock."""
        if time is None:
            return None
        return time - self.offset - (self.device_offset if group is not None and group.on_device else 0.0)

    def of(self, *roles: str) -> list[Group]:
        """Return its groups of some roles."""
        return [group for group in self.groups if group.role in roles]

    def signed(self, *signs: str) -> list[Group]:
        """Return its groups of some signs."""
        return [group for group in self.groups if group.sign in signs]


@dataclass
class Cluster:
    """The job that is diagnosed.

    Attributes:
        members: its cards.
        system: lines of devices and hosts outside any process; device ``None`` is the host.
        size: ranks of the job as its communicators say.
        world: its largest communicator.
        clocks: offsets that were removed.
        notes: what was set aside.
        limits: seconds by name: ``connect`` and ``exec``.
        addresses: network address → (host, device), from reports of the hosts.
        clock_noise: host → seconds by which its clock may still be wrong; infinite where nothing says.
    """

    members: list[Member]
    system: list[Member]
    size: int | None
    world: str | None
    clocks: list[Clock]
    notes: list[str]
    limits: dict[str, float]
    addresses: dict[str, tuple[str | None, int]]
    clock_noise: dict[str | None, float]

    def __post_init__(self) -> None:
        """Index the members."""
        self.by_rank: dict[tuple[str, int], Member] = {}
        self.by_address: dict[str, Member] = {}
        self.by_place: dict[tuple[str, int], Member] = {}
        self.by_device: dict[tuple[str | None, int], Member] = {}
        for member in self.members:
            for comm, (rank, _) in member.ranks.items():
                self.by_rank.setdefault((comm, rank), member)
            for address in member.addresses:
                self.by_address.setdefault(address, member)
            physical = member.physical
            if member.server is not None and physical is not None:
                self.by_place.setdefault((member.server, physical), member)
            if physical is not None:
                self.by_device.setdefault((member.card.host, physical), member)
        self.by_world = {member.world: member for member in self.members if member.world is not None}
        self.unseen: list[int] = []
        if self.world is not None and self.size is not None:
            self.unseen = [rank for rank in range(min(self.size, 65536)) if rank not in self.by_world]

    def locate(self, rank: int) -> Card:
        """Return the card of a world rank; one without logs where its neighbours' numbering puts it."""
        member = self.by_world.get(rank)
        if member is not None:
            return member.card
        bases, width = numbering(self.members)
        for host, base in bases.items():
            if base <= rank < base + width:
                return Card(host, rank - base, rank)
        return Card(rank=rank)


def numbering(members: list[Member]) -> tuple[dict[str, int], int]:
    """Ranks usually run along the devices of a host: rank = base of the host + device.

    Returns:
        Host → base, and devices of a host; nothing where the ranks are numbered in another way.
    """
    bases: dict[str, set[int]] = defaultdict(set)
    devices: set[int] = set()
    for known in members:
        if known.world is not None and known.card.device is not None and known.card.host is not None:
            bases[known.card.host].add(known.world - known.card.device)
            devices.add(known.card.device)
    if not devices or any(len(values) > 1 for values in bases.values()):
        return {}, 0
    return {host: next(iter(values)) for host, values in bases.items()}, max(devices) + 1
