"""A dashboard of the source becomes a saved object, with its charts, controls and drill-downs by value."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ascend_elk.stack import lens
from ascend_elk.stack.source import PREFIX, Control, Dashboard, Panel, Rule, Source
from ascend_elk.stack.targets import Target

Scope = Callable[[str], str]
"""Gives an id the suffix of its space."""

MODULE_FILTER = ("event.module", "ascend")
_LEGACY_CONTROLS_HEIGHT = 6
_DRILLDOWN = "DASHBOARD_TO_DASHBOARD_DRILLDOWN"


def dashboard_object(
    dashboard: Dashboard, source: Source, target: Target, scope: Scope
) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """Build attributes and references of a dashboard.

    Args:
        dashboard: as written.
        source: where its searches, controls and Vega specifications are found.
        target: generation of Kibana.
        scope: gives ids the suffix of their space.
    """
    data_view = scope(dashboard.data_view)
    filter_reference = "kibanaSavedObjectMeta.searchSourceJSON.filter[0].meta.index"
    references = [_reference("index-pattern", data_view, filter_reference)]
    attributes: dict[str, Any] = {
        "title": dashboard.title,
        "description": dashboard.description,
        "hits": 0,
        "version": 1,
        "timeRestore": True,
        "timeFrom": dashboard.time.start,
        "timeTo": dashboard.time.to,
        "refreshInterval": {"pause": True, "value": 0},
        "optionsJSON": to_json({"useMargins": True, "syncColors": False, "hidePanelTitles": False}),
        "kibanaSavedObjectMeta": {
            "searchSourceJSON": to_json(
                {"query": {"query": "", "language": "kuery"}, "filter": [_module_filter(filter_reference)]}
            )
        },
    }
    controls = [source.controls[name] for name in dashboard.controls]
    built: list[dict[str, Any]] = []
    shift = 0
    if target.modern and controls:
        attributes["controlGroupInput"], found = _control_group(dashboard.controls, controls, data_view)
        references += found
    elif controls:
        panel, found = _legacy_controls(controls, data_view, target)
        built.append(panel)
        references += found
        shift = _LEGACY_CONTROLS_HEIGHT
    for number, panel_source in enumerate(dashboard.panels, 1):
        index = f"p{number:02d}"
        panel, found = _panel(panel_source, index, shift, dashboard, source, target, scope)
        built.append(panel)
        references += found
    attributes["panelsJSON"] = to_json(built)
    return attributes, references


def to_json(value: Any) -> str:
    """JSON within JSON, always the same bytes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def navigation(current: Dashboard, source: Source, scope: Scope) -> str:
    """One line of markdown with a link to each of the dashboards."""
    return " · ".join(
        f"**{name}**" if other.id == current.id else f"[{name}](#/view/{scope(other.id)})"
        for other in source.dashboards.values()
        for name in (other.title.removeprefix(PREFIX),)
    )


def investigation_text(rule: Rule) -> str:
    """What to do when a rule fires, as markdown."""
    parts = (
        ("What fired", rule.fired),
        ("Why it matters", rule.matters),
        ("Triage", rule.triage),
        ("Remediation", rule.remediation),
        ("Tuning", rule.tuning),
    )
    return f"### {rule.name.removeprefix(PREFIX)}\n\n" + "\n\n".join(
        f"**{heading}.** {text}" for heading, text in parts
    )


def _module_filter(reference: str) -> dict[str, Any]:
    field, value = MODULE_FILTER
    return {
        "$state": {"store": "appState"},
        "meta": {
            "alias": None,
            "disabled": False,
            "indexRefName": reference,
            "key": field,
            "negate": False,
            "params": {"query": value},
            "type": "phrase",
        },
        "query": {"match_phrase": {field: value}},
    }


def _panel(
    panel: Panel, index: str, shift: int, dashboard: Dashboard, source: Source, target: Target, scope: Scope
) -> tuple[dict[str, Any], list[dict[str, str]]]:
    x, y, width, height = panel.at
    built: dict[str, Any] = {
        "version": target.panel_version,
        "panelIndex": index,
        "gridData": {"x": x, "y": y + shift, "w": width, "h": height, "i": index},
    }
    if panel.title:
        built["title"] = panel.title
    references: list[dict[str, str]] = []
    config: dict[str, Any] = {}
    text = None
    if panel.markdown is not None:
        text = f"{navigation(dashboard, source, scope)}\n\n{panel.markdown}"
    elif panel.rule is not None:
        text = investigation_text(source.rules[panel.rule])
    if text is not None:
        params = {"markdown": text, "fontSize": 12, "openLinksInNewTab": False}
        built["type"] = "visualization"
        config = {"hidePanelTitles": True, "savedVis": _visualization("markdown", "", params)}
    elif panel.vega is not None:
        spec = json.dumps(source.vega[panel.vega], ensure_ascii=False, indent=1)
        built["type"] = "visualization"
        config = {"savedVis": _visualization("vega", panel.title, {"spec": spec})}
    elif panel.search is not None:
        built |= {"type": "search", "panelRefName": f"panel_{index}"}
        references.append(_reference("search", scope(panel.search), f"{index}:panel_{index}"))
    elif panel.lens is not None:
        built["type"] = "lens"
        attributes = lens.attributes(panel.lens, panel.title, scope(dashboard.data_view), target)
        references += [{**one, "name": f"{index}:{one['name']}"} for one in attributes["references"]]
        config = {"attributes": attributes}
    enhancements: dict[str, Any] = {}
    if panel.drilldown is not None:
        event = f"{index}-drilldown"
        title = source.dashboards[panel.drilldown].title.removeprefix(PREFIX)
        enhancements = {"dynamicActions": {"events": [_drilldown(event, f"Open {title}")]}}
        references.append(
            _reference(
                "dashboard", scope(panel.drilldown), f"{index}:drilldown:{_DRILLDOWN}:{event}:dashboardId"
            )
        )
    built["embeddableConfig"] = {**config, "enhancements": enhancements}
    return built, references


def _drilldown(event: str, name: str) -> dict[str, Any]:
    return {
        "eventId": event,
        "triggers": ["FILTER_TRIGGER"],
        "action": {
            "factoryId": _DRILLDOWN,
            "name": name,
            "config": {"useCurrentFilters": True, "useCurrentDateRange": True, "openInNewTab": False},
        },
    }


def _visualization(kind: str, title: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": "",
        "title": title,
        "description": "",
        "type": kind,
        "params": params,
        "uiState": {},
        "data": {"aggs": [], "searchSource": {"query": {"query": "", "language": "kuery"}, "filter": []}},
    }


def _control_group(
    names: tuple[str, ...], controls: list[Control], data_view: str
) -> tuple[dict[str, Any], list[dict[str, str]]]:
    panels: dict[str, Any] = {}
    references = []
    for order, (name, control) in enumerate(zip(names, controls, strict=True)):
        config: dict[str, Any] = {
            "id": name,
            "fieldName": control.field,
            "title": control.label,
            "enhancements": {},
        }
        kind = "rangeSlider" if control.kind == "range" else "optionsList"
        if control.kind == "list":
            config["selectedOptions"] = []
        panels[name] = {
            "order": order,
            "width": "small",
            "grow": True,
            "type": f"{kind}Control",
            "explicitInput": config,
        }
        references.append(_reference("index-pattern", data_view, f"controlGroup_{name}:{kind}DataView"))
    ignored = ("ignoreFilters", "ignoreQuery", "ignoreTimerange", "ignoreValidations")
    group = {
        "controlStyle": "oneLine",
        "chainingSystem": "HIERARCHICAL",
        "ignoreParentSettingsJSON": to_json(dict.fromkeys(ignored, False)),
        "panelsJSON": to_json(panels),
    }
    return group, references


def _legacy_controls(
    controls: list[Control], data_view: str, target: Target
) -> tuple[dict[str, Any], list[dict[str, str]]]:
    index = "p00"
    entries = []
    references = []
    for number, control in enumerate(controls):
        reference = f"control_{number}_index_pattern"
        numeric = control.kind == "range"
        entries.append(
            {
                "id": f"control-{number}",
                "fieldName": control.field,
                "parent": "",
                "label": control.label,
                "type": "list",
                # Only texts can be searched while typing.
                "options": {
                    "type": "terms",
                    "multiselect": True,
                    "dynamicOptions": not numeric,
                    "size": 100,
                    "order": "desc",
                },
                "indexPatternRefName": reference,
            }
        )
        references.append(_reference("index-pattern", data_view, f"{index}:{reference}"))
    params = {
        "controls": entries,
        "updateFiltersOnChange": True,
        "useTimeFilter": True,
        "pinFilters": False,
    }
    panel = {
        "version": target.panel_version,
        "type": "visualization",
        "panelIndex": index,
        "gridData": {"x": 0, "y": 0, "w": 48, "h": _LEGACY_CONTROLS_HEIGHT, "i": index},
        "embeddableConfig": {
            "hidePanelTitles": True,
            "savedVis": _visualization("input_control_vis", "", params),
            "enhancements": {},
        },
    }
    return panel, references


def _reference(kind: str, identifier: str, name: str) -> dict[str, str]:
    return {"type": kind, "id": identifier, "name": name}
