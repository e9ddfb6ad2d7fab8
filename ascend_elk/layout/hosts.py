"""Names of hosts from directories, never from the text of a log."""

from __future__ import annotations

import itertools
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from ascend_elk.layout.classify import printable

Parts = tuple[str, ...]

# worker-0, node_12, node-97-40, job-7f-worker-3, 192.0.2.17
_HOST_DIRECTORY = re.compile(
    r"(?i)(?:[a-z0-9.-]{1,200}[-_.])?(?:worker|node|master|server|host|launcher)[-_]?[0-9]{1,6}(?:-[0-9]{1,6}){0,3}"
    r"|[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
)
# 192.0.2.17-2024-09-23-11:25:29, as kdump names its directories
_ADDRESS_AND_TIME = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3}){3})[-_][0-9].*")
# Directories with which the logs of one machine begin
_COLLECTION = re.compile(
    r"process_log|device_log|dl_log|environment_check|hisi_logs|slog|asys_output_[0-9]+|mindie|msrun_log|plog"
    r"|ascend|debug|run|security|operation|modelarts-job-[^/]+|[0-9]{4}(?:-[0-9]{2}){5}"
)
# What stands side by side on one machine: ranks, devices, jobs, times, counters
_NOT_A_HOST = re.compile(
    r"(?i)rank[-_]?[0-9]+|device[-_].*|dev-os-.*|job[-_].*|modelarts-job-.*|asys_output.*|[0-9T:_.-]+"
)
_HOMES = ("home", "Users")
_ENVIRONMENT_CHECK = "environment_check"


def name_hosts(roots: Sequence[Path], paths: Iterable[Path], default: str | None = None) -> dict[Path, str]:
    """Tell which machine a file is from, where directories say it.

    A directory whose name says so (``worker-3``, ``node-1``, an address) names the host of what is below.
    Where none does, collections of logs that lie side by side (``a/process_log``, ``b/process_log``) are
    those of hosts ``a`` and ``b``. ``environment_check`` that names one host speaks for what lies beside it.
    Where one name is all there is, it is the name of all.

    Args:
        roots: the paths that a person gave.
        paths: what was found under them.
        default: the name for files whose directories say nothing.

    Returns:
        Names by path; paths of which nothing is known are missing.
    """
    parts_of = _considered(roots)
    parts = {path: parts_of(path) for path in paths}
    names = {path: name for path, item in parts.items() if (name := _host_directory(item))}
    for named in (_environment_checks(parts, names), _side_by_side(parts.values())):
        for path, item in parts.items():
            name = None if path in names else _below(item, named)
            if name is not None:
                names[path] = name
    if default is None and len(set(names.values())) == 1:
        default = next(iter(names.values()))
    if default is not None:
        names = dict.fromkeys(parts, default) | names
    return {path: printable(name) for path, name in names.items()}


def _considered(roots: Sequence[Path]) -> Callable[[Path], Parts]:
    """Return what makes a path's parts: what the person wrote, or all from the roots' common directory on.

    What lies above says where the person keeps things, not which machine wrote them.
    """
    here = Path.cwd().parts
    absolute = [_absolute(root) for root in roots]
    common = os.path.commonpath([root if root.is_dir() else root.parent for root in absolute])
    above = len(Path(common).parts) - 1

    def parts(path: Path) -> Parts:
        full = _absolute(path).parts
        written = len(here) if not path.is_absolute() and full[: len(here)] == here else above
        return full[min(above, written) :]

    return parts


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - links are not resolved: their names count


def _host_directory(parts: Parts) -> str | None:
    """The deepest directory that is named like a host."""
    for name, child in reversed(list(itertools.pairwise(parts))):
        if child.startswith(f"{name}_"):  # slog/host-0/host-0_…, the host's own log of the daemon of 2020
            continue
        if _HOST_DIRECTORY.fullmatch(name):
            return name
        address = _ADDRESS_AND_TIME.fullmatch(name)
        if address:
            return address.group(1)
    return None


def _below(parts: Parts, named: Mapping[Parts, str]) -> str | None:
    """The name of the closest directory above that has one."""
    for length in range(len(parts) - 1, 0, -1):
        if parts[:length] in named:
            return named[parts[:length]]
    return None


def _environment_checks(parts: Mapping[Path, Parts], names: Mapping[Path, str]) -> dict[Parts, str]:
    """Directories whose environment_check is of one host only, and its name."""
    found: dict[Parts, set[str]] = defaultdict(set)
    for path, item in parts.items():
        if _ENVIRONMENT_CHECK in item[:-1] and path in names:
            found[item[: item.index(_ENVIRONMENT_CHECK)]].add(names[path])
    return {directory: hosts.pop() for directory, hosts in found.items() if len(hosts) == 1}


def _side_by_side(paths: Iterable[Parts]) -> dict[Parts, str]:
    """Directories above collections that differ in this one directory only, and their names."""
    groups: dict[tuple[Parts, Parts], set[str]] = defaultdict(set)
    for item in {_collection(parts) for parts in paths}:
        for index, name in enumerate(item):
            if not _NOT_A_HOST.fullmatch(name) and (index == 0 or item[index - 1] not in _HOMES):
                groups[item[:index], item[index + 1 :]].add(name)
    return {
        (*before, name): name for (before, _), found in groups.items() if len(found) > 1 for name in found
    }


def _collection(parts: Parts) -> Parts:
    """The directory in which a collection of one machine's logs lies; empty where there is none."""
    for index, name in enumerate(parts[:-1]):
        if _COLLECTION.fullmatch(name):
            return parts[:index]
    return ()
