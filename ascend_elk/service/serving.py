"""The HTTP interface beside the worker, in a thread of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.types import ASGIApp

from ascend_elk.errors import UserError
from ascend_elk.service.server import make_server

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
    host, port = address
    server = make_server(app, host, port, certificate=certificate, key=key)
    try:
        server.config.load()
    except OSError as error:
        raise UserError(f"the certificate {certificate} and its key {key} cannot be used: {error}") from None
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise UserError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another --listen"
        ) from None
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="http", daemon=True)
    thread.start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(_STOP_SECONDS)
        listener.close()
