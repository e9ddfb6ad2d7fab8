"""Reading at the edge: what cannot be read is noted, never raised."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascend_elk.formats import compile_program, load_definitions
from ascend_elk.layout import discover
from ascend_elk.parse import Parser
from ascend_elk.reading import Reader

LINE = "[ERROR] GE(7,a):2025-03-02-11:20:31.120.004 [a.cc:1]7 Run:gone\n"


@pytest.fixture
def reader() -> Reader:
    return Reader(Parser(compile_program(load_definitions())))


def test_a_file_that_may_not_be_opened_is_skipped_and_the_next_one_read(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pid in (7, 8):
        (tmp_path / f"plog-{pid}_20250302112029000.log").write_text(LINE)
    files = discover([tmp_path]).files
    original = Path.open

    def refuse(self: Path, *arguments: object, **options: object) -> object:
        if self.name.startswith("plog-7"):
            raise PermissionError(13, "Permission denied")
        return original(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "open", refuse)
    events = list(reader.events(files))
    assert [event.fields["process.pid"] for event in events] == [7]
    assert events[0].fields["log.file.path"].endswith("plog-8_20250302112029000.log")
    (skipped,) = reader.skipped
    assert "Permission denied" in skipped.reason


def test_a_file_that_vanishes_is_skipped(reader: Reader, tmp_path: Path) -> None:
    path = tmp_path / "plog-7_20250302112029000.log"
    path.write_text(LINE)
    files = discover([tmp_path]).files
    path.unlink()
    assert list(reader.events(files)) == []
    assert "cannot be read" in reader.skipped[0].reason


def test_progress_counts_the_bytes(reader: Reader, tmp_path: Path) -> None:
    path = tmp_path / "plog-7_20250302112029000.log"
    path.write_text(LINE * 1000)
    counted: list[int] = []
    reader.progress = counted.append
    list(reader.events(discover([tmp_path]).files))
    assert sum(counted) == path.stat().st_size
