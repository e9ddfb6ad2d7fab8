"""What several rules need."""

from __future__ import annotations

from ascend_elk.diagnose.case import (
    Case,
    Trouble,
)
from ascend_elk.diagnose.members import Member
from ascend_elk.diagnose.model import Card

SLACK = 5.0
"""Seconds by which aligned clocks may still disagree."""
_FEW = 0.25
"""Share of the ranks up to which cards stand out; more of them are a common cause."""


def few(count: int, of: int | None) -> bool:
    """Tell whether some cards stand out among all: at least one may always."""
    return count == 1 or (of is not None and count <= max(1, int(of * _FEW)))


def names(cards: list[Card], most: int = 4) -> str:
    """Name cards in a sentence, the first few of many."""
    shown = ", ".join(card.label() for card in cards[:most])
    return shown if len(cards) <= most else f"{shown} and {len(cards) - most} more"


def before_effect(case: Case, trouble: Trouble) -> bool:
    """Tell whether a line was written before the others gave up, as far as clocks agree."""
    return trouble.time is None or case.first_effect is None or trouble.time <= case.first_effect + SLACK


def owner(case: Case, member: Member) -> Member | None:
    """Return the job's card behind a device's or host's lines."""
    if member.trace.key is not None:
        return member
    if member.card.device is None:
        return None
    return case.cluster.by_device.get((member.card.host, member.card.device))
