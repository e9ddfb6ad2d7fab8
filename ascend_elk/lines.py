"""The bytes of a file become lines: decoded, and recognised where they open a record."""

from __future__ import annotations

import codecs
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, TypeVar

MAX_RECORD = 1 << 20
"""Bytes of the longest record; longer lines are read in pieces."""
_BLOCK = 1 << 20

Opened = TypeVar("Opened")


def _replace_each_byte(error: UnicodeError) -> tuple[str, int]:
    # One replacement character for every byte that is not UTF-8, as Filebeat (Go) writes it.
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\ufffd" * (error.end - error.start), error.end


_ON_ERROR = "ascend-each-byte"
codecs.register_error(_ON_ERROR, _replace_each_byte)


def decode(raw: bytes) -> str:
    """Decode UTF-8; each byte that does not fit becomes one U+FFFD."""
    return raw.decode("utf-8", _ON_ERROR)


def line_text(raw: bytes) -> str:
    """Decode a line, or several, without the last line end."""
    text = raw.decode("utf-8", _ON_ERROR)
    if text[-1:] == "\n":
        return text[:-2] if text[-2:-1] == "\r" else text[:-1]
    return text


def read_lines(
    stream: BinaryIO,
    opens: Callable[[str], Opened | None],
    common: Callable[[str, int], tuple[int, Opened] | None] | None = None,
) -> Iterator[tuple[bytes, str, Opened | None, int, bool]]:
    """Cut a file into lines, in bounded memory.

    Args:
        stream: the bytes, from the start of the file.
        opens: recognises a line (without its line end) that starts a record.
        common: recognises the most common of these within a text, from a position where a line begins, and
            returns where the next one begins; what it returns is what ``opens`` would, only faster. It may
            know nothing of a line.

    Yields:
        Bytes with the line end, text without, what the line opens, its number from 1, and whether it is the
        rest of a line of more than ``MAX_RECORD`` bytes. Two records on one line are two lines of one number.
    """
    data = b""
    number, rest = 0, False
    while block := stream.read(_BLOCK):
        data += block
        cut = data.rfind(b"\n") + 1
        # One character a byte: places in the text are places in the bytes.
        text = data.decode("latin-1") if common and cut else ""
        position = 0
        while position < cut:
            if common is not None and not rest:
                found = common(text, position)
                if found is not None:
                    end, opened = found
                    line = text[position : end - 1]
                    if line.isascii() and end - position <= MAX_RECORD:
                        number += 1
                        if line[-1:] == "\r":
                            line = line[:-1]
                        yield data[position:end], line, opened, number, False
                        position = end
                        continue
            end = data.find(b"\n", position) + 1
            number += not rest
            for raw, goes_on in _parts(data[position:end], rest):
                yield raw, (line := line_text(raw)), None if goes_on else opens(line), number, goes_on
            rest = False
            position = end
        data = data[cut:]
        while len(data) >= MAX_RECORD:
            number += not rest
            for raw, goes_on in _parts(data[:MAX_RECORD], rest):
                yield raw, (line := line_text(raw)), None if goes_on else opens(line), number, goes_on
            rest = True
            data = data[MAX_RECORD:]
    if data:
        number += not rest
        for raw, goes_on in _parts(data, rest):
            yield raw, (line := line_text(raw)), None if goes_on else opens(line), number, goes_on


def _parts(raw: bytes, rest: bool) -> Iterable[tuple[bytes, bool]]:
    """A line as it is, in bounded pieces, or the records on it; and whether each goes on what was before."""
    if len(raw) > MAX_RECORD:
        pieces = (raw[start : start + MAX_RECORD] for start in range(0, len(raw), MAX_RECORD))
        return (part for number, piece in enumerate(pieces) for part in _parts(piece, rest or number > 0))
    if rest or raw.count(b"):") < 2:
        return ((raw, rest),)
    return ((part, False) for part in _unglue(raw))


# Two records on one line, their line feed lost in a race of writers: only this header is unmistakable.
_GLUED = re.compile(
    rb"\[[A-Z]{4,8}\] ?[A-Za-z0-9_]{1,32}\(-?[0-9]{1,10},[^(),\n]{0,128}\): ?"
    rb"[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}\.[0-9]{3}"
)


def _unglue(line: bytes) -> list[bytes]:
    starts = [match.start() for match in _GLUED.finditer(line)]
    # What stands before the first header is its prefix.
    cuts = [0, *starts[1:], len(line)]
    return [line[begin:end] for begin, end in itertools.pairwise(cuts)]
