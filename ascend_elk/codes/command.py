"""``ascend-elk codes``: explain error codes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ascend_elk.cann import Version
from ascend_elk.codes.catalogue import Catalogue
from ascend_elk.codes.decode import Decoding
from ascend_elk.codes.models import Entry
from ascend_elk.codes.signatures import Signature
from ascend_elk.errors import UserError

_STYLES = {"info": "cyan", "warning": "yellow", "error": "red", "critical": "bold red"}
_Card = tuple[Text, list[tuple[str, Text]]]
_WORDS = {
    "en": {
        "meaning": "Meaning",
        "remediation": "What to do",
        "versions": "Versions",
        "layer": "Layer",
        "category": "Category",
        "severity": "Severity",
        "source": "Source",
        "shape": "Reads as",
        "effects": "Brings about",
        "wraps": "Passes on",
        "returned": "Returned as",
        "action": "MindCluster policy",
        "note": "Note",
        "unknown": "not in the catalogue",
        "several": "This number has several meanings; --cann VERSION picks the right one.",
        "nothing": "no code of any family looks like this",
        "no_hits": "no code has these words",
        "generic": " (generic)",
    },
    "zh": {
        "meaning": "含义",
        "remediation": "处理建议",
        "versions": "版本",
        "layer": "层次",
        "category": "类别",
        "severity": "级别",
        "source": "来源",
        "shape": "按编码规则",
        "effects": "可能引发",
        "wraps": "转述自",
        "returned": "对外返回",
        "action": "MindCluster 策略",
        "note": "备注",
        "unknown": "错误码库中没有",
        "several": "该编号有多种含义，请用 --cann 指定版本。",
        "nothing": "不符合任何一类错误码的格式",
        "no_hits": "没有包含这些词的错误码",
        "generic": "（通用建议）",
    },
}


def codes(
    code: Annotated[
        list[str] | None,
        typer.Argument(
            help="Codes as the log shows them: EI0006, 507018, 0x715005e, errNo[0x0000000005000009] …"
        ),
    ] = None,
    cann: Annotated[
        str | None, typer.Option(help="CANN version; decides where a number was used twice.")
    ] = None,
    lang: Annotated[str, typer.Option(help="Language of the texts: en or zh.")] = "en",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    search: Annotated[str | None, typer.Option(help="Find codes by words instead.")] = None,
    own: Annotated[
        list[Path] | None, typer.Option("--codes", help="YAML file with your own codes; may be repeated.")
    ] = None,
) -> None:
    """Explain error codes: meaning, severity and what to do. Exit code 1: a code is not known."""
    if lang not in _WORDS:
        raise UserError(f"--lang {lang} is not known; write en or zh")
    if not code and not search:
        raise UserError("name at least one code, or words after --search")
    if code and search:
        raise UserError("name codes or --search, not both")
    # "all" and "auto", as the other commands take them, decide nothing here.
    version = Version.parse(cann) if cann and cann.lower() not in ("all", "auto") else None
    catalogue = Catalogue.load(own or ())
    console = Console(highlight=False)
    if search:
        found = catalogue.search(search, lang)
        if as_json:
            _print_json(found)
        elif found:
            _print_hits(console, found, lang)
        else:
            console.print(_WORDS[lang]["no_hits"])
        if not found:
            raise typer.Exit(1)
        return
    unknown = _explain(catalogue, code or [], version, lang, console, as_json)
    if unknown:
        raise typer.Exit(1)


def _explain(
    catalogue: Catalogue,
    wanted: list[str],
    version: Version | None,
    lang: str,
    console: Console,
    as_json: bool,
) -> list[str]:
    """Print what the codes mean; return those that are not known."""
    notices = Console(stderr=True, highlight=False, soft_wrap=True)
    words = _WORDS[lang]
    everything: list[Entry] = []
    unknown = []
    for text in wanted:
        entries = catalogue.lookup(text, version)
        signature = catalogue.signatures.get(text)
        everything += entries
        if not entries and signature is None:
            unknown.append(text)
            decodings = catalogue.decode(text)
            out = notices if as_json else console
            # A code of 10,000 characters is shown by its head.
            shown = text if len(text) <= 80 else f"{text[:77]}..."
            out.print(Text.assemble((shown, "bold"), f": {words['unknown' if decodings else 'nothing']}"))
            for decoding in decodings:
                out.print(f"  {decoding.sentence(lang)}", markup=False)
            continue
        if as_json:
            continue
        if signature is not None:
            _print_card(console, *_signature_card(signature, lang))
        for entry in entries:
            shape = next(iter(catalogue.decode(entry.key)), None)
            _print_card(console, *_card(entry, shape, lang))
        if (
            len({entry.key for entry in entries}) < len(entries)
            and version is None
            and not entries[0].emitter
        ):
            console.print(Text(words["several"], style="yellow"))
    if as_json:
        _print_json(everything)
    return unknown


def _print_json(entries: list[Entry]) -> None:
    typer.echo(orjson.dumps([entry.as_json() for entry in entries], option=orjson.OPT_INDENT_2))


def _card(entry: Entry, decoding: Decoding | None, lang: str) -> _Card:
    words, zh = _WORDS[lang], lang == "zh"
    title = Text.assemble((entry.code, "bold"), (f"  {entry.symbol}" if entry.symbol else "", "dim"))
    remediation = entry.remediation_zh if zh else entry.remediation
    rows = [
        (words["meaning"], Text(entry.meaning_zh if zh else entry.meaning)),
        (words["remediation"], Text(remediation + (words["generic"] if entry.generic else ""))),
        (words["severity"], Text(entry.severity, style=_STYLES[entry.severity])),
        (words["layer"], Text(f"{entry.layer} / {entry.category}")),
        (words["versions"], Text(entry.versions(lang))),
        (words["shape"], Text(decoding.sentence(lang) if decoding else "")),
        (words["wraps"], Text(", ".join(entry.wraps))),
        (words["returned"], Text(entry.returned_as or "")),
        (words["action"], Text(entry.action or "")),
        (words["effects"], Text(", ".join(entry.effects))),
        (words["note"], Text(entry.note or "")),
        (words["source"], Text(entry.source, style="dim")),
    ]
    return title, rows


def _signature_card(signature: Signature, lang: str) -> _Card:
    words, zh = _WORDS[lang], lang == "zh"
    rows = [
        (words["meaning"], Text(signature.meaning_zh if zh else signature.meaning)),
        (words["remediation"], Text(signature.remediation_zh if zh else signature.remediation)),
        (words["severity"], Text(signature.severity, style=_STYLES[signature.severity])),
        (words["layer"], Text(f"{signature.layer} / {signature.category}")),
        (words["source"], Text(signature.source, style="dim")),
    ]
    return Text(signature.name, style="bold"), rows


def _print_card(console: Console, title: Text, rows: list[tuple[str, Text]]) -> None:
    rows = [(label, text) for label, text in rows if text.plain]
    console.print(title)
    if not console.is_terminal:
        for label, text in rows:
            console.print(f"  {label}: {text.plain}", markup=False, soft_wrap=True)
        console.print()
        return
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for label, text in rows:
        grid.add_row(label, text)
    console.print(Padding(grid, (0, 0, 1, 2)))


def _print_hits(console: Console, entries: list[Entry], lang: str) -> None:
    words, zh = _WORDS[lang], lang == "zh"
    if not console.is_terminal:
        for entry in entries:
            meaning = entry.meaning_zh if zh else entry.meaning
            typer.echo(f"{entry.key}\t{entry.severity}\t{meaning}")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("")
    table.add_column(words["severity"], no_wrap=True)
    table.add_column(words["meaning"], overflow="fold")
    for entry in entries:
        name = f"{entry.key}" + (f" ({entry.versions(lang)})" if entry.withdrawn else "")
        table.add_row(
            Text(name, style="bold"),
            Text(entry.severity, style=_STYLES[entry.severity]),
            Text(entry.meaning_zh if zh else entry.meaning),
        )
    console.print(table)
