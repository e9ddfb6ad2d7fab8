from __future__ import annotations

import io

import pytest

from ascend_elk.lines import MAX_RECORD, read_lines
from ascend_elk.records import Record, read_matching_records, read_records

HEADER = "[INFO] HCCL(1,a):2025-03-02-11:20:31.120.004 "


def opens(text: str) -> bool | None:
    return True if text.startswith("[") else None


def read(data: bytes) -> list:
    records = list(read_records(io.BytesIO(data), opens, lambda text: True, Record))
    assert b"".join(record.raw for record in records) == data
    for record in records:
        assert data[record.offset : record.offset + len(record.raw)] == record.raw
    return records


def test_a_record_takes_the_lines_behind_its_header() -> None:
    records = read(b"[a\n more\n\n[b\r\n")
    assert [record.text for record in records] == ["[a\n more\n", "[b"]
    assert [record.line for record in records] == [1, 4]
    assert [record.offset for record in records] == [0, 10]


def test_a_file_that_starts_in_mid_record_keeps_the_head_as_a_record_of_its_own() -> None:
    first, second = read(b" tail of a lost record\n[a\n")
    assert first.opened is None
    assert second.opened


@pytest.mark.parametrize("data", [b"", b"\n", b"\r\n", b"\x00", b"[a", b"[a\n", b"\n\n[a\r\r\n\n"])
def test_edges_of_a_file_are_kept(data: bytes) -> None:
    read(data)


def test_bytes_that_are_not_utf8_become_one_replacement_each() -> None:
    (record,) = read(b"[a \xff\xe4\xb8 z\n")
    assert record.text == "[a \ufffd\ufffd\ufffd z"


def test_two_headers_on_one_line_are_two_records() -> None:
    line = f"{HEADER}first{HEADER}second\n".encode()
    first, second = read(line)
    assert first.text == f"{HEADER}first"
    assert second.text == f"{HEADER}second"
    assert second.line == 1


def test_a_prefix_before_a_single_header_is_no_glue() -> None:
    assert len(read(f"[x](a):b {HEADER}first\n".encode())) == 1


def test_a_record_is_split_at_its_limit() -> None:
    line = b"[a" + b"x" * (3 * MAX_RECORD) + b"\n"
    records = read(line + b"[b\n")
    assert [record.split for record in records] == [False, True, True, True, False]
    assert all(len(record.raw) <= MAX_RECORD for record in records)
    assert [record.line for record in records] == [1, 1, 1, 1, 2]


def test_many_continuation_lines_are_split_too() -> None:
    data = b"[a\n" + b" continuation\n" * 200_000
    records = read(data)
    assert all(len(record.raw) <= MAX_RECORD for record in records)
    assert [record.split for record in records] == [False, True, True]


def test_a_line_without_end_is_read_in_bounded_pieces() -> None:
    class Endless(io.RawIOBase):
        blocks = 40

        def read(self, size: int = -1) -> bytes:  # type: ignore[override]
            self.blocks -= 1
            return b"x" * size if self.blocks > 0 else b""

    assert max(len(raw) for raw, *_ in read_lines(Endless(), opens)) <= MAX_RECORD  # type: ignore[arg-type]


@pytest.mark.parametrize("filler", [10, 100_000, 9_000_000])
def test_matching_records_are_the_same_records(filler: int) -> None:
    noise = b"[noise line\n  its continuation\n" * (filler // 30)
    data = (
        b"early\n"
        + noise
        + b"[hit one\n needle below\n tail\n"
        + noise
        + b"[needle\n[after\n"
        + noise
        + b"[x needle"
    )

    def find(block: bytes) -> list[tuple[int, int, int]]:
        hits, start = [], block.find(b"needle")
        while start >= 0:
            hits.append((0, start, start + 6))
            start = block.find(b"needle", start + 1)
        return hits

    matching = list(read_matching_records(io.BytesIO(data), opens, lambda text: True, Record, find))
    expected = [record for record in read(data) if b"needle" in record.raw]
    assert matching == expected
