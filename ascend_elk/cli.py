"""The command line: arguments in, output out."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from ascend_elk import __version__
from ascend_elk.codes.command import codes
from ascend_elk.commands.check import check
from ascend_elk.commands.demo import demo
from ascend_elk.commands.diagnose import diagnose
from ascend_elk.commands.parse import parse
from ascend_elk.compose.command import stack
from ascend_elk.doctor.command import doctor
from ascend_elk.errors import UserError
from ascend_elk.render.command import render
from ascend_elk.service.command import enrich
from ascend_elk.simulate.command import simulate
from ascend_elk.stack.command import install, uninstall

app = typer.Typer(
    help="Find the Ascend NPU that drags the cluster down.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ascend-elk {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Find the Ascend NPU that drags the cluster down."""


for command in (diagnose, parse, check, codes, render, install, uninstall, doctor, enrich, simulate, demo):
    app.command()(command)

app.add_typer(stack, name="stack")


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 trouble found, 2 wrong use."""
    try:
        app()
    except UserError as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"error: {error}", markup=False)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of a pipe (head, less) went away: not an error.
        sys.stderr.close()
        sys.exit(0)
