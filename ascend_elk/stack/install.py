"""Installs into Elasticsearch and Kibana, and removes what was installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ascend_elk.errors import UserError
from ascend_elk.stack import access
from ascend_elk.stack.changes import Change, Outcome, apply, edited, plan, read
from ascend_elk.stack.elasticsearch import KINDS, Documents, Elasticsearch
from ascend_elk.stack.holders import (
    Asset,
    ElasticsearchHolder,
    Holder,
    RoleHolder,
    RuleHolder,
    SavedObjectHolder,
    explain,
)
from ascend_elk.stack.http import ApiError
from ascend_elk.stack.kibana import Kibana
from ascend_elk.stack.manifest import Entry, Manifest, digest
from ascend_elk.stack.objects import build_objects, scoped
from ascend_elk.stack.rules import rule_body, rule_id
from ascend_elk.stack.source import Source
from ascend_elk.stack.targets import TARGETS, Target, target_for

INCIDENTS_TEMPLATE = "ascend-incidents"
_KEY_PREFIX = "elasticsearch/api-key/"
_DATA_STREAMS = ("logs-ascend.plog-*", "logs-ascend.slog-*", "logs-ascend.console-*")


@dataclass(frozen=True)
class Options:
    """What to install.

    Attributes:
        kibana_version: target that was asked for; Kibana's own where ``None``.
        code_page: base URL of the enrichment service.
        alerts: create the alert rules, switched off.
        api_keys: create API keys where security is on.
        keys_file: where the keys go; they are returned only where ``None``.
        overwrite: replace what a person has changed.
    """

    kibana_version: str | None = None
    code_page: str | None = None
    alerts: bool = False
    api_keys: bool = True
    keys_file: Path | None = None
    overwrite: bool = False


@dataclass
class Plan:
    """What an installation would do, holder by holder, in order.

    Attributes:
        keys: names of the API keys that it would create.
        notes: what is left out, and why.
    """

    steps: list[tuple[Holder, list[Change]]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def changes(self) -> Iterator[tuple[Holder, Change]]:
        """All changes."""
        for holder, changes in self.steps:
            for change in changes:
                yield holder, change


def make_plan(
    elasticsearch: Elasticsearch,
    kibana: Kibana | None,
    documents: Documents,
    source: Source,
    options: Options,
) -> Plan:
    """Look at both servers and decide what is to be done; nothing is changed.

    Args:
        elasticsearch: where templates, roles and the manifest go.
        kibana: the space for the content; ``None`` for Elasticsearch alone.
        documents: templates, pipelines and lifecycle.
        source: content of ``kibana/``.
        options: what to install.

    Raises:
        UserError: a server is not usable as asked.
    """
    elasticsearch.version()
    secured = elasticsearch.secured()
    target: Target | None = None
    version = ""
    if kibana is not None:
        version = kibana.version()
        target = _target(version, options.kibana_version)
        kibana.check_space()
    manifest = Manifest(elasticsearch)
    result = Plan()

    def add(holder: Holder, assets: list[Asset]) -> None:
        result.steps.append((holder, plan(holder, assets, manifest, overwrite=options.overwrite)))

    for kind in KINDS:
        bodies = dict(documents.of_kind(kind))
        if kind == "index-template":
            bodies.setdefault(INCIDENTS_TEMPLATE, source.incidents)
        if kind == "role" and secured:
            bodies = dict(access.ROLES)
        if bodies:
            holder = ElasticsearchHolder(elasticsearch, kind)
            add(holder, [Asset(holder.prefix + name, body) for name, body in bodies.items()])
    if not secured:
        result.notes.append("Elasticsearch has no security: no roles and no API keys")
    elif options.api_keys:
        result.keys = [name for name in access.API_KEYS if not _key_lives(elasticsearch, manifest, name)]
    if kibana is not None and target is not None:
        objects = SavedObjectHolder(kibana)
        built = build_objects(source, target, space=kibana.space, code_page=options.code_page)
        add(
            objects,
            [
                Asset(
                    f"{objects.prefix}{item['type']}/{item['id']}",
                    item,
                    str(item["attributes"].get("name") or item["attributes"].get("title")),
                )
                for item in built
            ],
        )
        if secured:
            roles = RoleHolder(kibana)
            name = scoped(access.READER, kibana.space)
            add(roles, [Asset(roles.prefix + name, access.reader_role(kibana.space))])
        if options.alerts:
            rules = RuleHolder(kibana)
            major, minor = version.split(".")[:2]
            number = (int(major), int(minor))
            assets = []
            for rule in source.rules.values():
                name = rule_id(rule, kibana.space)
                held = read(rules, [name]).get(name, {}) if rule.distinct is not None else {}
                body = rule_body(rule, target, number, space=kibana.space, old_type=held.get("rule_type_id"))
                assets.append(Asset(rules.prefix + name, body, rule.name))
            add(rules, assets)
    return result


def _target(version: str, asked: str | None) -> Target:
    found = target_for(version)
    if asked is None:
        return found
    wanted = TARGETS.get(asked) or target_for(asked)  # type: ignore[call-overload]  # any text may be asked
    if wanted.name != found.name:
        raise UserError(
            f"Kibana is version {version}, not {asked}; leave --kibana-version out, or pass another URL"
        )
    return found


def _key_lives(elasticsearch: Elasticsearch, manifest: Manifest, name: str) -> bool:
    entry = manifest.entries.get(_KEY_PREFIX + name)
    return entry is not None and entry.installed in elasticsearch.live_api_keys(name)


def carry_out(
    elasticsearch: Elasticsearch, todo: Plan, options: Options, tell: Callable[[str], None] = lambda _: None
) -> tuple[Outcome, dict[str, str]]:
    """Do what was planned.

    Args:
        elasticsearch: where the manifest is kept.
        todo: the plan.
        options: what to install.
        tell: called with what is being done.

    Returns:
        What came of it, and the new API keys (``id:key``) by name; only the keys file has them too.
    """
    # Before anything is changed: a file that exists is no reason to stop half-way.
    wanted = options.keys_file if todo.keys else None
    file = access.create_secret_file(wanted) if wanted is not None else None
    outcome = Outcome()
    keys: dict[str, str] = {}
    try:
        manifest = Manifest(elasticsearch)
        for holder, changes in todo.steps:
            tell(holder.prefix.rstrip("/-"))
            apply(holder, changes, manifest, outcome)
        for name in todo.keys:
            tell(_KEY_PREFIX + name)
            _create_key(elasticsearch, name, manifest, outcome, keys)
    finally:
        if file is not None and wanted is not None:
            with os.fdopen(file, "w", encoding="utf-8") as stream:
                stream.write(access.keys_text(keys))
            if not keys:
                wanted.unlink()
    return outcome, keys


def _create_key(
    elasticsearch: Elasticsearch, name: str, manifest: Manifest, outcome: Outcome, keys: dict[str, str]
) -> None:
    key = _KEY_PREFIX + name
    role = access.API_KEYS[name]
    descriptors = {role: access.ROLES[role]}
    try:
        # A run that was cut off may have made a key whose secret nobody knows.
        if key in manifest.entries:
            elasticsearch.invalidate_api_keys(elasticsearch.live_api_keys(name))
        manifest.begin({key: digest(descriptors)})
        identifier, secret = elasticsearch.create_api_key(name, descriptors)
    except ApiError as error:
        problem = explain(error, "the cluster privilege manage_api_key")
        if "derived api keys" in error.reason:
            problem = "an API key cannot create API keys; log in as a user, or pass --no-api-keys"
        outcome.failed[key] = problem
        manifest.forget(key)
        return
    keys[name] = f"{identifier}:{secret}"
    manifest.finish({key: Entry(digest(descriptors), identifier)})
    outcome.done[key] = "create"


def remove(
    elasticsearch: Elasticsearch,
    kibana: Callable[[str], Kibana] | None,
    *,
    data: bool = False,
    overwrite: bool = False,
    dry_run: bool = False,
) -> Outcome:
    """Remove what the manifest notes, newest first.

    Args:
        elasticsearch: where the manifest is.
        kibana: gives the client of a space; what is in Kibana stays, and stays noted, where ``None``.
        data: delete the data streams and the indices of the service too, first.
        overwrite: remove what a person has changed, too.
        dry_run: only say what would be done.

    Returns:
        What was deleted, kept (a person changed it), and what could not be deleted.
    """
    elasticsearch.version()
    manifest = Manifest(elasticsearch)
    outcome = Outcome()
    if data:
        _remove_data(elasticsearch, outcome, dry_run)
    for key in reversed(list(manifest.entries)):
        entry = manifest.entries[key]
        try:
            if key.startswith(_KEY_PREFIX):
                if not dry_run:
                    elasticsearch.invalidate_api_keys(
                        elasticsearch.live_api_keys(key.removeprefix(_KEY_PREFIX))
                    )
                outcome.done[key] = "delete"
            else:
                holder = _holder_of(key, elasticsearch, kibana)
                if holder is None:
                    outcome.done[key] = "keep"
                    continue
                name = key.removeprefix(holder.prefix)
                current = read(holder, [name]).get(name)
                if current is not None and edited(holder, current, entry) and not overwrite:
                    outcome.done[key] = "keep"
                    continue
                if current is not None and not dry_run:
                    holder.delete(name)
                outcome.done[key] = "delete"
        except ApiError as error:
            outcome.failed[key] = _removal_problem(error)
            continue
        if not dry_run:
            manifest.forget(key)
    return outcome


def _removal_problem(error: ApiError) -> str:
    if "in use by" in error.reason:
        return f"{error.reason}; it stays as long as the data does (--data deletes both)"
    return explain(error, "the right to delete it")


def _holder_of(
    key: str, elasticsearch: Elasticsearch, kibana: Callable[[str], Kibana] | None
) -> Holder | None:
    place, where, _ = key.split("/", 2)
    if place == "elasticsearch":
        kind: Literal["role"] = where  # type: ignore[assignment]  # from a key that we wrote
        return ElasticsearchHolder(elasticsearch, kind)
    if kibana is None:
        return None
    if place == "kibana-role":
        return RoleHolder(kibana("default"))
    return RuleHolder(kibana(where)) if place == "kibana-rule" else SavedObjectHolder(kibana(where))


def _remove_data(elasticsearch: Elasticsearch, outcome: Outcome, dry_run: bool) -> None:
    streams, indices = elasticsearch.resolve((*_DATA_STREAMS, access.INCIDENTS, access.SERVICE))
    for kind, names in (("data-stream", streams), ("index", indices)):
        for name in names:
            key = f"elasticsearch/{kind}/{name}"
            try:
                if not dry_run:
                    elasticsearch.delete_data(kind, name)
                outcome.done[key] = "delete"
            except ApiError as error:
                outcome.failed[key] = explain(error, "the index privilege delete_index")
