"""The host that is looked at: its files, its processes and what its tools say."""

from __future__ import annotations

import glob
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone, tzinfo
from functools import cached_property
from pathlib import Path
from zoneinfo import ZoneInfo

Run = Callable[[Sequence[str]], "str | None"]

_TOOL_SECONDS = 10
# In /proc/PID/mountinfo blanks and the like are written in octal.
_OCTAL = re.compile(r"\\([0-7]{3})")


def run_tool(command: Sequence[str]) -> str | None:
    """What a tool prints; ``None`` where there is none, or it fails."""
    try:
        result = subprocess.run(  # noqa: S603 - names of this package's own, no shell
            command, capture_output=True, text=True, timeout=_TOOL_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout if result.returncode == 0 else None


@dataclass(frozen=True)
class Mount:
    """A line of ``/proc/PID/mountinfo``: where, which part of which file system, and its type."""

    point: str
    source: str
    kind: str


@dataclass(frozen=True)
class Process:
    """A process that uses Ascend.

    Attributes:
        environment: its variables, as it was started.
        contained: it lives in another mount namespace: its paths are not the host's.
        mounts: what it sees mounted; empty where that cannot be read.
    """

    pid: int
    name: str
    environment: Mapping[str, str]
    contained: bool
    mounts: tuple[Mount, ...]

    def mount_of(self, path: str) -> Mount | None:
        """The mount that a path of this process lies in; ``None`` where unknown."""
        above = [
            mount
            for mount in self.mounts
            if mount.point == "/" or path == mount.point or path.startswith(f"{mount.point}/")
        ]
        return max(above, key=lambda mount: len(mount.point), default=None)


@dataclass(frozen=True)
class Machine:
    """A host.

    Attributes:
        root: where its file system is: ``/``, or a mount of it in a container.
        environment: of whoever looks.
        run: runs a tool.
    """

    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    run: Run = run_tool

    def path(self, absolute: str) -> Path:
        """Where a path of the host is here."""
        return self.root / absolute.lstrip("/")

    def shown(self, path: Path) -> str:
        """A path as the host has it."""
        return f"/{path.relative_to(self.root)}" if self.root != Path("/") else str(path)

    def glob(self, pattern: str) -> list[Path]:
        """What matches an absolute pattern, sorted."""
        base = glob.escape(str(self.root).rstrip("/"))
        found = glob.glob(f"{base}/{pattern.lstrip('/')}")  # noqa: PTH207 - Path.glob takes no absolute pattern
        return [Path(text) for text in sorted(found)]

    @cached_property
    def zone(self) -> tzinfo:
        """The zone of its clock."""
        if self.root != Path("/"):
            link = self.path("/etc/localtime")
            _, found, name = (
                str(link.readlink()).partition("zoneinfo/") if link.is_symlink() else ("", "", "")
            )
            try:
                return ZoneInfo(name) if found else timezone.utc
            except (ValueError, KeyError, OSError):
                return timezone.utc
        return datetime.now().astimezone().tzinfo or timezone.utc

    @cached_property
    def processes(self) -> tuple[tuple[Process, ...], int]:
        """Processes with a variable of Ascend, and how many processes could not be looked into."""
        found: list[Process] = []
        hidden = 0
        ours = self._namespace("self") or self._namespace("1")
        for directory in self.path("/proc").glob("[0-9]*"):
            try:
                text = (directory / "environ").read_bytes().decode("utf-8", "replace")
            except PermissionError:
                hidden += 1
                continue
            except OSError:
                continue
            pairs = (item.partition("=") for item in text.split("\0") if item)
            environment = {name: value for name, _, value in pairs}
            if any(name.startswith("ASCEND_") and not name.startswith("ASCEND_ELK") for name in environment):
                namespace = self._namespace(directory.name)
                found.append(
                    Process(
                        int(directory.name),
                        _text(directory / "comm").strip() or "?",
                        environment,
                        bool(ours and namespace and namespace != ours),
                        _mounts(_text(directory / "mountinfo")),
                    )
                )
        return tuple(sorted(found, key=lambda process: process.pid)), hidden

    def runs(self, name: str) -> bool:
        """Whether a process of that name runs."""
        return any(_text(path).strip() == name for path in self.path("/proc").glob("[0-9]*/comm"))

    def _namespace(self, pid: str) -> str | None:
        # Of "self" only where /proc is this machine's own.
        try:
            return str(self.path(f"/proc/{pid}/ns/mnt").readlink())
        except OSError:
            return None


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def _mounts(text: str) -> tuple[Mount, ...]:
    found = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) > 4 and kind:
            source, point = (_OCTAL.sub(lambda code: chr(int(code[1], 8)), item) for item in fields[3:5])
            found.append(Mount(point, source, kind[0]))
    return tuple(found)
