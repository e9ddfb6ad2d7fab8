"""Framing: the bytes of a file become records, and every byte belongs to exactly one of them.

A record starts at a line that the source's formats open; what follows belongs to it. Lines of any length are
read in bounded memory: a record ends at ``MAX_RECORD`` bytes and goes on in the next one, marked as split.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Generic, TypeVar

from ascend_elk.lines import MAX_RECORD, Opened, decode, line_text, read_lines

Made = TypeVar("Made")


@dataclass(slots=True)
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

    raw: bytes
    text: str
    offset: int
    line: int
    opened: Opened | None
    split: bool


def read_records(
    stream: BinaryIO,
    opens: Callable[[str], Opened | None],
    continues: Callable[[str], bool],
    make: Callable[[bytes, str, int, int, Opened | None, bool], Made],
    common: Callable[[str, int], tuple[int, Opened] | None] | None = None,
) -> Iterator[Made]:
    """Frame a file.

    Args:
        stream: the bytes, from the start of the file.
        opens: recognises a line (without its line end) that starts a record.
        continues: tells whether a line that opens nothing belongs to the record before it.
        make: what to make of a record, from the attributes of ``Record`` in order; ``Record`` will do.
        common: see ``read_lines``.

    Yields:
        What ``make`` made; the records' ``raw`` concatenate to the file.
    """
    first: bytes | None = None  # the pending record: its first line, what it opened, its other lines
    first_text = ""
    first_opened: Opened | None = None
    more: list[bytes] = []
    start = start_line = size = 0
    split = False
    for raw, text, opened, number, rest in read_lines(stream, opens, common):
        belongs = opened is None and first is not None and (rest or continues(text))
        if belongs and size + len(raw) <= MAX_RECORD:
            more.append(raw)
            size += len(raw)
            continue
        if first is not None:
            if more:
                first, first_text = _joined(first, more)
                more = []
            yield make(first, first_text, start, start_line, first_opened, split)
        start += size
        first, first_text, first_opened, split = raw, text, opened, belongs
        start_line, size = number, len(raw)
    if first is not None:
        if more:
            first, first_text = _joined(first, more)
        yield make(first, first_text, start, start_line, first_opened, split)


def _joined(first: bytes, more: list[bytes]) -> tuple[bytes, str]:
    raw = b"".join([first, *more])
    return raw, line_text(raw)


def read_matching_records(
    stream: BinaryIO,
    opens: Callable[[str], Opened | None],
    continues: Callable[[str], bool],
    make: Callable[[bytes, str, int, int, Opened | None, bool], Made],
    find: Callable[[bytes], list[tuple[int, int, int]]],
) -> Iterator[Made]:
    """Yield only the records in which ``find`` hits, at the speed of a search for literals.

    Args:
        stream: the bytes, from the start of the file.
        opens: recognises a line that starts a record.
        continues: tells whether a line that opens nothing belongs to the record before it.
        make: what to make of a record, as for ``read_records``.
        find: hits in a block, as (literal, start, end), in order.

    Yields:
        What ``make`` made of the same records, with the same offsets and line numbers, as ``read_records``.
    """
    rest = b""
    offset, line_number = 0, 1
    while True:
        fresh = stream.read(_SCAN_BLOCK)
        block = rest + fresh
        if not block:
            return
        # What a record at the end of the block needs may come with the next one.
        cut = _last_opening(block, opens) if fresh else len(block)
        position, counted = 0, 0
        for _, hit, _ in find(block[:cut] if cut < len(block) else block):
            if hit < position:
                continue
            start = _record_start(block, hit, position, opens, continues)
            line_number += block.count(b"\n", counted, start)
            counted = start
            end = _record_end(block, hit, cut, opens, continues)
            for record in read_records(io.BytesIO(block[start:end]), opens, continues, Record):
                yield make(
                    record.raw,
                    record.text,
                    record.offset + offset + start,
                    record.line + line_number - 1,
                    record.opened,
                    record.split,
                )
            position = end
        line_number += block.count(b"\n", counted, cut)
        offset += cut
        rest = block[cut:]
        if not fresh:
            return


_SCAN_BLOCK = 8 << 20


def _line_text(block: bytes, start: int, end: int) -> str:
    return decode(block[start : min(end, start + MAX_RECORD)]).rstrip("\r\n")


def _last_opening(block: bytes, opens: Callable[[str], Opened | None]) -> int:
    """Start of the last line that opens a record, or of the last line where none does within reach."""
    last = start = block.rfind(b"\n") + 1
    while start > 0 and last - start < MAX_RECORD:
        end = start
        start = block.rfind(b"\n", 0, end - 1) + 1
        if opens(_line_text(block, start, end)) is not None:
            return start or last
    return last if last else len(block)


def _record_start(
    block: bytes,
    hit: int,
    floor: int,
    opens: Callable[[str], Opened | None],
    continues: Callable[[str], bool],
) -> int:
    """Start of the record that holds a hit, not before ``floor``."""
    start = line = max(block.rfind(b"\n", 0, hit) + 1, floor)
    end = block.find(b"\n", line) + 1 or len(block)
    while start > floor and line - start < MAX_RECORD:
        text = _line_text(block, start, end)
        if opens(text) is not None or not continues(text):
            return start
        end = start
        start = max(block.rfind(b"\n", 0, end - 1) + 1, floor)
    return start


def _record_end(
    block: bytes,
    hit: int,
    limit: int,
    opens: Callable[[str], Opened | None],
    continues: Callable[[str], bool],
) -> int:
    """End of the record that holds a hit."""
    end = block.find(b"\n", hit) + 1 or limit
    while end < limit:
        following = block.find(b"\n", end) + 1 or limit
        text = _line_text(block, end, following)
        if opens(text) is not None or not continues(text):
            break
        end = following
    return min(end, limit)
