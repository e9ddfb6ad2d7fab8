"""Speed of ``parse`` and ``diagnose`` beside ``grep``: ``python -m benchmarks.speed [--megabytes 500]``.

One generated INFO-heavy log, all commands on it in turn, several rounds; the medians stand in the table, with
the ratio to ``grep -c ERROR`` of the same round as the yardstick that does not depend on the machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ascend_elk.simulate.bulk import write_info_log

CLI = [sys.executable, "-c", "from ascend_elk.cli import main; main()"]


@dataclass
class Run:
    """One run of a command: wall and CPU seconds, peak memory of its largest process in MiB."""

    wall: float
    cpu: float
    memory: float


def measure(command: list[str], cores: int) -> Run:
    """Run a command with its output thrown away; ``cores`` processors at most."""
    available = sorted(os.sched_getaffinity(0))[:cores]
    start = time.perf_counter()
    # grep stops at the first hit when it sees that its output goes nowhere: it writes to a file.
    with tempfile.TemporaryFile() as answer:
        process = subprocess.Popen(
            command,
            stdout=answer if command[0] == "grep" else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, available),
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"error: {' '.join(command[:4])} … ended with {process.returncode}")
    return Run(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def main() -> None:
    """Generate, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=500, help="size of the log")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--skip-parse", action="store_true", help="for very large logs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "plog-4021_20250302112029000.log"
        write_info_log(path, options.megabytes * 1_000_000, seed=1)
        size = path.stat().st_size
        with path.open("rb") as lines:
            count = sum(block.count(b"\n[") for block in iter(lambda: lines.read(1 << 24), b""))
        commands = {
            "grep -c ERROR": (["grep", "-c", "ERROR", str(path)], 1),
            "parse --format ndjson (1 core)": ([*CLI, "parse", str(path), "--format", "ndjson"], 1),
            "diagnose (2 cores)": ([*CLI, "diagnose", str(path), "--json"], 2),
        }
        if options.skip_parse:
            del commands["parse --format ndjson (1 core)"]
        runs: dict[str, list[Run]] = {name: [] for name in commands}
        for _ in range(options.rounds):
            for name, (command, cores) in commands.items():
                runs[name].append(measure(command, cores))
    table = Table(title=f"{size / 1e6:.0f} MB, {count:,} events, median of {options.rounds}", box=None)
    for title in ("command", "s", "CPU s", "MB/s", "events/s", "peak MiB", "times grep"):
        table.add_column(title, justify="left" if title == "command" else "right")
    for name, measured in runs.items():
        wall = statistics.median(run.wall for run in measured)
        ratio = statistics.median(
            run.wall / grep.wall for run, grep in zip(measured, runs["grep -c ERROR"], strict=True)
        )
        table.add_row(
            name,
            f"{wall:.2f}",
            f"{statistics.median(run.cpu for run in measured):.2f}",
            f"{size / wall / 1e6:.0f}",
            f"{count / wall:,.0f}",
            f"{max(run.memory for run in measured):.0f}",
            f"{ratio:.1f}",
        )
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"largest process of all: {children:.0f} MiB")


if __name__ == "__main__":
    main()
