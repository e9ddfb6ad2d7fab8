"""Files become events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timezone, tzinfo
from typing import Any, BinaryIO

from ahocorasick_rs import BytesAhoCorasick

from ascend_elk.formats.program import Program
from ascend_elk.parse.event import Event
from ascend_elk.parse.executor import Format, Opened, SourceExecutor
from ascend_elk.parse.extraction import Extraction
from ascend_elk.parse.times import Clock
from ascend_elk.records import Record, read_matching_records, read_records

# A line of 1,023 bytes was cut by the log library (MSG_LENGTH 1024 with the final NUL).
_CUT_LENGTHS = (1022, 1023)
# Device clocks start at 1970 until the host sets them.
_FIRST_YEAR = "2000"


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
        opens, continues = executor.opens, executor.continues
        if literals is None:
            records = read_records(stream, opens, continues)
        else:
            records = read_matching_records(stream, opens, continues, literals.find_matches_as_indexes)
        for record in records:
            yield self._event(record, executor, base, clock)

    def _event(
        self, record: Record[Opened], executor: SourceExecutor, base: dict[str, Any], clock: Clock
    ) -> Event:
        text = record.text
        tags: list[str] = []
        opened = record.opened
        fields = {**base, **opened.fields} if opened is not None else base.copy()
        if opened is None or opened.format is None:
            start = 0 if opened is None else opened.match.end()
            tags.append("ascend_unparsed")
        else:
            start = self._read_header(opened, opened.format, executor, fields, clock, tags, text)
        fields["message"] = message = text[start:]
        self._extraction.apply(message, fields)
        raw = record.raw
        if len(raw) >= _CUT_LENGTHS[0] and _cut(raw):
            tags.append("ascend_truncated")
        if record.split:
            tags.append("ascend_split")
        if "\ufffd" in text and _invalid(raw):
            tags.append("ascend_invalid_utf8")
        if tags:
            fields["tags"] = tags
        fields["log.offset"] = record.offset
        fields["event.original"] = text
        return Event(fields, raw, record.offset, record.line)

    def _read_header(
        self,
        opened: Opened,
        line_format: Format,
        executor: SourceExecutor,
        fields: dict[str, Any],
        clock: Clock,
        tags: list[str],
        text: str,
    ) -> int:
        """Set the fields of header and body; return where the message starts."""
        match = opened.match
        line_format.capture(fields, match)
        if line_format.read_head is None:
            executor.complete(fields, line_format.constants, line_format.level)
        start = match.start() if line_format.whole else match.end()
        fields["ascend.format"] = line_format.name
        if line_format.bodies:
            bodies = line_format.bodies.get(fields.get("ascend.module")) or line_format.bodies[None]
            for body in bodies:
                found = body.match(text, start)
                if found is not None:
                    fields["ascend.format"] = body.label
                    body.capture(fields, found)
                    break
        written = fields.pop("ascend.clock.written", None)
        if written is not None and line_format.time is not None:
            time = clock.readers[line_format.time](written)
            if time is not None and time >= _FIRST_YEAR:
                fields["@timestamp"] = time
            else:
                fields["ascend.clock.written"] = written
                if time is None:
                    tags.append("ascend_time_unparsed")
                else:
                    fields["ascend.clock.unsynchronised"] = True
                    fields["@timestamp"] = f"{clock.read_at.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%S.%f}Z"
        return start


def _cut(raw: bytes) -> bool:
    return any(len(line) in _CUT_LENGTHS for line in raw.rstrip(b"\n").split(b"\n"))


def _invalid(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False
