"""``ascend-elk stack``: prepare the stack of ``docker-compose.yml``, and set it up from within."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ascend_elk.commands.options import read_cann
from ascend_elk.commands.output import console
from ascend_elk.errors import UserError
from ascend_elk.stack.command import Ca, install, read_credentials

if TYPE_CHECKING:
    from ascend_elk.compose.files import InitOptions

stack = typer.Typer(
    help="The stack in containers on one machine (docker-compose.yml).",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Directory = Annotated[Path, typer.Argument(help="Directory of docker-compose.yml.")]
Cann = Annotated[
    list[str] | None, typer.Option(help="CANN version on the hosts; may be repeated; default: all.")
]
Bind = Annotated[str, typer.Option(help="Address that ports are published on; 0.0.0.0 for all.")]
Name = Annotated[
    list[str] | None,
    typer.Option(help="Further name or address under which hosts and people reach it; may be repeated."),
]
_HERE = Path()
_LOOPBACK = "127.0.0.1"


@stack.command()
def init(
    directory: Directory = _HERE,
    cann: Cann = None,
    bind: Bind = _LOOPBACK,
    name: Name = None,
    log_root: Annotated[
        str, typer.Option(help="This machine's log root, for docker compose --profile filebeat.")
    ] = "/root/ascend/log",
    retention: Annotated[str, typer.Option(help="How long logs are kept: 30d, 12h.")] = "30d",
    sample: Annotated[bool, typer.Option(help="Start with the logs of a simulated cluster.")] = True,
    force: Annotated[
        bool, typer.Option("--force", help="Replace what is there, passwords and authority too.")
    ] = False,
) -> None:
    """Write .env (mode 600) with new passwords, certificates, and the configuration that is mounted."""
    from ascend_elk.compose.files import DIRECTORY, initialise

    initialise(directory, _options(cann, bind, name, log_root, sample, retention), force=force)
    out = console()
    out.print(f"wrote {directory / '.env'} (mode 600) and {directory / DIRECTORY}/", markup=False)
    out.print("next: docker compose up --detach; then open https://localhost:5601", markup=False)
    out.print("the user is elastic, its password is ELASTIC_PASSWORD in .env", markup=False)


@stack.command()
def renew(
    directory: Directory = _HERE,
    cann: Cann = None,
    bind: Bind = _LOOPBACK,
    name: Name = None,
    retention: Annotated[str, typer.Option(help="How long logs are kept: 30d, 12h.")] = "30d",
) -> None:
    """Render again and issue new certificates; passwords and the authority stay."""
    from ascend_elk.compose.files import DIRECTORY, renew

    renew(directory, _options(cann, bind, name, "/", True, retention))
    out = console()
    out.print(f"renewed {directory / DIRECTORY}/; next: docker compose restart", markup=False)


@stack.command("set-up")
def set_up(
    keys_file: Annotated[Path, typer.Option(help="File for the API keys of the other parts.")],
    elasticsearch: Annotated[
        str, typer.Option(envvar="ASCEND_ELK_ELASTICSEARCH", help="URL of Elasticsearch.")
    ] = "https://elasticsearch:9200",
    ca: Ca = None,
    retention: Annotated[str, typer.Option(help="How long logs are kept: 30d, 12h.")] = "30d",
) -> None:
    """Run once in the stack, by its set-up job: Kibana's password, templates, roles, keys."""
    from ascend_elk.compose.setup import end_lost_keys, keep_no_copies, set_kibana_password
    from ascend_elk.stack.elasticsearch import Elasticsearch
    from ascend_elk.stack.http import ApiError, Server

    password = os.environ.get("KIBANA_SYSTEM_PASSWORD")
    if not password:
        raise UserError("KIBANA_SYSTEM_PASSWORD is not set; run ascend-elk stack init for a new .env")
    search = Elasticsearch(Server("Elasticsearch", elasticsearch, read_credentials("elastic"), ca=ca))
    try:
        set_kibana_password(search, password)
        keep_no_copies(search)
        for ended in end_lost_keys(search, keys_file):
            console().print(f"ended the key {ended}: its secret is lost", markup=False)
    except ApiError as error:
        raise UserError(f"Elasticsearch refused a request: {error}") from None
    install(
        elasticsearch=elasticsearch,
        no_kibana=True,
        user="elastic",
        ca=ca,
        retention=retention,
        keys_file=None if keys_file.exists() else keys_file,
    )


def _options(
    cann: list[str] | None,
    bind: str,
    names: list[str] | None,
    log_root: str,
    sample: bool,
    retention: str,
) -> InitOptions:
    from ascend_elk.compose.files import InitOptions

    versions = [read_cann(text) for text in cann or ()]
    if not log_root.startswith("/"):
        raise UserError(f"{log_root!r} is no absolute path; begin it with /")
    for text in (bind, log_root, *(names or ())):
        if not text or any(character in text for character in "$'\"#\\\n\r ") or not text.isascii():
            raise UserError(
                f"{text!r} does not go into .env; use letters, digits, '.', '-', '_', ':' and '/'"
            )
    return InitOptions(
        cann=() if None in versions else tuple(version for version in versions if version is not None),
        bind=bind,
        names=tuple(names or ()),
        log_root=log_root,
        sample=sample,
        retention=retention,
    )
