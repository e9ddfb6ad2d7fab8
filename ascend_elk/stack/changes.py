"""Compares what should be installed with what is there, and makes it so."""

from __future__ import annotations

import contextlib
import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ascend_elk.errors import UserError
from ascend_elk.stack.holders import Asset, Holder
from ascend_elk.stack.http import ApiError
from ascend_elk.stack.manifest import Entry, Manifest, digest

Action = Literal["create", "update", "unchanged", "adopt", "keep"]


@dataclass(frozen=True)
class Change:
    """What is to be done with one asset.

    Attributes:
        action: ``adopt`` where it is there as wanted but not noted, ``keep`` where a person has changed it.
        current: what is there.
    """

    asset: Asset
    action: Action
    current: dict[str, Any] | None = None


@dataclass
class Outcome:
    """What came of an installation, by key of the assets.

    Attributes:
        done: what was done.
        failed: why it was not.
    """

    done: dict[str, Action | Literal["delete"]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def plan(holder: Holder, assets: Sequence[Asset], manifest: Manifest, *, overwrite: bool) -> list[Change]:
    """Decide what is to be done with the assets of a holder.

    Args:
        holder: where they go.
        assets: what should be there.
        manifest: what earlier runs made.
        overwrite: replace what a person has changed, too.

    Raises:
        UserError: the user may not look.
    """
    names = {asset.key.removeprefix(holder.prefix): asset for asset in assets}
    current = read(holder, list(names))
    return [
        Change(asset, _action(holder, asset, current.get(name), manifest, overwrite), current.get(name))
        for name, asset in names.items()
    ]


def read(holder: Holder, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What a holder has under these names.

    Raises:
        UserError: the user may not look.
    """
    try:
        return holder.read(names)
    except ApiError as error:
        where = holder.prefix.rstrip("/-")
        if error.status == 403:
            raise UserError(
                f"the user may not read {where}; see docs/install.md for the rights it needs"
            ) from None
        raise UserError(f"{where} cannot be read: {error}") from None


def edited(holder: Holder, current: Mapping[str, Any], entry: Entry) -> bool:
    """Whether a person has changed what an earlier run made.

    An upgrade of Kibana rewrites objects without changing their time; saving one without an edit does the
    reverse.
    """
    if entry.installed is None:
        return False
    if digest(holder.essence(dict(current))) == entry.installed:
        return False
    return entry.updated is None or current.get("updated_at") != entry.updated


def _action(
    holder: Holder, asset: Asset, current: dict[str, Any] | None, manifest: Manifest, overwrite: bool
) -> Action:
    entry = manifest.entries.get(asset.key)
    if current is None:
        return "create"
    if entry is None:
        if _covers(holder.essence(current), holder.essence(asset.body)):
            return "adopt"
        return "update" if overwrite else "keep"
    if entry.installed is None:
        return "update"
    if edited(holder, current, entry):
        return "update" if overwrite else "keep"
    return "unchanged" if entry.source == digest(asset.body) else "update"


def _covers(current: Any, wanted: Any) -> bool:
    """Whether everything wanted is there; the server may have added more."""
    if isinstance(wanted, dict):
        return isinstance(current, dict) and all(
            _covers(current.get(key), part) for key, part in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(current, list) and len(current) == len(wanted) and all(map(_covers, current, wanted))
        )
    return bool(current == wanted)


def apply(holder: Holder, changes: Sequence[Change], manifest: Manifest, outcome: Outcome) -> None:
    """Do what was planned for one holder, and note it."""
    todo = [change for change in changes if change.action in ("create", "update")]
    current = {
        change.asset.key.removeprefix(holder.prefix): change.current
        for change in todo
        if change.current is not None
    }
    before = {change.asset.key: manifest.entries.get(change.asset.key) for change in todo}
    if todo:
        manifest.begin({change.asset.key: digest(change.asset.body) for change in todo})
        failed = holder.write([change.asset for change in todo], current)
        outcome.failed |= {holder.prefix + name: problem for name, problem in failed.items()}
    noted = [change for change in todo if change.asset.key not in outcome.failed]
    noted += [change for change in changes if change.action == "adopt"]
    if noted:
        found = read(holder, [change.asset.key.removeprefix(holder.prefix) for change in noted])
        manifest.finish(dict(_entries(holder, noted, found)))
    # What could not be made was not made by us; what could not be changed is as before.
    manifest.forget(*(key for key in before if key in outcome.failed and before[key] is None))
    manifest.finish({key: old for key, old in before.items() if key in outcome.failed and old is not None})
    outcome.done |= {
        change.asset.key: change.action for change in changes if change.asset.key not in outcome.failed
    }


def _entries(
    holder: Holder, changes: Iterable[Change], found: Mapping[str, dict[str, Any]]
) -> Iterator[tuple[str, Entry]]:
    for change in changes:
        body = found.get(change.asset.key.removeprefix(holder.prefix))
        if body is not None:
            source = digest(change.asset.body)
            yield change.asset.key, Entry(source, digest(holder.essence(body)), body.get("updated_at"))


def diff(change: Change, essence: Holder) -> list[str]:
    """The lines that an update changes, one a value: ``-path: old`` and ``+path: new``."""
    old = sorted(_flat(essence.essence(change.current))) if change.current is not None else []
    new = sorted(_flat(essence.essence(change.asset.body)))
    return [
        line for line in difflib.unified_diff(old, new, n=0, lineterm="") if line[:3] not in ("---", "+++")
    ]


def _flat(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, str) and value[:1] in ("{", "["):
        # Saved objects hold JSON as text.
        with contextlib.suppress(ValueError):
            value = json.loads(value)
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from _flat(part, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for number, part in enumerate(value):
            yield from _flat(part, f"{path}[{number}]")
    elif value not in ({}, [], None):
        text = str(value).lower() if isinstance(value, bool) else str(value)
        # Elasticsearch gives settings back with their prefix.
        yield f"{path.replace('.settings.index.', '.settings.')}: {text}"
