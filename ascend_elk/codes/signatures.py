"""Faults known by their message: ordered texts, found by one automaton over all first texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ahocorasick_rs import AhoCorasick

from ascend_elk.codes.compose import remediation_of, source_of
from ascend_elk.codes.models import Remedy, Severity, SignatureRow
from ascend_elk.errors import UserError


@dataclass(frozen=True)
class Signature:
    """One fault that has no code."""

    name: str
    layer: str
    category: str
    severity: Severity
    meaning: str
    remediation: str
    meaning_zh: str
    remediation_zh: str
    source: str
    signals: tuple[str, ...]
    min_level: int
    generic: bool
    literals: tuple[tuple[str, ...], ...] = field(repr=False)
    exclude: tuple[str, ...] = field(repr=False)
    ignore_case: bool = field(repr=False)

    @property
    def reference(self) -> str:
        """Path of its page in the enrichment service."""
        return f"/v1/codes/{self.name}"


def build(
    rows: Iterable[SignatureRow], sources: Mapping[str, str], remedies: Mapping[str, Remedy], where: str
) -> list[Signature]:
    """Complete the texts of signatures.

    Raises:
        UserError: a text, a remedy or a source is missing.
    """
    built = []
    for row in rows:
        place = f"{where}: {row.name}"
        remediation, remediation_zh, generic = remediation_of(row, remedies, place)
        if row.layer is None or row.category is None or row.meaning is None or remediation is None:
            raise UserError(f"{place} lacks layer, category, meaning or remediation")
        built.append(
            Signature(
                name=row.name,
                layer=row.layer,
                category=row.category,
                severity=row.severity,
                meaning=row.meaning,
                remediation=remediation,
                meaning_zh=row.meaning_zh or row.meaning,
                remediation_zh=remediation_zh or remediation,
                source=source_of(row, sources, place),
                signals=row.signals,
                min_level=row.min_level,
                generic=generic,
                literals=row.literals,
                exclude=row.exclude,
                ignore_case=row.ignore_case,
            )
        )
    return built


class _Automaton:
    """Signatures of one kind of case."""

    def __init__(self, signatures: Sequence[tuple[int, Signature]], lower: bool) -> None:
        self._users: dict[str, list[tuple[int, tuple[str, ...], Signature]]] = {}
        for order, signature in signatures:
            for alternative in signature.literals:
                texts = tuple(text.lower() for text in alternative) if lower else alternative
                self._users.setdefault(texts[0], []).append((order, texts, signature))
        self._first = list(self._users)
        self._find = AhoCorasick(self._first).find_matches_as_indexes if self._first else None

    def match(self, message: str, found: dict[int, Signature]) -> None:
        if self._find is None:
            return
        seen = set()
        for index, _, end in self._find(message, overlapping=True):
            if index in seen:
                continue
            seen.add(index)
            for order, texts, signature in self._users[self._first[index]]:
                if order not in found and _in_order(message, texts, end):
                    found[order] = signature


def _in_order(message: str, texts: tuple[str, ...], position: int) -> bool:
    """Tell whether all texts but the first follow one another from a position on."""
    for text in texts[1:]:
        start = message.find(text, position)
        if start < 0:
            return False
        position = start + len(text)
    return True


class Signatures(Sequence[Signature]):
    """All signatures of a catalogue."""

    def __init__(self, signatures: Sequence[Signature]) -> None:
        """Build the automata."""
        self._all = tuple(signatures)
        numbered = list(enumerate(self._all))
        self._exact = _Automaton([pair for pair in numbered if not pair[1].ignore_case], lower=False)
        self._lower = _Automaton([pair for pair in numbered if pair[1].ignore_case], lower=True)
        self._by_name = {signature.name: signature for signature in self._all}

    def __len__(self) -> int:
        """How many."""
        return len(self._all)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204 - as Sequence declares it
        """One, or a slice."""
        return self._all[index]

    def get(self, name: str) -> Signature | None:
        """The signature of a name."""
        return self._by_name.get(name)

    def match(self, message: str) -> list[Signature]:
        """The signatures whose texts stand in a message, in file order."""
        found: dict[int, Signature] = {}
        self._exact.match(message, found)
        self._lower.match(message.lower(), found)
        if not found:
            return []
        return [
            signature
            for _, signature in sorted(found.items())
            if not any(text in message for text in signature.exclude)
        ]
