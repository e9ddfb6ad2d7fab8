"""Downloads and builds the engines ahead of the tests: `python -m tests.engines.prepare [ENGINE…]`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from . import elasticsearch, filebeat, kafka, lumberjack
from .cache import EngineUnavailableError, cache_dir


def _elasticsearch() -> Path:
    elasticsearch.find_jdk()
    return elasticsearch.fetch()


ENGINES: dict[str, tuple[str, Callable[[], Path]]] = {
    "lumberjack": ("Lumberjack receiver (a small Go build)", lumberjack.build),
    "kafka": (f"Kafka {kafka.VERSION} (a download of 54 MB)", kafka.fetch),
    "elasticsearch": (f"Elasticsearch {elasticsearch.VERSION} (a download of 950 MB)", _elasticsearch),
    "filebeat": (
        f"Filebeat {filebeat.VERSION} (a download of 310 MB and a Go build of minutes)",
        filebeat.build,
    ),
}


def main() -> int:
    """Prepares what the command line names, all by default; 1 where something can't be had."""
    parser = argparse.ArgumentParser(prog="python -m tests.engines.prepare", description=__doc__)
    parser.add_argument("engine", nargs="*", help=f"{', '.join(ENGINES)}; without any, all")
    wanted = parser.parse_args().engine or list(ENGINES)
    if unknown := [name for name in wanted if name not in ENGINES]:
        parser.error(f"unknown engine {unknown[0]}, there are {', '.join(ENGINES)}")
    failed = False
    print(f"engines for the tests, kept in {cache_dir()}", flush=True)
    for name in wanted:
        title, make = ENGINES[name]
        print(f"{title} …", flush=True)
        started = time.monotonic()
        try:
            path = make()
        except EngineUnavailableError as reason:
            failed = True
            print(f"  not to be had: {reason}", flush=True)
            continue
        print(
            f"  {path.name}, {_size(path) / 1e6:.0f} MB, after {time.monotonic() - started:.1f} s", flush=True
        )
    return int(failed)


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


if __name__ == "__main__":
    sys.exit(main())
