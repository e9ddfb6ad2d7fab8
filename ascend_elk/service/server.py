"""The HTTP server around the application."""

from __future__ import annotations

from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

# Requests at once; more get 503 before their bodies take memory.
_REQUESTS = 64
# A code of 10,000 characters, percent-encoded, still fits into the request line.
_HEAD_BYTES = 128 * 1024
_IDLE_SECONDS = 30
_STOP_SECONDS = 10


def make_server(
    app: ASGIApp, host: str, port: int, *, certificate: Path | None = None, key: Path | None = None
) -> uvicorn.Server:
    """Build the server; ``run()`` serves until ``should_exit`` is set or the process is told to stop.

    Args:
        app: what answers.
        host: address to listen on.
        port: 0 for any free one.
        certificate: PEM chain; with it HTTPS is spoken.
        key: PEM key of the certificate.
    """
    return uvicorn.Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            lifespan="off",
            # Logs are configured once, for the whole process; the application writes a line for each request.
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=_REQUESTS,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_STOP_SECONDS,
            h11_max_incomplete_event_size=_HEAD_BYTES,
            http="h11",
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
    )
