"""CANN versions: how they are written, and in which order they came.

Written forms: ``8.0``, ``8.0.0``, ``8.0.RC3``, ``8.0.RC2.alpha001``, ``7.0.0.alpha003``, ``8.5.0-beta.1``,
``5.0.2``, ``20.2``, test builds ``8.0.T63``. A release candidate comes before its release, an alpha or
beta before the candidate it leads to. CANN 20.x (2020) came before 3.x to 5.0 (2021 on).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import total_ordering

from ascend_elk.errors import UserError

_FORM = re.compile(
    r"(?i)v?(\d{1,3})(?:\.(\d{1,4}))?(?:\.(\d{1,4}))?(?:\.(\d{1,4}))?"
    r"(?:[.\-]?(rc|t|b)(\d{1,4}))?(?:[.\-](alpha|beta)\.?(\d{1,4})?)?(?:\.(\d{1,4}))?"
)

# A test build (T) leads to the candidate, a candidate (RC) to the release.
_STAGE = {"t": 0, "b": 0, "rc": 1, "": 2}
_PRE = {"alpha": 0, "beta": 1, "": 2}


@total_ordering
@dataclass(frozen=True)
class Version:
    """One CANN version; compares by age, prints as it was written."""

    text: str = field(compare=False)
    key: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> Version:
        """Read a version as people and version files write it.

        Raises:
            UserError: the text is no version.
        """
        match = _FORM.fullmatch(text.strip())
        if match is None:
            raise UserError(
                f"{text!r} is not a CANN version; write for example 8.0, 8.0.RC3 or 7.0.0.alpha003"
            )
        major, minor, patch, fourth, stage, stage_number, pre, pre_number, last = match.groups(default="")
        # 20.0 to 20.3 were renumbered to 3.x in 2021: they are older than any 3.1.
        epoch = 0 if int(major) >= 19 else 1
        numbers = (epoch, int(major), int(minor or 0), int(patch or 0), int(fourth or 0))
        rank = (
            _STAGE[stage.lower()],
            int(stage_number or 0),
            _PRE[pre.lower()],
            int(pre_number or 0),
            int(last or 0),
        )
        return cls(text.strip(), numbers + rank)

    @property
    def release(self) -> tuple[int, int]:
        """Major and minor number."""
        return self.key[1], self.key[2]

    def __lt__(self, other: Version) -> bool:
        """Older than."""
        return self.key < other.key

    def __str__(self) -> str:
        """As it was written."""
        return self.text


@dataclass(frozen=True)
class VersionRange:
    """Versions from ``since`` to ``until``, both included; ``None`` is open.

    ``until`` counts in full: until 8.0 includes 8.0.1, as a person would read it.
    """

    since: Version | None = None
    until: Version | None = None

    @classmethod
    def of(cls, since: str | None = None, until: str | None = None) -> VersionRange:
        """Build a range from texts as they stand in the content."""
        return cls(
            Version.parse(str(since)) if since else None,
            Version.parse(str(until)) if until else None,
        )

    def __contains__(self, version: Version) -> bool:
        """Tell whether a version lies in the range.

        A bare ``8.0``, on either side, means the whole 8.0 line: its candidates, release and patches.
        """
        if self.since is not None and version < self.since and not _one_line(self.since, version):
            return False
        return self.until is None or version <= self.until or _one_line(self.until, version)

    def overlaps(self, other: VersionRange) -> bool:
        """Tell whether any version lies in both."""
        before = self.until is not None and other.since is not None and self.until < other.since
        after = other.until is not None and self.since is not None and other.until < self.since
        return not before and not after

    def __str__(self) -> str:
        """For people: ``8.0 .. 8.2``, ``since 8.3``, ``until 7.0``, ``all``."""
        if self.since and self.until:
            return f"{self.since} .. {self.until}"
        if self.since:
            return f"since {self.since}"
        return f"until {self.until}" if self.until else "all"


def _one_line(one: Version, other: Version) -> bool:
    """Tell whether both belong to one X.Y line and one of them is written as the bare line."""
    bare = any(re.fullmatch(r"\d+\.\d+", version.text) for version in (one, other))
    return bare and one.release == other.release
