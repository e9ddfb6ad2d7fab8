"""Options that several commands share."""

from __future__ import annotations

from datetime import datetime, timezone, tzinfo
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from ascend_elk.cann import Version
from ascend_elk.errors import UserError

Paths = Annotated[
    list[Path],
    typer.Argument(
        help="Log files or directories, msnpureport or asys exports, ModelArts trees, worker-N/ of hosts."
    ),
]
Cann = Annotated[
    str,
    typer.Option(
        help="CANN version, for example 8.0 or 8.0.RC3; auto finds it out; all takes every known format."
    ),
]
Zone = Annotated[
    str, typer.Option("--timezone", help="Zone of the hosts' clocks: local, UTC, Asia/Shanghai, +08:00.")
]
DeviceZone = Annotated[
    str | None, typer.Option("--device-timezone", help="Zone of the devices' clocks; default: the hosts'.")
]


def read_zone(text: str) -> tzinfo:
    """Read a time zone: a name, an offset such as +08:00, or ``local``.

    Raises:
        UserError: there is no such zone.
    """
    if text.lower() == "local":
        return datetime.now().astimezone().tzinfo or timezone.utc
    try:
        if text[:1] in "+-" and len(text) > 1:
            return datetime.fromisoformat(f"2000-01-01T00:00:00{text}").tzinfo or timezone.utc
        return ZoneInfo(text)
    except (ValueError, KeyError, OSError):
        raise UserError(
            f"{text!r} is not a time zone; write for example UTC, Asia/Shanghai, +08:00 or local"
        ) from None


def read_cann(text: str) -> Version | None:
    """Read ``--cann`` where a version is meant: ``None`` for ``all`` and ``auto``.

    Raises:
        UserError: it is no version.
    """
    return None if text.lower() in ("all", "auto") else Version.parse(text)
