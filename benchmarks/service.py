"""Speed of the service's HTTP interface, over loopback: ``python -m benchmarks.service [--seconds 5]``.

One client asks one question after the other, so that the figures are those of one core of the service; its
own share is small. All events have a code: these grow most.
"""

from __future__ import annotations

import argparse
import http.client
import multiprocessing
import socket
import statistics
import time
from collections.abc import Callable

import orjson
from rich.console import Console
from rich.table import Table

from ascend_elk.service.api import create_app
from ascend_elk.service.catalogue import CatalogueHolder
from ascend_elk.service.health import Health
from ascend_elk.service.metrics import Metrics
from ascend_elk.service.server import listen, make_server

EVENTS = 1_000
CODES = [
    "cann:EI0006",
    "acl:507018",
    "rt:0x0715002a",
    "hccl:0x0000000005000009",
    "dms:0x81078603",
    "cann:EI0099",
]


def serve(listening: socket.socket) -> None:
    """The service, without a worker."""
    app = create_app(CatalogueHolder(), Metrics(), Health(silence=None))
    make_server(app).run(sockets=[listening])


def events() -> bytes:
    """A body of NDJSON, nested, as the pipelines write events."""
    return b"\n".join(
        orjson.dumps(
            {
                "@timestamp": "2026-01-01T00:00:00.000000Z",
                "message": f"[Wait][LinkEstablish]wait timeout, rank[{number}] timeout[120 s]",
                "event": {"dataset": "ascend.plog", "severity": 3},
                "process": {"pid": number},
                "host": {"name": "node-1"},
                "ascend": {"cann": {"version": "8.0"}, "error": {"codes": [CODES[number % len(CODES)]]}},
            }
        )
        for number in range(EVENTS)
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="seconds for each figure")
    seconds = parser.parse_args().seconds
    listening = listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(listening,), daemon=True)
    process.start()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> None:
        connection.request(method, path, body, {"content-type": kind, "accept": kind})
        connection.getresponse().read()

    def measure(step: Callable[[int], None]) -> list[float]:
        step(0)
        times: list[float] = []
        start = time.perf_counter()
        while (before := time.perf_counter()) - start < seconds:
            step(len(times))
            times.append(time.perf_counter() - before)
        return times

    body = events()
    known = CODES[:-1]
    table = Table("", "per second", "median", "p95")
    for name, count, step in (
        (
            f"POST /v1/enrich, {EVENTS} events as NDJSON",
            EVENTS,
            lambda _: ask("POST", "/v1/enrich", body, "application/x-ndjson"),
        ),
        ("POST /v1/enrich, one event", 1, lambda _: ask("POST", "/v1/enrich", body.partition(b"\n")[0])),
        ("GET /v1/codes/{code}, JSON", 1, lambda n: ask("GET", f"/v1/codes/{known[n % len(known)]}")),
        (
            "GET /v1/codes/{code}, page",
            1,
            lambda n: ask("GET", f"/v1/codes/{known[n % len(known)]}", kind="text/html"),
        ),
        ("GET /v1/codes/{code}, not known", 1, lambda _: ask("GET", f"/v1/codes/{CODES[-1]}")),
        ("GET /v1/codes?q=socket time", 1, lambda _: ask("GET", "/v1/codes?q=socket+time")),
    ):
        times = measure(step)
        table.add_row(
            name,
            f"{count * len(times) / sum(times):,.0f}",
            f"{statistics.median(times) * 1e3:.1f} ms",
            f"{statistics.quantiles(times, n=20)[-1] * 1e3:.1f} ms",
        )
    process.terminate()
    Console().print(table)


if __name__ == "__main__":
    main()
