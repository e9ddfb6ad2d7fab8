"""All checks of a training host."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ascend_elk.doctor.clock import check_clock, check_zones
from ascend_elk.doctor.findings import Finding
from ascend_elk.doctor.logs import check_disk, check_levels, check_readable, check_roots
from ascend_elk.doctor.machine import Machine
from ascend_elk.doctor.places import find_logs, find_places
from ascend_elk.doctor.shipper import check_shipper
from ascend_elk.doctor.versions import check_versions


@dataclass(frozen=True)
class HostOptions:
    """What a person says about the host.

    Attributes:
        roots: further directories or globs that hold ``debug/`` and ``run/``.
        filebeat_data: Filebeat's ``path.data``.
        sample: for how many seconds growth is watched; 0 not at all.
    """

    roots: Sequence[str] = ()
    filebeat_data: str | None = None
    sample: float = 5


def check_host(
    machine: Machine, options: HostOptions, tell: Callable[[str], None] = lambda _: None
) -> Iterator[Finding]:
    """Yield what is found on a host; ``tell`` is called with what is being looked at."""
    tell("log roots")
    places = find_places(machine, options.roots)
    logs = find_logs(machine, places)
    yield from check_roots(machine, places, logs)
    yield from check_levels(machine, logs, time.time())
    tell("growth of the logs")
    yield from check_disk(machine, places, options.sample)
    yield from check_readable(machine, places, logs)
    tell("clocks")
    yield from check_clock(machine)
    # Files have grown meanwhile: their times must be those of what is read.
    logs = find_logs(machine, places)
    yield from check_zones(machine, logs, time.time())
    tell("versions")
    yield from check_versions(machine)
    tell("Filebeat")
    yield from check_shipper(machine, logs, time.time(), options.filebeat_data)
