"""Grok patterns: the library of names, and their translation into Python's regular expressions.

Content keeps to what RE2, Oniguruma and Python share, so that one text serves every backend.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_REFERENCE = re.compile(r"%\{(\w+)(?::([\w.@]+))?(?::(long|double))?\}")
_DEFINITION = re.compile(r"(\w+) (.+)")
# Capturing groups, look-around, back-references, atomic groups, possessive repeats, inline flags.
_FORBIDDEN = re.compile(r"(?<!\\)(?:\\\\)*\((?!\?:)|\\[1-9kKGXRh]|[*+?}]\+|\\[zZbB]\*")
_MAX_DEPTH = 12


class GrokError(ValueError):
    """A pattern in the content is wrong; the message names it."""


@dataclass(frozen=True)
class Capture:
    """A field that a pattern captures; ``type`` is ``string``, ``long`` or ``double``."""

    field: str
    type: str


@dataclass(frozen=True)
class PythonPattern:
    """A translated pattern; the n-th group holds the n-th capture."""

    regex: str
    captures: tuple[Capture, ...]
    anchored: bool

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """For ``match`` if anchored (without the anchor: a start position counts), else ``search``."""
        return re.compile(self.regex)


@dataclass(frozen=True)
class GrokLibrary:
    """Named patterns, by name."""

    patterns: Mapping[str, str]

    @classmethod
    def load(cls, directory: Path) -> GrokLibrary:
        """Read all ``*.grok`` files of a directory.

        Raises:
            GrokError: a line is malformed, a name is defined twice or a construct is not portable.
        """
        patterns: dict[str, str] = {}
        for path in sorted(directory.glob("*.grok")):
            for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
                if not line.strip() or line.startswith("#"):
                    continue
                match = _DEFINITION.fullmatch(line)
                if match is None:
                    raise GrokError(f"{path.name}:{number}: expected NAME and a pattern")
                name, pattern = match.groups()
                if name in patterns:
                    raise GrokError(f"{path.name}:{number}: {name} is defined twice")
                _check_portable(pattern, f"{path.name}:{number}")
                patterns[name] = pattern
        return cls(patterns)

    def to_python(self, pattern: str) -> PythonPattern:
        r"""Translate a grok pattern.

        A leading ``\A`` makes it anchored.

        Raises:
            GrokError: an unknown name, a circular definition or a construct that is not portable.
        """
        _check_portable(pattern, pattern)
        captures: list[Capture] = []
        anchored = pattern.startswith(r"\A")
        regex = self._expand(pattern[2:] if anchored else pattern, captures, 0)
        # The same set of characters, but the engine jumps to the end instead of walking.
        regex = regex.replace(r"[\s\S]*", r"(?s:.*)")
        try:
            re.compile(regex)
        except re.error as error:
            raise GrokError(f"{pattern}: {error}") from error
        return PythonPattern(regex, tuple(captures), anchored)

    def _expand(self, pattern: str, captures: list[Capture], depth: int) -> str:
        if depth > _MAX_DEPTH:
            raise GrokError(f"circular definition near {pattern}")
        parts: list[str] = []
        end = 0
        for match in _REFERENCE.finditer(pattern):
            name, field, kind = match.groups()
            if name not in self.patterns:
                raise GrokError(f"unknown pattern %{{{name}}} in {pattern}")
            parts.append(pattern[end : match.start()])
            if field:
                captures.append(Capture(field, kind or "string"))
            inner = self._expand(self.patterns[name], captures, depth + 1)
            parts.append(f"({inner})" if field else f"(?:{inner})")
            end = match.end()
        parts.append(pattern[end:])
        return "".join(parts)

    def used_by(self, patterns: Iterable[str]) -> dict[str, str]:
        """Return the definitions that the given patterns need, directly or not, sorted by name."""
        wanted: set[str] = set()
        queue = list(patterns)
        while queue:
            for match in _REFERENCE.finditer(queue.pop()):
                name = match.group(1)
                if name not in wanted and name in self.patterns:
                    wanted.add(name)
                    queue.append(self.patterns[name])
        return {name: self.patterns[name] for name in sorted(wanted)}


def _check_portable(pattern: str, where: str) -> None:
    without_classes = re.sub(r"\[\^?\]?(?:\\.|[^\]\\])*\]", "[]", pattern)
    found = _FORBIDDEN.search(without_classes)
    if found:
        raise GrokError(f"{where}: {found.group()!r} is not portable between the engines")
