"""The service's own logs: JSON lines with ECS field names or plain text, to stderr, without secrets."""

from __future__ import annotations

import json
import logging
import re
import sys

from ecs_logging import StdlibFormatter

SERVICE = "ascend-elk"
# Shorter texts would blot out half the log.
_MIN_SECRET = 4
_HIDDEN = "[hidden]"
_secrets: set[str] = set()
# Credentials by their look: HTTP authorization, and user:password@ in a URL.
_LOOKS = (
    (re.compile(r"(?i)\b(bearer|apikey|basic)\s+[A-Za-z0-9+/=_.~:-]{4,}"), rf"\1 {_HIDDEN}"),
    (re.compile(r"(?<=://)[^/\s@\"]{1,500}@"), f"{_HIDDEN}@"),
)


def configure(json: bool = True, level: int = logging.INFO) -> None:
    """Send all logs of the process to stderr.

    Args:
        json: one JSON document a line, else text for people.
        level: lowest level that is written.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Ecs() if json else _Plain())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.captureWarnings(True)
    # One record for every request to Elasticsearch is no news.
    logging.getLogger("elastic_transport").setLevel(logging.WARNING)


def hide(secret: str | None) -> None:
    """Keep a secret out of every line from now on, also where a library's message holds it."""
    if secret is not None and len(secret) >= _MIN_SECRET:
        _secrets.add(secret)
        _secrets.add(json.dumps(secret)[1:-1])


def _clean(text: str) -> str:
    for secret in sorted(_secrets, key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    for look, instead in _LOOKS:
        text = look.sub(instead, text)
    return text


class _Ecs(StdlibFormatter):
    def __init__(self) -> None:
        super().__init__(
            extra={"service.name": SERVICE, "event.dataset": f"{SERVICE}.log"},
            exclude_fields=("log.original", "process.name", "process.thread", "taskName", "color_message"),
            ensure_ascii=False,
        )

    def format(self, record: logging.LogRecord) -> str:
        return _clean(super().format(record))


class _Plain(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return _clean(super().format(record))
