"""``ascend-elk demo``: a cluster with a known fault, from logs to verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ascend_elk.commands.diagnose import run, write_page
from ascend_elk.commands.output import console

_LOGS = "logs"
_PAGE = "timeline.html"


def demo(
    directory: Annotated[Path, typer.Argument(help="Where logs and page go.")] = Path("demo"),
    scenario: Annotated[
        str, typer.Option(help="Fault, see: ascend-elk simulate --list.")
    ] = "aicore-exception",
    hosts: Annotated[int, typer.Option(min=1, help="Hosts.")] = 8,
    devices: Annotated[int, typer.Option(min=1, max=16, help="Devices per host.")] = 8,
    cann: Annotated[str, typer.Option(help="CANN version that the logs imitate.")] = "8.0",
    seed: Annotated[int, typer.Option(help="Same seed, same logs.")] = 1,
    lang: Annotated[str, typer.Option(help="Language of the verdict: en or zh.")] = "en",
    force: Annotated[bool, typer.Option("--force", help="Replace the logs of an earlier demo.")] = False,
) -> None:
    """Write a cluster's logs with a known fault, diagnose them and draw the timeline."""
    from ascend_elk.cann import Version
    from ascend_elk.report import show
    from ascend_elk.simulate import simulate
    from ascend_elk.simulate.command import prepare

    out = console()
    logs = directory / _LOGS
    prepare(logs, force)
    truth = simulate(logs, scenario, hosts=hosts, devices=devices, cann=Version.parse(cann), seed=seed)
    out.print(f"Wrote the logs of {hosts} hosts with {devices} devices each to {logs}: {truth.scenario}.")
    out.print(f"Its truth is in {logs / 'truth.json'}; the diagnosis does not read it.\n")
    verdict = run([logs], "auto", "UTC", None, 0, [])
    show(verdict, out, lang)
    page = directory / _PAGE
    write_page(verdict, page, f"demo: {scenario}")
    out.print(f"\nTimeline: {page} (open it in a browser)")
