"""The figures of docs/scale.md are those that were measured."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.sizing import FIGURES, HEADER, rows, table

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"


def test_the_table_is_computed_from_the_figures() -> None:
    assert table(json.loads(FIGURES.read_text())) in PAGE.read_text()


def test_the_text_states_the_figures() -> None:
    figures = json.loads(FIGURES.read_text())
    text = PAGE.read_text()
    assert f"{figures['events']:,} events" in text
    for part in ("filebeat", "stored", "ingest", "ingest_without_original"):
        assert f"{figures[part]['seconds_per_event'] * 1e6:,.0f} µs" in text, part
    for part in ("ingest", "ingest_without_original"):
        assert f"{figures[part]['bytes_per_event']:.0f}" in text, part


def test_the_formulas() -> None:
    figures = {
        "filebeat": {"seconds_per_event": 1e-4},
        "ingest": {"seconds_per_event": 1e-4, "bytes_per_event": 100.0},
        "ingest_without_original": {"bytes_per_event": 50.0},
    }
    found = {(row[0], row[1]): row for row in rows(figures)}
    # 1,024 cards × 10 events/s: 10,240 events/s × 100 µs ÷ ½ = 2 cores; × 86,400 × 30 × 2 × 100 bytes = 5.31 TB
    assert found["1,024", "10"][2:] == ["10,240", "0.80%", "2.0", "5.31", "2.65"]
    assert len(HEADER) == len(found["8", "1"])
