"""Simulated clusters as documents, and the mapping of the index that holds them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime as DateTime  # noqa: N812
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

from ascend_elk.cann import Version
from ascend_elk.codes import Catalogue
from ascend_elk.enrich import enrich
from ascend_elk.opening import identified, open_logs
from ascend_elk.render import templates
from ascend_elk.simulate import simulate
from tests.engines import substitutions

Fields = dict[str, Any]
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
    """The product's own mapping of logs, with types that the tests' Elasticsearch knows."""
    return substitutions.mappings(templates.mappings())
