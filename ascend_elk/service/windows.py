"""Times of trouble: counts of failures become windows, each with one or more incidents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

GAP = 7_200.0
"""Seconds without trouble between two windows, as between two incidents of a diagnosis."""

INTERVAL = 600.0
"""Seconds that one count covers."""


class Count(NamedTuple):
    """Failures of one cluster and job in one interval.

    Attributes:
        start: of the interval, seconds since 1970.
    """

    cluster: str | None
    job: str | None
    start: float
    events: int


class Window(NamedTuple):
    """A time of trouble.

    Attributes:
        start, end: seconds since 1970, by whole intervals.
        events: failures in it; a change is a reason to judge again.
    """

    cluster: str | None
    job: str | None
    start: float
    end: float
    events: int


def windows(counts: Iterable[Count]) -> list[Window]:
    """Join counts that follow one another within ``GAP``."""
    by_job: dict[tuple[str | None, str | None], list[Count]] = defaultdict(list)
    for count in counts:
        by_job[count.cluster, count.job].append(count)
    found: list[Window] = []
    for (cluster, job), group in by_job.items():
        current: Window | None = None
        for count in sorted(group, key=lambda one: one.start):
            end = count.start + INTERVAL
            if current is not None and count.start - current.end <= GAP:
                current = current._replace(end=end, events=current.events + count.events)
            else:
                if current is not None:
                    found.append(current)
                current = Window(cluster, job, count.start, end, count.events)
        if current is not None:
            found.append(current)
    return found
