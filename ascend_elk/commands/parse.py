"""``ascend-elk parse``: events as a table or as NDJSON."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from heapq import merge
from itertools import chain, groupby, islice
from typing import Annotated

import orjson
import typer
from rich.text import Text

from ascend_elk.commands.options import Cann, DeviceZone, Paths, Zone, read_zone
from ascend_elk.commands.output import LEVEL_STYLES, byte_progress, console, report_skipped
from ascend_elk.errors import UserError
from ascend_elk.identity import Registry
from ascend_elk.layout import LogFile
from ascend_elk.opening import identified, open_logs
from ascend_elk.parse import Event, nested
from ascend_elk.reading import Reader
from ascend_elk.selection import Selection, read_time, with_context

_WRITE_AT = 2_000  # events


class Format(str, Enum):
    """Output formats."""

    TABLE = "table"
    NDJSON = "ndjson"


def parse(
    paths: Paths,
    cann: Cann = "auto",
    form: Annotated[
        Format, typer.Option("--format", help="table for people, ndjson for programs.")
    ] = Format.TABLE,
    level: Annotated[
        str | None, typer.Option(help="Least level: DEBUG, INFO, WARNING, ERROR; or EVENT exactly.")
    ] = None,
    code: Annotated[
        str | None, typer.Option(help="Error code, for example EI0006, 507018 or acl:507018.")
    ] = None,
    device: Annotated[int | None, typer.Option(help="Device id.")] = None,
    pid: Annotated[int | None, typer.Option(help="Process id on the host.")] = None,
    module: Annotated[str | None, typer.Option(help="CANN module, for example HCCL.")] = None,
    signal: Annotated[str | None, typer.Option(help="Signal: timeout, retry, oom, aicore, link …")] = None,
    since: Annotated[
        str | None, typer.Option(help="Not before this time, in the hosts' zone unless it states one.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Not after this time.")] = None,
    context: Annotated[
        int,
        typer.Option(min=0, help="Events before and after each, of the same process and its device side."),
    ] = 0,
    timezone: Zone = "UTC",
    device_timezone: DeviceZone = None,
) -> None:
    """Parse logs and print their events."""
    zone = read_zone(timezone)
    logs = open_logs(paths, cann, zone, read_zone(device_timezone) if device_timezone else None)
    severity = logs.program.definitions.levels.severity
    if level is not None and level.upper() not in {*severity, "EVENT", "TRACE", "OPLOG", "NULL"}:
        raise UserError(f"{level!r} is not a level; write DEBUG, INFO, WARNING, ERROR or EVENT")
    selection = Selection(
        level=level,
        code=code,
        device=device,
        pid=pid,
        signal=signal,
        module=module,
        since=read_time(since, zone) if since else None,
        until=read_time(until, zone) if until else None,
    )
    with byte_progress(logs.files, "parsing") as progress:
        logs.reader.progress = progress
        registry = logs.registry()
        groups = _by_process(logs.files) if context else [[file] for file in logs.files]
        streams = (_in_time_order(logs.reader, group, registry) for group in groups)
        if selection != Selection():
            streams = (with_context(selection.filter(stream, severity), context) for stream in streams)
        events = chain.from_iterable(streams)
        if form is Format.NDJSON:
            _write_ndjson(events)
        else:
            _print_table(events)
    report_skipped([*logs.skipped, *logs.reader.skipped])


def _by_process(files: Sequence[LogFile]) -> list[list[LogFile]]:
    def key(file: LogFile) -> tuple[str, int, str]:
        pid = file.fields.get("process.pid")
        return str(file.fields.get("host.name", "")), pid or 0, "" if pid else str(file.path)

    return [list(group) for _, group in groupby(sorted(files, key=key), key)]


def _in_time_order(reader: Reader, files: Sequence[LogFile], registry: Registry) -> Iterable[Event]:
    streams = [identified(reader.file(file), registry) for file in files]
    if len(streams) == 1:
        return streams[0]
    return (event for _, event in merge(*map(_with_time, streams), key=lambda pair: pair[0]))


def _with_time(events: Iterable[Event]) -> Iterator[tuple[str, Event]]:
    time = ""
    for event in events:
        time = event.fields.get("@timestamp", time)
        yield time, event


def _write_ndjson(events: Iterable[Event]) -> None:
    out = sys.stdout.buffer
    # Events come and go by the million, none in a cycle: the collector would look at them in vain.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    dumps, newline = orjson.dumps, orjson.OPT_APPEND_NEWLINE
    documents = (dumps(nested(event.fields), None, newline) for event in events)
    while lines := list(islice(documents, _WRITE_AT)):
        out.write(b"".join(lines))
    out.flush()


_COLUMNS = (
    ("TIME (UTC)", 27, "@timestamp"),
    ("LEVEL", 7, "log.level"),
    ("HOST", 10, "host.name"),
    ("PID", 8, "process.pid"),
    ("DEV", 3, "ascend.device.id"),
    ("RANK", 4, "ascend.rank.id"),
    ("MODULE", 9, "ascend.module"),
    ("CODE", 10, "error.code"),
)


def _print_table(events: Iterable[Event]) -> None:
    out = console()
    out.print(Text(" ".join(title.ljust(width) for title, width, _ in _COLUMNS) + " MESSAGE", style="bold"))
    for event in events:
        fields = event.fields
        style = LEVEL_STYLES.get(fields.get("log.level", ""), "")
        row = Text(
            " ".join(str(fields.get(name, "-")).ljust(width) for _, width, name in _COLUMNS), style=style
        )
        row.append(" " + _visible(fields["message"]))
        out.print(row)


def _visible(message: str) -> str:
    # Control characters of a log must not reach the terminal.
    return "".join(
        character if character.isprintable() or character == "\t" else "⏎" if character == "\n" else "·"
        for character in message
    )
