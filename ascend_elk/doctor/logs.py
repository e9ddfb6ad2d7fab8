"""Log roots, levels, disk space and permissions of a training host.

What ASCEND_GLOBAL_LOG_LEVEL, ASCEND_MODULE_LOG_LEVEL and ASCEND_GLOBAL_EVENT_ENABLE mean stands in CANN's
reference of environment variables; levels are 0 DEBUG, 1 INFO, 2 WARNING, 3 ERROR (the default), 4 nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from ascend_elk.doctor.findings import Finding, amount, duration
from ascend_elk.doctor.machine import Machine, Process
from ascend_elk.doctor.places import Log, Place, find_logs

_TAIL = 64 * 1024
_RECENT = 3600
_SAMPLED_FILES = 20
# Elasticsearch and CANN alike need room to write: below this the disk counts as nearly full.
_LEAST_FREE, _LEAST_SHARE = 5 * 1024**3, 0.05
_SOON, _WITHIN = 24 * 3600, 7 * 24 * 3600
_DEBUG = re.compile(rb"(?m)^\[DEBUG\] ")
_SLOG_CONF = ("/var/log/npu/conf/slog/slog.conf", "/etc/slog.conf")
# In a container these lie in its own layer, or in memory: they go with it.
_PASSING = ("overlay", "tmpfs", "aufs")
_NAMED = 5


def check_roots(machine: Machine, places: Sequence[Place], logs: Sequence[Log]) -> Iterator[Finding]:
    """Whether there are logs, and whether processes write where nobody reads."""
    of_ascend = [place for place in places if place.of_ascend]
    if not of_ascend:
        yield Finding(
            "log-roots",
            "error",
            "/",
            "no log root of Ascend was found",
            "name the directory that holds debug/ and run/ with --root, as it was given to render",
        )
    for place in of_ascend:
        files = [log for log in logs if place.directory in log.path.parents]
        size = sum(log.status.st_size for log in files)
        yield Finding(
            "log-roots",
            "ok" if files else "note",
            machine.shown(place.directory),
            f"{len(files)} log files, {amount(size)} ({place.why})"
            if files
            else f"no log file ({place.why})",
            data={"files": len(files), "bytes": size, "kind": place.kind},
        )
    processes, hidden = machine.processes
    if hidden:
        yield Finding(
            "processes",
            "note",
            "/proc",
            f"the environment of {hidden} processes cannot be read: their levels and paths are unknown",
            "run as root",
            {"hidden": hidden},
        )
    for process in processes:
        yield from _where_it_writes(process)


def _where_it_writes(process: Process) -> Iterator[Finding]:
    name = f"{process.name} ({process.pid})"
    environment = process.environment
    for variable in ("ASCEND_SLOG_PRINT_TO_STDOUT", "ASCEND_LOG_PRINT_TO_STDOUT"):
        if environment.get(variable) == "1":
            yield Finding(
                "log-roots",
                "warning",
                name,
                f"{variable}=1: its logs go to its output and into no file",
                f"unset {variable}, or ship what it prints with render --console",
            )
    if not process.contained:
        return
    path = environment.get("ASCEND_PROCESS_LOG_PATH")
    if path is None and environment.get("ASCEND_WORK_PATH"):
        path = f"{environment['ASCEND_WORK_PATH'].rstrip('/')}/log"
    path = path or f"{environment.get('HOME', '/root').rstrip('/')}/ascend/log"
    mount = process.mount_of(path)
    if mount is None:
        yield Finding(
            "log-roots",
            "note",
            name,
            f"runs in a container and logs to {path}; whether the host keeps that cannot be told",
            "run as root on the host",
        )
    elif mount.kind in _PASSING:
        yield Finding(
            "log-roots",
            "warning",
            name,
            f"logs to {path} inside its container: no shipper reads that, and it goes with the container",
            f"mount a directory of the host at {path}, and name it with render --root",
            {"path": path, "file_system": mount.kind},
        )
    else:
        yield Finding(
            "log-roots",
            "ok",
            name,
            f"logs to {path} in its container, which is {mount.source} of a file system outside of it",
            data={"path": path, "source": mount.source, "file_system": mount.kind},
        )


def check_levels(machine: Machine, logs: Sequence[Log], now: float) -> Iterator[Finding]:
    """Levels and event logging as processes have them, and as the lines show them."""
    remedy = "unset ASCEND_GLOBAL_LOG_LEVEL and ASCEND_MODULE_LOG_LEVEL, or set 1 (INFO), and start again"
    found = False
    for process in machine.processes[0]:
        for finding in _levels(process, remedy):
            found = True
            yield finding
    for path in map(machine.path, _SLOG_CONF):
        settings = _settings(path)
        if settings.get("global_level") == "0":
            found = True
            yield Finding(
                "level",
                "warning",
                machine.shown(path),
                "global_level=0: the level was left at DEBUG",
                "set global_level=3 (ERROR) or 1 (INFO) and restart slogd",
            )
        if settings.get("enableEvent") == "0":
            found = True
            yield Finding(
                "event-log", "warning", machine.shown(path), "enableEvent=0: no events", "set enableEvent=1"
            )
    recent = sorted(
        (log for log in logs if now - log.status.st_mtime < _RECENT), key=lambda log: -log.status.st_mtime
    )
    loud = [log for log in recent[:_SAMPLED_FILES] if _DEBUG.search(_tail(log.path))]
    if loud:
        found = True
        names = ", ".join(machine.shown(log.path) for log in loud[:_NAMED])
        yield Finding(
            "level",
            "warning",
            names,
            f"{len(loud)} of the {min(len(recent), _SAMPLED_FILES)} files written last hold DEBUG lines",
            remedy,
            {"files": len(loud), "looked_at": min(len(recent), _SAMPLED_FILES)},
        )
    if not found:
        count = len(machine.processes[0])
        yield Finding(
            "level",
            "ok",
            "level",
            f"no DEBUG in {count} processes and {min(len(recent), _SAMPLED_FILES)} files of the last hour",
            data={"processes": count, "looked_at": min(len(recent), _SAMPLED_FILES)},
        )


def _levels(process: Process, remedy: str) -> Iterator[Finding]:
    name, environment = f"{process.name} ({process.pid})", process.environment
    level = environment.get("ASCEND_GLOBAL_LOG_LEVEL")
    if level == "0":
        text = (
            "ASCEND_GLOBAL_LOG_LEVEL=0: the level was left at DEBUG, which slows it down and floods the disk"
        )
        yield Finding("level", "warning", name, text, remedy)
    elif level == "4":
        text = "ASCEND_GLOBAL_LOG_LEVEL=4: it logs nothing, so that nothing can be diagnosed"
        yield Finding("level", "warning", name, text, remedy)
    modules = [
        pair.partition("=")[0]
        for pair in environment.get("ASCEND_MODULE_LOG_LEVEL", "").split(":")
        if pair.endswith("=0")
    ]
    if modules:
        text = f"ASCEND_MODULE_LOG_LEVEL: {', '.join(modules)} left at DEBUG"
        yield Finding("level", "warning", name, text, remedy, {"modules": modules})
    if environment.get("ASCEND_GLOBAL_EVENT_ENABLE") == "0":
        yield Finding(
            "event-log",
            "warning",
            name,
            "ASCEND_GLOBAL_EVENT_ENABLE=0: its events, which tell processes from devices, are not logged",
            "unset ASCEND_GLOBAL_EVENT_ENABLE (1 is the default) and start again",
        )


def check_disk(machine: Machine, places: Sequence[Place], seconds: float) -> Iterator[Finding]:
    """Free space below the log roots, and how long it lasts at the rate of a short look."""
    by_disk: dict[int, list[Place]] = defaultdict(list)
    for place in places:
        if place.of_ascend:
            by_disk[place.directory.stat().st_dev].append(place)
    before = _sizes(machine, places)
    start = time.monotonic()
    if seconds > 0 and by_disk:
        time.sleep(seconds)
    after = _sizes(machine, places)
    elapsed = max(time.monotonic() - start, 1e-9)
    for disk, members in by_disk.items():
        usage = shutil.disk_usage(members[0].directory)
        grown = sum(
            max(0, size - before.get(path, (0, 0))[0]) for path, (size, dev) in after.items() if dev == disk
        )
        rate = grown / elapsed if seconds > 0 else 0.0
        left = usage.free / rate if rate > 0 else None
        subject = ", ".join(machine.shown(place.directory) for place in members)
        text = f"{amount(usage.free)} of {amount(usage.total)} free"
        if seconds > 0:
            text += f"; the logs grow by {amount(rate)}/s"
        if left is not None and left < _WITHIN:
            text += f": full in {duration(left)} at this rate"
        nearly_full = usage.free < min(_LEAST_FREE, _LEAST_SHARE * usage.total)
        bad = nearly_full or (left is not None and left < _SOON)
        yield Finding(
            "disk",
            "error" if nearly_full else "warning" if bad else "ok",
            subject,
            text,
            "delete logs of jobs that are over, lower the level, or move ASCEND_PROCESS_LOG_PATH"
            if bad
            else "",
            {"free": usage.free, "total": usage.total, "bytes_per_second": round(rate), "seconds": seconds},
        )


def _sizes(machine: Machine, places: Sequence[Place]) -> dict[Path, tuple[int, int]]:
    return {log.path: (log.status.st_size, log.status.st_dev) for log in find_logs(machine, places)}


def check_readable(machine: Machine, places: Sequence[Place], logs: Sequence[Log]) -> Iterator[Finding]:
    """Whether whoever runs this may read the logs; run it as Filebeat's user."""
    closed = [log.path for log in logs if not os.access(log.path, os.R_OK)]
    closed += [
        Path(directory) / name
        for place in places
        if place.of_ascend
        for directory, names, _ in os.walk(place.directory)
        for name in names
        if not os.access(Path(directory) / name, os.R_OK | os.X_OK)
    ]
    if closed:
        names = ", ".join(machine.shown(path) for path in closed[:_NAMED])
        yield Finding(
            "readable",
            "error",
            names + (f" and {len(closed) - _NAMED} more" if len(closed) > _NAMED else ""),
            f"{len(closed)} files or directories cannot be read by this user",
            "run Filebeat as root, or put its user into the group of the files (mode 0640)",
            {"unreadable": [machine.shown(path) for path in closed]},
        )
    elif logs:
        yield Finding("readable", "ok", "logs", f"all {len(logs)} files can be read by this user")


def _tail(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - _TAIL))
            return stream.read(_TAIL)
    except OSError:
        return b""


def _settings(path: Path) -> dict[str, str]:
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return {}
    lines = (line.split("#")[0].partition("=") for line in text.splitlines())
    return {name.strip(): value.strip() for name, separator, value in lines if separator}
