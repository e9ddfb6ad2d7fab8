"""Written times become UTC."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone, tzinfo

_DATED = re.compile(
    r"(\d{4})[-/](\d\d)[-/](\d\d)[ T-](\d\d:\d\d):(\d\d)(?:[.,:](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?"
)
_GLOG = re.compile(r"(\d{4})?(\d{1,2})(\d\d) (\d\d:\d\d):(\d\d)\.(\d{6,9})")
_MONTH_DAY = re.compile(r"(\d\d)-(\d\d) (\d\d:\d\d):(\d\d)")
_SYSLOG = re.compile(r"([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d):(\d\d)")
_MONTHS = {
    name: number
    for number, name in enumerate(
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], 1
    )
}
_CACHE_LIMIT = 100_000
# Where Elasticsearch's date_nanos ends
_END = "2262"


@dataclass
class Clock:
    """Reads the times of one file.

    Args:
        zone: the zone in which the file's writer lives, where a line states none.
        read_at: when the file was read or last written: completes dates without a year.
    """

    zone: tzinfo
    read_at: datetime
    _minutes: dict[str, str | None] = field(default_factory=dict, init=False)
    readers: dict[str, Callable[[str], str | None]] = field(init=False)

    def __post_init__(self) -> None:
        """Set ``readers``: kind of time to the function that turns it into ISO 8601 in UTC, or ``None``."""
        self.readers = {
            "plog": self._plog,
            "plog-seconds": self._dated,
            "iso": self._dated,
            "slash": self._dated,
            "glog": self._glog,
            "month-day": self._month_day,
            "syslog": self._syslog,
        }

    def _plog(self, text: str) -> str | None:
        # YYYY-MM-DD-HH:MM:SS.mmm.uuu, a million times over: sliced, not matched
        minute = self._minutes.get(text[:16]) or self._minute(text[:10], text[11:16])
        if minute is None or text[17] > "5":
            return None
        return f"{minute}{text[16:23]}{text[24:27]}Z"

    def _minute(self, date: str, clock: str) -> str | None:
        """``YYYY-MM-DD`` and ``HH:MM`` of the writer as ``YYYY-MM-DDTHH:MM`` in UTC."""
        key = f"{date}-{clock}"
        if key not in self._minutes:
            if len(self._minutes) > _CACHE_LIMIT:
                self._minutes.clear()
            try:
                local = datetime.fromisoformat(f"{date}T{clock}").replace(tzinfo=self.zone)
                utc = f"{local.astimezone(timezone.utc):%Y-%m-%dT%H:%M}".rjust(16, "0")
                self._minutes[key] = utc if utc < _END else None
            except (ValueError, OverflowError):
                self._minutes[key] = None
        return self._minutes[key]

    def _dated(self, text: str) -> str | None:
        match = _DATED.match(text)
        if match is None:
            return None
        year, month, day, minute, second, fraction, zone = match.groups()
        if zone is None:
            return self._compose(f"{year}-{month}-{day}", minute, second, fraction)
        written_zone = _offset(zone)
        if written_zone is None:
            return None
        other = Clock(written_zone, self.read_at)
        return other._compose(f"{year}-{month}-{day}", minute, second, fraction)

    def _compose(self, date: str, minute: str, second: str, fraction: str | None) -> str | None:
        utc = self._minute(date, minute)
        if utc is None or second > "59":
            return None
        # At least microseconds, so that times of all writers compare as text.
        return f"{utc}:{second}.{(fraction or '').ljust(6, '0')}Z"

    def _glog(self, text: str) -> str | None:
        match = _GLOG.match(text)
        if match is None:
            return None
        year, month, day, minute, second, fraction = match.groups()
        return self._yearless(year, int(month), int(day), minute, second, fraction)

    def _month_day(self, text: str) -> str | None:
        match = _MONTH_DAY.match(text)
        if match is None:
            return None
        month, day, minute, second = match.groups()
        return self._yearless(None, int(month), int(day), minute, second, None)

    def _syslog(self, text: str) -> str | None:
        match = _SYSLOG.match(text)
        if match is None or match.group(1) not in _MONTHS:
            return None
        month, day, minute, second = match.groups()
        return self._yearless(None, _MONTHS[month], int(day), minute, second, None)

    def _yearless(
        self, year: str | None, month: int, day: int, minute: str, second: str, fraction: str | None
    ) -> str | None:
        if year is None:
            # The latest such day that the file can know of.
            limit = self.read_at + timedelta(days=1)
            late = (month, day) > (limit.month, limit.day)
            year = str(limit.year - late)
        return self._compose(f"{int(year):04}-{month:02}-{day:02}", minute, second, fraction)


def _offset(text: str) -> tzinfo | None:
    if text == "Z":
        return timezone.utc
    sign = -1 if text[0] == "-" else 1
    digits = text[1:].replace(":", "")
    hours = int(digits[:2])
    return timezone(sign * timedelta(hours=hours, minutes=min(int(digits[2:]), 59))) if hours < 24 else None
