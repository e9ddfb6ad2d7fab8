"""Signs: lines that mean something to identity and diagnosis, as ``grok/interest.yml`` lists them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import ahocorasick_rs
import yaml
from pydantic import BaseModel, ConfigDict, Field

from ascend_elk.content import content_dir

Role = Literal[
    "identity",
    "setting",
    "lifecycle",
    "begin",
    "end",
    "timeout",
    "victim",
    "wrapper",
    "pointer",
    "cause",
    "retry",
    "slow",
    "table",
    "context",
    "noise",
]
Phase = Literal["init", "link", "execution"]

LEVELS = ("[WARNING]", "[ERROR]", "[CRITICAL]", "[FATAL]", "[EVENT]", "[TRACE]", "[OPLOG]")
"""Literals of the levels that diagnosis wants whatever the line says."""


class Sign(BaseModel):
    """One kind of line; the keys are explained at the top of ``grok/interest.yml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    role: Role
    contains: tuple[str, ...] = Field(min_length=1)
    also: tuple[str, ...] = ()
    never: tuple[str, ...] = Field((), alias="not")
    take: tuple[str, ...] = ()
    pattern: str | None = None
    facts: dict[str, str] = {}
    otherwise: dict[str, str] = {}
    weigh: dict[str, dict[str, float]] = {}
    phase: Phase | None = None
    side: Literal["local", "remote", "link", "pair", "job"] | None = None
    weight: float = 0.0

    def weight_of(self, facts: Mapping[str, str]) -> float:
        """Return how strongly a line with these facts makes its card the cause; 0 for mere context."""
        if not self.weigh:
            return self.weight
        weight = 1.0
        for name, values in self.weigh.items():
            weight *= values.get(facts.get(name, ""), 0.0)
        return weight


class _Content(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    codes: dict[Literal["wrapper", "timeout"], tuple[str, ...]]
    also_read: tuple[str, ...]
    facts: dict[str, str]
    signs: tuple[Sign, ...]


class Signs:
    """The signs, compiled: one automaton over all literals, regexes only for what it finds."""

    def __init__(self, content: dict[str, Any]) -> None:
        """Compile what ``grok/interest.yml`` holds."""
        parsed = _Content.model_validate(content)
        self.signs = parsed.signs
        self.by_name = {sign.name: sign for sign in parsed.signs}
        if len(self.by_name) != len(parsed.signs):
            raise ValueError("grok/interest.yml: a sign's name stands twice")
        self._codes = {
            role: re.compile("|".join(f"(?:{regex})" for regex in regexes))
            for role, regexes in parsed.codes.items()
        }
        self._also_read = parsed.also_read
        self._literals: list[str] = []
        self._owner: list[int] = []
        for number, sign in enumerate(parsed.signs):
            for literal in sign.contains:
                self._literals.append(literal)
                self._owner.append(number)
        self._automaton = ahocorasick_rs.AhoCorasick(
            self._literals, matchkind=ahocorasick_rs.MatchKind.Standard
        )
        self._otherwise = [
            [(name, re.compile(regex)) for name, regex in sign.otherwise.items()] for sign in parsed.signs
        ]
        self._pattern = [re.compile(sign.pattern) if sign.pattern else None for sign in parsed.signs]
        self._facts = [
            [
                (name, re.compile(regex))
                for name, regex in {**{key: parsed.facts[key] for key in sign.take}, **sign.facts}.items()
            ]
            for sign in parsed.signs
        ]

    def literals(self) -> tuple[str, ...]:
        """Return every literal that a line must hold one of, levels included, each once."""
        return tuple(dict.fromkeys([*LEVELS, *self._also_read, *self._literals]))

    def role_of(self, codes: Sequence[str]) -> Literal["wrapper", "timeout"] | None:
        """Return what codes are that only repeat an error or only tell of a wait; ``None`` for any other."""
        if not codes:
            return None
        kinds = {
            next((role for role, regex in self._codes.items() if regex.fullmatch(code)), None)
            for code in codes
        }
        if None in kinds:
            return None
        return "timeout" if "timeout" in kinds else "wrapper"

    def recognise(self, message: str) -> tuple[Sign, dict[str, str]] | None:
        """Return the first sign that a message bears, and its facts; ``None`` for a message without one."""
        found = self._automaton.find_matches_as_indexes(message, overlapping=True)
        if not found:
            return None
        owner = self._owner
        numbers = {owner[match[0]] for match in found}
        for number in sorted(numbers):
            sign = self.signs[number]
            if sign.also and not any(literal in message for literal in sign.also):
                continue
            if sign.never and any(literal in message for literal in sign.never):
                continue
            facts: dict[str, str] = {}
            pattern = self._pattern[number]
            if pattern is not None:
                match = pattern.search(message)
                if match is not None:
                    facts = {name: value for name, value in match.groupdict().items() if value is not None}
                else:
                    _search(self._otherwise[number], message, facts)
            _search(self._facts[number], message, facts)
            return sign, facts
        return None


def _search(regexes: list[tuple[str, re.Pattern[str]]], message: str, facts: dict[str, str]) -> None:
    for name, regex in regexes:
        match = regex.search(message)
        if match is not None:
            facts[name] = match.group(1)


@lru_cache(maxsize=1)
def load_signs() -> Signs:
    """Load the product's signs."""
    text = (content_dir("grok") / "interest.yml").read_text("utf-8")
    return Signs(yaml.safe_load(text))
