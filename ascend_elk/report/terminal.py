"""The verdict in the terminal: one sentence first, then the chain, the evidence and what to do."""

from __future__ import annotations

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ascend_elk.diagnose.model import Verdict

_STYLES = {
    "first-failure": "bold red",
    "link": "bold red",
    "straggler": "bold yellow",
    "undetermined": "bold magenta",
    "healthy": "bold green",
}


def printable(text: str) -> str:
    """Replace control characters, which a log may hold, so that they cannot steer the terminal."""
    return "".join(
        character if character.isprintable() or character == "\t" else "⏎" if character == "\n" else "·"
        for character in text
    )


def show(verdict: Verdict, out: Console, lang: str = "en", evidence: int = 8, episodes: int = 12) -> None:
    """Print a verdict.

    Args:
        verdict: what to print.
        out: a terminal, or plain where it is none.
        lang: ``en`` or ``zh``, for verdict and remediation.
        evidence: lines of evidence to show.
        episodes: kinds of trouble to show.
    """
    chinese = lang == "zh"
    sentence = (verdict.sentence_zh if chinese else "") or verdict.sentence
    style = _STYLES[verdict.kind]
    title = f"{verdict.kind}, confidence {verdict.confidence:.0%}"
    if out.is_terminal:
        out.print(Panel(Text(sentence), title=title, border_style=style, title_align="left"))
    else:
        out.print(f"{sentence}\n[{title}]", markup=False)
    if verdict.chain:
        out.print()
        out.print(Text("Who waits for whom", style="bold"))
        out.print(Text("  " + "  →  ".join(card.label() for card in verdict.chain)))
    _evidence(verdict, out, evidence)
    remediation = (verdict.remediation_zh if chinese else "") or verdict.remediation
    if remediation:
        out.print()
        out.print(Text("What to do", style="bold"))
        out.print(Text("  " + remediation.replace("\n", "\n  ")))
    for heading, sentences in (("What is missing", verdict.missing), ("Notes", verdict.notes)):
        if sentences:
            out.print()
            out.print(Text(heading, style="bold"))
            for item in sentences:
                out.print(Text(f"  - {printable(item)}"))
    _episodes(verdict, out, episodes)


def _evidence(verdict: Verdict, out: Console, limit: int) -> None:
    if not verdict.evidence:
        return
    out.print()
    out.print(Text("Evidence", style="bold"))
    for item in verdict.evidence[:limit]:
        place = item.file or "(no file)"
        if item.line is not None:
            place += f":{item.line}"
        elif item.offset is not None:
            place += f" at byte {item.offset}"
        times = f", {item.count} times" if item.count > 1 else ""
        why = f"  {item.why}{times}" if item.why else times
        out.print(Text(f"  {place}", style="cyan").append(why, style=""))
        out.print(Text(f"    {printable(item.text)}", style="dim"))
    if len(verdict.evidence) > limit:
        out.print(
            Text(f"  and {len(verdict.evidence) - limit} more lines (--json has them all)", style="dim")
        )


def _episodes(verdict: Verdict, out: Console, limit: int) -> None:
    if not verdict.episodes:
        return
    out.print()
    table = Table(title="Trouble, repeats counted", title_justify="left", title_style="bold", box=None)
    table.add_column("first seen (UTC)", no_wrap=True)
    table.add_column("lines", justify="right")
    table.add_column("cards", justify="right")
    table.add_column("kind", no_wrap=True)
    table.add_column("example", overflow="ellipsis", no_wrap=True, max_width=90)
    for item in verdict.episodes[:limit]:
        table.add_row(
            (item.first or "-").replace("T", " ").rstrip("Z")[:23],
            str(item.count),
            str(item.cards),
            item.kind,
            Text(printable(item.text)),
        )
    out.print(table)
    if len(verdict.episodes) > limit:
        out.print(Text(f"and {len(verdict.episodes) - limit} more kinds (--json has them all)", style="dim"))
