"""A Kibana that keeps its objects in memory and answers as the contract says.

Each request is checked against `contract.schema.yml`, each imported object against the schema of the target;
what breaks them lands in `violations` and is refused. Errors of each documented kind come on demand.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import json
import re
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from email.parser import BytesParser
from email.policy import HTTP
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import yaml
from referencing import Registry, Resource

from ascend_elk.stack.targets import target_for
from tests.kibana.schema import _Validator, problems

Object = dict[str, Any]
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_CHECKED = ("index-pattern", "search")
_IMPORTABLE = {"index-pattern", "search", "dashboard", "tag", "visualization", "lens"}
_NAMES = {400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 409: "Conflict"}
_NAMES |= {422: "Unprocessable Entity", 500: "Internal Server Error", 503: "Service Unavailable"}


class RefusedError(Exception):
    """An error answer."""

    def __init__(self, status: int, message: str, attributes: Object | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"statusCode": status, "error": _NAMES[status], "message": message}
        if attributes is not None:
            self.body["attributes"] = attributes


@cache
def _contract() -> Any:
    document = yaml.safe_load(Path(__file__).with_name("contract.schema.yml").read_text())
    return Registry().with_resource("contract", Resource.from_contents(document))


@cache
def _problems(target: str, item: str) -> list[str]:
    # Most tests import the same objects, and checking them takes longer than all else.
    return problems(target, json.loads(item))


def contract_problems(name: str, body: Any) -> list[str]:
    """What is wrong with a request, by the contract."""
    validator = _Validator({"$ref": f"contract#/$defs/{name}"}, registry=_contract())
    return [
        f"{name}: {'/'.join(map(str, error.absolute_path))}: {error.message}"
        for error in validator.iter_errors(body)
    ]


@dataclass
class FakeKibana:
    """The server; `url` is its base.

    Attributes:
        version: it claims.
        prefix: path that it lies behind (`server.basePath`).
        user, password: it wants, where given.
        spaces: ids of its spaces.
        forbidden: parts of paths that the user has no rights for.
        failing: object id → error of the import, answered with 200 as Kibana does.
        encryption: alert rules can be stored.
        ready: it has started up.
        stop_after: requests that it answers before it breaks every connection.
        on_write: called once a change is made and before it is answered.
        violations: requests that broke the contract.
        writes: requests that changed something, as `METHOD path`.
    """

    version: str = "8.19.4"
    prefix: str = ""
    user: str | None = None
    password: str | None = None
    spaces: set[str] = field(default_factory=lambda: {"default", "team-a"})
    forbidden: tuple[str, ...] = ()
    failing: dict[str, Object] = field(default_factory=dict)
    encryption: bool = True
    ready: bool = True
    stop_after: int | None = None
    on_write: Callable[[], None] | None = None
    certificate: tuple[Path, Path] | None = None
    violations: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    objects: dict[tuple[str, str, str], Object] = field(default_factory=dict)
    rules: dict[tuple[str, str], Object] = field(default_factory=dict)
    roles: dict[str, Object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._clock = datetime(2026, 1, 1, tzinfo=timezone.utc)
        self._lock = threading.Lock()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                fake._handle(self)

            do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if self.certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        scheme = "https" if self.certificate else "http"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_address[1]}{self.prefix}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def edit(self, kind: str, identifier: str, space: str = "default", **attributes: Any) -> None:
        """As if a person saved a change."""
        item = self.objects[space, kind, identifier]
        item["attributes"].update(attributes)
        item["updated_at"] = self._now()

    def ids(self, space: str = "default") -> set[str]:
        return {f"{kind}/{identifier}" for where, kind, identifier in self.objects if where == space}

    # ------------------------------------------------------------ HTTP

    def _now(self) -> str:
        self._clock += timedelta(seconds=1)
        return self._clock.isoformat().replace("+00:00", ".000Z")

    def _handle(self, handler: BaseHTTPRequestHandler) -> None:
        with self._lock:
            if self.stop_after is not None:
                if self.stop_after == 0:
                    handler.connection.close()
                    return
                self.stop_after -= 1
            length = int(handler.headers.get("Content-Length") or 0)
            body = handler.rfile.read(length)
            writes = len(self.writes)
            try:
                status, answer = self._route(handler, body)
            except RefusedError as error:
                status, answer = error.body["statusCode"], error.body
            if self.on_write is not None and len(self.writes) > writes:
                self.on_write()
        text = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        if answer is None:
            text = b""
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("kbn-name", "fake")
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        # The client may have been killed.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            handler.wfile.write(text)

    def _route(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, Any]:
        parts = urlsplit(handler.path)
        query = dict(parse_qsl(parts.query))
        if not parts.path.startswith(self.prefix + "/"):
            raise RefusedError(404, "Not Found")
        path = parts.path[len(self.prefix) :]
        self._authorise(handler, path)
        method = handler.command
        if method != "GET":
            if not handler.headers.get("kbn-xsrf"):
                self._violate("Request must contain a kbn-xsrf header.")
            if "_export" not in path:
                self.writes.append(f"{method} {path}")
        space = "default"
        if match := re.match(r"/s/([^/]+)(/.*)", path):
            space, path = unquote(match[1]), match[2]
        if space not in self.spaces:
            raise RefusedError(404, "Not Found")
        path = unquote(path)
        if (method, path) == ("GET", "/api/status"):
            if not self.ready:
                return 503, "Kibana server is not ready yet"
            return 200, {"name": "fake", "version": {"number": self.version}, "status": {}}
        if match := re.fullmatch(r"/api/spaces/space/([^/]+)", path):
            if match[1] not in self.spaces:
                raise RefusedError(404, "Not Found")
            return 200, {"id": match[1], "name": match[1], "disabledFeatures": []}
        if (method, path) == ("POST", "/api/saved_objects/_import"):
            self._check("import_query", query)
            return 200, self._import(handler, body, space, query)
        if (method, path) == ("POST", "/api/saved_objects/_export"):
            return 200, self._export(self._json("export", body), space)
        if match := re.fullmatch(r"/api/saved_objects/([a-z-]+)/([^/]+)", path):
            if method != "DELETE":
                self._violate(f"{method} {path}")
            return self._delete(space, match[1], match[2])
        if match := re.fullmatch(r"/api/alerting/rule/([^/]+)", path):
            return self._rule(method, space, match[1], body)
        if match := re.fullmatch(r"/api/security/role/([^/]+)", path):
            return self._role(method, match[1], body)
        self._violate(f"there is no {method} {path}")
        raise AssertionError

    def _authorise(self, handler: BaseHTTPRequestHandler, path: str) -> None:
        if self.user is not None:
            wanted = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            if handler.headers.get("Authorization") != f"Basic {wanted}":
                raise RefusedError(401, "[security_exception]: unable to authenticate user")
        for part in self.forbidden:
            if part in path:
                raise RefusedError(403, f"Unable to use {path}")

    def _violate(self, message: str) -> None:
        self.violations.append(message)
        raise RefusedError(400, message)

    def _check(self, name: str, body: Any) -> None:
        found = contract_problems(name, body)
        if found:
            self._violate("; ".join(found))

    def _json(self, name: str, body: bytes) -> Any:
        value = json.loads(body)
        self._check(name, value)
        return value

    # ------------------------------------------------------------ saved objects

    def _import(self, handler: BaseHTTPRequestHandler, body: bytes, space: str, query: Object) -> Object:
        head = f"Content-Type: {handler.headers['Content-Type']}\r\n\r\n".encode()
        message = BytesParser(policy=HTTP).parsebytes(head + body)
        (part,) = [
            one
            for one in message.iter_parts()
            if one.get_param("name", header="content-disposition") == "file"
        ]
        if not str(part.get_filename()).endswith(".ndjson"):
            self._violate("Invalid file extension")
        payload = part.get_payload(decode=True)
        items = [json.loads(line) for line in payload.decode().split("\n") if line]
        target = target_for(self.version)
        keys = [(item["type"], item["id"]) for item in items]
        if len(set(keys)) < len(keys):
            raise RefusedError(400, "Non-unique import objects detected")
        for item in items:
            stamp = item.get("typeMigrationVersion") or (item.get("migrationVersion") or {}).get(item["type"])
            known = target.type_versions.get(item["type"], "0.0.0")
            if stamp is not None and _number(stamp) > _number(known):
                raise RefusedError(
                    422,
                    f'Document "{item["id"]}" belongs to a more recent version of Kibana [{stamp}] '
                    f"when the last known version is [{known}].",
                )
            if item["type"] in _IMPORTABLE:
                found = _problems(target.name, json.dumps(item))
                if found:
                    self._violate(found[0])
        errors = []
        for item in items:
            error = self._import_error(item, set(keys), space, query)
            if error is not None:
                title = item["attributes"].get("title")
                errors.append(
                    {"id": item["id"], "type": item["type"], "title": title, "meta": {}, "error": error}
                )
        # A missing reference stops everything; other errors only their object.
        stopped = any(error["error"]["type"] == "missing_references" for error in errors)
        failed = {(error["type"], error["id"]) for error in errors}
        results = []
        for item in items:
            if stopped or (item["type"], item["id"]) in failed:
                continue
            key = (space, item["type"], item["id"])
            results.append(
                {"type": item["type"], "id": item["id"], "meta": {}, "overwrite": key in self.objects}
            )
            self.objects[key] = self._migrated(item)
        answer: Object = {"success": not errors, "successCount": len(results), "warnings": []}
        if errors:
            answer["errors"] = errors
        if results:
            answer["successResults"] = results
        return answer

    def _import_error(
        self, item: Object, keys: set[tuple[str, str]], space: str, query: Object
    ) -> Object | None:
        if item["id"] in self.failing:
            return self.failing[item["id"]]
        if item["type"] not in _IMPORTABLE:
            return {"type": "unsupported_type"}
        missing = [
            {"type": one["type"], "id": one["id"]}
            for one in item["references"]
            if one["type"] in _CHECKED
            and (one["type"], one["id"]) not in keys
            and (space, one["type"], one["id"]) not in self.objects
        ]
        if missing:
            return {"type": "missing_references", "references": missing}
        if (space, item["type"], item["id"]) in self.objects and query.get("overwrite") != "true":
            return {"type": "conflict"}
        return None

    def _migrated(self, item: Object) -> Object:
        """The object as a newer Kibana stores it."""
        item = copy.deepcopy(item)
        item |= {"updated_at": self._now(), "version": "WzEsMV0=", "managed": False}
        if item["type"] == "search" and self.version.startswith("9"):
            tab = {
                key: value for key, value in item["attributes"].items() if key not in ("title", "description")
            }
            item["attributes"] |= {"tabs": [{"id": "t", "label": "Untitled", "attributes": tab}]}
            item["typeMigrationVersion"] = "10.12.0"
        return item

    def _export(self, body: Object, space: str) -> str:
        wanted = [(one["type"], one["id"]) for one in body["objects"]]
        missing = [
            {
                "id": identifier,
                "type": kind,
                "error": {
                    "statusCode": 404,
                    "error": "Not Found",
                    "message": f"Saved object [{kind}/{identifier}] not found",
                },
            }
            for kind, identifier in wanted
            if (space, kind, identifier) not in self.objects
        ]
        if missing:
            raise RefusedError(400, "Error fetching objects to export", {"objects": missing})
        lines = [json.dumps(self.objects[space, kind, identifier]) for kind, identifier in wanted]
        if not body.get("excludeExportDetails"):
            lines.append(json.dumps({"exportedCount": len(lines), "missingRefCount": 0}))
        return "\n".join(lines)

    def _delete(self, space: str, kind: str, identifier: str) -> tuple[int, Any]:
        if self.objects.pop((space, kind, identifier), None) is None:
            raise RefusedError(404, f"Saved object [{kind}/{identifier}] not found")
        return 200, {}

    # ------------------------------------------------------------ rules, roles

    def _rule(self, method: str, space: str, identifier: str, body: bytes) -> tuple[int, Any]:
        key = (space, identifier)
        generation = "8" if target_for(self.version).modern else "7"
        if method == "GET":
            if key not in self.rules:
                raise RefusedError(404, f"Saved object [alert/{identifier}] not found")
            return 200, self.rules[key]
        if not self.encryption:
            raise RefusedError(
                500,
                "Unable to create rule because the Encrypted Saved Objects plugin is missing encryption key.",
            )
        if not _UUID.fullmatch(identifier):
            self._violate(
                "Predefined IDs are not allowed for saved objects with encrypted attributes unless the ID is a UUID."
            )
        if method == "POST":
            if key in self.rules:
                raise RefusedError(409, f"Saved object [alert/{identifier}] conflict")
            rule = self._json(f"rule_create_{generation}", body)
            self.rules[key] = {"id": identifier, "execution_status": {"status": "pending"}, **rule}
            self.rules[key]["updated_at"] = self._now()
            return 200, self.rules[key]
        if method == "PUT":
            held = self.rules[key]["params"].get("criteria") is None
            change = self._json(f"rule_update_{generation}", body)
            if held != (change["params"].get("criteria") is None):
                self._violate("params invalid: they are those of another rule type")
            self.rules[key] |= {**change, "updated_at": self._now()}
            return 200, self.rules[key]
        if self.rules.pop(key, None) is None:
            raise RefusedError(404, f"Saved object [alert/{identifier}] not found")
        return 204, None

    def _role(self, method: str, name: str, body: bytes) -> tuple[int, Any]:
        if method == "PUT":
            self.roles[name] = self._json("role", body)
            return 204, None
        if name not in self.roles:
            raise RefusedError(404, "Not Found")
        if method == "DELETE":
            del self.roles[name]
            return 204, None
        extra = {
            "_transform_error": [],
            "_unrecognized_applications": [],
            "transient_metadata": {"enabled": True},
        }
        return 200, {"name": name, "metadata": {}, **self.roles[name], **extra}


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
