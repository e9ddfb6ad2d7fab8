"""An Elasticsearch that keeps documents in memory and answers as the contract says.

It stands in for what the tests' real server lacks: index lifecycle policies and the deletion of data streams. Bodies
are checked against `elasticsearch.schema.yml`; what breaks it lands in `violations` and is refused. Errors are worded
as Elasticsearch words them.
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

Object = dict[str, Any]
_KINDS = {
    "_ilm/policy": "lifecycle",
    "_component_template": "component-template",
    "_index_template": "index-template",
    "_ingest/pipeline": "pipeline",
}


class RefusedError(Exception):
    """An error answer."""

    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.body = {
            "error": {
                "root_cause": [{"type": kind, "reason": reason}],
                "type": kind,
                "reason": reason,
            },
            "status": status,
        }


@cache
def _contract() -> Any:
    document = yaml.safe_load(Path(__file__).with_name("elasticsearch.schema.yml").read_text())
    return Registry().with_resource("elasticsearch", Resource.from_contents(document))


def contract_problems(kind: str, body: Any) -> list[str]:
    """What is wrong with a body, by the contract."""
    validator = Draft202012Validator({"$ref": f"elasticsearch#/$defs/{kind}"}, registry=_contract())
    return [
        f"{kind}: {'/'.join(map(str, error.absolute_path))}: {error.message}"
        for error in validator.iter_errors(body)
    ]


@dataclass
class FakeElasticsearch:
    """The server; `url` is its base.

    Attributes:
        version: it claims.
        documents: kind → name → body.
        streams: data stream → name of the lifecycle policy of its backing indices, if any.
        indices: names of plain indices.
        forbidden: parts of paths that the user has no rights for.
        writes: requests that changed something, as `METHOD path`.
        stop_after: changes that it makes before it breaks connections: the last one is made, but not answered.
        on_write: called with the number of each change, once it is made and before it is answered.
        violations: requests that broke the contract.
    """

    version: str = "8.5.3"
    documents: dict[str, dict[str, Object]] = field(
        default_factory=lambda: {kind: {} for kind in _KINDS.values()}
    )
    streams: dict[str, str | None] = field(default_factory=dict)
    indices: set[str] = field(default_factory=set)
    forbidden: tuple[str, ...] = ()
    writes: list[str] = field(default_factory=list)
    stop_after: int | None = None
    on_write: Callable[[int], None] | None = None
    violations: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                fake._handle(self)

            do_GET = do_PUT = do_DELETE = _answer  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handle(self, handler: BaseHTTPRequestHandler) -> None:
        with self._lock:
            body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
            path = unquote(urlsplit(handler.path).path)
            if self.stop_after is not None and len(self.writes) >= self.stop_after:
                handler.connection.close()
                return
            try:
                for part in self.forbidden:
                    if part in path:
                        raise RefusedError(
                            403,
                            "security_exception",
                            f"action [{path}] is unauthorized for user [u] with effective roles [r]",
                        )
                answer = self._route(handler.command, path, body)
                status = 200
            except RefusedError as error:
                status, answer = error.status, error.body
            if handler.command != "GET" and status == 200:
                self.writes.append(f"{handler.command} {path}")
                if self.on_write is not None:
                    self.on_write(len(self.writes))
                if self.stop_after is not None and len(self.writes) >= self.stop_after:
                    handler.connection.close()
                    return
        text = json.dumps(answer).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("X-elastic-product", "Elasticsearch")
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        # The client may have been killed.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            handler.wfile.write(text)

    def _route(self, method: str, path: str, body: bytes) -> Object:
        if (method, path) == ("GET", "/"):
            return {"version": {"number": self.version}, "tagline": "You Know, for Search"}
        if match := re.fullmatch(r"/_resolve/index/(.+)", path):
            return self._resolve(match[1].split(","))
        if match := re.fullmatch(r"/_data_stream/([^/*]+)", path):
            if method != "DELETE" or match[1] not in self.streams:
                raise RefusedError(404, "index_not_found_exception", f"no such index [{match[1]}]")
            del self.streams[match[1]]
            return {"acknowledged": True}
        for prefix, kind in _KINDS.items():
            if match := re.fullmatch(rf"/{prefix}/([^/*]+)", path):
                return self._document(method, kind, match[1], body)
        if method == "DELETE" and (match := re.fullmatch(r"/([a-z][^/*]*)", path)):
            if match[1] not in self.indices:
                raise RefusedError(404, "index_not_found_exception", f"no such index [{match[1]}]")
            self.indices.remove(match[1])
            return {"acknowledged": True}
        raise RefusedError(
            400, "illegal_argument_exception", f"no handler found for uri [{path}] and method [{method}]"
        )

    def _resolve(self, patterns: list[str]) -> Object:
        def matching(names: Any) -> list[str]:
            return sorted(n for n in names if any(fnmatch.fnmatchcase(n, pattern) for pattern in patterns))

        return {
            "indices": [{"name": name, "attributes": ["open"]} for name in matching(self.indices)],
            "aliases": [],
            "data_streams": [
                {"name": name, "backing_indices": [f".ds-{name}-000001"], "timestamp_field": "@timestamp"}
                for name in matching(self.streams)
            ],
        }

    def _document(self, method: str, kind: str, name: str, body: bytes) -> Object:
        held = self.documents[kind]
        if method == "PUT":
            document = json.loads(body)
            found = contract_problems(kind, document)
            since = {"ignore_missing_component_templates": (8, 9), "lifecycle": (8, 11)}
            version = tuple(map(int, self.version.split(".")[:2]))
            for key in {*document, *document.get("template", ())}:
                if version < since.get(key, (0, 0)):
                    found.append(f"{kind}: unknown field [{key}]")
            if found:
                self.violations += found
                raise RefusedError(400, "x_content_parse_exception", found[0])
            if kind == "index-template":
                missing = [
                    one
                    for one in document.get("composed_of", ())
                    if one not in self.documents["component-template"]
                    and one not in document.get("ignore_missing_component_templates", ())
                ]
                if missing:
                    raise RefusedError(
                        400,
                        "invalid_index_template_exception",
                        f"index_template [{name}] invalid, cause [index template [{name}] specifies component "
                        f"templates {missing} that do not exist]",
                    )
            held[name] = _normalised(kind, document)
            return {"acknowledged": True}
        if name not in held:
            raise RefusedError(404, "resource_not_found_exception", f"{kind} not found: {name}")
        if method == "DELETE":
            self._refuse_deletion_of_used(kind, name)
            del held[name]
            return {"acknowledged": True}
        if kind == "component-template":
            return {"component_templates": [{"name": name, "component_template": held[name]}]}
        if kind == "index-template":
            return {"index_templates": [{"name": name, "index_template": held[name]}]}
        if kind == "pipeline":
            return {name: held[name]}
        users = [f".ds-{stream}-000001" for stream, policy in self.streams.items() if policy == name]
        return {
            name: {
                "version": 1,
                "modified_date": "2026-01-01T00:00:00.000Z",
                "policy": held[name]["policy"],
                "in_use_by": {"indices": users, "data_streams": [], "composable_templates": []},
            }
        }

    def _refuse_deletion_of_used(self, kind: str, name: str) -> None:
        if kind == "index-template":
            patterns = self.documents[kind][name]["index_patterns"]
            users = [s for s in self.streams if any(fnmatch.fnmatchcase(s, pattern) for pattern in patterns)]
            problem = (
                f"unable to remove composable templates [{name}] as they are in use by a data streams {users}"
            )
        elif kind == "component-template":
            templates = self.documents["index-template"]
            users = [other for other, body in templates.items() if name in body.get("composed_of", ())]
            problem = f"component templates [{name}] cannot be removed as they are still in use by index templates {users}"
        elif kind == "lifecycle":
            users = [f".ds-{stream}-000001" for stream, policy in self.streams.items() if policy == name]
            problem = f"Cannot delete policy [{name}]. It is in use by one or more indices: {users}"
        else:
            return
        if users:
            raise RefusedError(400, "illegal_argument_exception", problem)


def _normalised(kind: str, document: Object) -> Object:
    """A document as Elasticsearch gives it back: with its defaults."""
    if kind != "lifecycle":
        return document
    policy = json.loads(json.dumps(document["policy"]))
    for phase in policy["phases"].values():
        phase.setdefault("min_age", "0ms")
        if "delete" in phase["actions"]:
            phase["actions"]["delete"].setdefault("delete_searchable_snapshot", True)
    return {"policy": policy}
