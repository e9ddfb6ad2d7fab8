"""Files become events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone, tzinfo
from typing import Any, BinaryIO

from ahocorasick_rs import BytesAhoCorasick

from ascend_elk.formats.program import Program
from ascend_elk.parse.event import Event
from ascend_elk.parse.executor import WRITTEN, Opened, SourceExecutor
from ascend_elk.parse.extraction import Extraction
from ascend_elk.parse.times import Clock
from ascend_elk.records import read_matching_records, read_records

# A line of 1,023 bytes was cut by the log library (MSG_LENGTH 1024 with the final NUL).
_LEAST_CUT, _CUT_LENGTHS = 1022, (1022, 1023)
# Device clocks start at 1970 until the host sets them.
_FIRST_YEAR = "2000"
# Heads of one file that are kept together with what the file says.
_MERGED = 10_000


class Parser:
    """Turns the bytes of files into events, by a program.

    Attributes:
        settings: what ``Parser.of`` makes the same parser from, in another process.
    """

    def __init__(
        self,
        program: Program,
        *,
        host_zone: tzinfo = timezone.utc,
        device_zone: tzinfo | None = None,
    ) -> None:
        """Compile the program.

        Args:
            program: formats and extractors.
            host_zone: zone of lines written by hosts.
            device_zone: zone of lines written by devices; default: the hosts'.
        """
        definitions = program.definitions
        self._program = program
        self._zones = {"host": host_zone, "device": device_zone or host_zone}
        self.settings = (program, host_zone, device_zone)
        self._executors: dict[str, SourceExecutor] = {}
        self._extraction = Extraction(program.extractors, definitions.headline, definitions.grok)

    @classmethod
    def of(cls, settings: tuple[Program, tzinfo, tzinfo | None]) -> Parser:
        """Make a parser from the settings of another."""
        program, host_zone, device_zone = settings
        return cls(program, host_zone=host_zone, device_zone=device_zone)

    def executor(self, source: str) -> SourceExecutor:
        """Return the compiled source; raises KeyError for an unknown one."""
        if source not in self._executors:
            self._executors[source] = SourceExecutor(self._program, self._program.sources[source])
        return self._executors[source]

    def events(
        self,
        stream: BinaryIO,
        source: str,
        fields: Mapping[str, Any],
        read_at: datetime,
        literals: BytesAhoCorasick | None = None,
    ) -> Iterator[Event]:
        """Read a file to its end.

        Args:
            stream: its bytes, uncompressed.
            source: name of its source.
            fields: what its path says; must hold ``log.file.path``.
            read_at: time of reading, or when the file was last written.
            literals: only events that hold one of these are wanted; much faster.

        Yields:
            Events in the order of the file; without ``literals`` their ``raw`` concatenate to it.
        """
        executor = self.executor(source)
        clock = Clock(self._zones[executor.source.clock], read_at)
        base = {
            "event.module": "ascend",
            "event.dataset": executor.source.dataset,
            "ascend.source": executor.source.name,
            **fields,
        }
        make = self._event_maker(executor, base, clock)
        if literals is None:
            return read_records(stream, executor.opens, executor.continues, make, executor.common)
        find = literals.find_matches_as_indexes
        return read_matching_records(stream, executor.opens, executor.continues, make, find)

    def _event_maker(
        self, executor: SourceExecutor, base: dict[str, Any], clock: Clock
    ) -> Callable[[bytes, str, int, int, Opened | None, bool], Event]:
        extract = self._extraction.apply
        # What the file and a head say together, by the head, which lives as long as its entry here.
        merged: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}

        def merge(known: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
            if len(merged) > _MERGED:
                merged.clear()
            entry = merged[id(known)] = (known, {**base, **known})
            return entry

        def make(raw: bytes, text: str, offset: int, line: int, opened: Opened | None, split: bool) -> Event:
            tags: list[str] = []
            if opened is None:
                fields = base.copy()
                start = 0
                tags.append("ascend_unparsed")
            else:
                line_format, start, match, written, known, bodies = opened
                headed = line_format is not None and line_format.heads is not None
                fields = (merged.get(id(known)) or merge(known))[1].copy() if headed else {**base, **known}
                if line_format is None:
                    tags.append("ascend_unparsed")
                else:
                    if match is not None:
                        line_format.capture(fields, match)
                    if not headed:
                        executor.complete(fields, line_format.constants, line_format.level)
                        module = fields.get("ascend.module")
                        bodies = line_format.bodies.get(module) or line_format.bodies.get(None)
                    fields["ascend.format"] = line_format.name
                    for body in bodies or ():
                        found = body.match(text, start)
                        if found is not None:
                            fields["ascend.format"] = body.label
                            body.capture(fields, found)
                            break
                    if line_format.time is not None:
                        written = written or fields.pop(WRITTEN, None)
                        time = clock.readers[line_format.time](written) if written else None
                        if time is not None and time >= _FIRST_YEAR:
                            fields["@timestamp"] = time
                        elif written:
                            _note_time(written, time, fields, clock, tags)
            fields["message"] = message = text[start:]
            extract(message, fields)
            if len(raw) >= _LEAST_CUT and _cut(raw):
                tags.append("ascend_truncated")
            if split:
                tags.append("ascend_split")
            if "\ufffd" in text and _invalid(raw):
                tags.append("ascend_invalid_utf8")
            if tags:
                fields["tags"] = tags
            fields["log.offset"] = offset
            fields["event.original"] = text
            return Event(fields, raw, offset, line)

        return make


def _note_time(written: str, time: str | None, fields: dict[str, Any], clock: Clock, tags: list[str]) -> None:
    """Keep a written time that is no time, or that of a clock before its synchronisation."""
    fields[WRITTEN] = written
    if time is None:
        tags.append("ascend_time_unparsed")
    else:
        fields["ascend.clock.unsynchronised"] = True
        fields["@timestamp"] = f"{clock.read_at.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%S.%f}Z"


def _cut(raw: bytes) -> bool:
    return any(len(line) in _CUT_LENGTHS for line in raw.rstrip(b"\n").split(b"\n"))


def _invalid(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False
