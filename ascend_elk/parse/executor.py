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


_Learned = tuple[dict[str, Any], "tuple[_Body, ...] | None"]


class _Heads(dict[str, "_Learned | None"]):
    """What the heads of lines say, fields and body styles: lines share few, each is worked out once."""

    def __init__(self, learn: Callable[[str], _Learned | None]) -> None:
        self._learn = learn

    def __missing__(self, head: str) -> _Learned | None:
        if len(self) > _HEADS:
            self.clear()
        learned = self[head] = self._learn(head)
        return learned


@dataclass(frozen=True)
class Format:
    """A line format, compiled; ``bodies`` by module, ``None`` for modules that no style names.

    ``header``: what stands behind the head, where there are ``heads``. ``only_time``: the written time is all
    that it captures.
    """

    name: str
    header: re.Pattern[str]
    heads: _Heads | None
    capture: _Setter
    whole: bool
    time: str | None
    only_time: bool
    level: dict[str, str] | None
    constants: dict[str, Any]
    bodies: dict[str | None, tuple[_Body, ...]]

    def opened(self, found: re.Match[str], known: dict[str, Any], bodies: tuple[_Body, ...] | None) -> Opened:
        """What a match of the header opens."""
        start = found.start() if self.whole else found.end()
        if self.only_time:
            return self, start, None, found[1], known, bodies
        return self, start, found, None, known, bodies


# How a record began, a plain tuple because one is made per line: the format, or None where only a prefix was
# recognised; where its message begins; the match of the header, None where ``written``, the time, is all that
# it captures; the fields of prefix and head, with what level and module of the head imply; the body styles to
# try, where the head told the module.
Opened = tuple[
    "Format | None", int, "re.Match[str] | None", "str | None", dict[str, Any], "tuple[_Body, ...] | None"
]
_Open = Callable[[str, int], Opened | None]
_Common = Callable[[str, int], "tuple[int, Opened] | None"]


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
        self._formats = {item.name: self._format(program, item) for item in program.formats(source)}
        formats = [(item.starts, self._open(item)) for item in program.formats(source)]
        self._by_first: dict[str, tuple[_Open, ...]] = _by_first_character(formats)
        self.common = self._most_common(program)
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
                line_format, begin, match, written, known, bodies = opened
                return line_format, begin, match, written, fields | known, bodies
        return None if prefix.needs_header else (None, position, None, None, fields, None)

    def _format(self, program: Program, item: LineFormat) -> Format:
        # The message is the rest: where it starts is enough, its text need not be captured.
        pattern = self._grok.to_python(item.header.removesuffix("%{REST:message}"))
        bodies: dict[str | None, tuple[_Body, ...]] = {}
        if item.bodies:
            for module in (None, *program.modules(item.bodies)):
                styles = program.bodies(item.bodies, module)
                bodies[module] = tuple(self._body(item.name, style) for style in styles)
        return Format(
            name=item.name,
            header=pattern.compiled,
            heads=self._heads(item, bodies) if item.head else None,
            capture=self._capture(pattern.captures),
            whole=item.whole,
            time=item.time,
            only_time=[capture.field for capture in pattern.captures] == [WRITTEN],
            level=self._levels.spellings[item.level] if item.level else None,
            constants=item.set,
            bodies=bodies,
        )

    def _heads(self, item: LineFormat, bodies: dict[str | None, tuple[_Body, ...]]) -> _Heads:
        pattern = self._grok.to_python(item.head)
        match, capture = pattern.compiled.match, self._capture(pattern.captures)

        def learn(head: str) -> _Learned | None:
            found = match(head, 0)
            if found is None or found.end() != len(head):
                return None
            fields: dict[str, Any] = {}
            capture(fields, found)
            self.complete(fields, item.set, None)
            return fields, bodies.get(fields.get("ascend.module")) or bodies.get(None)

        return _Heads(learn)

    def _open(self, item: LineFormat) -> _Open:
        """Compile the function that recognises a line of one format."""
        compiled = self._formats[item.name]
        match, heads = compiled.header.match, compiled.heads
        head_end, length = item.head_end, len(item.head_end)

        def open_line(line: str, start: int) -> Opened | None:
            found = match(line, start)
            return None if found is None else compiled.opened(found, {}, None)

        def open_headed(line: str, start: int) -> Opened | None:
            end = line.find(head_end, start) + length
            learned = heads[line[start:end]] if heads is not None and end >= length else None
            if learned is None:
                return None
            found = match(line, end)
            return None if found is None else compiled.opened(found, *learned)

        return open_line if heads is None else open_headed

    def _most_common(self, program: Program) -> _Common | None:
        """Recognise whole lines of the source's first format within a text, by one pattern for all."""
        item = next(iter(program.formats(self.source)), None)
        if item is None or len(item.starts) != 1 or item.whole:
            return None
        compiled = self._formats[item.name]
        head_end, heads = item.head_end, compiled.heads
        if heads is None or not compiled.only_time:
            return None
        head = f"({re.escape(item.starts)}[^{re.escape(head_end[0])}\n]*{re.escape(head_end)})"
        match = re.compile(f"{head}{compiled.header.pattern}([^\n]*)\n").match

        def common(text: str, position: int) -> tuple[int, Opened] | None:
            found = match(text, position)
            if found is None:
                return None
            head, written, rest = found.groups()
            learned = heads[head]
            # A second head on the line is for the framing to find.
            if learned is None or head_end in rest:
                return None
            known, bodies = learned
            return found.end(), (compiled, found.start(3) - position, None, written, known, bodies)

        return common

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
        exec("\n".join(lines), namespace)  # noqa: S102 - as said
        setter: _Setter = namespace["capture"]
        return setter


def _by_first_character(items: Sequence[tuple[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Candidates by the character that a line begins with, in order; "" for any other."""
    characters = {character for starts, _ in items for character in starts} | {""}
    return {
        character: tuple(item for starts, item in items if not starts or (character in starts and character))
        for character in characters
    }
