"""All checks of the stack: does it answer, does it hold what install makes, and is it up to date."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ascend_elk.doctor.clock import compare_clocks
from ascend_elk.doctor.findings import Finding
from ascend_elk.doctor.stream import check_stream
from ascend_elk.errors import UserError
from ascend_elk.stack import access
from ascend_elk.stack.elasticsearch import PRIVILEGES, Elasticsearch
from ascend_elk.stack.http import ApiError
from ascend_elk.stack.kibana import Kibana

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Defaults of cluster.routing.allocation.disk.watermark: low (no shard is put there), high (shards leave
# it), flood stage (its indices take no more documents).
_WATERMARKS = ((0.95, "error"), (0.90, "error"), (0.85, "warning"))
_RIGHTS = "see the table of rights in docs/install.md"


@dataclass(frozen=True)
class StackOptions:
    """How the stack was installed, where that differs from what ``install`` does by default.

    Attributes:
        code_page: base URL of the enrichment service, as it was given to ``install``.
        namespace: of the data streams that are looked at; a pattern too.
    """

    code_page: str | None = None
    namespace: str = "*"


def check_stack(
    elasticsearch: Elasticsearch,
    kibana: Kibana | None,
    options: StackOptions,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[Finding]:
    """Yield what is found; a server that does not answer is a finding, too."""
    url = elasticsearch.server.url
    tell("Elasticsearch")
    try:
        response = elasticsearch.server.request("GET", "/")
        here = time.time()
        version = elasticsearch.version()
    except (UserError, ApiError) as error:
        yield Finding("reach", "error", url, str(error), "check the URL, --ca and the credentials")
        return
    number = response.json()["version"]["number"]
    yield Finding("reach", "ok", url, f"Elasticsearch {number} answers", data={"version": number})
    yield from compare_clocks(here, response.headers.get("Date"), "Elasticsearch")
    secured = elasticsearch.secured()
    yield from _security(url, secured)
    for check in (_health, _disks):
        yield from _allowed(lambda check=check: check(elasticsearch), url)  # type: ignore[misc]
    if secured:
        tell("rights")
        yield from _allowed(lambda: _rights(elasticsearch), url)
    tell("logs")
    yield from _allowed(lambda: check_stream(elasticsearch, time.time(), options.namespace), url)
    found = None
    if kibana is not None:
        tell("Kibana")
        try:
            found = kibana.version()
        except (UserError, ApiError) as error:
            yield Finding(
                "reach", "error", kibana.server.url, str(error), "check the URL and that Kibana runs"
            )
        else:
            yield Finding(
                "reach", "ok", kibana.server.url, f"Kibana {found} answers", data={"version": found}
            )
            if found.split(".")[:1] != number.split(".")[:1]:
                yield Finding(
                    "versions",
                    "error",
                    kibana.server.url,
                    f"Kibana {found} does not belong to Elasticsearch {number}",
                    "run both in the same major version, Kibana no newer than Elasticsearch",
                )
    tell("content")
    content = kibana if found is not None else None
    yield from _allowed(lambda: _content(elasticsearch, content, version, options), url)


def _allowed(check: Callable[[], Iterator[Finding]], url: str) -> Iterator[Finding]:
    """What the user may not look at is a note: other checks go on."""
    try:
        yield from check()
    except (UserError, ApiError) as error:
        yield Finding("rights", "note", url, f"not looked at: {error}", _RIGHTS)


def _security(url: str, secured: bool) -> Iterator[Finding]:
    parts = urlsplit(url)
    if not secured:
        yield Finding(
            "security",
            "warning",
            url,
            "security is off: whoever reaches it reads and deletes everything",
            "set xpack.security.enabled: true",
        )
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        yield Finding(
            "security", "warning", url, "logs and credentials go over the network in the clear", "use https"
        )
    elif secured:
        yield Finding("security", "ok", url, "security is on")


def _health(elasticsearch: Elasticsearch) -> Iterator[Finding]:
    health = elasticsearch.server.get("/_cluster/health")
    status, unassigned = health["status"], health["unassigned_shards"]
    texts = {
        "green": "all shards are there",
        "yellow": f"{unassigned} copies of shards are not assigned: a lost node loses data",
        "red": f"{unassigned} shards are missing: part of the logs cannot be read or written",
    }
    single = health["number_of_data_nodes"] == 1
    severity = {"green": "ok", "yellow": "note" if single else "warning", "red": "error"}[status]
    remedy = "GET _cluster/allocation/explain says why" if status != "green" else ""
    if status == "yellow" and single:
        remedy = "add a second data node, or set number_of_replicas to 0 in ascend-elk@custom"
    yield Finding(
        "health",
        severity,  # type: ignore[arg-type]
        health["cluster_name"],
        texts[status],
        remedy,
        {"status": status, "nodes": health["number_of_nodes"], "unassigned_shards": unassigned},
    )


def _disks(elasticsearch: Elasticsearch) -> Iterator[Finding]:
    for node in elasticsearch.server.get("/_nodes/stats/fs")["nodes"].values():
        total = node["fs"]["total"]
        used = 1 - total["available_in_bytes"] / total["total_in_bytes"]
        severity = next((name for mark, name in _WATERMARKS if used >= mark), "ok")
        remedy = "shorten the retention (install --retention), or add disk" if severity != "ok" else ""
        text = f"{used:.0%} of the disk is used"
        if used >= _WATERMARKS[0][0]:
            text += ": indices take no more documents"
        yield Finding(
            "disk",
            severity,  # type: ignore[arg-type]
            node["name"],
            text,
            remedy,
            {"used": round(used, 3), "total": total["total_in_bytes"]},
        )


def _rights(elasticsearch: Elasticsearch) -> Iterator[Finding]:
    """Which part of the product these credentials would do for, and what they may beyond that."""
    user = elasticsearch.server.get("/_security/_authenticate")
    name = user.get("api_key", {}).get("name") or user["username"]
    for role, body in access.ROLES.items():
        missing = _missing(elasticsearch, body)
        part = role.removeprefix("ascend_elk_")
        text = f"enough for the {part}" if not missing else f"not enough for the {part}: {', '.join(missing)}"
        own = f"ascend-elk-{part}" == name
        yield Finding(
            "rights",
            "error" if own and missing else "ok" if not missing else "note",
            name,
            text,
            f"make a new key: ascend-elk install; {_RIGHTS}" if own and missing else "",
            {"role": role, "missing": missing},
        )
    if name in access.API_KEYS:
        more = [
            right
            for right in ("manage_security", "manage", "manage_index_templates", "manage_ingest_pipelines")
            if not _missing(elasticsearch, {"cluster": [right]})
        ]
        if more:
            yield Finding(
                "rights",
                "warning",
                name,
                f"may do more than it needs: {', '.join(more)}",
                "make the key by ascend-elk install",
                {"more": more},
            )
    else:
        needed = sorted({"monitor", *PRIVILEGES.values()})
        missing = _missing(elasticsearch, {"cluster": needed})
        text = "enough to install" if not missing else f"not enough to install: {', '.join(missing)}"
        yield Finding("rights", "ok" if not missing else "note", name, text, data={"missing": missing})


def _missing(elasticsearch: Elasticsearch, role: dict[str, Any]) -> list[str]:
    body = {"cluster": role.get("cluster", []), "index": role.get("indices", [])}
    answer = elasticsearch.server.request("POST", "/_security/user/_has_privileges", json=body).json()
    missing = [right for right, has in answer["cluster"].items() if not has]
    for index, rights in answer["index"].items():
        missing += [f"{right} on {index}" for right, has in rights.items() if not has]
    return missing


def _content(
    elasticsearch: Elasticsearch, kibana: Kibana | None, version: tuple[int, int], options: StackOptions
) -> Iterator[Finding]:
    from ascend_elk.stack.documents import load_documents
    from ascend_elk.stack.install import Options, make_plan
    from ascend_elk.stack.manifest import Manifest
    from ascend_elk.stack.source import load_source

    manifest = Manifest(elasticsearch)
    url = elasticsearch.server.url
    if not manifest.entries:
        text = "nothing of ascend-elk is installed"
        yield Finding("content", "error", url, text, "run ascend-elk install")
        return
    ingest = any(key.startswith("elasticsearch/pipeline/") for key in manifest.entries)
    documents = load_documents(
        elasticsearch=version, cann=(), parser="ingest" if ingest else "logstash", retention="30d"
    )
    rules = any(key.startswith("kibana-rule/") for key in manifest.entries)
    wanted = Options(code_page=options.code_page, alerts=rules)
    todo = make_plan(elasticsearch, kibana, documents, load_source(), wanted)
    by_action: dict[str, list[str]] = {}
    for _, change in todo.changes():
        # What the options of install decide cannot be told from an older version of the content.
        by_action.setdefault(change.action, []).append(change.asset.key)
    by_action.setdefault("create", []).extend(f"elasticsearch/api-key/{name}" for name in todo.keys)
    for key in by_action["create"]:
        yield Finding("content", "error", key, "is missing", "run ascend-elk install")
    for key in by_action.get("keep", []):
        text = "was changed by someone and is kept"
        yield Finding(
            "content", "note", key, text, "ascend-elk install --overwrite --dry-run shows the difference"
        )
    updates = by_action.get("update", [])
    if updates:
        yield Finding(
            "content",
            "note",
            ", ".join(updates[:5]) + (f" and {len(updates) - 5} more" if updates[5:] else ""),
            f"{len(updates)} differ from what this version installs by default",
            "run ascend-elk install with the options of before; --dry-run shows each difference",
            {"keys": updates},
        )
    if not by_action["create"]:
        count = sum(map(len, by_action.values()))
        yield Finding("content", "ok", url, f"all {count} things that install makes are there")
