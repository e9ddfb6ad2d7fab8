"""Everything for a while, with restarts: ``python -m benchmarks.soak [--minutes 20] [--rate 200]``.

Three processes append records at a steady rate; a real Filebeat with the rendered inputs ships them to a real
Elasticsearch whose ingest pipelines parse; the enrichment service, a process of its own, enriches.

In the first three fifths of the time Filebeat, the service and Elasticsearch are restarted and killed in
turn; in the rest nothing is touched, and memory is watched. At the end every record must be there once, and
every one with a code enriched.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ascend_elk.errors import UserError
from ascend_elk.service.catalogue import CatalogueHolder
from ascend_elk.service.health import Health
from ascend_elk.service.metrics import Metrics
from ascend_elk.service.settings import Settings
from ascend_elk.service.store import Store
from ascend_elk.service.worker import Worker
from ascend_elk.stack.http import Credentials, Server
from tests.delivery.site import Site, header, make_site
from tests.engines.elasticsearch import ElasticsearchServer
from tests.engines.filebeat import Filebeat

_WRITERS = 3
_WITH_RESTARTS = 0.6
_SAMPLE_SECONDS = 5.0
_CODED = {"bool": {"filter": [{"exists": {"field": "ascend.error.codes"}}]}}
_ENRICHED = {
    "bool": {
        "filter": [
            {"exists": {"field": "ascend.error.codes"}},
            {"exists": {"field": "ascend.error.catalogue"}},
        ]
    }
}


def record(number: int, writer: int) -> str:
    """Every fifth record has a code, every third further lines."""
    text = header(number, writer=writer)
    if number % 5 == 0:
        text += ", report EI0006: socket timed out"
    return f"{text}\n    detail {number}\n    last line" if number % 3 == 0 else text


class Writers:
    """Threads that append records at a rate each, and note them."""

    def __init__(self, site: Site, rate: float) -> None:
        self.site, self.pause = site, _WRITERS / rate
        self.stopped, self.lock = threading.Event(), threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(writer,)) for writer in range(_WRITERS)]
        for thread in self.threads:
            thread.start()

    def run(self, writer: int) -> None:
        """Write until stopped; behind schedule it catches up."""
        path, number, due = self.site.plog(1000 + writer), 0, time.monotonic()
        with path.open("ab", buffering=0) as out:
            while not self.stopped.wait(max(0.0, due - time.monotonic())):
                text = record(number, writer)
                out.write(f"{text}\n".encode())
                with self.lock:
                    self.site.written[text] += 1
                number, due = number + 1, due + self.pause

    def stop(self) -> None:
        """End and wait."""
        self.stopped.set()
        for thread in self.threads:
            thread.join()


class Service:
    """The enrichment service in a process of its own."""

    def __init__(self, url: str, namespace: str, log: Path) -> None:
        self.command = [sys.executable, "-m", "benchmarks.soak", "--serve", url, "--namespace", namespace]
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start."""
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(self.command, stdout=out, stderr=out)

    def end(self, number: signal.Signals) -> None:
        """Send a signal, and wait until it has gone."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(90)
            self.process = None


def serve(url: str, namespace: str) -> None:
    """Run the service's worker until SIGTERM, as the command does."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    settings = Settings(url, namespace=namespace, poll=0.5, sweep=10.0, incidents=False)
    worker = Worker(
        settings,
        lambda: Store(Server("Elasticsearch", url, Credentials())),
        CatalogueHolder(),
        Metrics(),
        Health(),
        stop,
    )
    worker.run()


def resident(pid: int | None) -> float | None:
    """Resident memory of a process and of those that it started, in MiB."""
    if pid is None:
        return None
    total = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if int(entry.name) != pid and os.getpgid(int(entry.name)) != pid:
                continue
            total += int((entry / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ProcessLookupError, ValueError):
            continue
    return total / (1 << 20) if total else None


def group(engine: Any) -> int | None:
    """The process group of one of the engines."""
    process = engine._process
    return None if process is None else int(process.pid)


def growth(samples: list[float]) -> tuple[float, float, float]:
    """Median of the second and of the last fifth of the samples, and the share by which it grew."""
    fifth = max(1, len(samples) // 5)
    first, last = statistics.median(samples[fifth : 2 * fifth]), statistics.median(samples[-fifth:])
    return first, last, last / first - 1


def run(minutes: float, rate: float, directory: Path, console: Console) -> bool:
    """Run it; tells whether nothing was lost."""
    server = ElasticsearchServer(heap="768m")
    beats: list[Filebeat] = []

    def make_filebeat(config: Path, **options: Any) -> Filebeat:
        beats.append(Filebeat(directory / "filebeat", config, **options))
        return beats[-1]

    try:
        site = make_site(server, make_filebeat, directory, f"soak{uuid.uuid4().hex[:8]}")
        service = Service(server.url, site.namespace, directory / "service.log")
        site.filebeat.start()
        service.start()
        writers = Writers(site, rate)
        began = time.monotonic()
        restarts = _disturb(site, service, began + minutes * 60 * _WITH_RESTARTS, console)
        # On a busy machine restarts take longer than planned: what is watched is as long as ever.
        samples = _watch(site, service, time.monotonic() + minutes * 60 * (1 - _WITH_RESTARTS))
        writers.stop()
        count = sum(site.written.values())
        console.print(f"{count:,} records written in {time.monotonic() - began:,.0f} s, {restarts} restarts")
        hits = site.wait(count, 600)
        whole = _verdict(lambda: site.check(hits), console, "every record once")
        coded, behind = _until_enriched(server, site.namespace)
        service.end(signal.SIGTERM)
    finally:
        for beat in beats:
            beat.kill()
        server.close()
    table = Table("memory, MiB", "second fifth", "last fifth", "grown by", box=None)
    for name, values in samples.items():
        first, last, share = growth(values)
        table.add_row(name, f"{first:,.0f}", f"{last:,.0f}", f"{share:+.1%}")
    console.print(table)
    console.print(f"{coded:,} records have a code, {behind} of them are not enriched")
    return whole and coded > 0 and behind == 0


def _disturb(site: Site, service: Service, end: float, console: Console) -> int:
    """Restart and kill one after the other until a moment."""

    def beat_killed() -> None:
        site.filebeat.kill()
        site.filebeat.start()

    def beat_stopped() -> None:
        site.filebeat.restart()

    def service_ended(number: signal.Signals) -> None:
        service.end(number)
        service.start()

    def server_killed() -> None:
        site.server.kill()
        site.server.start()

    actions: list[tuple[str, Callable[[], None]]] = [
        ("kill -9 of Filebeat", beat_killed),
        ("orderly restart of the service", lambda: service_ended(signal.SIGTERM)),
        ("orderly restart of Elasticsearch", site.server.restart),
        ("orderly restart of Filebeat", beat_stopped),
        ("kill -9 of the service", lambda: service_ended(signal.SIGKILL)),
        ("kill -9 of Elasticsearch", server_killed),
    ]
    span = (end - time.monotonic()) / (len(actions) + 1)
    for name, action in actions:
        time.sleep(max(0.0, span))
        console.print(name)
        action()
    time.sleep(max(0.0, end - time.monotonic()))
    return len(actions)


def _watch(site: Site, service: Service, end: float) -> dict[str, list[float]]:
    """Sample memory until a moment."""
    samples: dict[str, list[float]] = {"Filebeat": [], "Elasticsearch": [], "service": []}
    while time.monotonic() < end:
        pids = {
            "Filebeat": group(site.filebeat),
            "Elasticsearch": group(site.server),
            "service": service.process.pid if service.process else None,
        }
        for name, pid in pids.items():
            value = resident(pid)
            if value is not None:
                samples[name].append(value)
        time.sleep(_SAMPLE_SECONDS)
    return samples


def _until_enriched(server: ElasticsearchServer, namespace: str) -> tuple[int, int]:
    """Wait for the service; returns how many records have a code, and how many of them it left."""
    index, coded, behind = f"logs-ascend.*-{namespace}", 0, -1
    for _ in range(120):
        server.client.indices.refresh(index=index)
        coded = server.client.count(index=index, query=_CODED)["count"]
        behind = coded - server.client.count(index=index, query=_ENRICHED)["count"]
        if behind <= 0:
            break
        time.sleep(1)
    return int(coded), int(behind)


def _verdict(check: Callable[[], None], console: Console, what: str) -> bool:
    try:
        check()
    except AssertionError as error:
        console.print(f"not {what}: {error}", style="bold red", markup=False)
        return False
    console.print(what)
    return True


def main() -> None:
    """Run, or be the service."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--rate", type=float, default=200, help="records per second")
    parser.add_argument("--serve", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--namespace", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.namespace)
        return
    if options.minutes <= 0 or options.rate <= 0:
        raise UserError("--minutes and --rate are above 0")
    with tempfile.TemporaryDirectory() as directory:
        if not run(options.minutes, options.rate, Path(directory), Console()):
            raise SystemExit(1)


if __name__ == "__main__":
    main()
