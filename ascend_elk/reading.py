"""The edge of the file system: log files are opened and read into events."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import BinaryIO, cast

from ahocorasick_rs import BytesAhoCorasick

from ascend_elk.layout import LogFile, Skipped
from ascend_elk.parse import Event, Parser

Progress = Callable[[int], None]


@dataclass
class Reader:
    """Reads log files with one parser; what cannot be read is noted in ``skipped``, never raised.

    Attributes:
        progress: called with the number of bytes read since the last call.
    """

    parser: Parser
    progress: Progress | None = None
    skipped: list[Skipped] = field(default_factory=list)

    def events(self, files: Iterable[LogFile], literals: BytesAhoCorasick | None = None) -> Iterator[Event]:
        """Read files one after another.

        Args:
            files: what to read.
            literals: only events that hold one of these are wanted.
        """
        for file in files:
            yield from self.file(file, literals)

    def file(self, file: LogFile, literals: BytesAhoCorasick | None = None) -> Iterator[Event]:
        """Read one file up to where it can be read."""
        fields = {"log.file.path": file.display, **file.fields}
        counted = _Counted(self.progress)
        try:
            with open_log(file) as stream:
                counted.stream = stream
                read_at = datetime.fromtimestamp(file.path.stat().st_mtime, timezone.utc)
                readable = cast(BinaryIO, counted)
                yield from self.parser.events(readable, file.source, fields, read_at, literals)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            reason = f"compressed data is damaged after byte {counted.total} ({error})"
            self.skipped.append(Skipped(file.path, reason))
        except OSError as error:
            reason = f"cannot be read after byte {counted.total} ({error.strerror or error})"
            self.skipped.append(Skipped(file.path, reason))


def open_log(file: LogFile) -> BinaryIO:
    """Open a log file for reading its uncompressed bytes; raises OSError."""
    if file.compressed:
        return cast(BinaryIO, gzip.open(file.path, "rb"))
    return file.path.open("rb")


class _Counted:
    """A stream that counts the bytes read from it, ``total`` and for the progress bar."""

    stream: BinaryIO

    def __init__(self, progress: Progress | None) -> None:
        self.total = 0
        self._progress = progress

    def read(self, size: int) -> bytes:
        data = self.stream.read(size)
        self.total += len(data)
        if self._progress is not None:
            self._progress(len(data))
        return data
