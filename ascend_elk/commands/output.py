"""How the commands talk to a person: colours and progress on a terminal, plain text in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from ascend_elk.layout import LogFile, Skipped

LEVEL_STYLES = {
    "ERROR": "bold red",
    "CRITICAL": "bold red",
    "FATAL": "bold red",
    "WARNING": "yellow",
    "DEBUG": "dim",
}


def console() -> Console:
    """Standard output; wide where it is no terminal, so that tables keep their columns."""
    return Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 160)


def notices() -> Console:
    """Standard error."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


@contextmanager
def byte_progress(files: Sequence[LogFile], label: str) -> Iterator[Callable[[int], None]]:
    """Show a bar over the bytes of files while they are read; nothing where standard error is no terminal."""
    total = sum(file.size for file in files)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task(label, total=total or None)
        yield lambda amount: bar.advance(task, amount)


def report_skipped(skipped: Sequence[Skipped], limit: int = 20) -> None:
    """Say on standard error what was left out, and why."""
    out = notices()
    for item in skipped[:limit]:
        out.print(f"skipped {item.display}: {item.reason}", markup=False, style="yellow")
    if len(skipped) > limit:
        out.print(f"skipped {len(skipped) - limit} more", style="yellow")
