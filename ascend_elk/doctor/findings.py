"""What a check has found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["ok", "note", "warning", "error"]
SEVERITIES: tuple[Severity, ...] = ("ok", "note", "warning", "error")


@dataclass(frozen=True)
class Finding:
    """One answer of one check.

    Attributes:
        check: name of the check, stable.
        severity: ``warning`` and ``error`` want something done; ``note`` informs, or cannot tell.
        subject: what it is about: a path, a process, a data stream.
        text: one sentence for people.
        remedy: what to do; empty where nothing is.
        data: the figures behind the sentence, by name.
    """

    check: str
    severity: Severity
    subject: str
    text: str
    remedy: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """As ``--json`` gives it."""
        return {
            "check": self.check,
            "severity": self.severity,
            "subject": self.subject,
            "text": self.text,
            "remedy": self.remedy,
            "data": dict(self.data),
        }


def worst(findings: Iterable[Finding]) -> Severity:
    """Return the severest of all; ``ok`` where there is none."""
    return max((finding.severity for finding in findings), key=SEVERITIES.index, default="ok")


def amount(count: float) -> str:
    """Bytes for people: ``1.5 GiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def duration(seconds: float) -> str:
    """A length of time for people: ``40 s``, ``3.5 h``, ``12 days``."""
    if abs(seconds) < 120:
        return f"{seconds:.0f} s"
    if abs(seconds) < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if abs(seconds) < 172_800 else f"{seconds / 86_400:.0f} days"
