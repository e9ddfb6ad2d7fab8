"""Names of hosts from directories, never from the text of a log."""

from __future__ import annotations

import itertools
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ascend_elk.layout.classify import printable
from ascend_elk.layout.files import LogFile

Parts = tuple[str, ...]

# worker-0, node_12, job-7f-worker-3, 192.0.2.17, 192.0.2.17-2024-09-23-11:25:29
_HOST_DIRECTORY = re.compile(
    r"(?i)(?:[a-z0-9.-]{1,200}[-_.])?(?:worker|node|master|server|host|launcher|ps)[-_]?[0-9]{1,6}"
    r"|[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
)
_ADDRESS_AND_TIME = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3}){3})[-_][0-9].*")
# The directory of the host's daemon log in 2020, and MindSpore's own names: no hosts
_SLOGD_HOST = re.compile(r"host-[0-9]{1,4}")
# Directories that a collection of one machine's logs begins with
_COLLECTION = re.compile(
    r"process_log|device_log|dl_log|environment_check|hisi_logs|slog|asys_output_[0-9]+|mindie|msrun_log|plog"
    r"|ascend|debug|run|security|operation|modelarts-job-[^/]+|[0-9]{4}(?:-[0-9]{2}){5}"
)
# What stands side by side on one machine: ranks, devices, times, counters, users' homes
_NOT_A_HOST = re.compile(
    r"(?i)rank[-_]?[0-9]+|device[-_].*|dev-os-.*|host-[0-9]+|job[-_].*|modelarts-job-.*|asys_output.*|[0-9T:_.-]+"
    r"|debug|run|security|operation|plog"
)
_HOMES = ("home", "Users")


class Hosts:
    """Names of hosts, from directories only.

    A directory whose name says so (``worker-3``, ``node-1``, an address) names the host of what is below.
    Where none does, collections of logs that lie side by side (``a/process_log``, ``b/process_log``) are
    those of hosts ``a`` and ``b``. ``environment_check`` that names one host speaks for what lies beside it.
    Where one name is all there is, it is the name of all.
    """

    def __init__(self, roots: Sequence[Path], files: Iterable[LogFile]) -> None:
        self._absolute = _considered(roots)
        parts = {file.path: self._absolute(file.path) for file in files}
        self._explicit = {path: name for path, item in parts.items() if (name := _host_directory(item))}
        self._checked = self._from_environment_check(parts)
        rest = [item for path, item in parts.items() if path not in self._explicit]
        self._side_by_side = _side_by_side(rest)
        self._parts = parts
        names = {self.of(file.path) for file in files} - {None}
        self._only = names.pop() if len(names) == 1 else None

    def of(self, path: Path) -> str | None:
        return self._explicit.get(path) or self._beside(path)

    def named(self, file: LogFile, default: str | None) -> LogFile:
        name = self.of(file.path) or default or self._only
        return file if name is None else replace(file, fields={**file.fields, "host.name": printable(name)})

    def _beside(self, path: Path) -> str | None:
        parts = self._parts[path]
        for length in range(len(parts) - 1, 0, -1):
            name = self._checked.get(parts[:length])
            if name is not None:
                return name
        collection = _collection(parts)
        index = self._side_by_side.get(collection)
        return None if index is None else collection[index]

    def _from_environment_check(self, parts: Mapping[Path, Parts]) -> dict[Parts, str]:
        names: dict[Parts, set[str]] = defaultdict(set)
        for path, item in parts.items():
            if "environment_check" in item[:-1] and path in self._explicit:
                names[item[: item.index("environment_check")]].add(self._explicit[path])
        return {directory: found.pop() for directory, found in names.items() if len(found) == 1}


def _considered(roots: Sequence[Path]) -> Callable[[Path], Parts]:
    """Return what makes a path's parts: what the person wrote, or all from the roots' common directory on.

    What lies above says where the person keeps things, not which machine wrote them.
    """
    absolute = [os.path.abspath(root) for root in roots]  # noqa: PTH100
    common = os.path.commonpath([path if Path(path).is_dir() else os.path.dirname(path) for path in absolute])  # noqa: PTH120
    above = len(Path(common).parts) - 1
    working = len(Path.cwd().parts)

    def parts(path: Path) -> Parts:
        full = Path(os.path.abspath(path)).parts  # noqa: PTH100
        start = above
        if not path.is_absolute() and full[:working] == Path.cwd().parts:
            start = min(start, working)
        return full[max(start, 0) :]

    return parts


def _host_directory(parts: Parts) -> str | None:
    for name, child in reversed(list(itertools.pairwise(parts))):
        if _SLOGD_HOST.fullmatch(name) and child.startswith(f"{name}_"):
            continue
        if _HOST_DIRECTORY.fullmatch(name):
            return name
        address = _ADDRESS_AND_TIME.fullmatch(name)
        if address:
            return address.group(1)
    return None


def _collection(parts: Parts) -> Parts:
    """The directory in which a collection of one machine's logs lies; empty where there is none."""
    for index, name in enumerate(parts[:-1]):
        if _COLLECTION.fullmatch(name):
            return parts[:index]
    return ()


def _side_by_side(files: Iterable[Parts]) -> dict[Parts, int]:
    """Collections that differ in one directory only, and which part that is."""
    collections = {_collection(parts) for parts in files} - {()}
    groups: dict[tuple[Parts, Parts], set[Parts]] = defaultdict(set)
    for item in collections:
        for index, name in enumerate(item):
            if not _NOT_A_HOST.fullmatch(name) and (index == 0 or item[index - 1] not in _HOMES):
                groups[item[:index], item[index + 1 :]].add(item)
    named: dict[Parts, int] = {}
    for (before, _), members in sorted(groups.items(), key=lambda group: len(group[0][0])):
        if len(members) > 1:
            for item in members:
                named.setdefault(item, len(before))
    return named
