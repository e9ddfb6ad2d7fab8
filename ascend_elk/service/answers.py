"""What the service says of a code: its meanings, its place among causes and effects, and what is near."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

from ascend_elk.cann import Version
from ascend_elk.codes import Catalogue, Decoding, Entry, Signature

# Longer texts name no code; nothing near is looked for.
_MAX_ASKED = 64
_MAX_SUGGESTIONS = 8
_NEAR = 0.72
# A catch-all such as acl:507899 stands for dozens of codes.
_MAX_LINKED = 24


@dataclass(frozen=True)
class Link:
    """A code that another one leads to."""

    key: str
    meaning: str
    meaning_zh: str

    def as_json(self) -> dict[str, Any]:
        """The stable JSON shape."""
        return {
            "code": self.key,
            "meaning": self.meaning,
            "meaning_zh": self.meaning_zh,
            "reference": f"/v1/codes/{self.key}",
        }


@dataclass(frozen=True)
class Links:
    """Where a code stands among others."""

    causes: tuple[Link, ...] = ()
    """What brings it about."""
    effects: tuple[Link, ...] = ()
    """What it brings about."""
    returned_as: tuple[Link, ...] = ()
    """The code that the application sees instead."""
    returned_for: tuple[Link, ...] = ()
    """The inner codes that it is returned for."""
    neighbours: tuple[Link, ...] = ()
    """The codes before and after it in its family."""


@dataclass(frozen=True)
class Answer:
    """All that is known of what was asked."""

    asked: str
    entries: tuple[Entry, ...]
    signature: Signature | None
    decodings: tuple[Decoding, ...]
    suggestions: tuple[Link, ...]
    links: dict[str, Links]
    """By the entries' keys."""

    @property
    def known(self) -> bool:
        """Tell whether the catalogue has it."""
        return bool(self.entries) or self.signature is not None

    @property
    def reused(self) -> bool:
        """Tell whether one number has several meanings, between which the version decides."""
        return any(
            one.key == other.key and one is not other and not one.emitter
            for one in self.entries
            for other in self.entries
        )

    def as_json(self) -> dict[str, Any]:
        """The stable JSON shape of ``GET /v1/codes/{code}``."""
        return {
            "code": self.asked,
            "known": self.known,
            "meanings": [entry_json(entry, self.links[entry.key]) for entry in self.entries],
            "message": signature_json(self.signature) if self.signature else None,
            "decodings": [_decoding_json(decoding) for decoding in self.decodings],
            "suggestions": [link.as_json() for link in self.suggestions],
        }


def answer(catalogue: Catalogue, asked: str, version: Version | None) -> Answer:
    """Look up a code or the name of a message signature.

    Args:
        catalogue: what is known.
        asked: as a person or a log writes it.
        version: decides between the meanings of a number that was used again.
    """
    entries = tuple(catalogue.lookup(asked, version))
    signature = catalogue.signatures.get(asked.strip())
    index = _index(catalogue)
    return Answer(
        asked=asked if len(asked) <= _MAX_ASKED else f"{asked[: _MAX_ASKED - 1]}…",
        entries=entries,
        signature=signature,
        decodings=tuple(catalogue.decode(asked)),
        suggestions=() if entries or signature else tuple(_near(catalogue, asked)),
        links={entry.key: index.links(entry) for entry in entries},
    )


def entry_json(entry: Entry, links: Links | None = None) -> dict[str, Any]:
    """One meaning: what ``ascend-elk codes --json`` gives, and what the page shows beside it."""
    document = {
        **entry.as_json(),
        "since_exact": entry.since_exact,
        "hardware": entry.hardware,
        "emitter": entry.emitter,
        "generic": entry.generic,
        "catch_all": entry.catch_all,
        "wraps": list(entry.wraps),
        "action": entry.action,
        "assertion": entry.assertion,
        "signals": list(entry.signals),
        "note": entry.note,
        "reference": entry.reference,
    }
    if links is not None:
        for name in ("causes", "effects", "returned_as", "returned_for", "neighbours"):
            document[name] = [link.key for link in getattr(links, name)]
    return document


def signature_json(signature: Signature) -> dict[str, Any]:
    """A fault that is known by its message."""
    return {
        "name": signature.name,
        "layer": signature.layer,
        "category": signature.category,
        "severity": signature.severity,
        "meaning": signature.meaning,
        "remediation": signature.remediation,
        "meaning_zh": signature.meaning_zh,
        "remediation_zh": signature.remediation_zh,
        "source": signature.source,
        "signals": list(signature.signals),
        "generic": signature.generic,
        "texts": [list(texts) for texts in signature.literals],
        "reference": signature.reference,
    }


def _decoding_json(decoding: Decoding) -> dict[str, Any]:
    return {
        "family": decoding.family,
        "code": decoding.code,
        "title": decoding.title,
        "title_zh": decoding.title_zh,
        "known": decoding.known,
        "facts": [
            {
                "label": fact.label,
                "label_zh": fact.label_zh,
                "value": fact.value,
                "value_zh": fact.value_zh,
            }
            for fact in decoding.facts
        ],
    }


class _Index:
    """The links of a whole catalogue."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._causes: dict[str, list[str]] = {}
        self._returned_for: dict[str, list[str]] = {}
        self._order: dict[str, list[str]] = {}
        self.names: dict[str, list[tuple[str, str]]] = {}
        """Family → (code in lower case, key)."""
        for entry in catalogue.entries():
            for effect in entry.effects:
                self._causes.setdefault(effect, []).append(entry.key)
            if entry.returned_as is not None:
                self._returned_for.setdefault(entry.returned_as, []).append(entry.key)
            order = self._order.setdefault(entry.family, [])
            if not order or order[-1] != entry.key:
                order.append(entry.key)
                self.names.setdefault(entry.family, []).append((entry.code.lower(), entry.key))
        self._place = {key: number for order in self._order.values() for number, key in enumerate(order)}

    def links(self, entry: Entry) -> Links:
        order, place = self._order[entry.family], self._place.get(entry.key)
        beside = [] if place is None else [*order[max(0, place - 2) : place], *order[place + 1 : place + 3]]
        return Links(
            causes=self._linked(self._causes.get(entry.key, ())),
            effects=self._linked(entry.effects),
            returned_as=self._linked([entry.returned_as] if entry.returned_as else ()),
            returned_for=self._linked(self._returned_for.get(entry.key, ())),
            neighbours=self._linked(beside),
        )

    def _linked(self, keys: Iterable[str]) -> tuple[Link, ...]:
        found = []
        for key in dict.fromkeys(keys):
            entries = self._catalogue.lookup(key)
            if entries:
                found.append(Link(key, entries[0].meaning, entries[0].meaning_zh))
        return tuple(found[:_MAX_LINKED])


# The catalogue in force, and the one before it while requests on it end.
@lru_cache(maxsize=2)
def _index(catalogue: Catalogue) -> _Index:
    return _Index(catalogue)


def _near(catalogue: Catalogue, asked: str) -> list[Link]:
    """Codes whose texts have the words asked for, and codes written much like it; the nearest first."""
    text = asked.strip().lower()
    if not text or len(text) > _MAX_ASKED:
        return []
    index = _index(catalogue)
    prefix, colon, rest = text.partition(":")
    named = prefix if colon and prefix in catalogue.families else None
    text = rest if named else text
    likeness = _likeness_to(text)
    likely = {decoding.family for decoding in catalogue.decode(asked)}
    ranked = []
    for family, names in index.names.items():
        if named is not None and family != named:
            continue
        # A code of the same shape is nearer than one that only looks like it.
        bonus = 0.1 if family in likely else 0.0
        for name, key in names:
            ratio = likeness(name)
            if ratio >= _NEAR:
                ranked.append((-ratio - bonus, key))
    ranked += [
        (-ratio, signature.name)
        for signature in catalogue.signatures
        if (ratio := likeness(signature.name)) >= _NEAR
    ]
    keys = [key for _, key in sorted(ranked)[:_MAX_SUGGESTIONS]]
    if len(keys) < _MAX_SUGGESTIONS:
        words = " ".join(re.findall(r"[^\W\u4e00-\u9fff]{3,}|[\u4e00-\u9fff]{2,}", text))
        keys += [entry.key for entry in catalogue.search(words, limit=_MAX_SUGGESTIONS)]
    found = []
    for key in list(dict.fromkeys(keys))[:_MAX_SUGGESTIONS]:
        known = catalogue.signatures.get(key) or next(iter(catalogue.lookup(key)), None)
        if known is not None:
            found.append(Link(key, known.meaning, known.meaning_zh))
    return found


def _likeness_to(text: str) -> Callable[[str], float]:
    """How much a name is like a text, from 0 to 1; cheap bounds come first, since most are far away."""
    # What is known of the second text is kept from one comparison to the next.
    matcher = SequenceMatcher(None, "", text, autojunk=False)

    def likeness(name: str) -> float:
        matcher.set_seq1(name)
        if matcher.real_quick_ratio() < _NEAR or matcher.quick_ratio() < _NEAR:
            return 0.0
        return matcher.ratio()

    return likeness
