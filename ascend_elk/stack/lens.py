"""A chart of the source becomes the state of a Lens visualisation."""

from __future__ import annotations

from typing import Any

from ascend_elk.stack.source import Column, Lens
from ascend_elk.stack.targets import Target

LAYER = "layer"
TIME_FIELD = "@timestamp"
# Lens knows the newest value only: by a time that runs backwards that is the oldest.
BACKWARDS_FIELD = "ascend.time.backwards"
_OPERATIONS = {
    "time": "date_histogram",
    "unique": "unique_count",
    "first": "last_value",
    "last": "last_value",
}
_SERIES = {"bar": "bar_stacked", "bar-horizontal": "bar_horizontal_stacked", "line": "line"}
_TYPES = {"table": "lnsDatatable", "heatmap": "lnsHeatmap", "metric": "lnsMetric"}


def attributes(lens: Lens, title: str, data_view: str, target: Target) -> dict[str, Any]:
    """Build the attributes of a Lens object, references included.

    Args:
        lens: the chart.
        title: heading of its panel.
        data_view: id of the data view it reads.
        target: generation of Kibana.
    """
    ids = [f"c{number}" for number in range(len(lens.columns))]
    by_label = {column.label: name for column, name in zip(lens.columns, ids, strict=True)}
    first_metric = next(name for name, column in zip(ids, lens.columns, strict=True) if not column.bucketed)
    columns = {
        name: _column(column, by_label.get(column.order or "", first_metric), target)
        for name, column in zip(ids, lens.columns, strict=True)
    }
    layer = {"columnOrder": ids, "columns": columns, "incompleteColumns": {}}
    references = [_reference(f"indexpattern-datasource-layer-{LAYER}", data_view)]
    if not target.modern:
        references.insert(0, _reference("indexpattern-datasource-current-indexpattern", data_view))
    state: dict[str, Any] = {
        "datasourceStates": {
            "formBased" if target.modern else "indexpattern": {"layers": {LAYER: layer}},
        },
        "visualization": _visualization(lens, ids, target),
        "query": {"query": lens.query, "language": "kuery"},
        "filters": [],
    }
    if target.modern:
        state |= {"internalReferences": [], "adHocDataViews": {}}
    return {
        "title": title,
        "description": "",
        "visualizationType": _TYPES.get(lens.type, "lnsXY"),
        "state": state,
        "references": references,
    }


def _reference(name: str, data_view: str) -> dict[str, str]:
    return {"type": "index-pattern", "id": data_view, "name": name}


def _column(column: Column, order: str, target: Target) -> dict[str, Any]:
    records = "___records___" if target.modern else "Records"
    operation = column.operation
    field = column.field or records
    on_time = field == TIME_FIELD
    built: dict[str, Any] = {
        "label": column.label,
        "customLabel": True,
        "operationType": _OPERATIONS.get(operation, operation),
        "sourceField": field,
        "isBucketed": column.bucketed,
        "dataType": "date" if on_time else "number",
        "scale": "ratio",
    }
    if operation == "terms":
        built |= {"dataType": column.type, "scale": "ordinal"}
        built["params"] = {
            "size": column.size,
            "orderBy": {"type": "column", "columnId": order},
            "orderDirection": "asc" if column.ascending else "desc",
            "otherBucket": False,
            "missingBucket": False,
        }
        if target.modern:
            built["params"]["parentFormat"] = {"id": "terms"}
    elif operation == "time":
        built |= {"scale": "interval", "params": {"interval": "auto"}}
        if target.modern:
            built["params"] |= {"includeEmptyRows": True, "dropPartials": False}
    elif operation in ("first", "last"):
        # Texts are not aggregatable: showArrayValues reads the newest document instead.
        built |= {"dataType": "string", "scale": "ordinal"}
        built["params"] = {
            "sortField": BACKWARDS_FIELD if operation == "first" else TIME_FIELD,
            "showArrayValues": True,
        }
        built["filter"] = {"query": column.filter or f"{field}: *", "language": "kuery"}
    if column.filter is not None:
        built["filter"] = {"query": column.filter, "language": "kuery"}
    return built


def _visualization(lens: Lens, ids: list[str], target: Target) -> dict[str, Any]:
    layer = {"layerId": LAYER, "layerType": "data"}
    buckets = [name for name, column in zip(ids, lens.columns, strict=True) if column.bucketed]
    metrics = ids[len(buckets) :]
    if lens.type == "table":
        return {**layer, "columns": [{"columnId": name} for name in ids]}
    if lens.type == "metric":
        return {**layer, "metricAccessor" if target.modern else "accessor": metrics[0]}
    if lens.type == "heatmap":
        parts = ("heatmap_legend", "heatmap_grid")
        if not target.modern:
            parts = ("lens_heatmap_legendConfig", "lens_heatmap_grid")
        return {
            **layer,
            "shape": "heatmap",
            "xAccessor": buckets[0],
            "yAccessor": buckets[1],
            "valueAccessor": metrics[0],
            "legend": {"isVisible": True, "position": "right", "type": parts[0]},
            "gridConfig": {
                "type": parts[1],
                "isCellLabelVisible": False,
                "isYAxisLabelVisible": True,
                "isXAxisLabelVisible": True,
            }
            | ({"isYAxisTitleVisible": False, "isXAxisTitleVisible": False} if target.modern else {}),
        }
    series: dict[str, Any] = {
        **layer,
        "seriesType": _SERIES[lens.type],
        "accessors": metrics,
        "position": "top",
        "showGridlines": False,
        "xAccessor": buckets[0],
    }
    if len(buckets) == 2:
        series["splitAccessor"] = buckets[1]
    return {
        "preferredSeriesType": _SERIES[lens.type],
        "legend": {"isVisible": True, "position": "right"},
        "valueLabels": "hide",
        "fittingFunction": "None",
        "axisTitlesVisibilitySettings": {"x": False, "yLeft": False, "yRight": False},
        "tickLabelsVisibilitySettings": {"x": True, "yLeft": True, "yRight": True},
        "gridlinesVisibilitySettings": {"x": True, "yLeft": True, "yRight": True},
        "layers": [series],
    }
