"""Which of several codes is the headline: the one that says most about the cause."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ascend_elk.codes.models import Entry, Family

# MindCluster leaves these hardware events alone: they do not explain a failure.
_UNHANDLED = "NotHandle"


class Precedence:
    """The order of the families, with catch-alls and wrappers behind everything specific."""

    def __init__(
        self,
        families: Mapping[str, Family],
        wrapper_rank: float,
        unhandled_rank: float,
        catch_all_rank: float,
    ) -> None:
        """Take the ranks as ``codes/families.yml`` gives them."""
        self._families = families
        self._wrapper = wrapper_rank
        self._unhandled = unhandled_rank
        self._catch_all = catch_all_rank

    def headline(self, codes: Sequence[str], entries: Callable[[str], Sequence[Entry]]) -> str | None:
        """Choose among ``family:code`` texts; the earliest wins among equals. ``None`` for no codes.

        Args:
            codes: in the order of the text.
            entries: look-up of a code.
        """
        best, best_rank = None, (0.0, 0.0)
        for code in codes:
            rank = self._rank(code, entries(code))
            if best is None or rank < best_rank:
                best, best_rank = code, rank
        return best

    def _rank(self, code: str, entries: Sequence[Entry]) -> tuple[float, float]:
        family = self._families.get(code.partition(":")[0])
        rank = family.rank if family is not None else self._catch_all
        if not entries:
            return rank, 1.0
        entry = entries[0]
        if entry.rank is not None:
            rank = entry.rank
        elif entry.catch_all:
            rank = self._catch_all
        elif entry.wrapper:
            rank = self._wrapper
        elif entry.action == _UNHANDLED or entry.assertion == "recovered" or entry.severity == "info":
            rank = max(rank, self._unhandled)
        hardware = family is not None and family.hardware_first
        return rank, 0.0 if hardware and any(one.category == "hardware" for one in entries) else 1.0
