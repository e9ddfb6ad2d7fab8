"""Lint of everything under kibana/, as built for every target."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from ascend_elk.errors import UserError
from ascend_elk.formats.fields import load_fields
from ascend_elk.stack.objects import build_objects, to_ndjson
from ascend_elk.stack.source import Source, load_source
from ascend_elk.stack.targets import TARGETS, target_for

from . import kql, lens_query
from .contract import documented_fields, fields_of_request
from .schema import problems

Object = dict[str, Any]


def panels_of(dashboard: Object) -> list[Object]:
    return list(json.loads(dashboard["attributes"]["panelsJSON"]))


def of_type(objects: list[Object], kind: str) -> list[Object]:
    return [item for item in objects if item["type"] == kind]


def vega_specs(source: Source) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, spec in source.vega.items():
        for data in spec["data"]:
            if "url" in data:
                yield name, data["url"]


# ---------------------------------------------------------------- shapes


def test_every_object_has_the_shape_of_its_target(objects: list[Object], target: str) -> None:
    assert [line for item in objects for line in problems(target, item)] == []


BREAKAGES = {
    "unknown attribute": lambda item: item["attributes"].update(surprise=1),
    "no stamp": lambda item: item.pop("coreMigrationVersion"),
    "stamp of a newer Kibana": lambda item: item.update(coreMigrationVersion="99.0.0"),
    "no references": lambda item: item.pop("references"),
    "reference without a name": lambda item: item["references"].append({"type": "tag", "id": "x"}),
}


@pytest.mark.parametrize("breakage", BREAKAGES)
def test_the_schemas_refuse(objects: list[Object], target: str, breakage: str) -> None:
    for kind in ("tag", "index-pattern", "search", "dashboard"):
        broken = copy.deepcopy(of_type(objects, kind)[0])
        BREAKAGES[breakage](broken)
        assert problems(target, broken), kind


def _edit_panels(item: Object, edit: Any) -> None:
    panels = panels_of(item)
    edit(panels)
    item["attributes"]["panelsJSON"] = json.dumps(panels)


def _lens(panels: list[Object]) -> Object:
    return next(panel for panel in panels if panel["type"] == "lens")


def _rename_datasource(panels: list[Object]) -> None:
    states = _lens(panels)["embeddableConfig"]["attributes"]["state"]["datasourceStates"]
    (name,) = states
    states["indexpattern" if name == "formBased" else "formBased"] = states.pop(name)


def _legacy_visualisation(panels: list[Object]) -> None:
    vega = next(
        panel for panel in panels if panel["embeddableConfig"].get("savedVis", {}).get("type") == "vega"
    )
    vega["embeddableConfig"]["savedVis"]["type"] = "histogram"


NESTED_BREAKAGES = {
    "Lens state of another generation": _rename_datasource,
    "legacy visualisation": _legacy_visualisation,
    "panel of another version": lambda panels: panels[0].update(version="6.0.0"),
    "panel outside the grid": lambda panels: panels[0]["gridData"].update(x=48),
    "column without an operation": lambda panels: next(
        iter(lens_query.layer_of(_lens(panels)["embeddableConfig"]["attributes"])["columns"].values())
    ).pop("operationType"),
}


@pytest.mark.parametrize("breakage", NESTED_BREAKAGES)
def test_the_schemas_look_into_nested_json(objects: list[Object], target: str, breakage: str) -> None:
    broken = copy.deepcopy(next(item for item in objects if item["id"] == "ascend-overview"))
    _edit_panels(broken, NESTED_BREAKAGES[breakage])
    assert problems(target, broken)


def test_targets_differ_where_kibana_does(source: Source) -> None:
    built = {name: build_objects(source, target) for name, target in TARGETS.items()}
    for item in built["8.x"]:
        if item["type"] != "tag":
            assert problems("7.17", item)
    for item in built["7.17"]:
        assert problems("8.x", item)


@pytest.mark.parametrize(
    ("version", "target"),
    [
        ("7.17.0", "7.17"),
        ("7.17.28", "7.17"),
        ("8.0.1", "7.17"),
        ("8.8.2", "7.17"),
        ("8.9.0", "8.x"),
        ("8.19.4", "8.x"),
        ("9.0.0", "9.x"),
        ("9.4.3-SNAPSHOT", "9.x"),
        ("10.0.0", "9.x"),
    ],
)
def test_target_of_a_version(version: str, target: str) -> None:
    assert target_for(version).name == target


@pytest.mark.parametrize("version", ["7.16.3", "6.8.23", "next", ""])
def test_no_target_for(version: str) -> None:
    with pytest.raises(UserError):
        target_for(version)


def test_stamps_are_never_newer_than_the_oldest_kibana_of_the_target() -> None:
    oldest = {"7.17": (7, 17), "8.x": (8, 9), "9.x": (9, 0)}
    for name, target in TARGETS.items():
        for version in (target.core_version, target.panel_version, *target.type_versions.values()):
            assert tuple(map(int, version.split(".")[:2])) <= oldest[name]


def test_bytes_are_deterministic(source: Source) -> None:
    for target in TARGETS.values():
        assert to_ndjson(build_objects(source, target)) == to_ndjson(build_objects(load_source(), target))


# ---------------------------------------------------------------- names, references


def test_files_are_named_by_their_id(source: Source) -> None:
    for group in (source.data_views, source.searches, source.dashboards):
        for name, item in group.items():
            assert item.id == name


def test_titles_are_prefixed_and_unique(objects: list[Object]) -> None:
    for kind in ("search", "dashboard"):
        titles = [item["attributes"]["title"] for item in of_type(objects, kind)]
        assert all(title.startswith("[Ascend] ") for title in titles)
        assert len(set(titles)) == len(titles)


def test_ids_are_unique_over_all_types(objects: list[Object]) -> None:
    counts = Counter(f"{item['type']}:{item['id']}" for item in objects)
    assert [key for key, count in counts.items() if count > 1] == []


def test_references_resolve_to_earlier_objects_or_dashboards(objects: list[Object]) -> None:
    known = {(item["type"], item["id"]) for item in objects}
    for item in objects:
        for reference in item["references"]:
            assert (reference["type"], reference["id"]) in known, (item["id"], reference)


def test_each_reference_is_named_once_and_used(objects: list[Object]) -> None:
    for item in objects:
        names = [reference["name"] for reference in item["references"]]
        assert len(set(names)) == len(names)
        if item["type"] == "search":
            source = json.loads(item["attributes"]["kibanaSavedObjectMeta"]["searchSourceJSON"])
            assert source["indexRefName"] in names
        if item["type"] == "dashboard":
            expected = {name for name in names if name.startswith("tag-ref-")}
            expected |= set(_names_used_by(item))
            assert expected == set(names), item["id"]


def _names_used_by(dashboard: Object) -> Iterator[str]:
    attributes = dashboard["attributes"]
    source = json.loads(attributes["kibanaSavedObjectMeta"]["searchSourceJSON"])
    for entry in source["filter"]:
        yield entry["meta"]["indexRefName"]
    if "controlGroupInput" in attributes:
        for name, control in json.loads(attributes["controlGroupInput"]["panelsJSON"]).items():
            yield f"controlGroup_{name}:{control['type'].removesuffix('Control')}DataView"
    for panel in panels_of(dashboard):
        index, config = panel["panelIndex"], panel["embeddableConfig"]
        if "panelRefName" in panel:
            yield f"{index}:{panel['panelRefName']}"
        for reference in config.get("attributes", {}).get("references", []):
            yield f"{index}:{reference['name']}"
        for event in config["enhancements"].get("dynamicActions", {}).get("events", []):
            yield f"{index}:drilldown:{event['action']['factoryId']}:{event['eventId']}:dashboardId"
        if config.get("savedVis", {}).get("type") == "input_control_vis":
            for control in config["savedVis"]["params"]["controls"]:
                yield f"{index}:{control['indexPatternRefName']}"


def test_everything_carries_the_tag(objects: list[Object]) -> None:
    for item in objects:
        if item["type"] in ("search", "dashboard"):
            assert {"type": "tag", "id": "ascend", "name": "tag-ref-ascend"} in item["references"]


def test_a_space_has_ids_of_its_own(source: Source) -> None:
    default = build_objects(source, TARGETS["8.x"])
    other = build_objects(source, TARGETS["8.x"], space="team-a")
    ids = {item["id"] for item in default}
    assert not ids & {item["id"] for item in other}
    for item in other:
        assert not ids & {reference["id"] for reference in item["references"]}
        for name in ids - {"ascend"}:
            assert f"#/view/{name})" not in json.dumps(item)


# ---------------------------------------------------------------- dashboards


def test_panels_do_not_overlap_and_have_unique_indices(objects: list[Object]) -> None:
    for dashboard in of_type(objects, "dashboard"):
        panels = panels_of(dashboard)
        indices = [panel["panelIndex"] for panel in panels]
        assert len(set(indices)) == len(indices)
        for panel in panels:
            assert panel["gridData"]["i"] == panel["panelIndex"]
        for one, other in combinations((panel["gridData"] for panel in panels), 2):
            apart = (
                one["x"] + one["w"] <= other["x"]
                or other["x"] + other["w"] <= one["x"]
                or one["y"] + one["h"] <= other["y"]
                or other["y"] + other["h"] <= one["y"]
            )
            assert apart, (dashboard["id"], one, other)


def test_dashboards_are_restricted_to_our_data(objects: list[Object]) -> None:
    for dashboard in of_type(objects, "dashboard"):
        source = json.loads(dashboard["attributes"]["kibanaSavedObjectMeta"]["searchSourceJSON"])
        assert [entry["query"] for entry in source["filter"]] == [
            {"match_phrase": {"event.module": "ascend"}}
        ]


def test_every_dashboard_links_to_the_others(objects: list[Object]) -> None:
    dashboards = of_type(objects, "dashboard")
    for dashboard in dashboards:
        text = dashboard["attributes"]["panelsJSON"]
        for other in dashboards:
            assert (f"(#/view/{other['id']})" in text) == (other is not dashboard)


def test_every_vega_specification_and_search_is_reachable(source: Source) -> None:
    panels = [panel for dashboard in source.dashboards.values() for panel in dashboard.panels]
    assert {panel.vega for panel in panels} - {None} == set(source.vega)
    unused = set(source.searches) - {panel.search for panel in panels}
    # These are opened from Discover.
    assert unused == {"ascend-timeouts", "ascend-retries", "ascend-out-of-memory"}


def test_drill_downs_lead_from_the_cluster_to_a_process(source: Source) -> None:
    ways = {
        (dashboard.id, panel.drilldown)
        for dashboard in source.dashboards.values()
        for panel in dashboard.panels
        if panel.drilldown
    }
    assert {
        ("ascend-overview", "ascend-one-card"),
        ("ascend-overview", "ascend-find-the-card"),
        ("ascend-find-the-card", "ascend-one-card"),
        ("ascend-one-card", "ascend-one-process"),
        ("ascend-one-card", "ascend-find-the-card"),
        ("ascend-one-process", "ascend-one-card"),
        ("ascend-pipeline-health", "ascend-overview"),
    } == ways


def test_every_dashboard_has_every_control(source: Source) -> None:
    assert set(source.controls) == {"cluster", "job", "host", "device", "pid", "code", "layer"}
    for dashboard in source.dashboards.values():
        # The texts for alerts filter nothing.
        wanted = () if dashboard.id == "ascend-alerts" else tuple(source.controls)
        assert dashboard.controls == wanted, dashboard.id


def test_codes_link_to_the_service(objects: list[Object]) -> None:
    for view in of_type(objects, "index-pattern"):
        formats = json.loads(view["attributes"]["fieldFormatMap"])
        url = formats["error.code"]["params"]["urlTemplate"]
        assert url == "https://codes.example:8443/ascend/v1/codes/{{value}}"


def test_without_a_service_codes_are_plain(source: Source) -> None:
    for view in of_type(build_objects(source, TARGETS["8.x"]), "index-pattern"):
        assert "error.code" not in json.loads(view["attributes"]["fieldFormatMap"])


# ---------------------------------------------------------------- fields


def all_queries(source: Source) -> Iterator[tuple[str, str]]:
    for search in source.searches.values():
        yield search.id, search.query
    for dashboard in source.dashboards.values():
        for panel in dashboard.panels:
            if panel.lens is not None:
                yield f"{dashboard.id}: {panel.title}", panel.lens.query
                for column in panel.lens.columns:
                    yield f"{dashboard.id}: {panel.title}: {column.label}", column.filter or ""


def test_every_query_is_kql_on_known_fields(source: Source) -> None:
    for where, text in all_queries(source):
        assert kql.fields(text) <= documented_fields(), where
        assert not kql.free_text(text), where


def test_every_field_is_documented(source: Source) -> None:
    named: dict[str, set[str]] = {}
    for view in source.data_views.values():
        named[view.id] = {view.time_field, *view.links, *view.formats, *view.runtime}
    for search in source.searches.values():
        named[search.id] = {*search.columns, *(field for field, _ in search.sort)}
    for control in source.controls.values():
        named[control.label] = {control.field}
    for dashboard in source.dashboards.values():
        for panel in dashboard.panels:
            if panel.lens is not None:
                fields = {column.field for column in panel.lens.columns} - {None}
                named[f"{dashboard.id}: {panel.title}"] = fields  # type: ignore[assignment]
    for name, url in vega_specs(source):
        named[name] = set(fields_of_request(url["body"])) | {url["%timefield%"]}
        assert named[name] - {"@timestamp"}
    unknown = {where: fields - documented_fields() for where, fields in named.items()}
    assert {where: fields for where, fields in unknown.items() if fields} == {}


def test_every_field_is_mapped(source: Source) -> None:
    """What is documented is what Elasticsearch searches, or what Kibana computes."""
    mapped = {field.name for field in load_fields()}
    computed = {name for view in source.data_views.values() for name in view.runtime}
    incidents = {name for name in documented_fields() if name.startswith("ascend.incident.")}
    assert documented_fields() - mapped - incidents == computed


def test_the_contract_is_read_as_written() -> None:
    fields = documented_fields()
    assert {
        "@timestamp",
        "ascend.hccl.data_type",
        "ascend.link.remote.rank",
        "log.origin.file.line",
        "ascend.error.remediation_zh",
        "ascend.incident.cards.host",
        "tags",
    } <= fields
    assert "ascend.nonsense" not in fields


def test_incidents_are_mapped_as_documented(source: Source) -> None:
    def leaves(properties: dict[str, Any], prefix: str = "") -> Iterator[str]:
        for name, body in properties.items():
            yield prefix + name
            yield from leaves(body.get("properties", {}), f"{prefix}{name}.")

    mapped = set(leaves(source.incidents["template"]["mappings"]["properties"]))
    documented = {name for name in documented_fields() if name.startswith("ascend.incident.")}
    assert {name for name in mapped if name.startswith("ascend.incident.")} == documented
    for control in source.controls.values():
        # A filter on a field that an index lacks empties its panels.
        assert control.field in mapped


def test_vega_reads_the_time_and_the_filters_of_its_dashboard(source: Source) -> None:
    for name, url in vega_specs(source):
        assert url["%context%"] is True, name
        assert url["%timefield%"] == "@timestamp", name
        assert url["index"] in {view.title for view in source.data_views.values()}, name
