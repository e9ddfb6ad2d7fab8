"""``ascend-elk enrich``: the enrichment service."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ascend_elk.errors import UserError

if TYPE_CHECKING:
    from ascend_elk.service.incidents import Watcher
    from ascend_elk.service.worker import Worker
    from ascend_elk.service.writing import Tally

_log = logging.getLogger(__name__)
_AGO = re.compile(r"(\d{1,6})([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def enrich(
    elasticsearch: Annotated[
        str,
        typer.Option(
            envvar="ASCEND_ELK_ELASTICSEARCH",
            help="URL of Elasticsearch. The API key is taken from ASCEND_ELK_ENRICHER_API_KEY.",
        ),
    ] = "http://localhost:9200",
    ca: Annotated[
        Path | None,
        typer.Option(envvar="ASCEND_ELK_CA", help="Authority that signed Elasticsearch's certificate, PEM."),
    ] = None,
    namespace: Annotated[
        str, typer.Option(envvar="ASCEND_ELK_NAMESPACE", help="Only data streams of this namespace; *: all.")
    ] = "*",
    codes: Annotated[
        list[Path] | None,
        typer.Option(
            envvar="ASCEND_ELK_CODES", help="Own error codes, YAML as under codes/; read anew when changed."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            help="First enrich events of this time on again: 2026-11-01, 2026-11-01T08:00:00Z, 12h, 30d."
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Enrich what is there, and end.")] = False,
    incidents: Annotated[
        bool, typer.Option("--incidents/--no-incidents", help="Judge trouble and write ascend-incidents.")
    ] = True,
    listen: Annotated[
        str,
        typer.Option(
            envvar="ASCEND_ELK_LISTEN",
            help="Address of the HTTP interface. Beyond loopback a token in ASCEND_ELK_TOKEN is required.",
        ),
    ] = "127.0.0.1:9620",
    certificate: Annotated[
        Path | None,
        typer.Option(
            envvar="ASCEND_ELK_CERTIFICATE", help="PEM chain with which the HTTP interface speaks HTTPS."
        ),
    ] = None,
    key: Annotated[
        Path | None, typer.Option(envvar="ASCEND_ELK_CERTIFICATE_KEY", help="PEM key of the certificate.")
    ] = None,
    batch: Annotated[
        int, typer.Option(envvar="ASCEND_ELK_BATCH", help="Events read and written at a time.")
    ] = 1_000,
    writers: Annotated[
        int, typer.Option(envvar="ASCEND_ELK_WRITERS", help="Bulk requests under way at once.")
    ] = 2,
    poll: Annotated[
        float, typer.Option(envvar="ASCEND_ELK_POLL", help="Seconds between looks for new events.")
    ] = 1.0,
    sweep: Annotated[
        float, typer.Option(envvar="ASCEND_ELK_SWEEP", help="Seconds between looks at all events.")
    ] = 60.0,
    max_body: Annotated[
        int, typer.Option(envvar="ASCEND_ELK_MAX_BODY", help="Bytes that an HTTP request may have.")
    ] = 10 << 20,
    json_logs: Annotated[
        bool, typer.Option("--json-logs/--text-logs", help="Form of the service's own log.")
    ] = True,
) -> None:
    """Add meaning, remedy and card to what Elasticsearch holds, and judge trouble; runs until stopped."""
    try:
        from ascend_elk.service import logs
        from ascend_elk.service.api import create_app
        from ascend_elk.service.catalogue import CatalogueHolder
        from ascend_elk.service.health import Health
        from ascend_elk.service.incidents import Watcher
        from ascend_elk.service.metrics import Metrics
        from ascend_elk.service.serving import serving
        from ascend_elk.service.worker import Worker
    except ModuleNotFoundError as error:
        raise UserError(
            f"{error.name} is missing; install it with: pip install 'ascend-elk[service]'"
        ) from None
    from ascend_elk.service.settings import Settings, read_listen, secret
    from ascend_elk.service.store import Store
    from ascend_elk.stack.http import Credentials, Server

    settings = Settings(
        elasticsearch,
        api_key=secret(os.environ, "ASCEND_ELK_ENRICHER_API_KEY"),
        ca=ca,
        namespace=namespace,
        batch=batch,
        poll=poll,
        sweep=sweep,
        writers=writers,
        incidents=incidents,
        listen=None if once else read_listen(listen),
        token=secret(os.environ, "ASCEND_ELK_TOKEN"),
        max_body=max_body,
        codes=tuple(codes or ()),
    )
    for path in filter(None, (certificate, key)):
        if not path.is_file():
            raise UserError(f"there is no file {path}; --certificate and --key name PEM files")
    start = read_since(since) if since is not None else None
    logs.configure(json_logs)
    logs.hide(settings.api_key)
    logs.hide(settings.token)
    metrics, health, stop = Metrics(), Health(), threading.Event()
    holder = CatalogueHolder(settings.codes, metrics)

    def connect() -> Store:
        return Store(Server("Elasticsearch", elasticsearch, Credentials(api_key=settings.api_key), ca=ca))

    _check(connect())
    _stop_on_signals(stop)
    worker = Worker(settings, connect, holder, metrics, health, stop)
    if once:
        watcher = Watcher(connect, worker.names, holder, metrics, stop) if settings.incidents else None
        _once(worker, start, watcher)
        return
    assert settings.listen is not None  # noqa: S101 - set unless once
    app = create_app(holder, metrics, health, settings.token, settings.max_body)
    with serving(app, settings.listen, certificate, key) as port:
        _log.info(
            "enriching %s of %s with catalogue %s; HTTP on %s port %d",
            worker.names.streams,
            elasticsearch,
            holder.current.version,
            settings.listen[0],
            port,
        )
        watching = (
            Watcher(connect, worker.names, holder, metrics, stop).running()
            if settings.incidents
            else nullcontext()
        )
        with watching:
            worker.run(since=start)


def read_since(text: str, now: datetime | None = None) -> str:
    """Read ``--since``: a date, a time (UTC unless it says otherwise), or how long ago.

    Raises:
        UserError: it is none of these.
    """
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            moment = (now or datetime.now(timezone.utc)) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        else:
            moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        moment = moment.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise UserError(
            f"{text!r} is no time; write for example 2026-11-01, 2026-11-01T08:00:00Z, 12h or 30d"
        ) from None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _check(store: object) -> None:
    """A wrong URL or key shows now; a server that is down is waited for."""
    from ascend_elk.service.store import BusyError, Store
    from ascend_elk.stack.http import ApiError, UnreachableError

    assert isinstance(store, Store)  # noqa: S101 - imported late
    try:
        store.ready()
    except (BusyError, UnreachableError):
        pass
    except ApiError as error:
        raise UserError(f"Elasticsearch refuses a request: {error}; check --elasticsearch") from None


def _stop_on_signals(stop: threading.Event) -> None:
    def ask(*_: object) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ask)


def _once(worker: Worker, since: str | None, watcher: Watcher | None) -> None:
    """Enrich what is there, with a bar for people, then judge it."""
    from rich.console import Console

    from ascend_elk.service.worker import TROUBLE

    with _progress() as (advance, set_total):
        if since is not None:
            set_total(worker.history(since).count)
        else:
            set_total(worker.left)
        total = worker.catch_up(advance, since=since)
    out = Console(highlight=False, soft_wrap=True)
    out.print(f"{total.written:,} events enriched")
    if watcher is not None and not worker.stopped:
        try:
            written = watcher.look() + watcher.look_at_pace()
        except TROUBLE as error:
            raise UserError(f"the incidents are not complete: {error}; run the command again") from None
        out.print(f"{written:,} incidents written")
    if total.refused:
        out.print(
            f"{total.refused:,} could not be written; {worker.names.rejected} and the log above say why",
            style="yellow",
        )


@contextmanager
def _progress() -> Iterator[tuple[Callable[[Tally], None], Callable[[Callable[[], int]], None]]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from ascend_elk.service.worker import TROUBLE

    bar = Progress(
        TextColumn("enriching"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task("", total=None)

        def set_total(count: Callable[[], int]) -> None:
            try:
                bar.update(task, total=count())
            except TROUBLE:
                return  # The run itself waits for Elasticsearch; the bar then shows no end.

        yield lambda tally: bar.advance(task, tally.looked_at), set_total
