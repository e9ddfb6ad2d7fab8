"""``ascend-elk doctor``: look at a training host and at the stack, and say what is wrong."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ascend_elk.commands.output import console
from ascend_elk.doctor.findings import SEVERITIES, Finding, Severity, worst
from ascend_elk.errors import UserError
from ascend_elk.stack.command import Ca, User, read_credentials

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascend_elk.doctor.stack import StackOptions

_STYLES: dict[Severity, str] = {"ok": "green", "note": "cyan", "warning": "yellow", "error": "bold red"}
_ONLY = ("host", "stack")


def doctor(
    only: Annotated[
        str | None,
        typer.Option(help="host or stack; default: this host, and the stack where --elasticsearch is given."),
    ] = None,
    elasticsearch: Annotated[
        str | None, typer.Option(envvar="ASCEND_ELK_ELASTICSEARCH", help="URL of Elasticsearch.")
    ] = None,
    kibana: Annotated[str | None, typer.Option(envvar="ASCEND_ELK_KIBANA", help="URL of Kibana.")] = None,
    user: User = None,
    ca: Ca = None,
    space: Annotated[str, typer.Option(help="Kibana space that has the content.")] = "default",
    code_page: Annotated[
        str | None, typer.Option(help="URL of the enrichment service, as it was given to install.")
    ] = None,
    namespace: Annotated[str, typer.Option(help="Namespace of the data streams; default: all.")] = "*",
    root: Annotated[
        list[str] | None,
        typer.Option(help="Further directory that holds debug/ and run/; a glob too; may be repeated."),
    ] = None,
    filebeat_data: Annotated[
        str | None, typer.Option(help="Filebeat's path.data; default: that of packages and images.")
    ] = None,
    sample: Annotated[
        float, typer.Option(min=0, max=3600, help="Seconds for which the growth of the logs is watched.")
    ] = 5,
    host_root: Annotated[
        Path, typer.Option(help="Where the host's file system is mounted, if this runs in a container.")
    ] = Path("/"),
    json: Annotated[bool, typer.Option("--json", help="Print JSON, see docs/operate.md.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Show what is well, too.")] = False,
) -> None:
    """Find what keeps logs from being written, shipped, stored or understood, and say what to do."""
    if only is not None and only not in _ONLY:
        raise UserError(f"{only!r} is nothing to look at; write --only host or --only stack")
    if only == "stack" and elasticsearch is None:
        raise UserError("no stack to look at; pass --elasticsearch URL")
    for pattern in root or ():
        if not pattern.startswith("/"):
            raise UserError(f"{pattern!r} is no absolute path; begin it with /")
    if not host_root.is_dir():
        raise UserError(f"there is no directory {host_root}; mount the host's file system there")
    stack = None
    if elasticsearch is not None and only != "host":
        from ascend_elk.doctor.stack import StackOptions

        stack = _stack(elasticsearch, kibana, user, ca, space, StackOptions(code_page, namespace))
    with Console(stderr=True).status("looking") as spinner:

        def tell(what: str) -> None:
            spinner.update(f"looking at: {what}")

        findings: list[Finding] = []
        if only != "stack":
            from ascend_elk.doctor.host import HostOptions, check_host
            from ascend_elk.doctor.machine import Machine

            options = HostOptions(tuple(root or ()), filebeat_data, sample)
            findings += check_host(Machine(host_root.resolve()), options, tell)
        if stack is not None:
            findings += stack(tell)
    if json:
        _print_json(findings)
    else:
        _print(findings, every)
    if SEVERITIES.index(worst(findings)) >= SEVERITIES.index("warning"):
        raise typer.Exit(1)


def _stack(
    elasticsearch: str,
    kibana: str | None,
    user: str | None,
    ca: Path | None,
    space: str,
    options: StackOptions,
) -> Callable[[Callable[[str], None]], Iterator[Finding]]:
    from ascend_elk.doctor.stack import check_stack
    from ascend_elk.stack.elasticsearch import Elasticsearch
    from ascend_elk.stack.http import Server
    from ascend_elk.stack.kibana import HEADERS, Kibana

    credentials = read_credentials(user)
    search = Elasticsearch(Server("Elasticsearch", elasticsearch, credentials, ca=ca))
    view = None
    if kibana:
        view = Kibana(Server("Kibana", kibana, credentials, ca=ca, headers=HEADERS), space)
    return lambda tell: check_stack(search, view, options, tell)


def _print_json(findings: list[Finding]) -> None:
    document = {"severity": worst(findings), "findings": [finding.document() for finding in findings]}
    typer.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())


def _print(findings: list[Finding], every: bool) -> None:
    out = console()
    counts = Counter(finding.severity for finding in findings)
    shown = [finding for finding in findings if every or finding.severity != "ok"]
    shown.sort(key=lambda finding: -SEVERITIES.index(finding.severity))
    if sys.stdout.isatty():
        table = Table("", "check", "what", "found", "what to do", box=None, pad_edge=False)
        for finding in shown:
            table.add_row(
                Text(finding.severity, _STYLES[finding.severity]),
                finding.check,
                Text(finding.subject, overflow="fold"),
                Text(finding.text),
                Text(finding.remedy),
            )
        if shown:
            Console(highlight=False).print(table)
    else:
        for finding in shown:
            todo = f"; {finding.remedy}" if finding.remedy else ""
            out.print(
                f"{finding.severity}: {finding.check}: {finding.subject}: {finding.text}{todo}", markup=False
            )
    summary = ", ".join(f"{counts[name]} {name}" for name in reversed(SEVERITIES) if counts[name])
    out.print(f"{len(findings)} findings: {summary}" + ("" if every else " (--all shows every one)"))
