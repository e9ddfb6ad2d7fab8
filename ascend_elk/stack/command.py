"""The commands ``install`` and ``uninstall``."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ascend_elk.commands.options import read_cann
from ascend_elk.errors import UserError

if TYPE_CHECKING:
    from ascend_elk.stack.changes import Outcome
    from ascend_elk.stack.http import Credentials
    from ascend_elk.stack.install import Plan
    from ascend_elk.stack.kibana import Kibana

ElasticsearchUrl = Annotated[
    str,
    typer.Option(
        "--elasticsearch",
        envvar="ASCEND_ELK_ELASTICSEARCH",
        help="URL of Elasticsearch, with its path prefix.",
    ),
]
KibanaUrl = Annotated[
    str | None,
    typer.Option("--kibana", envvar="ASCEND_ELK_KIBANA", help="URL of Kibana, with its path prefix."),
]
NoKibana = Annotated[bool, typer.Option("--no-kibana", help="Leave Kibana alone.")]
User = Annotated[
    str | None,
    typer.Option(
        help="User; the password is taken from ASCEND_ELK_PASSWORD, else asked for. "
        "Without it an API key is taken from ASCEND_ELK_API_KEY (id:key or its base64 form)."
    ),
]
Ca = Annotated[
    Path | None, typer.Option(help="Certificate authority that signed the servers' certificates, PEM.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Also what a person has changed since.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")]

_DEFAULT_ELASTICSEARCH = "http://localhost:9200"
_DEFAULT_KIBANA = "http://localhost:5601"
_DEFAULT_SPACE = "default"
_START = "ascend-overview"
_WORDS = {
    "create": ("created", "to create", "green"),
    "update": ("updated", "to update", "yellow"),
    "adopt": ("was there as wanted", "is there as wanted", "dim"),
    "keep": (
        "kept: changed by someone, see --overwrite",
        "to keep: changed by someone, see --overwrite",
        "cyan",
    ),
    "unchanged": ("unchanged", "unchanged", "dim"),
    "delete": ("removed", "to remove", "yellow"),
}


def install(
    elasticsearch: ElasticsearchUrl = _DEFAULT_ELASTICSEARCH,
    kibana: KibanaUrl = _DEFAULT_KIBANA,
    no_kibana: NoKibana = False,
    user: User = None,
    ca: Ca = None,
    space: Annotated[str, typer.Option(help="Kibana space that gets the content.")] = _DEFAULT_SPACE,
    kibana_version: Annotated[
        str | None, typer.Option(help="Refuse any Kibana but this: 7.17, 8.x or 9.x.")
    ] = None,
    code_page: Annotated[
        str | None, typer.Option(help="URL of the enrichment service, which error codes will link to.")
    ] = None,
    parser: Annotated[
        str, typer.Option(help="Who parses: logstash, or ingest (Elasticsearch, without Logstash).")
    ] = "logstash",
    cann: Annotated[
        list[str] | None,
        typer.Option(help="CANN version on the hosts, for --parser ingest; may be repeated; default: all."),
    ] = None,
    retention: Annotated[str, typer.Option(help="How long logs are kept: 30d, 12h.")] = "30d",
    alerts: Annotated[bool, typer.Option("--alerts", help="Create the alert rules, switched off.")] = False,
    no_api_keys: Annotated[bool, typer.Option("--no-api-keys", help="Create no API keys.")] = False,
    keys_file: Annotated[
        Path | None,
        typer.Option(help="New file, mode 600, for new API keys; without it they are printed once."),
    ] = None,
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
) -> None:
    """Install templates, pipelines, roles, keys and dashboards; a second run changes nothing."""
    from ascend_elk.stack import access
    from ascend_elk.stack.documents import load_documents
    from ascend_elk.stack.elasticsearch import Elasticsearch
    from ascend_elk.stack.http import Server
    from ascend_elk.stack.install import Options, carry_out, make_plan
    from ascend_elk.stack.source import load_source

    credentials = read_credentials(user)
    search = Elasticsearch(Server("Elasticsearch", elasticsearch, credentials, ca=ca))
    view = None if no_kibana or not kibana else _kibana(kibana, credentials, ca)(space)
    options = Options(
        kibana_version=kibana_version,
        code_page=_checked_url(code_page),
        alerts=alerts,
        api_keys=not no_api_keys,
        keys_file=keys_file,
        overwrite=overwrite,
    )
    versions = [read_cann(text) for text in cann or ()]
    with _refusals():
        documents = load_documents(
            elasticsearch=search.version(),
            cann=() if None in versions else tuple(version for version in versions if version is not None),
            parser=parser,
            retention=retention,
        )
        source = load_source()
        todo = make_plan(search, view, documents, source, options)
    out = Console(highlight=False, soft_wrap=True)
    if dry_run:
        _show_plan(out, todo)
        return
    status = Console(stderr=True)
    with _refusals(), status.status("installing") as spinner:
        outcome, keys = carry_out(search, todo, options, lambda what: spinner.update(f"installing {what}"))
    titles = {change.asset.key: change.asset.title for _, change in todo.changes()}
    _show_outcome(out, outcome, titles)
    for note in todo.notes:
        out.print(f"note: {note}", markup=False, style="yellow")
    if keys and keys_file is not None:
        out.print(f"API keys written to {keys_file}", markup=False)
    elif keys:
        out.print("API keys, shown only now:")
        out.print(access.keys_text(keys), markup=False, end="")
    if outcome.failed:
        raise typer.Exit(1)
    if view is not None:
        out.print(f"Open {view.page(_START)}", markup=False)


def uninstall(
    elasticsearch: ElasticsearchUrl = _DEFAULT_ELASTICSEARCH,
    kibana: KibanaUrl = _DEFAULT_KIBANA,
    no_kibana: NoKibana = False,
    user: User = None,
    ca: Ca = None,
    data: Annotated[
        bool, typer.Option("--data", help="Delete the logs and the incidents, too. They are gone then.")
    ] = False,
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
) -> None:
    """Remove what install made, and nothing else."""
    from ascend_elk.stack.elasticsearch import Elasticsearch
    from ascend_elk.stack.http import Server
    from ascend_elk.stack.install import remove

    credentials = read_credentials(user)
    search = Elasticsearch(Server("Elasticsearch", elasticsearch, credentials, ca=ca))
    views = None if no_kibana or not kibana else _kibana(kibana, credentials, ca)
    with _refusals():
        if views is not None:
            views(_DEFAULT_SPACE).version()
        outcome = remove(search, views, data=data, overwrite=overwrite, dry_run=dry_run)
    out = Console(highlight=False, soft_wrap=True)
    if not outcome.done and not outcome.failed:
        out.print("nothing is installed")
    _show_outcome(out, outcome, {}, planned=dry_run)
    if outcome.failed:
        raise typer.Exit(1)


@contextmanager
def _refusals() -> Iterator[None]:
    """What a server refuses outside of any single object ends the command in one sentence."""
    from ascend_elk.stack.http import ApiError

    try:
        yield
    except ApiError as error:
        raise UserError(
            f"the server refused a request: {error}; see docs/install.md for the rights"
        ) from None


def read_credentials(user: str | None) -> Credentials:
    """The password of a user, or the API key, from the environment; a terminal is asked.

    Raises:
        UserError: a user has no password.
    """
    from ascend_elk.stack.http import Credentials

    if user is None:
        return Credentials(api_key=os.environ.get("ASCEND_ELK_API_KEY") or None)
    password = os.environ.get("ASCEND_ELK_PASSWORD")
    if password is None:
        if not sys.stdin.isatty():
            raise UserError(f"no password for {user!r}; set ASCEND_ELK_PASSWORD")
        password = typer.prompt(f"Password of {user}", hide_input=True, err=True)
    return Credentials(user=user, password=password)


def _kibana(url: str, credentials: Credentials, ca: Path | None) -> Callable[[str], Kibana]:
    from ascend_elk.stack.http import Server
    from ascend_elk.stack.kibana import HEADERS, Kibana

    server = Server("Kibana", url, credentials, ca=ca, headers=HEADERS)
    return lambda space: Kibana(server, space)


def _checked_url(url: str | None) -> str | None:
    if url is not None and not url.startswith(("http://", "https://")):
        raise UserError(f"--code-page {url!r} is no URL; write for example https://host:9620")
    return url


def _show_plan(out: Console, todo: Plan) -> None:
    from ascend_elk.stack.changes import diff

    for holder, change in todo.changes():
        _, words, style = _WORDS[change.action]
        out.print(_line(change.asset.key, words, change.asset.title), markup=False, style=style)
        if change.action in ("update", "keep"):
            for line in diff(change, holder):
                colour = {"+": "green", "-": "red"}.get(line[:1], "dim")
                out.print(f"    {line}", markup=False, style=colour)
    for name in todo.keys:
        out.print(_line(f"elasticsearch/api-key/{name}", "to create"), markup=False, style="green")
    counts = Counter({"create": len(todo.keys)}) + Counter(change.action for _, change in todo.changes())
    short = {action: words.split(":")[0] for action, (_, words, _) in _WORDS.items()}
    out.print(
        ", ".join(f"{count} {short[action]}" for action, count in counts.items()) + "; nothing was changed"
    )
    for note in todo.notes:
        out.print(f"note: {note}", markup=False, style="yellow")


def _line(key: str, words: str, title: str = "") -> str:
    return f"{key}: {words}" + (f"  ({title})" if title else "")


def _show_outcome(out: Console, outcome: Outcome, titles: dict[str, str], *, planned: bool = False) -> None:
    quiet = Counter(action for action in outcome.done.values() if action in ("unchanged", "adopt"))
    for key, action in outcome.done.items():
        if action not in quiet:
            done, plan_words, style = _WORDS[action]
            out.print(
                _line(key, plan_words if planned else done, titles.get(key, "")), markup=False, style=style
            )
    for key, problem in outcome.failed.items():
        out.print(f"{key}: failed: {problem}", markup=False, style="bold red")
    if quiet:
        out.print(f"{sum(quiet.values())} unchanged")
    if outcome.failed:
        out.print(
            f"{len(outcome.failed)} of {len(outcome.failed) + len(outcome.done)} failed; "
            "mend the reasons above and run the command again",
            style="bold red",
        )
