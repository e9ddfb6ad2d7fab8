"""The places that hold what is installed, all with the same few operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ascend_elk.stack.elasticsearch import PRIVILEGES, Elasticsearch, Kind
from ascend_elk.stack.http import ApiError
from ascend_elk.stack.kibana import Kibana

Document = dict[str, Any]


@dataclass(frozen=True)
class Asset:
    """One thing to install.

    Attributes:
        key: unique over both servers, ``elasticsearch/pipeline/name`` or ``kibana/space/type/id``.
        body: as the server takes it.
        title: for people, where the key says too little.
    """

    key: str
    body: Document
    title: str = ""

    @property
    def name(self) -> str:
        """The last part of its key."""
        return self.key.rsplit("/", 1)[1]


class Holder(Protocol):
    """Reads, writes and deletes assets whose key begins with its prefix."""

    prefix: str

    def read(self, names: Sequence[str]) -> dict[str, Document]:
        """What is there now, by name; what is not there is left out."""

    def write(self, assets: Sequence[Asset], current: Mapping[str, Document]) -> dict[str, str]:
        """Create or replace; returns why assets failed, by name."""

    def delete(self, name: str) -> None:
        """Delete one; no error where it is gone."""

    def essence(self, body: Document) -> Document:
        """The part of what is there that tells an edit by a person."""


class ElasticsearchHolder:
    """One kind of Elasticsearch's documents."""

    def __init__(self, elasticsearch: Elasticsearch, kind: Kind) -> None:
        """Hold documents of a kind."""
        self._elasticsearch, self._kind = elasticsearch, kind
        self.prefix = f"elasticsearch/{kind}/"

    def read(self, names: Sequence[str]) -> dict[str, Document]:
        """See ``Holder``."""
        found = {name: self._elasticsearch.read(self._kind, name) for name in names}
        return {name: body for name, body in found.items() if body is not None}

    def write(self, assets: Sequence[Asset], current: Mapping[str, Document]) -> dict[str, str]:
        """See ``Holder``."""
        failed = {}
        for asset in assets:
            try:
                self._elasticsearch.write(self._kind, asset.name, asset.body)
            except ApiError as error:
                failed[asset.name] = explain(error, f"the cluster privilege {PRIVILEGES[self._kind]}")
        return failed

    def delete(self, name: str) -> None:
        """See ``Holder``."""
        self._elasticsearch.delete(self._kind, name)

    def essence(self, body: Document) -> Document:
        """See ``Holder``."""
        return body


class SavedObjectHolder:
    """Saved objects of one type in one space."""

    def __init__(self, kibana: Kibana) -> None:
        """Hold the objects of a space; names are ``type/id``."""
        self._kibana = kibana
        self.prefix = f"kibana/{kibana.space}/"

    def read(self, names: Sequence[str]) -> dict[str, Document]:
        """See ``Holder``."""
        found = self._kibana.export(_split(name) for name in names)
        return {f"{kind}/{identifier}": body for (kind, identifier), body in found.items()}

    def write(self, assets: Sequence[Asset], current: Mapping[str, Document]) -> dict[str, str]:
        """See ``Holder``."""
        if not assets:
            return {}
        try:
            failed = self._kibana.import_objects([asset.body for asset in assets])
        except ApiError as error:
            problem = explain(error, "the Kibana privilege to manage saved objects, tags and data views")
            return {asset.key.removeprefix(self.prefix): problem for asset in assets}
        return {f"{kind}/{identifier}": problem for (kind, identifier), problem in failed.items()}

    def delete(self, name: str) -> None:
        """See ``Holder``."""
        self._kibana.delete(_split(name))

    def essence(self, body: Document) -> Document:
        """See ``Holder``."""
        references = sorted(body.get("references", []), key=lambda one: str(one.get("name")))
        return {"attributes": body.get("attributes"), "references": references}


class RuleHolder:
    """Alert rules of one space."""

    def __init__(self, kibana: Kibana) -> None:
        """Hold the rules of a space."""
        self._kibana = kibana
        self.prefix = f"kibana-rule/{kibana.space}/"

    def read(self, names: Sequence[str]) -> dict[str, Document]:
        """See ``Holder``."""
        found = {name: self._kibana.read_rule(name) for name in names}
        return {name: body for name, body in found.items() if body is not None}

    def write(self, assets: Sequence[Asset], current: Mapping[str, Document]) -> dict[str, str]:
        """See ``Holder``."""
        failed = {}
        for asset in assets:
            try:
                self._kibana.write_rule(asset.name, asset.body, current.get(asset.name))
            except ApiError as error:
                problem = explain(
                    error,
                    "the Kibana privileges to manage Stack Rules and Observability",
                )
                if "encryption key" in problem.lower() or "encryptedSavedObjects" in problem:
                    problem = (
                        "Kibana needs xpack.encryptedSavedObjects.encryptionKey in kibana.yml for alert rules"
                    )
                failed[asset.name] = problem
        return failed

    def delete(self, name: str) -> None:
        """See ``Holder``."""
        self._kibana.delete_rule(name)

    def essence(self, body: Document) -> Document:
        """See ``Holder``: switching a rule on and telling it whom to call is no edit."""
        return {key: body.get(key) for key in ("name", "tags", "schedule", "params")}


class RoleHolder:
    """Roles with privileges in Kibana."""

    prefix = "kibana-role/-/"

    def __init__(self, kibana: Kibana) -> None:
        """Hold roles."""
        self._kibana = kibana

    def read(self, names: Sequence[str]) -> dict[str, Document]:
        """See ``Holder``."""
        found = {name: self._kibana.read_role(name) for name in names}
        return {name: body for name, body in found.items() if body is not None}

    def write(self, assets: Sequence[Asset], current: Mapping[str, Document]) -> dict[str, str]:
        """See ``Holder``."""
        failed = {}
        for asset in assets:
            try:
                self._kibana.write_role(asset.name, asset.body)
            except ApiError as error:
                failed[asset.name] = explain(error, "the cluster privilege manage_security")
        return failed

    def delete(self, name: str) -> None:
        """See ``Holder``."""
        self._kibana.delete_role(name)

    def essence(self, body: Document) -> Document:
        """See ``Holder``."""
        return body


def explain(error: ApiError, privilege: str) -> str:
    """Why a write failed, in words."""
    if error.status == 403:
        return f"the user may not do this; it needs {privilege}"
    return error.reason


def _split(name: str) -> tuple[str, str]:
    kind, identifier = name.split("/", 1)
    return kind, identifier
