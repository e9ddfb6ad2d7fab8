"""One source of a program, compiled to functions: lines open records, records become fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ascend_elk.formats.definitions import BodyStyle, LineFormat, Prefix, Source
from ascend_elk.formats.grok import Capture
from ascend_elk.formats.program import Program

_Setter = Callable[[dict[str, Any], re.Match[str]], None]
WRITTEN = "ascend.clock.written"
# Distinct heads kept per format: a file of one process has a few dozen.
_HEADS = 10_000
_CONVERT = {"string": "{}", "long": "int({})", "double": "float({})"}
_Match = Callable[[str, int], re.Match[str] | None]


@dataclass(frozen=True)
class _Body:
    label: str
    match: _Match
    capture: _Setter


@dataclass(frozen=True)
class Format:
    """A line format, compiled; ``bodies`` by module, ``None`` for modules that no style names.

    ``only_time``: the written time is all that ``match`` captures.
    """

    name: str
    match: _Match
    capture: _Setter
    whole: bool
    time: str | None
    only_time: bool
    level: dict[str, str] | None
    constants: dict[str, Any]
    bodies: dict[str | None, tuple[_Body, ...]]
    headed: bool


# How a record began, a plain tuple because one is made per line: the format, or None where only a prefix was
# recognised; the match of the header behind the head that lines of a file share; the fields of prefix and
# head, with what level and module of the head imply; the body styles to try, where the head told the module.
Opened = tuple[Format | None, re.Match[str], dict[str, Any], tuple[_Body, ...] | None]
_Open = Callable[[str, int], Opened | None]


@dataclass(frozen=True)
class _Prefix:
    match: _Match
    capture: _Setter
    contains: str
    needs_header: bool


class SourceExecutor:
    """Recognises the lines of one source."""

    def __init__(self, program: Program, source: Source) -> None:
        """Compile the formats of a source; raises GrokError if a pattern is wrong."""
        self.source = source
        # On a device the header names the device-side process; the host's stands in the file name.
        self._renamed = {"process.pid": "ascend.device.pid"} if source.clock == "device" else {}
        self._grok = program.definitions.grok
        self._levels = program.definitions.levels
        self._layers = program.definitions.layers
        self._bodies: dict[tuple[str, str], _Body] = {}
        formats = [(item.starts, self._open(program, item)) for item in program.formats(source)]
        self._by_first: dict[str, tuple[_Open, ...]] = _by_first_character(formats)
        prefixes = [(item.starts, self._prefix(item)) for item in program.prefixes(source)]
        self._prefixes: dict[str, tuple[_Prefix, ...]] = _by_first_character(prefixes)
        continuation = "|".join(self._grok.to_python(pattern).regex for pattern in source.continuation)
        self._continuation = re.compile(continuation).match if source.framing == "continuation" else None

    def opens(self, line: str) -> Opened | None:
        """Recognise a line that starts a record."""
        first = line[:1]
        for candidate in self._by_first.get(first) or self._by_first[""]:
            opened = candidate(line, 0)
            if opened is not None:
                return opened
        for prefix in self._prefixes.get(first) or self._prefixes[""]:
            opened = self._behind(prefix, line)
            if opened is not None:
                return opened
        return None

    def continues(self, line: str) -> bool:
        """Tell whether a line that opens nothing belongs to the record before it."""
        return self._continuation is None or self._continuation(line) is not None

    def _behind(self, prefix: _Prefix, line: str) -> Opened | None:
        if prefix.contains and prefix.contains not in line:
            return None
        start = prefix.match(line, 0)
        if start is None:
            return None
        position = start.end()
        fields: dict[str, Any] = {}
        prefix.capture(fields, start)
        first = line[position : position + 1]
        for candidate in self._by_first.get(first) or self._by_first[""]:
            opened = candidate(line, position)
            if opened is not None:
                line_format, match, known, bodies = opened
                return line_format, match, fields | known, bodies
        return None if prefix.needs_header else (None, start, fields, None)

    def _open(self, program: Program, item: LineFormat) -> _Open:
        """Compile the function that recognises a line of one format."""
        # The message is the rest: where it starts is enough, its text need not be captured.
        pattern = self._grok.to_python(item.header.removesuffix("%{REST:message}"))
        bodies: dict[str | None, tuple[_Body, ...]] = {}
        if item.bodies:
            for module in (None, *program.modules(item.bodies)):
                styles = program.bodies(item.bodies, module)
                bodies[module] = tuple(self._body(item.name, style) for style in styles)
        compiled = Format(
            name=item.name,
            match=pattern.compiled.match,
            capture=self._capture(pattern.captures),
            whole=item.whole,
            time=item.time,
            only_time=[capture.field for capture in pattern.captures] == [WRITTEN],
            level=self._levels.spellings[item.level] if item.level else None,
            constants=item.set,
            bodies=bodies,
            headed=bool(item.head),
        )
        match = compiled.match
        if item.head:
            return self._open_headed(item, compiled)

        def open_line(line: str, start: int) -> Opened | None:
            found = match(line, start)
            return None if found is None else (compiled, found, {}, None)

        return open_line

    def _open_headed(self, item: LineFormat, compiled: Format) -> _Open:
        """The lines of a file share few heads: what one says is worked out once."""
        head_pattern = self._grok.to_python(item.head)
        match_head, capture_head = head_pattern.compiled.match, self._capture(head_pattern.captures)
        match_rest = compiled.match
        head_end, length = item.head_end, len(item.head_end)
        known: dict[str, tuple[dict[str, Any], tuple[_Body, ...] | None] | None] = {}

        def learn(head: str) -> tuple[dict[str, Any], tuple[_Body, ...] | None] | None:
            found = match_head(head, 0)
            if found is None or found.end() != len(head):
                return None
            fields: dict[str, Any] = {}
            capture_head(fields, found)
            self.complete(fields, item.set, None)
            bodies = compiled.bodies.get(fields.get("ascend.module")) or compiled.bodies.get(None)
            return fields, bodies

        def open_line(line: str, start: int) -> Opened | None:
            end = line.find(head_end, start) + length
            if end < length:
                return None
            head = line[start:end]
            try:
                learned = known[head]
            except KeyError:
                if len(known) > _HEADS:
                    known.clear()
                learned = known[head] = learn(head)
            if learned is None:
                return None
            found = match_rest(line, end)
            return None if found is None else (compiled, found, *learned)

        return open_line

    def complete(
        self, fields: dict[str, Any], constants: dict[str, Any], spellings: dict[str, str] | None
    ) -> None:
        """Add what level and module imply."""
        fields.update(constants)
        layer = self._layers.get(fields.get("ascend.module", ""))
        if layer:
            fields.setdefault("ascend.layer", layer)
        level = fields.get("log.level")
        if level is not None:
            if spellings:
                level = fields["log.level"] = spellings.get(level, level)
            severity = int(level) if level.isdecimal() else self._levels.severity.get(level)
            if severity is not None:
                fields["event.severity"] = severity

    def _body(self, format_name: str, style: BodyStyle) -> _Body:
        key = format_name, style.name
        if key not in self._bodies:
            pattern = self._grok.to_python(style.pattern)
            capture = self._capture(pattern.captures)
            self._bodies[key] = _Body(f"{format_name}/{style.name}", pattern.compiled.match, capture)
        return self._bodies[key]

    def _prefix(self, item: Prefix) -> _Prefix:
        pattern = self._grok.to_python(item.pattern)
        return _Prefix(
            pattern.compiled.match, self._capture(pattern.captures), item.contains, item.needs_header
        )

    def _capture(self, captures: Sequence[Capture]) -> _Setter:
        """Compile the function that sets what a match captured; an empty capture sets nothing."""
        names = [f"g{group}" for group in range(len(captures))]
        lines = ["def capture(fields, match):", " pass"]
        if names:
            lines.append(f" {', '.join(names)}, = match.groups()")
        for name, capture in zip(names, captures, strict=True):
            field = self._renamed.get(capture.field, capture.field)
            lines.append(f" if {name}: fields[{field!r}] = {_CONVERT[capture.type].format(name)}")
        namespace: dict[str, Any] = {}
        # Half of the time per line goes here; the text holds nothing but names of the content, as literals.
        exec("\n".join(lines), namespace)  # noqa: S102
        setter: _Setter = namespace["capture"]
        return setter


def _by_first_character(items: Sequence[tuple[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Candidates by the character that a line begins with, in order; "" for any other."""
    characters = {character for starts, _ in items for character in starts} | {""}
    return {
        character: tuple(item for starts, item in items if not starts or (character in starts and character))
        for character in characters
    }
