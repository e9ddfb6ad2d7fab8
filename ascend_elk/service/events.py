"""Events as they come over HTTP: one JSON document or NDJSON, nested or flat; enriched in the same shape."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import orjson

from ascend_elk.cann import Version
from ascend_elk.codes import Catalogue
from ascend_elk.enrich import READ_FIELDS, enrich
from ascend_elk.errors import UserError

_BOM = b"\xef\xbb\xbf"
# Deeper documents can be read, but not written again.
_DEPTH = 250
# Bytes of an answer that are sent together.
_CHUNK = 256 * 1024


class EventError(UserError):
    """A body that is no event; ``line`` counts from 1."""

    def __init__(self, line: int, reason: str) -> None:
        """Say where and why."""
        super().__init__(f"line {line}: {reason}")
        self.line = line


class Batch:
    """The events of one request, checked and not yet enriched.

    The body is read twice, to check it and to enrich it, so that an answer many times its size is sent in
    pieces and never held whole.
    """

    def __init__(self, body: bytes, lines: bool = False) -> None:
        """Check all events.

        Args:
            body: one JSON object, or NDJSON: one object a line; blank lines are skipped.
            lines: it is NDJSON; otherwise that is tried where it is no single document.

        Raises:
            EventError: it is neither, or a field has another type than the field contract says.
        """
        self._body = body.removeprefix(_BOM)
        self.lines = lines
        """Whether the answer is NDJSON."""
        if not self._body.strip():
            raise EventError(1, "the body is empty; send one JSON event, or NDJSON with one event a line")
        if not lines:
            try:
                _check(1, _event(1, self._body))
            except EventError:
                if not _is_event(self._body.lstrip().partition(b"\n")[0]):
                    raise
                self.lines = True
        if self.lines:
            for number, line in self._numbered():
                _check(number, _event(number, line))

    def enriched(
        self,
        catalogue: Catalogue,
        version: Version | None = None,
        seen: Callable[[Mapping[str, Any]], None] = lambda added: None,
    ) -> Iterator[bytes]:
        """Enrich all events.

        Args:
            catalogue: what is known.
            version: CANN version of the events; ``None``: each says its own.
            seen: told what was added to each event.

        Returns:
            The answer in pieces.
        """
        if not self.lines:
            yield orjson.dumps(_enrich(_event(1, self._body), catalogue, version, seen))
            return
        piece = bytearray()
        for number, line in self._numbered():
            piece += orjson.dumps(_enrich(_event(number, line), catalogue, version, seen))
            piece += b"\n"
            if len(piece) >= _CHUNK:
                yield bytes(piece)
                piece.clear()
        yield bytes(piece)

    def _numbered(self) -> Iterator[tuple[int, bytes]]:
        for number, line in enumerate(io.BytesIO(self._body), 1):
            if line.strip():
                yield number, line


def get(document: dict[str, Any], name: str) -> Any:
    """The value of a dotted name, whether it is written nested, flat or partly so; ``None`` if absent."""
    if name in document:
        return document[name]
    for head, rest in _splits(name):
        inner = document.get(head)
        if isinstance(inner, dict):
            found = get(inner, rest)
            if found is not None:
                return found
    return None


def put(document: dict[str, Any], name: str, value: Any) -> None:
    """Set a dotted name where it stands already, else in the way in which the document is written."""
    if name in document:
        document[name] = value
        return
    splits = _splits(name)
    for head, rest in splits:
        inner = document.get(head)
        if isinstance(inner, dict):
            put(inner, rest, value)
            return
    if not splits or splits[0][0] in document or any("." in key for key in document):
        document[name] = value
        return
    parent, rest = splits[0]
    inner = document[parent] = {}
    put(inner, rest, value)


@lru_cache(maxsize=256)
def _splits(name: str) -> tuple[tuple[str, str], ...]:
    """``a.b.c`` → (``a``, ``b.c``), (``a.b``, ``c``)."""
    parts = name.split(".")
    return tuple((".".join(parts[:at]), ".".join(parts[at:])) for at in range(1, len(parts)))


def _event(line: int, text: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        # Within a body of one document the parser's own line counts on.
        reason = str(error).partition(": line ")[0]
        raise EventError(line + error.lineno - 1, f"not valid JSON: {reason}") from None
    if not isinstance(document, dict):
        raise EventError(line, f"an event is a JSON object, not {_kind(document)}; send several as NDJSON")
    if text.count(b"{") + text.count(b"[") > _DEPTH:
        try:
            orjson.dumps(document)
        except orjson.JSONEncodeError:
            raise EventError(line, f"nested deeper than {_DEPTH} levels") from None
    return document


def _is_event(text: bytes) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return "an array"
    if isinstance(value, str):
        return "a text"
    return "null" if value is None else "a single value"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(one, str) for one in value))


_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "text": (_is_text, "a text"),
    "number": (_is_number, "a number"),
    "texts": (_is_texts, "a list of texts"),
}


def _check(line: int, document: dict[str, Any]) -> None:
    for name, kind in READ_FIELDS.items():
        value = get(document, name)
        fits, wanted = _KINDS[kind]
        if value is not None and not fits(value):
            raise EventError(line, f"{name} must be {wanted}")


def _enrich(
    document: dict[str, Any],
    catalogue: Catalogue,
    version: Version | None,
    seen: Callable[[Mapping[str, Any]], None],
) -> dict[str, Any]:
    fields = {}
    for name, kind in READ_FIELDS.items():
        value = get(document, name)
        if value is not None:
            fields[name] = [value] if kind == "texts" and isinstance(value, str) else value
    added = enrich(fields, catalogue, version)
    for name, value in added.items():
        put(document, name, value)
    seen(added)
    return document
