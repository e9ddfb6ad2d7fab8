"""``ascend-elk simulate``: write the logs of a fault."""

from __future__ import annotations

import shutil
import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ascend_elk.errors import UserError


def simulate(
    directory: Annotated[Path | None, typer.Argument(help="Where the logs go.")] = None,
    scenario: Annotated[str, typer.Option(help="Name of the fault, see --list.")] = "aicore-exception",
    hosts: Annotated[int, typer.Option(min=1, help="Hosts.")] = 2,
    devices: Annotated[int, typer.Option(min=1, max=64, help="Devices per host.")] = 8,
    cann: Annotated[str, typer.Option(help="CANN version that is imitated.")] = "8.0",
    seed: Annotated[int, typer.Option(help="Same seed, same logs.")] = 1,
    steps: Annotated[int, typer.Option(min=2, help="Training steps.")] = 50,
    skew: Annotated[float, typer.Option(min=0, help="Largest offset of a host's clock, seconds.")] = 0.0,
    device_utc: Annotated[
        bool, typer.Option("--device-utc", help="Device clocks run eight hours behind.")
    ] = False,
    lost: Annotated[float, typer.Option(min=0, max=0.99, help="Share of files that are lost or cut.")] = 0.0,
    level: Annotated[str, typer.Option(help="What debug/ holds: error, info or debug.")] = "error",
    start: Annotated[
        datetime | None, typer.Option(help="When the job begins; default: 2025-03-02T10:00:00.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what an earlier simulation wrote.")] = False,
    show: Annotated[bool, typer.Option("--list", help="List the scenarios and stop.")] = False,
) -> None:
    """Write a whole cluster's logs with a known fault, and the truth about it."""
    from ascend_elk.cann import Version
    from ascend_elk.simulate.cluster import START
    from ascend_elk.simulate.generate import simulate as write
    from ascend_elk.simulate.scenarios import SCENARIOS

    out = Console(highlight=False)
    if show:
        table = Table("scenario", "kind", "what happens", box=None)
        for item in SCENARIOS.values():
            table.add_row(item.name, item.kind, item.description)
        out.print(table)
        return
    if directory is None:
        raise UserError("name the directory for the logs, for example: ascend-elk simulate demo-logs")
    prepare(directory, force)
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("writing", total=None)
        truth = write(
            directory,
            scenario,
            hosts=hosts,
            devices=devices,
            cann=Version.parse(cann),
            seed=seed,
            steps=steps,
            skew_seconds=skew,
            device_utc=device_utc,
            lost=lost,
            level=level,
            start=start or START,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    cards = ", ".join(
        f"{card['host']} device {card['device']} (rank {card['rank']})" for card in truth.cards[:8]
    )
    out.print(f"{directory}: {truth.scenario}, {truth.kind}{': ' + cards if cards else ''}", markup=False)


def prepare(directory: Path, force: bool) -> None:
    """Make sure that a directory may be written: new, empty, or an earlier simulation that may go.

    Raises:
        UserError: it holds something else.
    """
    if directory.is_file():
        raise UserError(f"{directory} is a file; name a directory")
    if directory.is_dir() and any(directory.iterdir()):
        if not (force and (directory / "truth.json").is_file()):
            raise UserError(f"{directory} is not empty; name another one, or use --force after a simulation")
        shutil.rmtree(directory)
