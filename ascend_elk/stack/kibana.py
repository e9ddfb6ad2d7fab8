"""The part of Kibana's API that the installer needs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from ascend_elk.errors import UserError
from ascend_elk.stack.http import ApiError, Server, segment
from ascend_elk.stack.objects import DEFAULT_SPACE, scoped, to_ndjson

Object = dict[str, Any]
Key = tuple[str, str]
"""Type and id."""

HEADERS = {"kbn-xsrf": "true"}
_NOT_FOUND = 404


class Kibana:
    """One space of one Kibana.

    Args:
        server: where; made with ``HEADERS``.
        space: id of the space.
    """

    def __init__(self, server: Server, space: str = DEFAULT_SPACE) -> None:
        """Prepare; nothing is sent yet."""
        self.server = server
        self.space = space
        self._prefix = "" if space == DEFAULT_SPACE else f"/s/{segment(space)}"

    def version(self) -> str:
        """Its version, for example ``8.19.4``.

        Raises:
            UserError: it is no Kibana, or not ready.
        """
        try:
            body = self.server.get("/api/status")
        except ApiError as error:
            if error.status == 503:
                raise UserError(
                    f"Kibana at {self.server.url} is not ready yet; try again in a minute"
                ) from None
            if error.status == 403:
                raise UserError(f"the user may not use Kibana at {self.server.url}") from None
            body = None
        number = body.get("version", {}).get("number") if isinstance(body, dict) else None
        if not isinstance(number, str):
            raise UserError(
                f"what answers at {self.server.url} is not Kibana; check the URL and its path prefix"
            )
        return number

    def check_space(self) -> None:
        """Make sure that the space exists.

        Raises:
            UserError: it does not.
        """
        if not self.space:
            raise UserError("--space is empty; name a space of Kibana, or leave it out")
        try:
            found = self.server.get(f"/api/spaces/space/{segment(self.space)}")
        except ApiError as error:
            if error.status == 403:
                raise UserError(
                    f"the user may not use the space {self.space!r} of Kibana; "
                    "give it the privileges to manage saved objects and data views there"
                ) from None
            raise
        # With spaces switched off there is one only, and no such API.
        if found is None and self.space != DEFAULT_SPACE:
            raise UserError(
                f"Kibana has no space {self.space!r}; create it first, or choose one with --space"
            )

    def page(self, dashboard: str) -> str:
        """URL of a dashboard, by its id in the source."""
        return f"{self.server.url}{self._prefix}/app/dashboards#/view/{scoped(dashboard, self.space)}"

    def export(self, keys: Iterable[Key]) -> dict[Key, Object]:
        """Read objects; those that do not exist are left out."""
        wanted = list(keys)
        while wanted:
            body = {
                "objects": [{"type": kind, "id": identifier} for kind, identifier in wanted],
                "excludeExportDetails": True,
            }
            try:
                response = self.server.request("POST", f"{self._prefix}/api/saved_objects/_export", json=body)
            except ApiError as error:
                missing = self._missing(error)
                if not missing:
                    raise
                wanted = [key for key in wanted if key not in missing]
                continue
            objects = [json.loads(line) for line in response.text.splitlines() if line.strip()]
            return {(item["type"], item["id"]): item for item in objects}
        return {}

    @staticmethod
    def _missing(error: ApiError) -> set[Key]:
        """Which objects an export failed on; empty where it failed for another reason."""
        attributes = error.body.get("attributes") if isinstance(error.body, dict) else None
        objects = (attributes or {}).get("objects") or []
        return {
            (item["type"], item["id"])
            for item in objects
            if item.get("error", {}).get("statusCode") == _NOT_FOUND
        }

    def import_objects(self, objects: Sequence[Object]) -> dict[Key, str]:
        """Create or replace objects.

        Returns:
            Why objects failed; Kibana answers 200 for those too. Those that are not named are in.
        """
        response = self.server.request(
            "POST",
            f"{self._prefix}/api/saved_objects/_import",
            params={"overwrite": "true"},
            files={"file": ("ascend-elk.ndjson", to_ndjson(objects).encode(), "application/ndjson")},
        )
        body = self.server.parsed(response)
        failed = {(item["type"], item["id"]): _import_problem(item) for item in body.get("errors", [])}
        if body.get("success"):
            return failed
        succeeded = {(item["type"], item["id"]) for item in body.get("successResults", [])}
        for item in objects:
            key = (item["type"], item["id"])
            if key not in succeeded:
                # One missing reference keeps the whole file out.
                failed.setdefault(key, "not imported, because others of the same import failed")
        return failed

    def delete(self, key: Key) -> None:
        """Delete an object; nothing where it is gone already."""
        kind, identifier = key
        try:
            self.server.request(
                "DELETE",
                f"{self._prefix}/api/saved_objects/{kind}/{segment(identifier)}",
                params={"force": "true"},
            )
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise

    # ------------------------------------------------------------ alert rules

    def read_rule(self, identifier: str) -> Object | None:
        """A rule as Kibana shows it."""
        found = self.server.get(f"{self._prefix}/api/alerting/rule/{identifier}")
        return None if found is None else dict(found)

    def write_rule(self, identifier: str, body: Object, current: Object | None) -> None:
        """Create a rule, or change it; whether it is on, and whom it tells, stays as the user set it."""
        path = f"{self._prefix}/api/alerting/rule/{identifier}"
        if current is None:
            self.server.request("POST", path, json=body)
            return
        change = {key: body[key] for key in ("name", "tags", "schedule", "params")}
        change["actions"] = [_writable_action(action) for action in current.get("actions", [])]
        change |= {key: body[key] for key in ("notify_when", "throttle") if key in body}
        self.server.request("PUT", path, json=change)

    def delete_rule(self, identifier: str) -> None:
        """Delete a rule; nothing where it is gone already."""
        try:
            self.server.request("DELETE", f"{self._prefix}/api/alerting/rule/{identifier}")
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise

    # ------------------------------------------------------------ roles

    def read_role(self, name: str) -> Object | None:
        """A role with its Kibana privileges, without what Kibana adds on its own."""
        found = self.server.get(f"/api/security/role/{segment(name)}")
        if found is None:
            return None
        return {key: found[key] for key in ("elasticsearch", "kibana", "metadata") if key in found}

    def write_role(self, name: str, body: Object) -> None:
        """Create or replace a role."""
        self.server.request("PUT", f"/api/security/role/{segment(name)}", json=body)

    def delete_role(self, name: str) -> None:
        """Delete a role; nothing where it is gone already."""
        try:
            self.server.request("DELETE", f"/api/security/role/{segment(name)}")
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise


def _writable_action(action: Object) -> Object:
    return {
        key: action[key]
        for key in ("id", "group", "params", "frequency", "uuid", "alerts_filter")
        if key in action
    }


def _import_problem(item: Object) -> str:
    error = item.get("error", {})
    kind = error.get("type")
    if kind == "missing_references":
        missing = ", ".join(f"{one['type']} {one['id']}" for one in error.get("references", []))
        return f"refers to what does not exist: {missing}"
    if kind == "unsupported_type":
        return f"this Kibana has no objects of type {item['type']}"
    if kind in ("conflict", "ambiguous_conflict"):
        return "another object has its id"
    return str(error.get("message") or error.get("reason") or kind or "refused without a reason")
