"""Speed of the enrichment service: ``python -m benchmarks.enrich [--events 60000] [--rate 1000]``.

Against a real Elasticsearch of ``tests/engines`` with the product's templates, on this machine, one shard:

- *written back*: one service enriches a backlog of WARNING and ERROR lines, from the first look to the last
  answer; beside it, in the same run, plain bulk writes of the same documents, worked
  out beforehand: what Elasticsearch itself can take.
- *lag*: lines are written at a steady rate, one in ``--share`` of them worth enriching; the time from the
  answer to a line's bulk request until a search, made every half second, finds it enriched.

Where other work shares the machine, the processor time per event tells more than the rate.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
import uuid
from typing import Any

from rich.console import Console
from rich.table import Table

from ascend_elk.parse import nested
from ascend_elk.service.changes import apply, flat, gain
from ascend_elk.service.store import Point
from ascend_elk.service.writing import Update
from tests.engines.elasticsearch import ElasticsearchServer
from tests.service.site import Site, error, info, install, now, own_catalogue, setup

CODES = ("cann:EI0006", "acl:507018", "rt:0x07150026", "cann:EZ9999", "hcclresult:9", "cann:EL0004")
FILLER = "stream_id=47, task_id=12, model_id=3, [FUNC:GetError][FILE:stream.cc][LINE:1523] "
PROCESSES = 8


def line(number: int) -> dict[str, Any]:
    """A line with a code, of one of some processes, about as long as real ones."""
    code = CODES[number % len(CODES)]
    message = f"task {number} failed, error code {code.partition(':')[2]}, {FILLER}"
    event = error(100 + number % PROCESSES, number)
    event |= {"message": message, "ascend.error.codes": [code], "event.original": f"[ERROR] HCCL {message}"}
    return event


def fill(site: Site, events: int) -> None:
    """Write a backlog."""
    site.write(setup(100 + number, number, number) for number in range(PROCESSES))
    for start in range(0, events, 10_000):
        site.write((line(n) for n in range(start, min(events, start + 10_000))), refresh=False)
    site.server.client.indices.refresh(index=site.names.streams)


def cpu(server: ElasticsearchServer) -> float:
    """Seconds of processor time that Elasticsearch has taken."""
    (node,) = server.client.nodes.stats(metric="process")["nodes"].values()
    return float(node["process"]["cpu"]["total_in_millis"]) / 1_000


def service_rate(site: Site, events: int, **options: Any) -> tuple[float, float, float]:
    """Events per second that a service writes back; processor time of both sides per event, in µs."""
    service = site.service(sweep=3600.0, **options)
    own, other = time.process_time(), cpu(site.server)
    began = time.perf_counter()
    tally = service.worker.catch_up(lambda _: None)
    seconds = time.perf_counter() - began
    if tally.written < events:
        raise SystemExit(f"{tally.written} of {events} events written")
    own, other = time.process_time() - own, cpu(site.server) - other
    return events / seconds, own / events * 1e6, other / events * 1e6


def plain_rate(site: Site, batch: int, threads: int) -> float:
    """Plain bulk writes per second, under the same condition: documents worked out beforehand."""
    store = site.connect()
    catalogue = own_catalogue().current
    requests: list[bytes] = []
    count = 0
    identity = {"ascend.device.key": "worker-0/2", "ascend.device.id": 2, "ascend.rank.id": 3}
    with Point(store, site.names.streams) as point:
        for page in point.pages({"match_all": {}}, batch):
            updates = []
            for hit in page:
                apply(gain(flat(hit.source), catalogue, identity), hit.source)
                updates.append(Update(hit.index, hit.id, hit.version, hit.source))
            count += len(updates)
            requests.append(b"\n".join(part for update in updates for part in update.lines()))
    began = time.perf_counter()
    shared = iter(requests)
    lock = threading.Lock()

    def send() -> None:
        own = site.connect()
        while True:
            with lock:
                lines = next(shared, None)
            if lines is None:
                return
            results = own.bulk([lines])
            bad = [result for result in results if result.status >= 300]
            if bad:
                raise SystemExit(bad[0].reason)

    workers = [threading.Thread(target=send) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return count / (time.perf_counter() - began)


def idle_look(site: Site) -> float:
    """Seconds that a look for new events takes where all are enriched: the median of ten."""
    store = site.connect()
    enricher = site.service().worker.enricher
    times = []
    for _ in range(10):
        began = time.perf_counter()
        with Point(store, site.names.streams) as point:
            pages = point.pages(enricher.todo(latest=True, since_ingest="now-10m"), 1_000)
            if any(pages):
                raise SystemExit("not all events are enriched")
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def lag(site: Site, rate: int, seconds: int, share: int) -> list[float]:
    """Seconds from written to found enriched, of each line that is worth it."""
    client = site.server.client
    index = f"logs-ascend.plog-{site.namespace}"
    sent: dict[int, float] = {}
    seen: dict[int, float] = {}
    finished = threading.Event()

    def look() -> None:
        while not finished.is_set() or (len(seen) < len(sent) and time.monotonic() < end + 60):
            waiting = min(sent.keys() - seen.keys(), default=0)
            query = {
                "bool": {
                    "filter": [
                        {"exists": {"field": "ascend.error.catalogue"}},
                        {"range": {"log.offset": {"gte": waiting}}},
                    ]
                }
            }
            found = client.search(
                index=index,
                query=query,
                size=10_000,
                source=False,
                docvalue_fields=["log.offset"],
                sort="log.offset",
            )["hits"]["hits"]
            moment = time.monotonic()
            for hit in found:
                seen.setdefault(hit["fields"]["log.offset"][0], moment)
            time.sleep(0.5)

    number = 0
    site.write([info(1, 0)])
    looker = threading.Thread(target=look)
    with site.service(sweep=60.0, poll=1.0).running():
        due = time.monotonic()
        end = due + seconds
        looker.start()
        while time.monotonic() < end:
            lines: list[Any] = []
            worth = []
            for _ in range(rate // 10):
                number += 1
                if number % share == 0:
                    worth.append(number)
                event = line(number) if number % share == 0 else info(100 + number % PROCESSES, number)
                event |= {"event.ingested": now(), "log.offset": number}
                lines += [{"create": {}}, nested({k: v for k, v in event.items() if v is not None})]
            client.bulk(index=index, operations=lines)
            moment = time.monotonic()
            sent.update(dict.fromkeys(worth, moment))
            due += 0.1
            time.sleep(max(0.0, due - time.monotonic()))
        took = time.monotonic() - end + seconds
        finished.set()
        looker.join()
    missing = sent.keys() - seen.keys()
    if missing:
        raise SystemExit(f"{len(missing)} of {len(sent)} lines not enriched within a minute")
    print(f"{number / took:,.0f} lines/s written, {len(sent) / took:,.0f}/s of them worth enriching")
    return [seen[one] - sent[one] for one in sent]


def main() -> None:
    """Fill, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=60_000)
    parser.add_argument("--batch", type=int, default=1_000)
    parser.add_argument("--writers", type=int, default=2)
    parser.add_argument(
        "--rate", type=int, default=1_000, help="lines written a second while the lag is measured"
    )
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--share", type=int, default=1, help="one line in so many is worth enriching")
    parser.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    server = ElasticsearchServer(heap="1g")
    console = Console(width=None if sys.stdout.isatty() else 140)
    table = Table(
        "run",
        "service, events/s",
        "plain bulk writes/s",
        "ratio",
        "service, CPU µs/event",
        "Elasticsearch, CPU µs/event",
        "idle look, ms",
    )
    try:
        own_catalogue()
        for run in range(options.runs):
            site = make(server)
            fill(site, options.events)
            plain_site = make(server)
            fill(plain_site, options.events)
            rate, own, other = service_rate(
                site, options.events, batch=options.batch, writers=options.writers
            )
            plain = plain_rate(plain_site, options.batch, options.writers)
            idle = idle_look(site) * 1_000
            table.add_row(
                str(run + 1),
                f"{rate:,.0f}",
                f"{plain:,.0f}",
                f"{rate / plain:.2f}",
                f"{own:,.0f}",
                f"{other:,.0f}",
                f"{idle:,.0f}",
            )
        if options.runs:
            console.print(table)
        if options.seconds:
            times = sorted(lag(make(server), options.rate, options.seconds, options.share))
            console.print(
                f"lag over {len(times):,} lines: median {statistics.median(times):.1f} s, "
                f"p95 {times[int(len(times) * 0.95)]:.1f} s, longest {times[-1]:.1f} s"
            )
    finally:
        server.close()


def make(server: ElasticsearchServer) -> Site:
    """An empty namespace; searches see what was written after a second, as by default."""
    namespace = f"b{uuid.uuid4().hex[:10]}"
    install(server, namespace, {"refresh_interval": "1s"})
    return Site(server, namespace)


if __name__ == "__main__":
    main()
