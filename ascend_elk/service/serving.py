"""The HTTP server beside the worker, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.types import ASGIApp

from ascend_elk.service.server import listen, make_server

_STOP_SECONDS = 12


@contextmanager
def serving(
    app: ASGIApp, address: tuple[str, int], certificate: Path | None = None, key: Path | None = None
) -> Iterator[int]:
    """Serve an ASGI application; gives the port that it listens on.

    Args:
        app: what answers.
        address: to listen on; port 0 for any free one.
        certificate: PEM chain; with it HTTPS is spoken.
        key: PEM key of the certificate.

    Raises:
        UserError: the address is taken, or is none of this machine; the certificate cannot be used.
    """
    server = make_server(app, certificate=certificate, key=key)
    listening = listen(*address)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="http", daemon=True)
    thread.start()
    try:
        yield int(listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(_STOP_SECONDS)
        listening.close()
