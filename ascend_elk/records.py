"""Framing: the bytes of a file become records, and every byte belongs to exactly one of them.

A record starts at a line that the source's formats open; what follows belongs to it. Lines of any length are
read in bounded memory: a record ends at ``MAX_RECORD`` bytes and goes on in the next one, marked as split.
"""

from __future__ import annotations

import codecs
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Generic, TypeVar

MAX_RECORD = 1 << 20
_BLOCK = 1 << 20

Opened = TypeVar("Opened")


def _replace_each_byte(error: UnicodeError) -> tuple[str, int]:
    # One replacement character for every byte that is not UTF-8, as Filebeat (Go) writes it.
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error("ascend-each-byte", _replace_each_byte)


def decode(raw: bytes) -> str:
    """Decode UTF-8; each byte that does not fit becomes one U+FFFD."""
    return raw.decode("utf-8", "ascend-each-byte")


@dataclass
class Record(Generic[Opened]):
    """A stretch of a file.

    Attributes:
        raw: its bytes, line ends included.
        text: the decoded bytes without the last line end.
        offset: bytes from the start of the file.
        line: number of its first line, from 1.
        opened: what the opening line was recognised as, ``None`` where no format knows it.
        split: it goes on the record before it, which had reached the limit.
    """

    __slots__ = ("line", "offset", "opened", "raw", "split", "text")

    raw: bytes
    text: str
    offset: int
    line: int
    opened: Opened | None
    split: bool


def read_lines(stream: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    """Yield lines and their end (a line feed, or nothing); pieces of ``MAX_RECORD`` bytes of longer ones."""
    rest = b""
    while block := stream.read(_BLOCK):
        lines = (rest + block).split(b"\n")
        rest = lines.pop()
        for line in lines:
            if len(line) < MAX_RECORD:
                yield line, b"\n"
            else:
                yield from _pieces(line)
        while len(rest) >= MAX_RECORD:
            yield rest[:MAX_RECORD], b""
            rest = rest[MAX_RECORD:]
    if rest:
        yield rest, b""


def _pieces(line: bytes) -> Iterator[tuple[bytes, bytes]]:
    for start in range(0, len(line), MAX_RECORD):
        piece = line[start : start + MAX_RECORD]
        yield piece, b"\n" if start + MAX_RECORD >= len(line) else b""


def read_records(
    stream: BinaryIO,
    opens: Callable[[str], Opened | None],
    continues: Callable[[str], bool],
) -> Iterator[Record[Opened]]:
    """Frame a file.

    Args:
        stream: the bytes, from the start of the file.
        opens: recognises a line (without its line end) that starts a record.
        continues: tells whether a line that opens nothing belongs to the record before it.

    Yields:
        Records whose ``raw`` concatenate to the file.
    """
    record: Record[Opened] | None = None
    more: list[bytes] = []
    size = offset = line_number = 0
    line_end = b"\n"
    for line, end in read_lines(stream):
        same_line = not line_end
        line_end = end
        if not same_line:
            line_number += 1
        whole = line + end
        for raw in (whole,) if same_line or line.count(b"):") < 2 else _unglue(whole):
            text = decode(line) if raw is whole else decode(raw.rstrip(b"\n"))
            if text.endswith("\r") and end:
                text = text[:-1]
            recognised = None if same_line else opens(text)
            split = False
            if recognised is None and record is not None and (same_line or continues(text)):
                split = size + len(raw) > MAX_RECORD
                if not split:
                    more.append(raw)
                    size += len(raw)
                    offset += len(raw)
                    continue
            if record is not None:
                yield _joined(record, more) if more else record
            record = Record(raw, text, offset, line_number, recognised, split)
            more = []
            size = len(raw)
            offset += size
    if record is not None:
        yield _joined(record, more) if more else record


def _joined(record: Record[Opened], more: list[bytes]) -> Record[Opened]:
    raw = b"".join([record.raw, *more])
    text = decode(raw)
    if text.endswith("\n"):
        text = text[:-2] if text.endswith("\r\n") else text[:-1]
    return Record(raw, text, record.offset, record.line, record.opened, record.split)


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
