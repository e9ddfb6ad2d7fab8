"""What is put into Elasticsearch, and how each kind is read, written and deleted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ascend_elk.errors import UserError
from ascend_elk.stack.http import ApiError, Server, segment

Kind = Literal["lifecycle", "component-template", "pipeline", "index-template", "role"]
Document = dict[str, Any]

# In the order in which they depend on each other.
KINDS: tuple[Kind, ...] = ("lifecycle", "component-template", "pipeline", "index-template", "role")

_PATHS: Mapping[Kind, str] = {
    "lifecycle": "/_ilm/policy/",
    "component-template": "/_component_template/",
    "pipeline": "/_ingest/pipeline/",
    "index-template": "/_index_template/",
    "role": "/_security/role/",
}

PRIVILEGES: Mapping[Kind, str] = {
    "lifecycle": "manage_ilm",
    "component-template": "manage_index_templates",
    "pipeline": "manage_ingest_pipelines",
    "index-template": "manage_index_templates",
    "role": "manage_security",
}


@dataclass(frozen=True)
class Documents:
    """Bodies by name, for each kind, as Elasticsearch's APIs take them."""

    lifecycles: Mapping[str, Document] = field(default_factory=dict)
    component_templates: Mapping[str, Document] = field(default_factory=dict)
    pipelines: Mapping[str, Document] = field(default_factory=dict)
    index_templates: Mapping[str, Document] = field(default_factory=dict)

    def of_kind(self, kind: Kind) -> Mapping[str, Document]:
        """The bodies of one kind."""
        return {
            "lifecycle": self.lifecycles,
            "component-template": self.component_templates,
            "pipeline": self.pipelines,
            "index-template": self.index_templates,
        }.get(kind, {})


class Elasticsearch:
    """The part of Elasticsearch's API that the installer needs.

    Args:
        server: where.
    """

    def __init__(self, server: Server) -> None:
        """Prepare; nothing is sent yet."""
        self.server = server

    def version(self) -> tuple[int, int]:
        """Major and minor version.

        Raises:
            UserError: it is no Elasticsearch, or too old.
        """
        try:
            body = self.server.get("/")
        except ApiError as error:
            if error.status == 403:
                raise UserError(
                    f"the user may not ask Elasticsearch at {self.server.url} for its version; "
                    "it needs the cluster privilege monitor"
                ) from None
            body = None
        number = body.get("version", {}).get("number", "") if isinstance(body, dict) else ""
        match = re.match(r"(\d+)\.(\d+)", number)
        if match is None or body["version"].get("distribution") == "opensearch":
            raise UserError(
                f"what answers at {self.server.url} is not Elasticsearch; check the URL and its prefix"
            )
        version = (int(match[1]), int(match[2]))
        if version < (7, 17):
            raise UserError(
                f"Elasticsearch {number} is too old; 7.17 is the oldest that the templates work with"
            )
        return version

    def secured(self) -> bool:
        """Whether users, roles and API keys exist there."""
        try:
            return self.server.get("/_security/_authenticate") is not None
        except ApiError:
            return False

    def read(self, kind: Kind, name: str) -> Document | None:
        """What the server holds under a name, without what it adds on its own; ``None`` where nothing."""
        answer = self.server.get(_PATHS[kind] + segment(name))
        if not answer:
            return None
        if kind == "component-template":
            return dict(answer["component_templates"][0]["component_template"])
        if kind == "index-template":
            return dict(answer["index_templates"][0]["index_template"])
        body = dict(answer[name])
        if kind == "lifecycle":
            return {"policy": _without_defaults(body["policy"])}
        # Times of change that newer versions tell.
        for key in ("created_date", "created_date_millis", "modified_date", "modified_date_millis"):
            body.pop(key, None)
        return body

    def write(self, kind: Kind, name: str, body: Document) -> None:
        """Create or replace."""
        self.server.request("PUT", _PATHS[kind] + segment(name), json=body)

    def delete(self, kind: Kind, name: str) -> None:
        """Delete; nothing where it is gone already."""
        try:
            self.server.request("DELETE", _PATHS[kind] + segment(name))
        except ApiError as error:
            if error.status != 404:
                raise

    def resolve(self, patterns: tuple[str, ...]) -> tuple[list[str], list[str]]:
        """Names of the data streams and of the indices, without those that back a stream, under patterns."""
        answer = self.server.get(f"/_resolve/index/{','.join(map(segment, patterns))}") or {}
        streams = [item["name"] for item in answer.get("data_streams", [])]
        indices = [item["name"] for item in answer.get("indices", []) if "data_stream" not in item]
        return streams, indices

    def delete_data(self, kind: str, name: str) -> None:
        """Delete a ``data-stream`` or an ``index`` with all that it holds."""
        path = "/_data_stream/" if kind == "data-stream" else "/"
        self.server.request("DELETE", path + segment(name))

    # ------------------------------------------------------------ API keys

    def create_api_key(self, name: str, roles: Document) -> tuple[str, str]:
        """Create a key.

        Returns:
            Its id and its secret, which the server tells only now.
        """
        answer = self.server.request(
            "POST",
            "/_security/api_key",
            json={"name": name, "role_descriptors": roles, "metadata": {"managed_by": "ascend-elk"}},
        ).json()
        return str(answer["id"]), str(answer["api_key"])

    def live_api_keys(self, name: str) -> list[str]:
        """Ids of the keys of that name that are still valid."""
        answer = self.server.get("/_security/api_key", params={"name": name}) or {}
        return [key["id"] for key in answer.get("api_keys", []) if not key["invalidated"]]

    def invalidate_api_keys(self, ids: list[str]) -> None:
        """End keys."""
        if ids:
            self.server.request("DELETE", "/_security/api_key", json={"ids": ids})


def _without_defaults(policy: Document) -> Document:
    """A lifecycle policy without what Elasticsearch adds to each phase on its own."""
    phases = {}
    for name, phase in policy["phases"].items():
        kept = {key: value for key, value in phase.items() if (key, value) != ("min_age", "0ms")}
        if kept.get("actions", {}).get("delete") == {"delete_searchable_snapshot": True}:
            kept["actions"] = {**kept["actions"], "delete": {}}
        phases[name] = kept
    return {**policy, "phases": phases}
