"""Extractors: facts out of messages, switched on by literals that one automaton finds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ahocorasick_rs import AhoCorasick, Implementation

from ascend_elk.formats.definitions import Extractor, HeadlineRule
from ascend_elk.formats.grok import GrokLibrary

CONVERSIONS: dict[str, Callable[[str], Any] | None] = {"string": None, "long": int, "double": float}


def _hex(width: int) -> Callable[[str], str]:
    return lambda text: f"0x{int(text, 16):0{width}x}"


def _triple(text: str) -> str:
    words = re.findall(r"0[xX][0-9a-fA-F]+|\d+", text)
    return "(" + ",".join(f"0x{int(word, 16):x}" for word in words) + ")"


NORMALISERS: dict[str | None, Callable[[str], str]] = {
    None: str,
    "upper": str.upper,
    "lower": str.lower,
    "hex": _hex(1),
    "hex8": _hex(8),
    "hex16": _hex(16),
    "triple": _triple,
}


@dataclass(frozen=True)
class _Compiled:
    modules: frozenset[str]
    exclude: tuple[str, ...]
    search: re.Pattern[str] | None
    follows: bool
    setters: tuple[tuple[int, str, Callable[[str], Any] | None, float | None], ...]
    constants: tuple[tuple[str, Any], ...]
    signals: tuple[str, ...]
    code_group: int
    family: str
    normalise: Callable[[str], str]
    all: bool


def _compile(extractor: Extractor, grok: GrokLibrary) -> _Compiled:
    search, setters, code_group = None, [], 0
    text = extractor.follows or extractor.pattern
    if text is not None:
        pattern = grok.to_python(text)
        search = pattern.compiled
        for group, capture in enumerate(pattern.captures, 1):
            if capture.field == "code":
                code_group = group
            else:
                scale = extractor.scale.get(capture.field)
                setters.append((group, capture.field, CONVERSIONS[capture.type], scale))
    return _Compiled(
        modules=frozenset(extractor.modules),
        exclude=extractor.exclude,
        search=search,
        follows=extractor.follows is not None,
        setters=tuple(setters),
        constants=tuple(extractor.set.items()),
        signals=extractor.signal,
        code_group=code_group,
        family=extractor.code.family if extractor.code else "",
        normalise=NORMALISERS[extractor.code.normalise if extractor.code else None],
        all=extractor.all,
    )


class Extraction:
    """All extractors of a program."""

    def __init__(
        self, extractors: Sequence[Extractor], headline: Sequence[HeadlineRule], grok: GrokLibrary
    ) -> None:
        """Compile the extractors; raises GrokError if a pattern is wrong."""
        self._extractors = [_compile(extractor, grok) for extractor in extractors]
        self._headline = [
            (f"{rule.family}:", re.compile(rule.pattern).match if rule.pattern else None) for rule in headline
        ]
        users: dict[str, list[int]] = {}
        for index, extractor in enumerate(extractors):
            for literal in extractor.contains:
                users.setdefault(literal, []).append(index)
        self._by_literal = list(users.values())
        automaton = AhoCorasick(list(users) or ["\0never\0"], implementation=Implementation.DFA)
        self._find = automaton.find_matches_as_indexes

    def apply(self, message: str, fields: dict[str, Any]) -> None:
        """Add to ``fields`` what the message says; fields that are set already stay."""
        hits = self._find(message, overlapping=True)
        if not hits:
            return
        by_literal = self._by_literal
        wanted: dict[int, list[int]] = {}
        for literal, _, end in hits:
            for index in by_literal[literal]:
                if index in wanted:
                    wanted[index].append(end)
                else:
                    wanted[index] = [end]
        codes: list[str] = []
        for index in sorted(wanted):
            self._run(self._extractors[index], message, wanted[index], fields, codes)
        if codes:
            fields["ascend.error.codes"] = codes
            fields["error.code"] = self.headline(codes)

    def _run(
        self, extractor: _Compiled, message: str, ends: list[int], fields: dict[str, Any], codes: list[str]
    ) -> None:
        if extractor.modules and fields.get("ascend.module") not in extractor.modules:
            return
        if extractor.exclude and any(literal in message for literal in extractor.exclude):
            return
        if extractor.search is not None:
            match = None
            if extractor.follows:
                # The literals' places are known: what follows one need not be searched for.
                for end in ends:
                    match = extractor.search.match(message, end)
                    if match is not None:
                        break
            else:
                match = extractor.search.search(message)
            if match is None:
                return
            for group, field, convert, scale in extractor.setters:
                text = match.group(group)
                if not text or field in fields:
                    continue
                value: Any = convert(text) if convert else text
                if scale is not None:
                    value = round(value * scale) if convert is int else value * scale
                fields[field] = value
            if extractor.code_group:
                for found in _all(extractor, message, ends) if extractor.all else (match,):
                    text = found.group(extractor.code_group)
                    code = f"{extractor.family}:{extractor.normalise(text)}" if text else ""
                    if code and code not in codes:
                        codes.append(code)
        for field, constant in extractor.constants:
            fields.setdefault(field, constant)
        if extractor.signals:
            signals = fields.setdefault("ascend.signal", [])
            signals += [signal for signal in extractor.signals if signal not in signals]

    def headline(self, codes: Sequence[str]) -> str:
        """Choose the code that names the failure best: the first rule that one of them meets."""
        for family, matches in self._headline:
            for code in codes:
                if code.startswith(family) and (matches is None or matches(code[len(family) :])):
                    return code[len(family) :]
        return codes[0].partition(":")[2]


def _all(extractor: _Compiled, message: str, ends: list[int]) -> Iterator[re.Match[str]]:
    """Every match of an extractor that has found one."""
    assert extractor.search is not None  # noqa: S101 - told by the caller
    if not extractor.follows:
        yield from extractor.search.finditer(message)
        return
    for end in ends:
        match = extractor.search.match(message, end)
        if match is not None:
            yield match
