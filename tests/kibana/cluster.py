"""Simulated clusters as documents, and an index that holds them with the documented types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime as DateTime  # noqa: N812
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

from ascend_elk.cann import Version
from ascend_elk.codes import Catalogue
from ascend_elk.enrich import enrich
from ascend_elk.opening import identified, open_logs
from ascend_elk.simulate import simulate
from tests.engines import substitutions

Fields = dict[str, Any]
_DOCUMENTATION = Path(__file__).parents[2] / "docs" / "fields.md"
_TEXTS = {"message", "meaning", "remediation", "meaning_zh", "remediation_zh"}
INGEST_LAG = 4.0
UNDATED = "2025-03-02T11:00:00.000000Z"


def events_of(
    directory: Path, scenario: str, *, hosts: int, devices: int, steps: int, level: str
) -> Iterator[Fields]:
    """The events of a simulated job as the stack would hold them: parsed, identified, enriched."""
    simulate(
        directory,
        scenario,
        hosts=hosts,
        devices=devices,
        cann=Version.parse("8.0"),
        seed=7,
        steps=steps,
        level=level,
    )
    logs = open_logs([directory], "8.0", timezone.utc)
    registry, catalogue = logs.registry(), Catalogue.load()
    for file in logs.files:
        for event in identified(logs.reader.file(file), registry):
            fields = event.fields | enrich(event.fields, catalogue, logs.version)
            fields["log.file.path"] = f"/{scenario}{fields['log.file.path'].removeprefix(str(directory))}"
            fields["ascend.job.id"] = scenario
            fields.setdefault("ascend.cann.version", "8.0")
            # A line without a time is given one when it is taken in.
            fields.setdefault("@timestamp", UNDATED)
            fields["event.ingested"] = later(fields["@timestamp"], INGEST_LAG)
            yield fields


def later(time: str, seconds: float) -> str:
    """A time some seconds on, to the millisecond."""
    moved = DateTime.fromisoformat(time.replace("Z", "+00:00")) + timedelta(seconds=seconds)
    return moved.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def mapping() -> dict[str, Any]:
    """The mapping that docs/fields.md describes, with types that the tests' Elasticsearch knows."""
    properties: dict[str, Any] = {}
    for line in _DOCUMENTATION.read_text("utf-8").splitlines():
        if not line.startswith("| `") or "runtime field" in line:
            continue
        _, names, types, *_ = line.split("|")
        kinds = [kind.split()[0] for kind in types.replace("(ns)", "").split(",")]
        full = ""
        for number, name in enumerate(re.findall(r"`([^`]+)`", names)):
            if name.startswith("."):
                name = ".".join(full.split(".")[: -name.count(".")]) + name
            else:
                full = name
            _put(properties, name, _type(name, kinds[min(number, len(kinds) - 1)]))
    return substitutions.mappings({"dynamic": False, "properties": properties})


def _type(name: str, documented: str) -> dict[str, Any]:
    if documented == "not":
        return {"type": "keyword", "index": False, "doc_values": False}
    if name.rsplit(".", 1)[-1] in _TEXTS:
        return {"type": "text"}
    return {"type": documented}


def _put(properties: dict[str, Any], name: str, definition: dict[str, Any]) -> None:
    *parents, leaf = name.split(".")
    for parent in parents:
        node = properties.setdefault(parent, {})
        node.pop("type", None)
        properties = node.setdefault("properties", {})
    properties.setdefault(leaf, definition)
