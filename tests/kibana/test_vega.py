"""The Vega panels, drawn in headless Chromium with what a real Elasticsearch answers, at 8 and 1,024 cards.

`ASCEND_ELK_PICTURES=1` writes the pictures of docs/kibana.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from elasticsearch.helpers import bulk

from ascend_elk.parse import nested
from ascend_elk.stack.source import Source
from tests.engines.elasticsearch import ElasticsearchServer

from . import vega_page
from .cluster import events_of, mapping

pytestmark = [
    pytest.mark.engines,
    pytest.mark.skipif(vega_page.chromium() is None, reason="no chromium: apt-get install chromium"),
]

PICTURES = Path(__file__).parents[2] / "docs" / "kibana"
SIZES = {8: (1, 8), 1024: (128, 8)}
SCENARIOS = {
    "aicore-exception": "error",
    "socket-timeout-silent": "error",
    "retry-storm": "error",
    "slow-card-double": "info",
}
VIEWS = {
    "ascend-card-map": ("aicore-exception",),
    "ascend-lanes": ("aicore-exception", "socket-timeout-silent"),
    "ascend-peers": ("retry-storm",),
    "ascend-late-arrivals": ("slow-card-double",),
    "ascend-first-errors": ("aicore-exception",),
}
CASES = [
    (name, scenario, cards) for name, scenarios in VIEWS.items() for scenario in scenarios for cards in SIZES
]


@dataclass(frozen=True)
class Held:
    """Index pattern of one job, and the card at fault."""

    index: str
    culprit: str


@pytest.fixture(scope="module")
def job_of(
    elasticsearch: ElasticsearchServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str, int], Held]]:
    """Gives a job by scenario and number of cards; each is simulated and stored once, when it is first asked for."""
    client = elasticsearch.client
    run = uuid.uuid4().hex[:8]
    held: list[str] = []

    @cache
    def job(scenario: str, cards: int) -> Held:
        hosts, devices = SIZES[cards]
        directory = tmp_path_factory.mktemp(f"{scenario}-{cards}")
        index = f"vega-{run}-{scenario}-{cards}"
        client.indices.create(index=index, mappings=mapping(), settings={"number_of_replicas": 0})
        held.append(index)
        level = SCENARIOS[scenario]
        events = events_of(directory, scenario, hosts=hosts, devices=devices, steps=12, level=level)
        bulk(client, ({"_index": index, "_source": nested(fields)} for fields in events), chunk_size=5000)
        client.indices.refresh(index=index)
        (card,) = json.loads((directory / "truth.json").read_text())["cards"]
        return Held(index, f"{card['host']}/{card['device']}")

    yield job
    client.indices.delete(index=held)


def ask(server: ElasticsearchServer, spec: dict[str, Any], index: str) -> dict[str, Any]:
    return {
        data["name"]: server.client.search(index=index, **data["url"]["body"]).body
        for data in spec["data"]
        if "url" in data
    }


def panel(source: Source, name: str) -> tuple[str, tuple[int, int]]:
    (found,) = [
        (one.title, one.at[2:])
        for dashboard in source.dashboards.values()
        for one in dashboard.panels
        if one.vega == name
    ]
    return found


@pytest.mark.parametrize(("name", "scenario", "cards"), CASES)
def test_panel_shows_the_card(
    elasticsearch: ElasticsearchServer,
    job_of: Callable[[str, int], Held],
    source: Source,
    tmp_path: Path,
    name: str,
    scenario: str,
    cards: int,
) -> None:
    job = job_of(scenario, cards)
    spec = source.vega[name]
    title, size = panel(source, name)
    directory = PICTURES if os.environ.get("ASCEND_ELK_PICTURES") == "1" else tmp_path
    suffix = "" if len(VIEWS[name]) == 1 or scenario == "aicore-exception" else f"-{scenario}"
    picture = directory / f"{name.removeprefix('ascend-')}{suffix}-{cards}.png"
    filled = vega_page.with_values(spec, ask(elasticsearch, spec, job.index))

    shown = vega_page.draw(filled, title, size, picture)

    assert shown["said"] == []
    assert picture.stat().st_size > 5000
    rows = shown["rows"]
    if name == "ascend-card-map":
        assert len(rows["cards"]) == cards
        assert all(row["lines"] > 0 for row in rows["cards"])
        red = {f"{row['host']}/{row['card']}" for row in rows["cards"] if row["errors"]}
        yellow = {f"{row['host']}/{row['card']}" for row in rows["cards"] if row["timeouts"]}
        assert red == {job.culprit}
        assert len(yellow | red) == cards
    elif name == "ascend-lanes":
        lanes = sorted(rows["lanes"], key=lambda row: row["lane"])
        assert len(rows["cards"]) == cards
        assert len(lanes) == min(cards, 40)
        assert lanes[0]["key"] == job.culprit
        if scenario == "socket-timeout-silent":
            # Its time-outs name their limit: all others waited, for the one that wrote nothing.
            waiting = {row["key"] for row in rows["waits"]}
            assert waiting == {row["key"] for row in lanes} - {job.culprit}
    elif name == "ascend-peers":
        first = min(rows["bars"], key=lambda row: row["place"])
        assert first["key"] == job.culprit
        assert rows["total"][0]["cards"] == cards
    elif name == "ascend-late-arrivals":
        bars = sorted(rows["bars"], key=lambda row: row["place"])
        assert bars[0]["device"] == job.culprit
        assert bars[0]["late"] > 5 * abs(bars[1]["late"])
    else:
        listed = sorted(rows["rows"], key=lambda row: row["place"])
        assert len(listed) == min(30, len(rows["processes"]))
        assert [row["written"] for row in listed] == sorted(row["written"] for row in listed)
        assert listed[0]["card"] == job.culprit


@pytest.mark.parametrize("name", VIEWS)
def test_panel_without_data_says_so(source: Source, tmp_path: Path, name: str) -> None:
    spec = source.vega[name]
    empty = {
        data["name"]: {"aggregations": {data["format"]["property"].split(".")[1]: {"buckets": []}}}
        for data in spec["data"]
        if "url" in data
    }
    shown = vega_page.draw(vega_page.with_values(spec, empty), "empty", (24, 16))
    assert [line for line in shown["said"] if "Infinite extent" not in line] == []
