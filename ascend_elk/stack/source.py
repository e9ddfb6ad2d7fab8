"""The content of ``kibana/`` as written: models of its YAML, and the loader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from ascend_elk.content import content_dir

PREFIX = "[Ascend] "

Identifier = Annotated[str, Field(pattern=r"^ascend(-[a-z0-9]+)*$")]
Title = Annotated[str, Field(pattern=r"^\[Ascend\] \S")]
Direction = Literal["asc", "desc"]
GRID_WIDTH = 48


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tag(_Model):
    """The one tag that every object carries."""

    id: Identifier
    name: str
    description: str
    color: str


class RuntimeField(_Model):
    """A field that Kibana computes on reading."""

    type: Literal["double", "long", "keyword", "date", "boolean"]
    script: str


class DataView(_Model):
    """A data view. ``links`` are fields that open the service's page of an error code."""

    id: Identifier
    name: Title
    title: str
    time_field: str
    links: tuple[str, ...] = ()
    formats: dict[str, Literal["nanoseconds", "plain", "percent"]] = {}
    runtime: dict[str, RuntimeField] = {}


class Search(_Model):
    """A saved search."""

    id: Identifier
    title: Title
    description: str
    data_view: Identifier
    query: str
    sort: tuple[tuple[str, Direction], ...]
    columns: tuple[str, ...]


class Control(_Model):
    """A filter at the top of a dashboard: a list of values, or a range of numbers."""

    label: str
    field: str
    kind: Literal["list", "range"] = "list"


class Column(_Model):
    """A dimension of a Lens chart: exactly one of the buckets or metrics.

    Attributes:
        terms, time: buckets by the values of a field, by time.
        count, unique, min, max, median, sum, first, last: metrics; ``first`` is the oldest value of a field,
            ``last`` the newest.
        size: how many values ``terms`` shows.
        order: label of the metric that ``terms`` is sorted by, downwards; the first metric by default.
        ascending: sort upwards.
        type: of the field of ``terms``.
        filter: KQL that a metric counts only.
        label: heading.
    """

    label: str
    terms: str | None = None
    time: str | None = None
    count: Literal[True] | None = None
    unique: str | None = None
    min: str | None = None
    max: str | None = None
    median: str | None = None
    sum: str | None = None
    first: str | None = None
    last: str | None = None
    size: Annotated[int, Field(ge=1, le=1000)] | None = None
    order: str | None = None
    ascending: bool = False
    type: Literal["string", "number"] = "string"
    filter: str | None = None

    @model_validator(mode="after")
    def _one_operation(self) -> Column:
        if len(list(self._operations())) != 1:
            raise ValueError(f"column {self.label!r} needs exactly one operation")
        if (self.terms is None) != (self.size is None):
            raise ValueError(f"column {self.label!r}: terms and size go together")
        if self.bucketed and self.filter is not None:
            raise ValueError(f"column {self.label!r}: only metrics take a filter")
        return self

    def _operations(self) -> Iterator[str]:
        for name in ("terms", "time", "count", "unique", "min", "max", "median", "sum", "first", "last"):
            if getattr(self, name) is not None:
                yield name

    @property
    def operation(self) -> str:
        """Which of the operations it is."""
        return next(self._operations())

    @property
    def field(self) -> str | None:
        """Its field; ``None`` for a count."""
        value = getattr(self, self.operation)
        return value if isinstance(value, str) else None

    @property
    def bucketed(self) -> bool:
        """It splits the documents, rather than measuring them."""
        return self.operation in ("terms", "time")


class Lens(_Model):
    """A chart: buckets first, then metrics."""

    type: Literal["table", "bar", "bar-horizontal", "line", "heatmap", "metric"]
    query: str = ""
    columns: tuple[Column, ...]

    @model_validator(mode="after")
    def _fits_its_type(self) -> Lens:
        buckets = [column.bucketed for column in self.columns]
        if buckets != sorted(buckets, reverse=True):
            raise ValueError("buckets stand before metrics")
        metrics = len(buckets) - sum(buckets)
        labels = [column.label for column in self.columns]
        if len(set(labels)) < len(labels):
            raise ValueError("labels are unique within a chart")
        for column in self.columns:
            if column.order is not None and column.order not in labels[sum(buckets) :]:
                raise ValueError(
                    f"column {column.label!r} is ordered by {column.order!r}, which is no metric"
                )
        wanted = {"metric": (0, 1), "heatmap": (2, 1)}.get(self.type)
        if wanted is not None and (sum(buckets), metrics) != wanted:
            raise ValueError(f"a {self.type} has {wanted[0]} buckets and {wanted[1]} metrics")
        if self.type in ("bar", "bar-horizontal", "line") and sum(buckets) not in (1, 2):
            raise ValueError(f"a {self.type} has one or two buckets")
        if metrics == 0:
            raise ValueError("a chart has a metric")
        return self


class Panel(_Model):
    """A panel of a dashboard: exactly one kind of content at ``[x, y, width, height]`` of a 48-wide grid.

    Attributes:
        at: place and size.
        title: heading; a markdown panel has none.
        markdown, rule: text; the investigation text of an alert rule.
        search, vega, lens: id of a saved search; name of a file in ``vega/``; a chart.
        drilldown: dashboard that a click on a value opens, filtered by it.
    """

    at: tuple[int, int, int, int]
    title: str = ""
    markdown: str | None = None
    rule: Identifier | None = None
    search: Identifier | None = None
    vega: Identifier | None = None
    lens: Lens | None = None
    drilldown: Identifier | None = None

    @model_validator(mode="after")
    def _one_content(self) -> Panel:
        kinds = (self.markdown, self.rule, self.search, self.vega, self.lens)
        if sum(kind is not None for kind in kinds) != 1:
            raise ValueError(f"panel {self.title!r} needs exactly one of markdown, rule, search, vega, lens")
        if self.markdown is None and self.rule is None and not self.title:
            raise ValueError(f"the panel at {self.at} needs a title")
        x, y, width, height = self.at
        if min(x, y) < 0 or min(width, height) < 1 or x + width > GRID_WIDTH:
            raise ValueError(f"panel {self.title!r} leaves the grid of {GRID_WIDTH} columns")
        return self


class TimeRange(_Model):
    """What a dashboard shows when it is opened, in Kibana's date math."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
    start: str = Field(alias="from")
    to: str


class Dashboard(_Model):
    """A dashboard; ``data_view`` is what its controls and charts read."""

    id: Identifier
    title: Title
    description: str
    data_view: Identifier
    time: TimeRange
    controls: tuple[str, ...]
    panels: tuple[Panel, ...]


class Distinct(_Model):
    """Different values of a field, counted where Kibana can.

    Attributes:
        data_view, query: what is looked at; the same in KQL as the query of its rule.
        field: whose values are counted.
        at_least: values that fire the rule.
    """

    data_view: Identifier
    query: str
    field: str
    at_least: Annotated[int, Field(ge=1)]


class Rule(_Model):
    """An alert rule, and the text for whoever it wakes.

    Attributes:
        every, window: how often it looks, and how far back; a number and ``m``.
        indices: where it looks.
        query: Elasticsearch query whose hits are counted.
        group_by: field whose values are counted apart (Kibana 8.9 and later).
        at_least: hits that fire it.
        distinct: what is counted instead of hits (Kibana 8.13 and later).
        fired, matters, triage, remediation, tuning: the investigation text.
    """

    id: Identifier
    name: Title
    every: Annotated[str, Field(pattern=r"^[1-9][0-9]*m$")]
    window: Annotated[str, Field(pattern=r"^[1-9][0-9]*m$")]
    indices: Annotated[tuple[str, ...], Field(min_length=1)] = ("logs-ascend.*-*",)
    query: dict[str, Any]
    group_by: str | None = None
    at_least: Annotated[int, Field(ge=1)]
    distinct: Distinct | None = None
    fired: str
    matters: str
    triage: str
    remediation: str
    tuning: str


@dataclass(frozen=True)
class Source:
    """All of ``kibana/``.

    Attributes:
        vega: file name without suffix → specification as parsed JSON.
        incidents: index template of the verdicts that the enrichment service writes.
    """

    tag: Tag
    data_views: dict[str, DataView]
    searches: dict[str, Search]
    controls: dict[str, Control]
    dashboards: dict[str, Dashboard]
    vega: dict[str, dict[str, Any]]
    rules: dict[str, Rule]
    incidents: dict[str, Any]


_T = TypeVar("_T", bound=BaseModel)


def load_source(directory: Path | None = None) -> Source:
    """Load and validate ``kibana/``, by default the product's own."""
    root = directory or content_dir("kibana")
    controls = yaml.safe_load((root / "controls.yml").read_text("utf-8"))
    return Source(
        tag=Tag.model_validate(yaml.safe_load((root / "tag.yml").read_text("utf-8"))),
        data_views=_load(DataView, root / "data-views"),
        searches=_load(Search, root / "searches"),
        controls={name: Control.model_validate(body) for name, body in controls.items()},
        dashboards=_load(Dashboard, root / "dashboards"),
        vega={
            path.stem: json.loads(path.read_text("utf-8")) for path in sorted((root / "vega").glob("*.json"))
        },
        rules=_load(Rule, root / "rules"),
        incidents=json.loads((root / "incidents" / "index-template.json").read_text("utf-8")),
    )


def _load(model: type[_T], directory: Path) -> dict[str, _T]:
    return {
        path.stem: model.model_validate(yaml.safe_load(path.read_text("utf-8")))
        for path in sorted(directory.glob("*.yml"))
    }
