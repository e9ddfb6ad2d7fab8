"""The verdict as one self-contained page with the timeline of all cards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ascend_elk.diagnose.model import Verdict

_HERE = Path(__file__).parent


def page(verdict: Verdict, title: str) -> str:
    """Render a verdict; the page needs no network and no other file.

    Args:
        verdict: what to show.
        title: what was diagnosed, for example the path.
    """
    environment = Environment(loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined)
    return environment.get_template("page.html.j2").render(
        title=title,
        verdict=verdict,
        data=_embedded(_timeline(verdict)),
        script=(_HERE / "page.js").read_text("utf-8"),
        style=(_HERE / "page.css").read_text("utf-8"),
    )


def _timeline(verdict: Verdict) -> dict[str, Any]:
    timeline = verdict.timeline
    return {
        "start": timeline.start,
        "seconds": timeline.seconds,
        "links": timeline.links,
        "lanes": [
            {
                "label": lane.card.label(),
                "host": lane.card.host,
                "device": lane.card.device,
                "rank": lane.card.rank,
                "pid": lane.card.pid,
                "first": lane.first,
                "last": lane.last,
                "suspect": lane.suspect,
                "hidden": lane.hidden,
                "marks": [
                    [mark.kind, mark.start, mark.end, mark.count, mark.code, mark.text, mark.file, mark.line]
                    for mark in lane.marks
                ],
            }
            for lane in timeline.lanes
        ],
    }


def _embedded(document: dict[str, Any]) -> str:
    # Log lines may hold "</script>": no "<" leaves the data as it is.
    return orjson.dumps(document).decode().replace("<", "\\u003c").replace("\u2028", "\\u2028")
