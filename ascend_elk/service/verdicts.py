"""From a verdict to the document that dashboards read: the fields of docs/fields.md, pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ascend_elk.codes import Catalogue
from ascend_elk.diagnose.collect import Collector
from ascend_elk.diagnose.model import Verdict
from ascend_elk.service.windows import Window

Document = dict[str, Any]


def incident(
    name: str,
    verdict: Verdict,
    window: Window,
    communicator: str | None,
    catalogue: Catalogue,
    bounds: tuple[str, str],
) -> Document:
    """The document of one incident.

    Args:
        name: its id.
        verdict: what was found.
        window: of trouble, with cluster and job where they are named.
        communicator: the job's largest.
        catalogue: tells the layer of the cause.
        bounds: first and last time of the window, ISO 8601; taken where no line of trouble has a time.
    """
    told = verdict.to_json()
    start, end = span(verdict, bounds)
    headline = catalogue.headline(verdict.codes) if verdict.codes else None
    entries = catalogue.lookup(headline) if headline is not None else []
    cards = verdict.cards
    document: Document = {
        "@timestamp": start,
        "event": {"module": "ascend", "dataset": "ascend.incident"},
        "host": {"name": _values(card.host for card in cards)},
        "process": {"pid": _values(card.pid for card in cards)},
        "error": {"code": headline.partition(":")[2] if headline is not None else None},
        "orchestrator": {"cluster": {"name": window.cluster}},
        "ascend": {
            "layer": entries[0].layer if entries else None,
            "job": {"id": window.job},
            "device": {
                "key": _values(
                    f"{card.host}/{card.device}"
                    for card in cards
                    if card.host is not None and card.device is not None
                )
            },
            "rank": {"id": _values(card.rank for card in cards)},
            "communicator": {"id": communicator},
            "incident": {
                "id": name,
                "start": start,
                "end": end,
                **{
                    key: told[key]
                    for key in (
                        "kind",
                        "rule",
                        "confidence",
                        "sentence",
                        "sentence_zh",
                        "cards",
                        "chain",
                        "codes",
                        "ranks",
                        "seen",
                        "missing",
                        "notes",
                        "remediation",
                        "remediation_zh",
                        "evidence",
                        "episodes",
                        "suspects",
                    )
                },
            },
        },
    }
    found: Document = _without_nothing(document)
    return found


def span(verdict: Verdict, bounds: tuple[str, str]) -> tuple[str, str]:
    """First and last line of the trouble."""
    firsts = [episode.first for episode in verdict.episodes if episode.first is not None]
    lasts = [episode.last for episode in verdict.episodes if episode.last is not None]
    start = min(firsts, default=bounds[0])
    return start, max(lasts, default=max(start, bounds[1]))


def communicator_of(verdict: Verdict, collector: Collector) -> str | None:
    """The largest communicator of the job that a verdict is about: that of most of its processes."""
    pids = {(lane.card.host, lane.card.pid) for lane in verdict.timeline.lanes}
    worlds = Counter(
        comm
        for key, process in collector.registry.processes.items()
        if (key.host, key.pid) in pids and (comm := process.world[2]) is not None
    )
    return worlds.most_common(1)[0][0] if worlds else None


def set_aside(verdict: Verdict, collector: Collector) -> bool:
    """Take a judged job's processes out, so that the next verdict is of another; false where none was."""
    pids = {(lane.card.host, lane.card.pid) for lane in verdict.timeline.lanes if lane.card.pid is not None}
    judged = [
        name
        for name, trace in collector.traces.items()
        if trace.key is not None and (trace.key.host, trace.key.pid) in pids
    ]
    for name in judged:
        del collector.traces[name]
    return bool(judged)


def _values(items: Any) -> list[Any]:
    return list(dict.fromkeys(item for item in items if item is not None))


def _without_nothing(value: Any) -> Any:
    """Leave out what is ``None`` or empty in objects; lists of objects stay as they are."""
    if isinstance(value, Mapping):
        inner = {key: _without_nothing(item) for key, item in value.items()}
        return {key: item for key, item in inner.items() if item is not None and item != {} and item != []}
    return value
