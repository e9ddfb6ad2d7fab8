"""What an installation has made, kept in the cluster.

Thanks to it a second run changes nothing, an edit by a person is seen as one, and ``uninstall`` removes just
what was made. It lies in the ``_meta`` of an empty component template, since the installer may write those.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

from ascend_elk.stack.elasticsearch import Elasticsearch, Kind

NAME = "ascend-elk-manifest"
_KIND: Kind = "component-template"


@dataclass(frozen=True)
class Entry:
    """One thing that was made.

    Attributes:
        source: digest of the body that was sent.
        installed: digest of what the server then returned; ``None`` while the write is under way.
        updated: the server's time of the last change, where it tells one.
    """

    source: str
    installed: str | None = None
    updated: str | None = None


class Manifest:
    """Entries by key, in the order in which they were made. Every change is written at once."""

    def __init__(self, elasticsearch: Elasticsearch) -> None:
        """Read it; empty where nothing is installed."""
        self._elasticsearch = elasticsearch
        found = elasticsearch.read(_KIND, NAME) or {}
        entries = found.get("_meta", {}).get("entries", [])
        self.entries = {item.pop("key"): Entry(**item) for item in (dict(entry) for entry in entries)}

    def begin(self, sources: dict[str, str]) -> None:
        """Note that things are about to be written, by key and digest of their source."""
        for key, source in sources.items():
            self.entries[key] = Entry(source)
        self._save()

    def finish(self, entries: dict[str, Entry]) -> None:
        """Note what was written."""
        if not entries:
            return
        self.entries |= entries
        self._save()

    def forget(self, *keys: str) -> None:
        """Drop entries; the manifest itself goes with the last one."""
        if not keys:
            return
        for key in keys:
            self.entries.pop(key, None)
        if self.entries:
            self._save()
        else:
            self._elasticsearch.delete(_KIND, NAME)

    def _save(self) -> None:
        entries = [{"key": key, **asdict(entry)} for key, entry in self.entries.items()]
        meta = {
            "managed_by": "ascend-elk",
            "description": "What ascend-elk installed; used by no index",
            "entries": entries,
        }
        self._elasticsearch.write(_KIND, NAME, {"template": {}, "_meta": meta})


def digest(body: Any) -> str:
    """A digest of JSON, the same whatever the order of keys."""
    text = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
