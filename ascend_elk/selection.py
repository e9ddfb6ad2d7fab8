"""Which events a person asked for."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo

from ascend_elk.errors import UserError
from ascend_elk.parse import Event


@dataclass(frozen=True)
class Selection:
    """Conditions that an event must meet, all of them; ``None`` asks for nothing.

    ``level`` is the least level (DEBUG to ERROR); EVENT, TRACE and the like are meant exactly. ``since`` and
    ``until`` are ISO times in UTC as events carry them; an event without a time follows the one before it.
    """

    level: str | None = None
    code: str | None = None
    device: int | None = None
    pid: int | None = None
    signal: str | None = None
    module: str | None = None
    since: str | None = None
    until: str | None = None

    def filter(self, events: Iterable[Event], severity: dict[str, int]) -> Iterator[tuple[Event, bool]]:
        """Yield every event with the answer whether it is wanted.

        Args:
            events: in the order of a file.
            severity: CANN's number by level.
        """
        wanted_level = self.level.upper() if self.level else None
        least = severity.get(wanted_level) if wanted_level else None
        in_time = self.since is None
        for event in events:
            fields = event.fields
            time = fields.get("@timestamp")
            if time is not None:
                in_time = (self.since is None or time >= self.since) and (
                    self.until is None or time <= self.until
                )
            yield (
                event,
                (
                    in_time
                    and (wanted_level is None or _has_level(fields, wanted_level, least))
                    and (self.pid is None or fields.get("process.pid") == self.pid)
                    and (self.device is None or fields.get("ascend.device.id") == self.device)
                    and (self.module is None or fields.get("ascend.module") == self.module)
                    and (self.signal is None or self.signal in fields.get("ascend.signal", ()))
                    and (self.code is None or _has_code(fields, self.code))
                ),
            )


def _has_level(fields: dict[str, object], wanted: str, least: int | None) -> bool:
    if least is None:
        return fields.get("log.level") == wanted
    severity = fields.get("event.severity")
    return isinstance(severity, int) and severity >= least


def _has_code(fields: dict[str, object], code: str) -> bool:
    codes = fields.get("ascend.error.codes")
    if not isinstance(codes, list):
        return False
    wanted = code.lower()
    return any(wanted in (item.lower(), item.partition(":")[2].lower()) for item in codes)


def with_context(events: Iterable[tuple[Event, bool]], size: int) -> Iterator[Event]:
    """Yield the wanted events and ``size`` events before and after each, of one process.

    Args:
        events: of one process (host and device side), in order, with the answer whether each is wanted.
        size: number of events on either side; 0 yields the wanted ones only.
    """
    before: deque[Event] = deque(maxlen=size or None)
    follow = 0
    for event, wanted in events:
        if wanted:
            if size:
                yield from before
                before.clear()
            yield event
            follow = size
        elif follow:
            yield event
            follow -= 1
        elif size:
            before.append(event)


def read_time(text: str, zone: tzinfo) -> str:
    """Read a time as a person writes it, for ``since`` and ``until``.

    Args:
        text: ``2025-03-02T11:20:31``, ``2025-03-02 11:20``, ``2025-03-02-11:20:31.123.456``.
        zone: where a time without a zone is meant.

    Raises:
        UserError: it is no time.
    """
    form = text.strip()
    if len(form) > 10 and form[10] == "-":
        date, clock = form[:10], form[11:]
        if clock.count(".") == 2:
            whole, milli, micro = clock.split(".")
            clock = f"{whole}.{milli}{micro}"
        form = f"{date}T{clock}"
    # Python 3.10 reads fractions of six digits only.
    form = re.sub(r"\.(\d{1,6})\d*", lambda match: f".{match[1]:0<6}", form.replace("Z", "+00:00"))
    try:
        time = datetime.fromisoformat(form)
    except ValueError:
        raise UserError(f"{text!r} is not a time; write for example 2025-03-02T11:20:31") from None
    local = time if time.tzinfo else time.replace(tzinfo=zone)
    return f"{local.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%S.%f}Z"
