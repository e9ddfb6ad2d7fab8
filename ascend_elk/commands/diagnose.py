"""``ascend-elk diagnose``: which card, and why."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import tzinfo
from pathlib import Path
from typing import Annotated

import orjson
import typer

from ascend_elk.commands.options import Cann, DeviceZone, Paths, Zone, read_zone
from ascend_elk.commands.output import byte_progress, console, notices, report_skipped
from ascend_elk.diagnose.collect import Collector
from ascend_elk.diagnose.model import Verdict
from ascend_elk.errors import UserError
from ascend_elk.formats import Program
from ascend_elk.interest import load_signs
from ascend_elk.layout import LogFile, Skipped
from ascend_elk.opening import literal_search
from ascend_elk.parse import Parser
from ascend_elk.reading import Reader


def diagnose(
    paths: Paths,
    cann: Cann = "auto",
    json: Annotated[
        bool, typer.Option("--json", help="The verdict as one JSON document, see docs/diagnosis.md.")
    ] = False,
    html: Annotated[Path | None, typer.Option(help="Write a self-contained page with the timeline.")] = None,
    lang: Annotated[str, typer.Option(help="Language of verdict and remediation: en or zh.")] = "en",
    codes: Annotated[list[Path] | None, typer.Option(help="Own error codes, YAML as under codes/.")] = None,
    timezone: Zone = "UTC",
    device_timezone: DeviceZone = None,
    jobs: Annotated[int, typer.Option(min=0, help="Processes that read; 0: one per core.")] = 0,
) -> None:
    """Find the card that failed first or drags the others down. Exits with 1 if there is trouble."""
    if lang not in ("en", "zh"):
        raise UserError(f"{lang!r} is no language of the verdict; write en or zh")
    verdict = run(paths, cann, timezone, device_timezone, jobs, codes or [])
    if html is not None:
        write_page(verdict, html, ", ".join(str(path) for path in paths))
        notices().print(f"timeline: {html}", markup=False)
    if json:
        typer.echo(orjson.dumps(verdict.to_json(), option=orjson.OPT_INDENT_2).decode())
    else:
        from ascend_elk.report import show

        show(verdict, console(), lang)
    if verdict.kind != "healthy":
        raise typer.Exit(1)


def run(
    paths: Sequence[Path],
    cann: str,
    zone: str,
    device_zone: str | None,
    jobs: int,
    codes: Sequence[Path],
) -> Verdict:
    """Read logs and diagnose them.

    Args:
        paths: files and directories.
        cann: a version, ``auto`` or ``all``.
        zone: zone of the hosts' clocks.
        device_zone: zone of the devices' clocks; ``None``: the hosts'.
        jobs: processes that read; 0: one per core.
        codes: own error codes.

    Raises:
        UserError: no such path, no log file, no such version or zone.
    """
    from ascend_elk.codes import Catalogue
    from ascend_elk.detect import detect_version
    from ascend_elk.diagnose import conclude
    from ascend_elk.opening import open_logs

    host_zone, other_zone = read_zone(zone), read_zone(device_zone) if device_zone else None
    catalogue = Catalogue.load(codes)
    logs = open_logs(paths, cann, host_zone, other_zone)
    version = logs.version or detect_version(logs).version
    with byte_progress(logs.files, "reading") as progress:
        collector, skipped = collect(logs.files, logs.reader.parser, jobs or os.cpu_count() or 1, progress)
    report_skipped([*logs.skipped, *skipped])
    return conclude(collector, catalogue=catalogue, version=version)


def collect(
    files: Sequence[LogFile], parser: Parser, jobs: int, progress: Callable[[int], None]
) -> tuple[Collector, list[Skipped]]:
    """Collect what the diagnosis needs, with several processes where that pays."""
    total = sum(file.size for file in files)
    if jobs == 1 or len(files) == 1 or total < _WORTH_A_PROCESS:
        return _collect(parser, files, progress)
    collector = Collector()
    skipped: list[Skipped] = []
    with ProcessPoolExecutor(jobs, initializer=_set_up, initargs=(parser.settings,)) as pool:
        for share, part, unread in pool.map(_work, _shares(files, total, jobs)):
            collector.merge(part)
            skipped += unread
            progress(share)
    return collector, skipped


# Below this, starting a process takes longer than reading.
_WORTH_A_PROCESS = 32 << 20
_SHARES_PER_JOB = 16
_parser: Parser | None = None


def _shares(files: Sequence[LogFile], total: int, jobs: int) -> list[list[LogFile]]:
    """Cut the files, in order, into shares of about the same size."""
    limit = max(total // (jobs * _SHARES_PER_JOB), 1 << 20)
    shares: list[list[LogFile]] = [[]]
    size = 0
    for file in files:
        if size > limit:
            shares.append([])
            size = 0
        shares[-1].append(file)
        size += file.size
    return shares


def _set_up(settings: tuple[Program, tzinfo, tzinfo | None]) -> None:
    global _parser
    _parser = Parser.of(settings)


def _work(files: list[LogFile]) -> tuple[int, Collector, list[Skipped]]:
    assert _parser is not None  # noqa: S101 - set by the pool's initializer
    collector, skipped = _collect(_parser, files, None)
    return sum(file.size for file in files), collector, skipped


def _collect(
    parser: Parser, files: Sequence[LogFile], progress: Callable[[int], None] | None
) -> tuple[Collector, list[Skipped]]:
    reader = Reader(parser, progress)
    collector = Collector()
    collector.feed(reader.events(files, literal_search(load_signs().literals())))
    return collector, reader.skipped


def write_page(verdict: Verdict, path: Path, title: str) -> None:
    """Write the verdict's page; raises UserError where that is impossible."""
    from ascend_elk.report import page

    try:
        path.write_text(page(verdict, title), "utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}); name another file") from error
