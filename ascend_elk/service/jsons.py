"""JSON as fast as can be, and whole where a log held what is no text: half of a surrogate pair."""

from __future__ import annotations

import json
from typing import Any

import orjson


def loads(data: bytes) -> Any:
    """Parse JSON.

    Raises:
        ValueError: it is none.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)


def dumps(value: Any) -> bytes:
    """Write JSON; what UTF-8 cannot hold is escaped, as it came."""
    try:
        return orjson.dumps(value)
    except (orjson.JSONEncodeError, TypeError):
        return json.dumps(value).encode()
