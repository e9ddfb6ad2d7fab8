"""The HTTP interface beside the worker, in a thread of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from ascend_elk.errors import UserError

_STOP_SECONDS = 5


@contextmanager
def serving(app: Any, address: tuple[str, int]) -> Iterator[tuple[str, int]]:
    """Serve an ASGI application; gives the address that it listens on.

    Raises:
        UserError: the address is taken, or is none of this machine.
    """
    host, port = address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise UserError(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another --listen"
        ) from None
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="http", daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[:2]
    finally:
        server.should_exit = True
        thread.join(_STOP_SECONDS + 1)
        listener.close()
