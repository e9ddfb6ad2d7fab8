"""How often the diagnosis names the right card: ``python -m benchmarks.accuracy [--sizes 2x8,16x8] …``.

Clocks of hosts are off by up to ten seconds, those of devices by eight hours for odd seeds, and a tenth of
the files is lost or cut, unless the options say otherwise. Every run writes a cluster's logs with a known
fault, reads them as the command line does and compares the verdict with the truth. Seeds from 1000 on are for
this table; rules and scores were tuned on seeds below 100 only.

top-1: the first card named is at fault (healthy runs: nobody is accused). top-3: one of the first three
suspects is. accused: a card is named that is not at fault. open: undetermined, or a fault that was not seen.
Beside the engine stand the baselines of ``benchmarks.baselines`` with their own top-1 and accusations on the
same logs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import timezone
from functools import lru_cache
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ascend_elk.cann import Version
from ascend_elk.diagnose import Card, Collector, conclude
from ascend_elk.formats import compile_program, load_definitions
from ascend_elk.interest import load_signs
from ascend_elk.layout import discover
from ascend_elk.opening import literal_search
from ascend_elk.parse import Parser
from ascend_elk.reading import Reader
from benchmarks import baselines

FIRST_SEED = 1000
SIZES = ("2x8", "16x8", "128x8")
METHODS = ("engine", "faultdiag", "first error", "most errors")


@dataclass(frozen=True)
class Run:
    """One cluster to write and judge."""

    scenario: str
    size: str
    seed: int
    cann: str
    skew: float
    lost: float


@dataclass(frozen=True)
class Score:
    """What one method made of one run."""

    run: Run
    method: str
    top1: bool
    top3: bool
    accused: bool
    undetermined: bool
    confidence: float = 0.0
    rule: str = ""


def judge(run: Run) -> list[Score]:
    """Write the logs of a run, judge them with every method and remove them."""
    from ascend_elk.simulate import simulate

    hosts, devices = (int(part) for part in run.size.split("x"))
    directory = Path(tempfile.mkdtemp(prefix="accuracy-"))
    logs = directory / "logs"
    try:
        simulate(
            logs,
            run.scenario,
            hosts=hosts,
            devices=devices,
            cann=Version.parse(run.cann),
            seed=run.seed,
            skew_seconds=run.skew,
            device_utc=run.seed % 2 == 1,
            lost=run.lost,
        )
        truth = json.loads((logs / "truth.json").read_text("utf-8"))
        (logs / "truth.json").unlink()
        collector = collect(logs)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return list(scores(run, truth, collector))


def collect(logs: Path) -> Collector:
    """Read a directory as ``ascend-elk diagnose`` does."""
    reader = Reader(_parser())
    literals = literal_search(load_signs().literals())
    return Collector().feed(reader.events(discover([logs]).files, literals))


@lru_cache(maxsize=1)
def _parser() -> Parser:
    return Parser(compile_program(load_definitions()), host_zone=timezone.utc)


def scores(run: Run, truth: dict[str, Any], collector: Collector) -> Iterator[Score]:
    """Compare each method's answer with the truth."""
    sets = [truth["cards"], *truth["acceptable"]]
    guilty = {(card["host"], card["device"]) for cards in sets for card in cards}
    verdict = conclude(collector)
    ranked = list(dict.fromkeys([*verdict.cards, *(suspect.card for suspect in verdict.suspects)]))
    named = list(verdict.cards)
    yield _score(run, "engine", guilty, named, ranked, verdict.confidence, verdict.rule)
    for method, judged in (
        ("faultdiag", baselines.faultdiag(collector)),
        ("first error", baselines.first_error_line(collector)),
        ("most errors", baselines.most_errors(collector)),
    ):
        # Two ends of a link count as right if either is: the baselines do not rank them.
        pair = sorted(judged, key=lambda card: (card.host, card.device) not in guilty)
        yield _score(run, method, guilty, pair if len(judged) == 2 else judged, judged, 0.0, "")


def _score(
    run: Run,
    method: str,
    guilty: set[tuple[object, object]],
    named: list[Card],
    ranked: list[Card],
    confidence: float,
    rule: str,
) -> Score:
    def right(card: Card) -> bool:
        return (card.host, card.device) in guilty

    if not guilty:
        return Score(run, method, not named, not named, bool(named), False, confidence, rule)
    return Score(
        run,
        method,
        bool(named) and right(named[0]),
        any(right(card) for card in ranked[:3]),
        bool(named) and not right(named[0]),
        not named,
        confidence,
        rule,
    )


def table(found: Iterable[Score]) -> Table:
    """Draw the shares by scenario and size."""
    groups: dict[tuple[str, str], dict[str, list[Score]]] = defaultdict(lambda: defaultdict(list))
    for score in found:
        groups[score.run.size, score.run.scenario][score.method].append(score)
        groups[score.run.size, "all"][score.method].append(score)
    drawn = Table("size", "scenario", box=None)
    for title in ("runs", "top-1", "top-3", "accused", "open"):
        drawn.add_column(title, justify="right")
    for method in METHODS[1:]:
        drawn.add_column(f"{method}: top-1 / accused", justify="right")
    order = sorted(groups, key=lambda key: (int(key[0].split("x")[0]), key[1] == "all", key[1]))
    for size, scenario in order:
        methods = groups[size, scenario]
        engine = methods["engine"]
        drawn.add_row(
            size,
            scenario,
            str(len(engine)),
            *(
                _share([getattr(score, name) for score in engine])
                for name in ("top1", "top3", "accused", "undetermined")
            ),
            *(
                f"{_share([s.top1 for s in methods[name]])} / {_share([s.accused for s in methods[name]])}"
                for name in METHODS[1:]
            ),
            style="bold" if scenario == "all" else "",
        )
    return drawn


def _share(values: list[bool]) -> str:
    return f"{100 * sum(values) / len(values):.0f} %" if values else "–"


def calibration(found: Iterable[Score]) -> Table:
    """Draw how often verdicts of a confidence were right."""
    bins: dict[int, list[bool]] = defaultdict(list)
    for score in found:
        if score.method == "engine" and (score.top1 or score.accused) and score.rule:
            bins[min(9, int(score.confidence * 10))].append(score.top1)
    drawn = Table("confidence", box=None)
    drawn.add_column("verdicts", justify="right")
    drawn.add_column("right", justify="right")
    for number, values in sorted(bins.items()):
        drawn.add_row(f"{number / 10:.1f} to {number / 10 + 0.1:.1f}", str(len(values)), _share(values))
    return drawn


def main(arguments: list[str]) -> int:
    """Run and print; the misses go to standard error with ``--misses``."""
    from ascend_elk.simulate import SCENARIOS

    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--sizes", default="2x8,16x8", help=f"hosts x devices, of {', '.join(SIZES)} or any")
    parser.add_argument("--seeds", type=int, default=20, help="seeds for each scenario and size")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--scenarios", default="", help="names, with commas between; default: all")
    parser.add_argument("--cann", default="8.0")
    parser.add_argument("--skew", type=float, default=10.0, help="largest offset of a host's clock, seconds")
    parser.add_argument("--lost", type=float, default=0.1, help="share of the files that are lost or cut")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--misses", action="store_true", help="list runs where the engine was not right")
    options = parser.parse_args(arguments)
    names = [name for name in options.scenarios.split(",") if name] or list(SCENARIOS)
    runs = [
        Run(name, size, seed, options.cann, options.skew, options.lost)
        for size in options.sizes.split(",")
        for name in names
        for seed in range(options.first_seed, options.first_seed + options.seeds)
    ]
    found: list[Score] = []
    errors = Console(stderr=True)
    with ProcessPoolExecutor(options.jobs) as pool, Progress(console=errors, transient=True) as progress:
        task = progress.add_task("runs", total=len(runs))
        for future in as_completed([pool.submit(judge, run) for run in runs]):
            found += future.result()
            progress.advance(task)
    console = Console(width=None if sys.stdout.isatty() else 170)
    console.print(table(found))
    console.print()
    console.print(calibration(found))
    if options.misses:
        for score in sorted(found, key=lambda s: (s.run.size, s.run.scenario, s.run.seed)):
            if score.method == "engine" and not score.top1:
                state = "open" if score.undetermined else "accused"
                errors.print(
                    f"{score.run.size} {score.run.scenario} seed {score.run.seed}: {state} {score.rule}"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
