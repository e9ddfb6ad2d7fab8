"""The HTTP API as one ASGI application."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ascend_elk.errors import UserError
from ascend_elk.service.catalogue import CatalogueHolder
from ascend_elk.service.code_pages import CodePages
from ascend_elk.service.events import Batch, EventError
from ascend_elk.service.guard import Guard
from ascend_elk.service.health import Health
from ascend_elk.service.logs import hide
from ascend_elk.service.metrics import Metrics
from ascend_elk.service.negotiation import accepts_page, fresh, page, version_of, view_of
from ascend_elk.service.openapi import document
from ascend_elk.service.pages import render

MAX_BODY = 10 * 1024 * 1024
"""Bytes of a request body, unless told otherwise."""
BODY_SECONDS = 60.0
"""Seconds in which a body must have arrived."""
OPEN_ROUTES = ("/healthz", "/readyz", "/", "/v1/codes", "/v1/codes/", "/openapi.json", "/docs")
"""Paths that need no token: probes, and what only shows the catalogue; one with a slash at its end stands for
all below it. Everything else, also what does not exist, needs it."""


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
    hide(token)
    service = _Service(holder, metrics, health, max_body)
    codes = CodePages(holder)
    app = Starlette(
        routes=[
            Route("/", codes.start),
            Route("/v1/codes", codes.codes),
            Route("/v1/codes/", codes.codes),
            Route("/v1/codes/{code:path}", codes.code),
            Route("/v1/enrich", service.enrich, methods=["POST"]),
            Route("/healthz", service.alive),
            Route("/readyz", service.ready),
            Route("/metrics", service.metrics_text),
            Route("/openapi.json", service.openapi),
            Route("/docs", service.docs),
        ],
        middleware=[Middleware(Guard, metrics=metrics, token=token, open_routes=OPEN_ROUTES)],
        exception_handlers=dict.fromkeys((UserError, HTTPException, ClientDisconnect), service.refuse),
    )
    app.router.redirect_slashes = False
    return app


class _Service:
    """The endpoints for programs."""

    def __init__(self, holder: CatalogueHolder, metrics: Metrics, health: Health, max_body: int) -> None:
        self._holder = holder
        self._metrics = metrics
        self._health = health
        self._max_body = max_body

    async def enrich(self, request: Request) -> Response:
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise HTTPException(415, "send the body uncompressed")
        version = version_of(request)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        body = await _read_body(request, self._max_body)
        batch = await run_in_threadpool(Batch, body, kind.endswith(("ndjson", "jsonl", "jsonlines")))
        pieces = batch.enriched(self._holder.current, version, self._count)
        if batch.lines:
            return StreamingResponse(pieces, media_type="application/x-ndjson")
        return Response(await run_in_threadpool(next, pieces), media_type="application/json")

    def _count(self, added: Mapping[str, Any]) -> None:
        self._metrics.events.inc()
        if "error.code" in added and "ascend.error.severity" not in added:
            self._metrics.unknown_codes.inc()

    async def alive(self, request: Request) -> Response:
        if self._health.alive:
            return JSONResponse({"status": "alive"})
        return JSONResponse({"status": "stuck", "reason": "the worker has not moved for a while"}, 503)

    async def ready(self, request: Request) -> Response:
        if self._health.ready:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "not ready", "reason": self._health.reason}, 503)

    async def metrics_text(self, request: Request) -> Response:
        return Response(self._metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi(self, request: Request) -> Response:
        return JSONResponse(document(self._max_body), headers=fresh())

    async def docs(self, request: Request) -> Response:
        text = render(
            "docs.html.j2", view_of(request), self._holder.current, openapi=document(self._max_body)
        )
        return page(text)

    async def refuse(self, request: Request, error: Exception) -> Response:
        """One sentence, as JSON or as a page."""
        status, headers = 400, None
        if isinstance(error, HTTPException):
            status, headers = error.status_code, error.headers
        reason = self._reason(error)
        if request.method in ("GET", "HEAD") and accepts_page(request):
            text = render("error.html.j2", view_of(request), self._holder.current, reason=reason)
            return page(text, status)
        content: dict[str, Any] = {"error": reason}
        if isinstance(error, EventError):
            content["line"] = error.line
        return JSONResponse(content, status, headers=headers)

    def _reason(self, error: Exception) -> str:
        if isinstance(error, ClientDisconnect):
            return "the client went away before its body was complete"
        if not isinstance(error, HTTPException):
            return str(error)
        if error.status_code == HTTPStatus.NOT_FOUND:
            return "there is nothing here; /docs lists what there is"
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            return f"this method is not allowed here; use {(error.headers or {}).get('Allow', 'GET')}"
        return error.detail


async def _read_body(request: Request, longest: int) -> bytes:
    """Read a body; one that is too long is refused before it is held, by its declared or its real length.

    What remains of it is not read: the server closes the connection.
    """
    too_long = HTTPException(413, f"the body is longer than {longest} bytes; send fewer events at a time")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > longest:
        raise too_long
    body = bytearray()
    try:
        with anyio.fail_after(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > longest:
                    raise too_long
    except TimeoutError:
        raise HTTPException(408, f"the body did not arrive within {BODY_SECONDS:.0f} s") from None
    return bytes(body)
