"""The host's clock, and the zones in which its processes and devices write."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

from ascend_elk.doctor.findings import Finding, duration
from ascend_elk.doctor.machine import Machine
from ascend_elk.doctor.places import Log

_TAIL = 16 * 1024
_TIME = re.compile(rb"(?m)^\[[A-Z]+\] [^\n]{0,200}?:(\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d)\.\d{3}\.\d{3}")
# Zones are off UTC by half hours, three (in minutes) by quarters; what is further off than the slack from
# one is no matter of zones.
_QUARTER, _SLACK = 900, 120
_ODD_ZONES = (345, 525, 765)
_MOST = 14 * 3600
_OFFSET = 0.1
_RECENT = 24 * 3600
_REMEDY_CLOCK = "start chronyd or ntpd on all hosts, against the same server"


def check_clock(machine: Machine) -> Iterator[Finding]:
    """Whether the clock is kept, and how far off it is, by chrony or systemd."""
    tracking = machine.run(["chronyc", "-c", "tracking"])
    fields = (tracking or "").strip().split(",")
    if len(fields) > 5 and fields[-1] != "Not synchronised":
        try:
            offset = float(fields[4])
        except ValueError:
            offset = 0.0
        late = abs(offset) > _OFFSET
        yield Finding(
            "clock",
            "warning" if late else "ok",
            "chrony",
            f"the clock is {offset * 1000:.3f} ms off its server",
            _REMEDY_CLOCK if late else "",
            {"offset_seconds": offset},
        )
    elif tracking is not None:
        yield Finding("clock", "warning", "chrony", "chrony has no server to follow", _REMEDY_CLOCK)
    else:
        kept = (machine.run(["timedatectl", "show", "--property=NTPSynchronized", "--value"]) or "").strip()
        if kept == "yes":
            yield Finding(
                "clock", "ok", "clock", "the clock is synchronised; by how much it is off is not told"
            )
        elif kept == "no":
            yield Finding(
                "clock",
                "warning",
                "clock",
                "the clock is not synchronised: hosts cannot be compared to the millisecond",
                _REMEDY_CLOCK,
            )
        else:
            yield Finding(
                "clock",
                "note",
                "clock",
                "neither chronyc nor timedatectl answers: whether the clock is kept is unknown",
            )


def check_zones(machine: Machine, logs: Sequence[Log], now: float) -> Iterator[Finding]:
    """Compare the last time in each file with when it was last written."""
    here = datetime.fromtimestamp(now, machine.zone)
    shift = here.utcoffset() or timedelta()
    yield Finding(
        "zone",
        "ok",
        "zone",
        f"the host's zone is {machine.zone} (UTC{_offset(shift.total_seconds())})",
        data={"utc_offset_seconds": shift.total_seconds()},
    )
    strange: dict[tuple[str, float | None], list[Log]] = defaultdict(list)
    for log in logs:
        age = now - log.status.st_mtime
        if age > _RECENT:
            continue
        written = _last_time(log.path)
        if written is None:
            continue
        # Against the host's zone; a line is written at once, so what is left is the writer's other zone.
        seconds = written.replace(tzinfo=machine.zone).timestamp() - log.status.st_mtime
        off = float(round(seconds / _QUARTER) * _QUARTER)
        minutes = round((shift.total_seconds() + off) / 60)
        zone = minutes % 30 == 0 or minutes in _ODD_ZONES
        if not zone or abs(off) > _MOST or abs(seconds - off) > _SLACK:
            strange[log.clock, None].append(log)
        elif off:
            strange[log.clock, off].append(log)
    for (clock, difference), members in strange.items():
        yield _zone_finding(machine, clock, difference, members, shift.total_seconds())


def _zone_finding(
    machine: Machine, clock: str, off: float | None, members: Sequence[Log], shift: float
) -> Finding:
    subject = machine.shown(members[0].path) + (f" and {len(members) - 1} more" if members[1:] else "")
    if off is None:
        written = _last_time(members[0].path)
        return Finding(
            "zone",
            "note" if clock == "device" else "warning",
            subject,
            f"the last line says {written}, but the file was written at another time: no zone explains that",
            "devices keep 1970 until the host sets their clock; else check the clocks of the containers"
            if clock == "device"
            else "check the clock, and whether the files were copied here",
        )
    option = "--device-timezone" if clock == "device" else "--timezone"
    zone = _offset(shift + off)
    return Finding(
        "zone",
        "warning",
        subject,
        f"lines are {duration(abs(off))} {'ahead of' if off > 0 else 'behind'} the host's clock: "
        f"their writer's zone is UTC{zone}",
        f"mount /etc/localtime into the containers, or render with {option} {zone}",
        {"clock": clock, "seconds": off, "files": len(members)},
    )


def _offset(seconds: float) -> str:
    sign = "-" if seconds < 0 else "+"
    minutes = abs(round(seconds / 60))
    return f"{sign}{minutes // 60:02d}:{minutes % 60:02d}"


def _last_time(path: Path) -> datetime | None:
    try:
        with path.open("rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - _TAIL))
            found = _TIME.findall(stream.read(_TAIL))
        return datetime.strptime(found[-1].decode(), "%Y-%m-%d-%H:%M:%S") if found else None
    except (OSError, ValueError):
        return None


def compare_clocks(here: float, there: str | None, server: str) -> Iterator[Finding]:
    """Compare this clock with the ``Date`` of an HTTP answer, which has whole seconds.

    Args:
        here: seconds since 1970, when the answer came.
        there: the header.
        server: whose.
    """
    try:
        when = datetime.strptime(there or "", "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=timezone.utc)
    except ValueError:
        return
    off = here - when.timestamp()
    late = not -2 <= off <= 3
    yield Finding(
        "clock",
        "warning" if late else "ok",
        server,
        f"this clock and {server}'s differ by {duration(off)}"
        if late
        else f"this clock agrees with {server}'s",
        _REMEDY_CLOCK if late else "",
        {"offset_seconds": round(off, 1)},
    )
