"""The reference pages are those that the catalogue makes."""

from __future__ import annotations

from pathlib import Path

from ascend_elk.codes import Catalogue
from ascend_elk.codes.reference import pages, write

DOCS = Path(__file__).parents[2] / "docs" / "codes"


def test_pages_are_up_to_date() -> None:
    made = pages(Catalogue.load())
    assert {path.name for path in DOCS.glob("*.md")} == set(made), "run python -m ascend_elk.codes.reference"
    stale = [name for name, text in made.items() if (DOCS / name).read_text(encoding="utf-8") != text]
    assert stale == [], "run python -m ascend_elk.codes.reference"


def test_pages_that_no_longer_belong_are_removed(tmp_path: Path) -> None:
    (tmp_path / "old.md").write_text("x")
    write(tmp_path, Catalogue.load())
    assert not (tmp_path / "old.md").exists()
    assert '<a id="ei0006"></a>' in (tmp_path / "cann.md").read_text(encoding="utf-8")


def test_tables_have_as_many_cells_as_columns() -> None:
    for name, text in pages(Catalogue.load()).items():
        for line in text.splitlines():
            if line.startswith("|"):
                cells = line.replace("\\|", "").count("|") - 1
                assert cells == (5 if name == "messages.md" else 4), f"{name}: {line[:80]}"
