"""What a discovery consists of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ascend_elk.layout.classify import printable


@dataclass(frozen=True)
class LogFile:
    """A file to read.

    Attributes:
        path: as given or walked.
        source: name of its source.
        layout: the layout that its path matched; ``None`` where only its being text speaks for it.
        fields: ids from the path by field name: ``host.name``, ``process.pid``, ``ascend.device.id`` …
        size: bytes on disk.
        compressed: it is gzip, whatever its name.
    """

    path: Path
    source: str
    layout: str | None
    fields: Mapping[str, Any]
    size: int
    compressed: bool

    @property
    def display(self) -> str:
        """The path as text that any output can carry."""
        return printable(self.path)


@dataclass(frozen=True)
class Skipped:
    """A path that is not read, and why."""

    path: Path
    reason: str

    @property
    def display(self) -> str:
        """The path as text that any output can carry."""
        return printable(self.path)


@dataclass(frozen=True)
class VersionFile:
    """A file that states a version, and the host whose directory it lies in."""

    path: Path
    host: str | None


class Tree(Protocol):
    """Files to read and files that state a version, from wherever."""

    @property
    def files(self) -> Sequence[LogFile]:
        """Files to read."""

    @property
    def version_files(self) -> Sequence[VersionFile]:
        """Files that state a version."""


@dataclass(frozen=True)
class Discovery:
    """What lies under the paths that a person gave."""

    files: tuple[LogFile, ...]
    skipped: tuple[Skipped, ...]
    version_files: tuple[VersionFile, ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of the hosts, sorted."""
        return tuple(sorted({file.fields["host.name"] for file in self.files if "host.name" in file.fields}))
