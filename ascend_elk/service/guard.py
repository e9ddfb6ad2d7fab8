"""What holds for every request: security headers, the token, one log line, the request metrics."""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ascend_elk.service.metrics import Metrics

_log = logging.getLogger(__name__)
# Probes and scrapes come every few seconds; they are worth no line of their own.
_QUIET = frozenset({"/healthz", "/readyz", "/metrics"})
_OK = 200
_SHOWN = 200
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
# Where a response sets no policy of its own.
_POLICY = "default-src 'none'; frame-ancestors 'none'"


class Guard:
    """Wraps the application."""

    def __init__(
        self, app: ASGIApp, metrics: Metrics, token: str | None, open_routes: Collection[str]
    ) -> None:
        """Take the application and the rules.

        Args:
            app: what is guarded.
            metrics: counts the requests.
            token: asked for where it is set.
            open_routes: paths that need no token; one that ends in ``/`` stands for all below it.
        """
        self._app = app
        self._metrics = metrics
        self._token = token.encode() if token else None
        self._open = frozenset(open_routes)
        self._open_below = tuple(path for path in open_routes if path.endswith("/") and path != "/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status, started_answer, body_is_open = 500, False, _has_body(scope)

        async def take() -> Message:
            nonlocal body_is_open
            message = await receive()
            if not message.get("more_body", False):
                body_is_open = False
            return message

        async def answer(message: Message) -> None:
            nonlocal status, started_answer
            if message["type"] == "http.response.start":
                started_answer = True
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("content-security-policy", _POLICY)
                headers.setdefault("cache-control", "no-store")
                if body_is_open:
                    # Else the server would read what remains, to use the connection again.
                    headers["connection"] = "close"
            await send(message)

        try:
            if self._may_pass(scope):
                await self._app(scope, take, answer)
            else:
                refusal = JSONResponse(
                    {"error": "this needs the service's token: Authorization: Bearer TOKEN"},
                    401,
                    headers={"www-authenticate": 'Bearer realm="ascend-elk"'},
                )
                await refusal(scope, receive, answer)
        except Exception:
            _log.exception("request failed")
            if started_answer:
                raise
            broken = JSONResponse({"error": "the service failed on this request; its log says why"}, 500)
            await broken(scope, receive, answer)
        finally:
            self._note(scope, status, time.perf_counter() - started)

    def _may_pass(self, scope: Scope) -> bool:
        path = _path(scope)
        if self._token is None or path in self._open or path.startswith(self._open_below or "\0"):
            return True
        scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self._token)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        # Made-up paths and methods must not grow the metrics.
        found = scope.get("route")
        route = str(getattr(found, "path", "none"))
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._metrics.requests.labels(method=method, route=route, status=str(status)).inc()
        self._metrics.request_seconds.labels(route=route).observe(seconds)
        client = scope.get("client")
        path = _path(scope)
        # A line break in a path must not make a second line of the log.
        shown = "".join(letter if letter.isprintable() else "?" for letter in path[:_SHOWN])
        _log.log(
            logging.DEBUG if path in _QUIET and status == _OK else logging.INFO,
            "%s %s %d",
            method,
            shown,
            status,
            extra={
                "http.request.method": method,
                "url.path": shown,
                "http.response.status_code": status,
                "event.duration": round(seconds * 1e9),
                "client.ip": client[0] if client else None,
            },
        )


def _has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _path(scope: Scope) -> str:
    """The path below the prefix that a proxy adds."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", "")) or "/"
