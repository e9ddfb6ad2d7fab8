"""Pauses after failures: longer each time, and different for each service."""

from __future__ import annotations

import random


class Backoff:
    """Exponential pauses with jitter.

    Args:
        first: seconds of the first pause at most.
        longest: seconds that no pause exceeds.
    """

    def __init__(self, first: float = 0.5, longest: float = 30.0) -> None:
        """Start with the shortest pause."""
        self._first = first
        self._longest = longest
        self.failures = 0

    def reset(self) -> None:
        """It works again."""
        self.failures = 0

    def pause(self) -> float:
        """Count a failure; returns the seconds to wait."""
        limit = min(self._longest, self._first * 2 ** min(self.failures, 16))
        self.failures += 1
        wait: float = limit * random.uniform(0.5, 1.0)  # noqa: S311 - jitter is no secret
        return wait
