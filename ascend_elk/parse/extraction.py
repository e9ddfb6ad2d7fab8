"""Extractors: facts out of messages, switched on by literals that one automaton finds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ahocorasick_rs import AhoCorasick, Implementation

from ascend_elk.formats.definitions import Extractor, HeadlineRule
from ascend_elk.formats.grok import Capture, GrokLibrary, PythonPattern

CONVERSIONS: dict[str, Callable[[str], Any]] = {"string": str, "long": int, "double": float}


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


_Run = Callable[[str, Sequence[int], dict[str, Any], list[str]], None]
"""Adds what a message says to fields and codes; is told where the extractor's literals end in it."""


def _compile(extractor: Extractor, grok: GrokLibrary) -> _Run:
    """Compile an extractor to a function that does what it asks for and no more."""
    text = extractor.follows or extractor.pattern
    pattern = grok.to_python(text) if text is not None else None
    captures = pattern.captures if pattern else ()
    simple = len(captures) == 1 and captures[0].field != "code"
    more = extractor.set or extractor.signal or extractor.scale
    if pattern and extractor.follows and simple and not more:
        run = _following(pattern.compiled.match, captures[0])
    else:
        run = _general(extractor, pattern)
    return _guarded(extractor, run) if extractor.modules or extractor.exclude else run


def _guarded(extractor: Extractor, run: _Run) -> _Run:
    modules, exclude = frozenset(extractor.modules), extractor.exclude

    def run_if(message: str, ends: Sequence[int], fields: dict[str, Any], codes: list[str]) -> None:
        if modules and fields.get("ascend.module") not in modules:
            return
        for literal in exclude:
            if literal in message:
                return
        run(message, ends, fields, codes)

    return run_if


def _following(match: Callable[[str, int], re.Match[str] | None], capture: Capture) -> _Run:
    """One fact behind a literal: what most extractors are, on most lines that have any."""
    field, convert = capture.field, CONVERSIONS[capture.type]

    def run(message: str, ends: Sequence[int], fields: dict[str, Any], codes: list[str]) -> None:
        for end in ends:
            found = match(message, end)
            if found is not None:
                text = found[1]
                if text and field not in fields:
                    fields[field] = convert(text)
                return

    return run


def _general(extractor: Extractor, pattern: PythonPattern | None) -> _Run:
    code = extractor.code
    family, normalise = (code.family, NORMALISERS[code.normalise]) if code else ("", str)
    setters: list[tuple[int, str, Callable[[str], Any], float | None]] = []
    code_group = 0
    for group, capture in enumerate(pattern.captures if pattern else (), 1):
        if capture.field == "code":
            code_group = group
        else:
            scale = extractor.scale.get(capture.field)
            setters.append((group, capture.field, CONVERSIONS[capture.type], scale))
    matches = _matches(pattern.compiled, extractor.follows is not None) if pattern else None

    def run(message: str, ends: Sequence[int], fields: dict[str, Any], codes: list[str]) -> None:
        if matches is not None:
            first, every = matches
            match = first(message, ends)
            if match is None:
                return
            for group, field, convert, scale in setters:
                text = match[group]
                if not text or field in fields:
                    continue
                value = convert(text)
                if scale is not None:
                    value = round(value * scale) if convert is int else value * scale
                fields[field] = value
            if code_group:
                for found in every(message, ends) if extractor.all else (match,):
                    text = found[code_group]
                    coded = f"{family}:{normalise(text)}" if text else ""
                    if coded and coded not in codes:
                        codes.append(coded)
        for field, constant in extractor.set.items():
            fields.setdefault(field, constant)
        if extractor.signal:
            signals = fields.setdefault("ascend.signal", [])
            signals += [signal for signal in extractor.signal if signal not in signals]

    return run


_First = Callable[[str, Sequence[int]], "re.Match[str] | None"]
_Every = Callable[[str, Sequence[int]], Iterator["re.Match[str]"]]


def _matches(pattern: re.Pattern[str], follows: bool) -> tuple[_First, _Every]:
    """The first match of a pattern, and all; behind a literal, whose places are known, none is searched."""
    match, search, find = pattern.match, pattern.search, pattern.finditer

    def first(message: str, ends: Sequence[int]) -> re.Match[str] | None:
        for end in ends:
            found = match(message, end)
            if found is not None:
                return found
        return None

    if not follows:
        return lambda message, _: search(message), lambda message, _: find(message)
    return first, lambda message, ends: (found for end in ends if (found := match(message, end)) is not None)


class Extraction:
    """All extractors of a program."""

    def __init__(
        self, extractors: Sequence[Extractor], headline: Sequence[HeadlineRule], grok: GrokLibrary
    ) -> None:
        """Compile the extractors; raises GrokError if a pattern is wrong."""
        self._runs = [_compile(extractor, grok) for extractor in extractors]
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
        hits = self._find(message, True)  # overlapping
        if not hits:
            return
        by_literal, runs = self._by_literal, self._runs
        codes: list[str] = []
        if len(hits) == 1:
            literal, _, end = hits[0]
            for index in by_literal[literal]:
                runs[index](message, (end,), fields, codes)
        else:
            wanted: dict[int, list[int]] = {}
            for literal, _, end in hits:
                for index in by_literal[literal]:
                    if index in wanted:
                        wanted[index].append(end)
                    else:
                        wanted[index] = [end]
            for index in sorted(wanted):
                runs[index](message, wanted[index], fields, codes)
        if codes:
            fields["ascend.error.codes"] = codes
            fields["error.code"] = self.headline(codes)

    def headline(self, codes: Sequence[str]) -> str:
        """Choose the code that names the failure best: the first rule that one of them meets."""
        for family, matches in self._headline:
            for code in codes:
                if code.startswith(family) and (matches is None or matches(code[len(family) :])):
                    return code[len(family) :]
        return codes[0].partition(":")[2]
