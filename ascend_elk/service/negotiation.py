"""What a client wants to get: a page or JSON, English or Chinese, for which CANN version."""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse

from ascend_elk.cann import Version
from ascend_elk.errors import UserError
from ascend_elk.service.pages import LANGUAGES, View, content_security_policy

# Version texts are short; anything longer is no version.
_MAX_VERSION = 40
# The same code asked again soon needs no new answer; a new catalogue shows after this many seconds.
_FRESH = "private, max-age=60"


def wants_page(request: Request) -> bool:
    """Tell whether a page is wanted: by ``?format=html``, else by what a browser accepts.

    Raises:
        UserError: the format is neither html nor json.
    """
    wanted = request.query_params.get("format")
    if wanted is not None:
        if wanted not in ("html", "json"):
            raise UserError(f"format {wanted[:_MAX_VERSION]!r} is not known; write html or json")
        return wanted == "html"
    return accepts_page(request)


def accepts_page(request: Request) -> bool:
    """Tell whether a page is liked better than JSON; a client that takes anything gets JSON."""
    weights = _weights(request.headers.get("accept", ""))

    def weight(kind: str) -> float:
        group = kind.partition("/")[0]
        return next((weights[name] for name in (kind, f"{group}/*", "*/*") if name in weights), 0.0)

    return weight("text/html") > weight("application/json")


def language_of(request: Request) -> str:
    """``en`` or ``zh``: by ``?lang=``, else as the browser prefers."""
    wanted = request.query_params.get("lang")
    if wanted in LANGUAGES:
        return wanted
    weights = _weights(request.headers.get("accept-language", ""))
    # The order decides among equals.
    ranked = sorted(weights, key=lambda name: -weights[name])
    for name in ranked:
        if name.partition("-")[0] in LANGUAGES:
            return name.partition("-")[0]
    return "en"


def version_of(request: Request) -> Version | None:
    """The CANN version of ``?cann=``; ``all`` and ``auto`` decide nothing, as on the command line.

    Raises:
        UserError: the text is no version.
    """
    text = request.query_params.get("cann", "").strip()
    if not text or text.lower() in ("all", "auto"):
        return None
    return Version.parse(text[:_MAX_VERSION])


def view_of(request: Request, version: Version | None = None) -> View:
    """How the page of this request is shown; all links are relative, so that a proxy may add a prefix."""
    path = _raw_path(request)
    depth = path.count("/") - 1
    return View(
        language=language_of(request),
        root="../" * depth or "./",
        path=path[1:],
        query=tuple((name, value) for name, value in request.query_params.items() if name != "lang"),
        cann=None if version is None else version.text,
    )


def page(text: str, status: int = 200) -> HTMLResponse:
    """A page with the headers that belong to it."""
    return HTMLResponse(
        text,
        status,
        headers={"content-security-policy": content_security_policy(), **fresh()},
    )


def fresh() -> dict[str, str]:
    """Headers of what a browser may keep for a while."""
    return {"cache-control": _FRESH, "vary": "Accept, Accept-Language"}


def _raw_path(request: Request) -> str:
    """The path as the client wrote it, below the prefix of a proxy."""
    raw = request.scope.get("raw_path")
    path = raw.decode("ascii", "replace") if raw else quote(request.scope["path"])
    prefix = quote(request.scope.get("root_path", ""))
    return path.removeprefix(prefix) if path.startswith(f"{prefix}/") else path


def _weights(header: str) -> dict[str, float]:
    """The items of an Accept header with their weights, in order."""
    weights: dict[str, float] = {}
    for item in header.split(",")[:50]:
        name, *parameters = item.split(";")
        weight = 1.0
        for parameter in parameters:
            key, _, value = parameter.strip().partition("=")
            if key == "q":
                try:
                    weight = float(value)
                except ValueError:
                    weight = 0.0
        weights.setdefault(name.strip().lower(), weight)
    return weights
