"""Search by words over entries."""

from __future__ import annotations

from collections.abc import Iterable

from ascend_elk.codes.models import Entry


def search(entries: Iterable[Entry], words: str, language: str, limit: int) -> list[Entry]:
    """Entries in which every word occurs; those with the words in code, symbol or meaning come first.

    Args:
        entries: what to search.
        words: separated by blanks, any case.
        language: ``en`` or ``zh``: whose texts count more; both are searched.
        limit: at most so many.
    """
    wanted = words.lower().split()
    if not wanted:
        return []
    ranked = []
    for order, entry in enumerate(entries):
        name = f"{entry.code} {entry.symbol or ''}".lower()
        meanings = (
            (entry.meaning_zh, entry.meaning) if language == "zh" else (entry.meaning, entry.meaning_zh)
        )
        first, second = (text.lower() for text in meanings)
        rest = f"{entry.remediation} {entry.remediation_zh} {entry.layer} {entry.category}".lower()
        score = 0
        for word in wanted:
            if word in name:
                score += 4
            elif word in first:
                score += 3
            elif word in second:
                score += 2
            elif word in rest:
                score += 1
            else:
                break
        else:
            ranked.append((-score, entry.withdrawn, order, entry))
    ranked.sort(key=lambda item: item[:3])
    return [item[3] for item in ranked[:limit]]
