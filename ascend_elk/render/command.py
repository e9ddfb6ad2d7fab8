"""``ascend-elk render``: write Filebeat and Logstash configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ascend_elk.commands.options import read_cann, read_zone
from ascend_elk.commands.output import console


def render(
    cann: Annotated[str, typer.Option(help="CANN version on the hosts, for example 8.0; all for several.")],
    out: Annotated[Path, typer.Option(help="Directory for the configuration.")] = Path("ascend-elk-config"),
    stack: Annotated[str, typer.Option(help="Elastic stack: 7.17, 8 or 9.")] = "8",
    elasticsearch: Annotated[
        list[str] | None, typer.Option(help="URL of Elasticsearch; may be repeated.")
    ] = None,
    logstash: Annotated[
        list[str] | None, typer.Option(help="host:port of Logstash; may be repeated.")
    ] = None,
    namespace: Annotated[str, typer.Option(help="Namespace of the data streams.")] = "default",
    timezone: Annotated[
        str | None, typer.Option(help="Zone of the hosts' clocks; default: each host's own.")
    ] = None,
    root: Annotated[
        list[str] | None, typer.Option(help="Further directory that holds debug/ and run/.")
    ] = None,
    tls: Annotated[bool, typer.Option(help="Encrypt what leaves the machine.")] = True,
    force: Annotated[
        bool, typer.Option("--force", help="Write into a directory that holds something else.")
    ] = False,
) -> None:
    """Write the Filebeat and Logstash configuration for a CANN version."""
    from ascend_elk.render import RenderOptions, write
    from ascend_elk.render import render as render_files

    if timezone is not None:
        read_zone(timezone)
    files = render_files(
        RenderOptions(
            cann=read_cann(cann),
            stack=stack,
            elasticsearch=tuple(elasticsearch or ("https://localhost:9200",)),
            logstash=tuple(logstash or ("localhost:5044",)),
            namespace=namespace,
            timezone=timezone,
            roots=tuple(root or ()),
            tls=tls,
        )
    )
    write(files, out, force)
    console().print(f"wrote {len(files)} files to {out}", markup=False)
