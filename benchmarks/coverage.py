"""What the formats explain of real logs: ``python -m benchmarks.coverage [DIRECTORY]``.

Prints, by file, how many lines carry a header of CANN, and of how many of those header, body style and thread
or place are explained, with the shapes that are not. Two checks of the other direction: nothing that
MindSpore or a look-alike wrote may count as CANN's.
"""

from __future__ import annotations

import io
import re
import sys
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ascend_elk.commands.check import shape_of
from ascend_elk.formats import compile_program, load_definitions
from ascend_elk.parse import Event, Parser

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
# Written apart from the formats on purpose, so that a hole in them shows.
CANN_HEADER = re.compile(
    r"\[(?:[A-Z]+|\d+)\] ?[A-Za-z0-9_]+\(-?\d+,[^)]*\): ?\d{4}-\d\d-\d\d[- ]\d\d:\d\d:\d\d"
)
MINDSPORE_HEADER = re.compile(r"\[[A-Z]+\] ?[A-Z_]+\(\d+,[0-9a-f]{8,16},")
LOOK_ALIKE = re.compile(
    r"\[(?:ERROR|INFO|WARN|WARNING|Error)\] {1,2}[a-z]|\[ERROR\] (?:TBE Subprocess|RecentErrMsg)"
)
PLACED = ("log.origin.file.name", "process.thread.id", "log.origin.function")


def is_explained(event: Event, layered: frozenset[str]) -> bool:
    """Header, body style and thread or place; firmware lines have neither by their grammar."""
    name = event.fields.get("ascend.format", "")
    if not name or name in layered:
        return False
    return name.endswith("/firmware-line") or any(field in event.fields for field in PLACED)


def main(directory: Path) -> int:
    """Print the table; 1 if a line of another writer was taken for CANN's."""
    definitions = load_definitions()
    parser = Parser(compile_program(definitions))
    layered = frozenset(item.name for item in definitions.formats.values() if item.bodies)
    read_at = datetime.now(timezone.utc)
    table = Table("file", box=None)
    for title in ("lines", "events", "attributed", "with header", "explained", "mistaken"):
        table.add_column(title, justify="right")
    totals: Counter[str] = Counter()
    unexplained: dict[str, Counter[str]] = {}
    for path in sorted(directory.glob("*.log")):
        data = path.read_bytes()
        events = list(parser.events(io.BytesIO(data), "console", {"log.file.path": path.name}, read_at))
        shapes = unexplained.setdefault(path.name, Counter())
        counts = Counter(
            lines=data.count(b"\n") + (not data.endswith(b"\n")),
            events=len(events),
            attributed=sum(event.raw.count(b"\n") for event in events) + (not data.endswith(b"\n")),
        )
        for event in events:
            text = event.fields["event.original"]
            name = event.fields.get("ascend.format", "")
            if CANN_HEADER.match(text) and not MINDSPORE_HEADER.match(text):
                counts["headed"] += 1
                if is_explained(event, layered):
                    counts["explained"] += 1
                else:
                    shapes[shape_of(text)] += 1
            elif name.startswith("plog") and (MINDSPORE_HEADER.match(text) or LOOK_ALIKE.match(text)):
                counts["mistaken"] += 1
        totals.update(counts)
        share = f"{counts['explained'] / counts['headed']:.1%}" if counts["headed"] else "-"
        table.add_row(
            path.name,
            *(str(counts[name]) for name in ("lines", "events", "attributed", "headed")),
            share,
            str(counts["mistaken"]),
        )
    out = Console(width=150 if not sys.stdout.isatty() else None)
    out.print(table)
    out.print("\nShapes that are not explained, by file:")
    for name, shapes in unexplained.items():
        for shape, count in shapes.most_common():
            out.print(f"  {name}  {count} × {shape}", markup=False, highlight=False)
    out.print(
        f"\nlines attributed to an event: {totals['attributed'] / totals['lines']:.2%} of {totals['lines']}"
        f"\nheaders explained: {totals['explained'] / totals['headed']:.2%} of {totals['headed']}"
        f"\nlines of other writers taken for CANN's: {totals['mistaken']}",
        highlight=False,
    )
    return 1 if totals["mistaken"] else 0


if __name__ == "__main__":
    chosen = Path(sys.argv[1]) if len(sys.argv) > 1 else CORPUS
    if not chosen.is_dir():
        sys.exit(f"error: {chosen} is no directory; name one with *.log files")
    sys.exit(main(chosen))
