"""Whether the service lives, and whether it can do its work: two questions with two answers."""

from __future__ import annotations

import time
from collections.abc import Callable

SILENCE = 60.0
"""Seconds without a beat after which the worker counts as stuck."""


class Health:
    """Ready: requests and events can be served. Alive: the worker's loop still turns.

    Attributes are replaced whole, so that the worker's thread may set what the HTTP thread reads.
    """

    def __init__(self, silence: float | None = SILENCE, clock: Callable[[], float] = time.monotonic) -> None:
        """Start alive and not ready.

        Args:
            silence: seconds without a beat after which the service is not alive; ``None`` where no worker
                beats (HTTP only).
            clock: monotonic seconds.
        """
        self._silence = silence
        self._clock = clock
        self._beat = clock()
        self._reason: str | None = "starting"

    def beat(self) -> None:
        """The worker's loop is turning."""
        self._beat = self._clock()

    def become_ready(self) -> None:
        """Everything that is needed is there."""
        self._reason = None

    def not_ready(self, reason: str) -> None:
        """Something is missing, for example Elasticsearch; ``reason`` is one sentence without secrets."""
        self._reason = reason

    @property
    def ready(self) -> bool:
        """Tell whether the service can do its work."""
        return self._reason is None

    @property
    def reason(self) -> str | None:
        """Why it is not ready."""
        return self._reason

    @property
    def alive(self) -> bool:
        """Tell whether the last beat is recent; if not, a restart helps."""
        return self._silence is None or self._clock() - self._beat < self._silence
