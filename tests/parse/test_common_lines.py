"""The short way for a source's most common lines leads to the same records as the general one."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_elk.lines import MAX_RECORD
from ascend_elk.parse.executor import SourceExecutor
from ascend_elk.records import Record, read_records
from tests.test_conservation import DEFINITIONS, PARSER, files

HEAD = "[INFO] HCCL(12,python3):2025-03-02-11:20:31.120.004"
COMMON = [name for name in sorted(DEFINITIONS.sources) if PARSER.executor(name).common is not None]


class Dribble(io.BytesIO):
    """A stream that answers with fewer bytes than it is asked for."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(data)
        self.size = size

    def read(self, size: int | None = -1) -> bytes:
        return super().read(self.size)


def records(executor: SourceExecutor, stream: io.BytesIO, *, short: bool) -> list[tuple[Any, ...]]:
    common = executor.common if short else None
    found = read_records(stream, executor.opens, executor.continues, Record, common)
    return [
        (record.raw, record.text, record.offset, record.line, record.split, said(record)) for record in found
    ]


def said(record: Record[Any]) -> Any:
    if record.opened is None:
        return None
    line_format, start, match, written, known, bodies = record.opened
    return line_format and line_format.name, start, match and match.groups(), written, known, bodies


def test_plog_and_device_logs_have_a_short_way() -> None:
    assert {"plog", "device"} <= set(COMMON)


@given(data=files(), source=st.sampled_from(COMMON), size=st.integers(1, 4_000))
@settings(max_examples=1_500, deadline=None, database=None)
def test_mutated_lines_become_the_same_records(data: bytes, source: str, size: int) -> None:
    executor = PARSER.executor(source)
    plain = records(executor, io.BytesIO(data), short=False)
    assert records(executor, Dribble(data, size), short=True) == plain


@pytest.mark.parametrize(
    "data",
    [
        f"{HEAD} one\n{HEAD} two\r\n{HEAD}\n more\n{HEAD} last".encode(),
        f"{HEAD} 通信 one\n{HEAD} two\n".encode(),
        f"{HEAD} ".encode() + b"\xff\xe9\n",
        f"{HEAD.replace('python3', 'pythén')} one\n".encode(),
        f"{HEAD} glued {HEAD} on one line\n{HEAD} next\n".encode(),
        f"{HEAD} a b(c):d\n".encode(),
        f"{HEAD} {'x' * MAX_RECORD}\n{HEAD} next\n".encode(),
        f"{HEAD} {'x' * (MAX_RECORD - len(HEAD) - 2)}\n{HEAD} next\n".encode(),
        f"{HEAD} {'x' * (3 * MAX_RECORD)}{HEAD} in the rest\n{HEAD} next\n".encode(),
        b"[INFO] HCCL(12,python3):1970-01-01-00:00:00.000.000\n",
        b"[INFO] HCCL(12,py)thon3):2025-03-02-11:20:31.120.004 one\n",
    ],
)
def test_lines_at_the_edge_of_the_short_way(data: bytes) -> None:
    executor = PARSER.executor("plog")
    assert records(executor, io.BytesIO(data), short=True) == records(executor, io.BytesIO(data), short=False)


def test_a_common_line_takes_the_short_way() -> None:
    common = PARSER.executor("plog").common
    assert common is not None
    assert common(f"{HEAD} one\n", 0) is not None
    assert common(f"{HEAD} a b(c):d\n", 0) is None
