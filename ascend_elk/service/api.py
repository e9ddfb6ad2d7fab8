"""The HTTP API as one ASGI application."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ascend_elk.service.catalogue import CatalogueHolder
from ascend_elk.service.guard import Guard
from ascend_elk.service.health import Health
from ascend_elk.service.metrics import Metrics

MAX_BODY = 10 * 1024 * 1024
"""Bytes of a request body, unless told otherwise."""

OPEN_ROUTES = ("/healthz", "/readyz")
"""Paths that need no token."""


def create_app(
    holder: CatalogueHolder,
    metrics: Metrics,
    health: Health,
    token: str | None = None,
    max_body: int = MAX_BODY,
) -> Starlette:
    """Build the application.

    Args:
        holder: the catalogue in force.
        metrics: what ``/metrics`` shows.
        health: what ``/healthz`` and ``/readyz`` answer.
        token: asked for as ``Authorization: Bearer``; ``None``: none is needed.
        max_body: bytes of a request body; longer ones get 413.
    """
    service = _Service(holder, metrics, health)
    return Starlette(
        routes=[
            Route("/healthz", service.alive),
            Route("/readyz", service.ready),
            Route("/metrics", service.metrics_text),
        ],
        middleware=[Middleware(Guard, metrics=metrics, token=token, open_routes=OPEN_ROUTES)],
        max_body_size=max_body,
    )


class _Service:
    def __init__(self, holder: CatalogueHolder, metrics: Metrics, health: Health) -> None:
        self._holder = holder
        self._metrics = metrics
        self._health = health

    async def alive(self, request: Request) -> Response:
        if self._health.alive:
            return JSONResponse({"status": "alive"})
        return JSONResponse({"status": "stuck"}, 503)

    async def ready(self, request: Request) -> Response:
        if self._health.ready:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "not ready", "reason": self._health.reason}, 503)

    async def metrics_text(self, request: Request) -> Response:
        return Response(self._metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
