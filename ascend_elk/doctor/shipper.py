"""How far behind Filebeat is, by its registry."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from ascend_elk.doctor.findings import Finding, amount, duration
from ascend_elk.doctor.machine import Machine
from ascend_elk.doctor.places import Log

# Of the packages, and of the container image.
DATA_DIRECTORIES = ("/var/lib/filebeat", "/usr/share/filebeat/data")
_REGISTRY = "registry/filebeat"
_PATIENCE = 120
_FAR_BEHIND = 100 * 1024**2
_BLOCK = 1 << 16
_NAMED = 5


@dataclass(frozen=True)
class State:
    """What a registry holds of one file.

    Attributes:
        identity: ``inode-device`` of the file where files are told apart by it, else empty.
        offset: bytes that were acknowledged.
    """

    source: str
    identity: str
    offset: int


def read_registry(directory: Path) -> list[State]:
    """Read the states of filestream inputs.

    The store is a checkpoint, which ``active.dat`` names, and a log of operations since: pairs of lines, of
    which a crash may have cut the last.

    Args:
        directory: ``registry/filebeat`` below Filebeat's data.

    Raises:
        OSError: it cannot be read.
    """
    for _ in range(5):
        try:
            return [_state(key, value) for key, value in _entries(directory).items() if "::" in key]
        except FileNotFoundError:
            # A newer checkpoint has just taken its place.
            continue
    raise FileNotFoundError(f"{directory} keeps changing")


def _entries(directory: Path) -> dict[str, dict[str, Any]]:
    entries: dict[str, dict[str, Any]] = {}
    covered = 0
    active = directory / "active.dat"
    if active.exists():
        checkpoint = directory / Path(active.read_text("utf-8").strip()).name
        entries = {item.pop("_key"): item for item in orjson.loads(checkpoint.read_bytes())}
        covered = int(checkpoint.stem)
    log = directory / "log.json"
    lines = log.read_bytes().split(b"\n")[:-1] if log.exists() else []
    for first, second in zip(lines[::2], lines[1::2], strict=False):
        operation, entry = orjson.loads(first), orjson.loads(second)
        if operation["id"] <= covered:
            continue
        if operation["op"] == "remove":
            entries.pop(entry["k"], None)
        else:
            entries[entry["k"]] = entry["v"]
    return entries


def _state(key: str, value: dict[str, Any]) -> State:
    *_, identity, text = key.split("::")
    meta, cursor = value.get("meta") or {}, value.get("cursor") or {}
    return State(
        str(meta.get("source", "")),
        text if identity == "native" else "",
        int(cursor.get("offset") or 0),
    )


def check_shipper(
    machine: Machine, logs: Sequence[Log], now: float, data: str | None = None
) -> Iterator[Finding]:
    """Whether Filebeat runs, and what of the logs it has not delivered.

    Args:
        machine: the host.
        logs: its logs.
        now: seconds since 1970.
        data: Filebeat's ``path.data``; default: where packages and images have it.
    """
    running = machine.runs("filebeat")
    if not running:
        yield Finding(
            "filebeat", "warning", "filebeat", "no Filebeat runs on this host", "systemctl start filebeat"
        )
    places = [data] if data else list(DATA_DIRECTORIES)
    directories = [path for place in places if (path := machine.path(f"{place}/{_REGISTRY}")).is_dir()]
    if not directories:
        yield Finding(
            "filebeat-lag",
            "note",
            ", ".join(places),
            "no registry of Filebeat was found: what it has delivered is unknown",
            "name Filebeat's path.data with --filebeat-data",
        )
        return
    for directory in directories:
        try:
            states = read_registry(directory)
        except (OSError, ValueError, KeyError, TypeError) as error:
            yield Finding(
                "filebeat-lag",
                "warning",
                machine.shown(directory),
                f"the registry cannot be read: {error}",
                "run as the user who runs Filebeat, or as root",
            )
            continue
        yield _lag(machine, directory, logs, states, now)


def _lag(
    machine: Machine, directory: Path, logs: Sequence[Log], states: Sequence[State], now: float
) -> Finding:
    by_identity = {state.identity: state for state in states if state.identity}
    by_source = {state.source: state for state in states if not state.identity}
    waiting = 0
    behind: list[tuple[float, Log]] = []
    unknown: list[Log] = []
    for log in logs:
        state = by_identity.get(f"{log.status.st_ino}-{log.status.st_dev}")
        state = state or by_source.get(machine.shown(log.path))
        offset = state.offset if state else 0
        # A last line without a line end is not sent before it ends.
        missing = complete_length(log.path, log.status.st_size) - offset if log.status.st_size > offset else 0
        if missing <= 0:
            continue
        waiting += missing
        age = now - log.status.st_mtime
        if age > _PATIENCE:
            behind.append((age, log))
            if state is None:
                unknown.append(log)
    text = f"{amount(waiting)} of {len(logs)} files are not delivered yet"
    data = {"bytes": waiting, "files_behind": len(behind), "files_unknown": len(unknown)}
    if not behind and waiting < _FAR_BEHIND:
        return Finding("filebeat-lag", "ok", machine.shown(directory), text, data=data)
    remedy = "look into Filebeat's log for errors of its output; see docs/operate.md"
    if behind:
        age, _ = max(behind, key=lambda pair: pair[0])
        text += f"; {len(behind)} were written more than {duration(_PATIENCE)} ago, one {duration(age)} ago"
    if unknown:
        names = ", ".join(machine.shown(log.path) for log in unknown[:_NAMED])
        text += f"; {len(unknown)} it does not know at all: {names}"
        remedy = "render again with these directories as --root, --home or --console; " + remedy
    return Finding("filebeat-lag", "warning", machine.shown(directory), text, remedy, data)


def complete_length(path: Path, size: int) -> int:
    """Bytes up to and with the last line end; 0 where the file cannot be read."""
    try:
        with path.open("rb") as stream:
            position = min(size, stream.seek(0, os.SEEK_END))
            while position > 0:
                start = max(0, position - _BLOCK)
                stream.seek(start)
                found = stream.read(position - start).rfind(b"\n")
                if found >= 0:
                    return start + found + 1
                position = start
    except OSError:
        return 0
    return 0
