"""``ascend-elk check``: how much of the logs the formats explain, and what they do not know."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any

import orjson
import typer
from rich.table import Table
from rich.text import Text

from ascend_elk.commands.options import Cann, Paths
from ascend_elk.commands.output import byte_progress, console, report_skipped
from ascend_elk.parse import Event

_SHAPES_KEPT = 10_000
_SHAPE_LENGTH = 160


@dataclass
class FileCheck:
    """What the formats make of one file."""

    path: str
    source: str
    cann: str | None
    lines: int = 0
    events: int = 0
    explained: int = 0
    unparsed: int = 0


@dataclass
class Check:
    """What the formats make of all files."""

    files: list[FileCheck] = field(default_factory=list)
    shapes: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    codes: Counter[str] = field(default_factory=Counter)

    @property
    def share(self) -> float:
        """Share of the events that are explained, 0 to 1."""
        events = sum(file.events for file in self.files)
        return sum(file.explained for file in self.files) / events if events else 1.0

    def add(self, file: FileCheck, events: Iterable[Event], layered: frozenset[str]) -> None:
        """Count the events of a file.

        Args:
            file: counts go here.
            events: of the file.
            layered: formats whose events need a body style too.
        """
        for event in events:
            file.events += 1
            file.lines += max(event.raw.count(b"\n"), 1)
            if is_explained(event, layered):
                file.explained += 1
            else:
                self._note(event)
            file.unparsed += "ascend.format" not in event.fields
            self.codes.update(event.fields.get("ascend.error.codes", ()))
        self.files.append(file)

    def _note(self, event: Event) -> None:
        shape = shape_of(event.fields["event.original"])
        if shape in self.shapes or len(self.shapes) < _SHAPES_KEPT:
            self.shapes[shape] += 1
            self.examples.setdefault(shape, event.fields["event.original"][: 2 * _SHAPE_LENGTH])


def is_explained(event: Event, layered: frozenset[str]) -> bool:
    """Tell whether a format knows the line, and a body style what follows the header."""
    name = event.fields.get("ascend.format")
    return name is not None and (name not in layered)


def shape_of(text: str) -> str:
    """Reduce a line to what lines of its kind share: numbers become N, hexadecimal ones H."""
    first = text.partition("\n")[0][: 4 * _SHAPE_LENGTH]
    first = re.sub(r"0[xX][0-9a-fA-F]+|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b", "H", first)
    return re.sub(r"\d+", "N", first)[:_SHAPE_LENGTH]


def check(
    paths: Paths,
    cann: Cann = "auto",
    json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
    top: Annotated[int, typer.Option(min=1, help="Unknown shapes to show.")] = 20,
    fail_under: Annotated[
        float | None, typer.Option(min=0, max=100, help="Exit with 1 if a smaller percentage is explained.")
    ] = None,
) -> None:
    """Show what share of the lines each format explains, and the unknown shapes."""
    from datetime import timezone

    from ascend_elk.codes import Catalogue
    from ascend_elk.detect import detect_versions
    from ascend_elk.opening import open_logs

    logs = open_logs(paths, cann, timezone.utc)
    layered = frozenset(item.name for item in logs.program.definitions.formats.values() if item.bodies)
    versions = detect_versions(logs) if logs.version is None else {}
    result = Check()
    with byte_progress(logs.files, "checking") as progress:
        logs.reader.progress = progress
        for file in logs.files:
            version = logs.version or versions.get(file.fields.get("host.name"))
            entry = FileCheck(file.display, file.source, str(version) if version else None)
            result.add(entry, logs.reader.file(file), layered)
    catalogue = Catalogue.load()
    unknown = [(code, count) for code, count in result.codes.most_common() if not catalogue.lookup(code)]
    if json:
        typer.echo(orjson.dumps(_document(result, unknown), option=orjson.OPT_INDENT_2).decode())
    else:
        _print(result, unknown, top)
    report_skipped([*logs.skipped, *logs.reader.skipped])
    if fail_under is not None and result.share * 100 < fail_under:
        raise typer.Exit(1)


def _document(result: Check, unknown: list[tuple[str, int]]) -> dict[str, Any]:
    return {
        "files": [vars(file) for file in result.files],
        "unknown_shapes": [
            {"shape": shape, "count": count, "example": result.examples[shape]}
            for shape, count in result.shapes.most_common()
        ],
        "unknown_codes": [{"code": code, "count": count} for code, count in unknown],
    }


def _print(result: Check, unknown: list[tuple[str, int]], top: int) -> None:
    out = console()
    table = Table("file", "source", "CANN", box=None, pad_edge=False)
    for title in ("lines", "events", "explained", "unparsed"):
        table.add_column(title, justify="right")
    for file in result.files:
        share = file.explained / file.events if file.events else 1.0
        table.add_row(
            Text(file.path),
            file.source,
            file.cann or "-",
            str(file.lines),
            str(file.events),
            f"{share:.1%}",
            str(file.unparsed),
            style="" if share > 0.99 else "yellow",
        )
    out.print(table)
    out.print(
        f"\n{result.share:.2%} of {sum(file.events for file in result.files)} events are explained.",
        style="bold",
    )
    if result.shapes:
        shapes = Table(
            "count", "shape that no format explains", box=None, pad_edge=False, title_justify="left"
        )
        for shape, count in result.shapes.most_common(top):
            shapes.add_row(str(count), Text(shape))
        out.print("")
        out.print(shapes)
    if unknown:
        out.print(
            "\ncodes that the catalogue does not know: " + ", ".join(f"{c} ({n})" for c, n in unknown[:top])
        )
