"""What every backend of the pipeline does, worked out once from the program: patterns, orders and tables.

A backend writes these steps in its own language. The patterns' text is the same for all; only the names that
captures get, and how a name is written, are the backend's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ascend_elk.formats.definitions import BodyStyle, Extractor, LineFormat, Source
from ascend_elk.formats.grok import GrokError, GrokLibrary
from ascend_elk.formats.program import Program

_REFERENCE = re.compile(r"%\{(\w+)(?::([\w.@]+))?(?::(long|double))?\}")
# From how many literals on a search by their first characters is cheaper than one search for each.
MANY_LITERALS = 16
# Longer than any text between the beginning of a match and a literal in it
LONG_LOOKBACK = 48


@dataclass(frozen=True)
class Captured:
    """A capture of a pattern: field and type (``string``, ``long`` or ``double``)."""

    field: str
    type: str


def captures(pattern: str, library: dict[str, str]) -> list[Captured]:
    """Return what a grok pattern captures, the patterns that it names included."""
    found: list[Captured] = []
    for name, captured, kind in _REFERENCE.findall(pattern):
        if captured:
            found.append(Captured(captured, kind or "string"))
        found += captures(library.get(name, ""), library)
    return found


def renamed(pattern: str, rename: Callable[[str, str], str]) -> str:
    """Rewrite the captures of a grok pattern; its regex stays as it is.

    Args:
        pattern: grok.
        rename: from field and type (``""`` where none is written) to what stands behind the pattern's name.
    """

    def replace(match: re.Match[str]) -> str:
        name, captured, kind = match.groups(default="")
        return f"%{{{name}:{rename(captured, kind)}}}" if captured else match.group(0)

    return _REFERENCE.sub(replace, pattern)


@dataclass(frozen=True)
class Format:
    """A line format as a step: ``level`` maps spellings, ``group`` is that of its body styles."""

    name: str
    starts: str
    pattern: str
    whole: bool
    time: str | None
    level: dict[str, str]
    constants: dict[str, Any]
    group: str | None


@dataclass(frozen=True)
class Bodies:
    """Body styles of a group: those of one set of modules, or (``modules`` empty) the others in order."""

    modules: tuple[str, ...]
    styles: tuple[BodyStyle, ...]


@dataclass(frozen=True)
class SourceSteps:
    """How the lines of a source become fields."""

    source: Source
    formats: tuple[Format, ...]
    prefixes: tuple[Any, ...]
    groups: tuple[str, ...]
    renames: dict[str, str]


@dataclass(frozen=True)
class ExtractorStep:
    """An extractor with its number in the order in which facts are merged."""

    number: int
    item: Extractor
    captures: tuple[Captured, ...]

    @property
    def key(self) -> str:
        """Name under which its captures are kept until they are merged."""
        return f"e{self.number}"

    @cached_property
    def slots(self) -> dict[str, str]:
        """Temporary name of each captured field; ``code`` keeps its own."""
        fields = dict.fromkeys(capture.field for capture in self.captures)
        return {name: name if name == "code" else f"f{number}" for number, name in enumerate(fields)}

    def lookback(self, grok: GrokLibrary) -> int:
        """How many characters before a literal a match may begin, by the samples.

        One, for what must stand before a code; more where the literal stands in the middle of the pattern.
        """
        pattern = grok.to_python(self.item.pattern or "").compiled
        for sample in self.item.samples:
            match = pattern.search(sample.message or "")
            if match is None:
                continue
            places = [match.group().find(text) for text in self.item.contains]
            if min((place for place in places if place >= 0), default=0) > 1:
                return LONG_LOOKBACK
        return 1

    @property
    def table(self) -> dict[str, Any]:
        """What the merging script needs to know."""
        item = self.item
        types = {capture.field: capture.type for capture in self.captures}
        return {
            "fields": [
                {"slot": slot, "field": name, "long": types[name] == "long", "scale": item.scale.get(name)}
                for name, slot in self.slots.items()
                if name != "code"
            ],
            "set": dict(item.set),
            "signal": list(item.signal),
            "family": item.code.family if item.code else None,
            "normalise": item.code.normalise if item.code else None,
        }


@dataclass(frozen=True)
class Steps:
    """All of a program."""

    program: Program
    sources: tuple[SourceSteps, ...] = field(init=False)
    extractors: tuple[ExtractorStep, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Work the steps out; raises GrokError where content asks for what no backend can do."""
        definitions = self.program.definitions
        library = dict(definitions.grok.patterns)
        object.__setattr__(
            self, "sources", tuple(self._source(item) for item in definitions.sources.values())
        )
        object.__setattr__(
            self,
            "extractors",
            tuple(
                ExtractorStep(number, item, tuple(captures(item.pattern or "", library)))
                for number, item in enumerate(self.program.extractors)
            ),
        )

    @property
    def library(self) -> dict[str, str]:
        """Named patterns."""
        return dict(self.program.definitions.grok.patterns)

    def bodies(self, group: str) -> list[Bodies]:
        """Body styles in the order in which they are tried: a module's own, then what all others may be."""
        own: dict[tuple[str, ...], list[str]] = {}
        by_name = {style.name: style for style in self.program.bodies(group)} | {
            style.name: style
            for module in self.program.modules(group)
            for style in self.program.bodies(group, module)
        }
        for module in self.program.modules(group):
            styles = self.program.bodies(group, module)
            names = tuple(style.name for style in styles if module in style.modules)
            if names:
                own.setdefault(names, []).append(module)
        found = [
            Bodies(tuple(modules), tuple(by_name[name] for name in names)) for names, modules in own.items()
        ]
        return [*found, Bodies((), tuple(self.program.bodies(group)))]

    def styles(self, group: str) -> list[BodyStyle]:
        """All body styles of a group in the order of their file."""
        wanted = {style.name for bodies in self.bodies(group) for style in bodies.styles}
        return [style for style in self.program.definitions.bodies[group] if style.name in wanted]

    def bodies_name(self, group: str, renames: dict[str, str]) -> str:
        """Sources share the body styles of a group unless their captures have other names."""
        affected = any(
            item.field in renames
            for style in self.styles(group)
            for item in captures(style.pattern, self.library)
        )
        return f"bodies-{group}" + ("-device" if affected else "")

    def _source(self, source: Source) -> SourceSteps:
        formats = tuple(self._format(item) for item in self.program.formats(source))
        prefixes = self.program.prefixes(source)
        for prefix in prefixes:
            if prefix.needs_header and captures(prefix.pattern, self.library):
                raise GrokError(f"prefix {prefix.name}: one that needs a header must not capture")
        return SourceSteps(
            source,
            formats,
            tuple(prefixes),
            tuple(dict.fromkeys(item.group for item in formats if item.group)),
            {"process.pid": "ascend.device.pid"} if source.clock == "device" else {},
        )

    def _format(self, item: LineFormat) -> Format:
        spellings = self.program.definitions.levels.spellings
        return Format(
            item.name,
            item.starts,
            item.pattern,
            item.whole,
            item.time,
            dict(spellings[item.level]) if item.level else {},
            dict(item.set),
            item.bodies,
        )

    def headline(self) -> list[tuple[str, str]]:
        """Rules for the headline code in order: family, and a pattern at the start of the bare code."""
        return [(rule.family, rule.pattern or "") for rule in self.program.definitions.headline]

    def layers(self) -> dict[str, str]:
        """Module to layer."""
        return dict(self.program.definitions.layers)

    def severity(self) -> dict[str, int]:
        """Level to CANN's number."""
        return dict(self.program.definitions.levels.severity)


def literals(texts: Iterable[str]) -> dict[str, Any]:
    """Prepare a search for literals: each by itself, or many of them by first character and length."""
    items = list(texts)
    if len(items) < MANY_LITERALS:
        return {"each": items}
    return {
        "first": sorted({text[0] for text in items}),
        "lengths": sorted({len(text) for text in items}),
        "any": dict.fromkeys(items, True),
    }
