"""The HTTP server around the application."""

from __future__ import annotations

import socket
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from ascend_elk.errors import UserError

# Connections at once, idle ones too; more get 503 before their bodies take memory. Browsers and probes
# hold one or two each, and not for long.
_CONNECTIONS = 256
# A code of 10,000 characters, percent-encoded, still fits into the request line.
_HEAD_BYTES = 128 * 1024
# Connections that wait while the service starts or is busy.
_WAITING = 128
_IDLE_SECONDS = 5
_STOP_SECONDS = 10


def listen(host: str, port: int) -> socket.socket:
    """Open the socket to serve on.

    Args:
        host: address of this machine.
        port: 0 for any free one.

    Raises:
        UserError: the address is taken, or is none of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends small answers at once; else each waits 40 ms for an ACK.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(_WAITING)
    except OSError as error:
        listening.close()
        raise UserError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another address"
        ) from None
    return listening


def make_server(app: ASGIApp, *, certificate: Path | None = None, key: Path | None = None) -> uvicorn.Server:
    """Build the server; ``run(sockets=[…])`` serves until ``should_exit`` is set or a signal says stop.

    Args:
        app: what answers.
        certificate: PEM chain; with it HTTPS is spoken.
        key: PEM key of the certificate, without a password.

    Raises:
        UserError: certificate or key cannot be used.
    """
    config = uvicorn.Config(
        app,
        lifespan="off",
        # Logs are configured once, for the whole process; the application writes a line for each request.
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_STOP_SECONDS,
        h11_max_incomplete_event_size=_HEAD_BYTES,
        http="h11",
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    try:
        config.load()
    except OSError as error:
        raise UserError(
            f"cannot speak HTTPS with the certificate {certificate} and the key {key}: "
            f"{error.strerror or error}; both must be PEM, and belong together"
        ) from None
    return uvicorn.Server(config)
