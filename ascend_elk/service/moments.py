"""Times as Elasticsearch writes them."""

from __future__ import annotations

import calendar
import time
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=4_096)
def _second(text: str) -> int | None:
    try:
        return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None


def seconds(value: Any) -> float | None:
    """Seconds since 1970 of an ISO 8601 text in UTC; ``None`` where it is none."""
    if not isinstance(value, str):
        return None
    whole = _second(value[:19])
    if whole is None:
        return None
    rest = value[19:].rstrip("Z")
    try:
        return whole + (float(rest) if rest else 0.0)
    except ValueError:
        return float(whole)


def iso(moment: float) -> str:
    """Seconds since 1970 as ISO 8601 in UTC, to the millisecond."""
    text = datetime.fromtimestamp(moment, timezone.utc).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
