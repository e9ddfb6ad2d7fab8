"""``ascend-elk render``: write the configuration of Filebeat, Logstash and Elasticsearch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ascend_elk.commands.options import read_cann, read_zone
from ascend_elk.commands.output import console
from ascend_elk.errors import UserError

_Many = list[str] | None


def render(
    cann: Annotated[
        list[str],
        typer.Option(help="CANN version on the hosts, for example 8.0; may be repeated; all for every one."),
    ],
    out: Annotated[Path, typer.Option(help="Directory for the configuration.")] = Path("ascend-elk-config"),
    stack: Annotated[str, typer.Option(help="Elastic stack: 7.17, 8 or 9.")] = "8",
    parser: Annotated[
        str, typer.Option(help="Who parses: logstash, or ingest (Elasticsearch, without Logstash).")
    ] = "logstash",
    elasticsearch: Annotated[_Many, typer.Option(help="URL of Elasticsearch; may be repeated.")] = None,
    logstash: Annotated[
        _Many, typer.Option(help="host:port of Logstash; may be repeated, load is then balanced.")
    ] = None,
    kafka: Annotated[
        _Many,
        typer.Option(help="host:port of a Kafka broker between Filebeat and Logstash; may be repeated."),
    ] = None,
    topic: Annotated[str, typer.Option(help="Topic in Kafka.")] = "ascend-logs",
    namespace: Annotated[str, typer.Option(help="Namespace of the data streams.")] = "default",
    retention: Annotated[str, typer.Option(help="How long data is kept: 30d, 12h.")] = "30d",
    timezone: Annotated[
        str | None, typer.Option(help="Zone of the hosts' clocks; default: each host's own.")
    ] = None,
    device_timezone: Annotated[
        str | None, typer.Option(help="Zone of the devices' clocks; default: the hosts'.")
    ] = None,
    root: Annotated[
        _Many,
        typer.Option(
            help="Further directory that holds debug/ and run/, for example a container's mount; a glob too."
        ),
    ] = None,
    home: Annotated[_Many, typer.Option(help="Further home directory, for example '/data/users/*'.")] = None,
    console_log: Annotated[
        _Many,
        typer.Option("--console", help="File with what frameworks print, for example '/job/*/train.log'."),
    ] = None,
    cluster: Annotated[str | None, typer.Option(help="Name of the cluster, for every event.")] = None,
    job: Annotated[str | None, typer.Option(help="Id of the job, for every event.")] = None,
    field: Annotated[
        _Many, typer.Option(help="Further field for every event, as name=value; kept under labels.")
    ] = None,
    original: Annotated[bool, typer.Option(help="Keep the line as read in event.original.")] = True,
    mute: Annotated[_Many, typer.Option(help="Module whose lines are not shipped; may be repeated.")] = None,
    level: Annotated[
        str | None, typer.Option(help="Least level that is shipped: DEBUG, INFO, WARNING, ERROR.")
    ] = None,
    file_identity: Annotated[
        str, typer.Option(help="How Filebeat tells files apart: native, or fingerprint on network shares.")
    ] = "native",
    auth: Annotated[
        str | None, typer.Option(help="Towards Elasticsearch: api-key, basic or none; default: api-key.")
    ] = None,
    tls: Annotated[bool, typer.Option(help="Encrypt what leaves the machine.")] = True,
    target: Annotated[
        _Many,
        typer.Option(
            help="How Filebeat runs on the hosts: systemd, compose, kubernetes or ansible; may be repeated."
        ),
    ] = None,
    node_selector: Annotated[
        _Many, typer.Option(help="Label of the Ascend nodes in Kubernetes, key=value; may be repeated.")
    ] = None,
    kubernetes_namespace: Annotated[
        str, typer.Option(help="Namespace of the DaemonSet in Kubernetes.")
    ] = "ascend-elk",
    pod_volumes: Annotated[
        bool,
        typer.Option(
            "--pod-volumes",
            help="In Kubernetes, also read emptyDir volumes ascend-log; opens all pods' volumes to Filebeat.",
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Write into a directory that holds something else.")
    ] = False,
) -> None:
    """Write the configuration of Filebeat, Logstash and Elasticsearch for CANN versions."""
    from ascend_elk.render import RenderOptions, write
    from ascend_elk.render import render as render_files
    from ascend_elk.render.targets import TargetOptions

    for zone in (timezone, device_timezone):
        if zone is not None:
            read_zone(zone)
    versions = [read_cann(text) for text in cann]
    if None in versions and len(versions) > 1:
        raise UserError("--cann all already holds every version: leave the others out")
    where = TargetOptions(
        tuple(target or ()),
        tuple(node_selector or TargetOptions.node_selector),
        kubernetes_namespace,
        pod_volumes,
    )
    files = render_files(
        RenderOptions(
            cann=tuple(version for version in versions if version is not None),
            stack=stack,
            parser=parser,
            elasticsearch=tuple(elasticsearch or ("https://localhost:9200",)),
            logstash=tuple(logstash or ()),
            kafka=tuple(kafka or ()),
            topic=topic,
            namespace=namespace,
            retention=retention,
            timezone=timezone,
            device_timezone=device_timezone,
            roots=tuple(root or ()),
            homes=tuple(home or ()),
            consoles=tuple(console_log or ()),
            cluster=cluster,
            job=job,
            labels=tuple(_label(text) for text in field or ()),
            original=original,
            muted=tuple(mute or ()),
            level=level,
            identity=file_identity,
            authentication=auth,
            tls=tls,
        ),
        where,
    )
    write(files, out, force)
    console().print(f"wrote {len(files)} files to {out}", markup=False)


def _label(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise UserError(f"{text!r} is no field; write name=value")
    return name, value
