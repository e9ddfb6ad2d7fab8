"""Where a host's logs lie: the same places that the rendered Filebeat reads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ascend_elk.doctor.machine import Machine
from ascend_elk.formats import load_definitions
from ascend_elk.layout import load_roots

# /var/log and the like are there on any host: they say nothing about Ascend.
_EVERYWHERE = ("system-log",)


@dataclass(frozen=True)
class Log:
    """A log file.

    Attributes:
        clock: whose clock stamps its lines, ``host`` or ``device``.
        status: when it was found.
    """

    path: Path
    source: str
    clock: str
    status: os.stat_result


@dataclass(frozen=True)
class Place:
    """A directory in which a log tree begins.

    Attributes:
        kind: of root, as in ``grok/roots.yml``.
        why: how it is known.
    """

    kind: str
    directory: Path
    why: str

    @property
    def of_ascend(self) -> bool:
        """Whether it tells that Ascend logs here."""
        return self.kind not in _EVERYWHERE


def find_places(machine: Machine, further: Sequence[str] = ()) -> list[Place]:
    """Return the directories that exist, each once.

    Args:
        machine: the host.
        further: directories or globs that hold ``debug/`` and ``run/``, as ``render --root``.
    """
    found: dict[tuple[str, Path], Place] = {}

    def add(kind: str, pattern: str, why: str) -> None:
        for path in machine.glob(pattern):
            if path.is_dir():
                found.setdefault((kind, path), Place(kind, path, why))

    for root in load_roots().values():
        for directory in root.directories:
            add(root.name, directory, "CANN's default")
        for item in root.environment:
            value = machine.environment.get(item.variable)
            if value:
                add(root.name, str(Path(value) / item.below), item.variable)
            for process in machine.processes[0]:
                value = process.environment.get(item.variable)
                if value and not process.contained:
                    why = f"{item.variable} of process {process.pid}"
                    add(root.name, str(Path(value) / item.below), why)
    for pattern in further:
        add("process-log", pattern, "--root")
    return list(found.values())


def find_logs(machine: Machine, places: Sequence[Place]) -> list[Log]:
    """Return the log files below places, by the globs of ``grok/sources``, each once."""
    found: dict[Path, Log] = {}
    for source in load_definitions().sources.values():
        for layout in source.paths:
            for place in places:
                if place.kind != layout.root:
                    continue
                pattern = machine.shown(place.directory).rstrip("/") + f"/{layout.glob}"
                for path in machine.glob(pattern):
                    try:
                        status = path.stat()
                    except OSError:
                        continue
                    if path.is_file():
                        found.setdefault(path, Log(path, source.name, source.clock, status))
    return list(found.values())
