"""A real Elasticsearch takes events into the rendered data streams: nothing is refused, nothing lost or doubled."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from elasticsearch import helpers

from ascend_elk.formats.fields import load_fields
from ascend_elk.render import RenderOptions
from ascend_elk.render.templates import mappings, render_templates
from tests.conformance.test_ingest import flat, made_up_cases, put_pipelines, sample_cases
from tests.conformance.test_logstash import identity
from tests.engines import substitutions

# Of this run: data streams stay on the server as long as it runs.
NAMESPACE = f"t{uuid.uuid4().hex[:12]}"
TYPES = {"match_only_text": "text", "constant_keyword": "keyword"}


@pytest.fixture(scope="module")
def pipeline(elasticsearch: Any) -> str:
    """The pipelines and templates under names of this file; the data streams have a namespace of it."""
    client, name = elasticsearch.client, f"conformance-{NAMESPACE}"
    templates = render_templates(RenderOptions())
    for component, body in templates.components.items():
        client.cluster.put_component_template(name=f"{name}-{component}", **substitutions.template(body))
    for index, body in templates.indices.items():
        adapted = substitutions.template(body)
        adapted["composed_of"] = [f"{name}-{part}" for part in adapted["composed_of"]]
        adapted["ignore_missing_component_templates"] = [
            f"{name}-{part}" for part in adapted.get("ignore_missing_component_templates", ())
        ]
        adapted["index_patterns"] = [
            pattern.replace("*-*", f"*-{NAMESPACE}*") for pattern in adapted["index_patterns"]
        ]
        client.indices.put_index_template(
            name=f"{name}-{index}",
            index_patterns=adapted["index_patterns"],
            composed_of=adapted["composed_of"],
            ignore_missing_component_templates=adapted["ignore_missing_component_templates"],
            data_stream=adapted["data_stream"],
            # Two templates of one priority may not overlap; other tests have theirs on the same server.
            priority=adapted["priority"] + 1 + int(NAMESPACE[1:], 16) % 1_000_000,
            template=adapted.get("template"),
        )
    return put_pipelines(client, name)


def documents() -> list[tuple[str, dict[str, Any]]]:
    """Every sample as its own line of a file, with the data stream that its source goes to."""
    found = []
    for number, case in enumerate([*sample_cases(), *made_up_cases()]):
        # Far enough on for the lines before the last one, whose place it is
        log = {"file": {"path": f"/var/log/{number}.log"}, "offset": 10_000_000}
        body = {**case.document, "log": log}
        found.append((f"logs-{case.expected['event.dataset']}-{NAMESPACE}", body))
    return found


def actions(pipeline: str, found: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    return [
        {"_op_type": "create", "_index": stream, "pipeline": pipeline, "_source": body}
        for stream, body in found
    ]


def test_every_event_is_taken_in_once(elasticsearch: Any, pipeline: str) -> None:
    client, found = elasticsearch.client, documents()
    made, refused = helpers.bulk(client, actions(pipeline, found), chunk_size=400, raise_on_error=False)
    assert not refused, refused[:3]
    assert made == len(found) > 700
    # Delivered again, every event meets itself.
    made, refused = helpers.bulk(client, actions(pipeline, found), chunk_size=400, raise_on_error=False)
    assert made == 0
    assert {item["create"]["status"] for item in refused} == {409}
    client.indices.refresh(index=f"logs-ascend.*-{NAMESPACE}")
    assert client.count(index=f"logs-ascend.*-{NAMESPACE}")["count"] == len(found)
    for hit in helpers.scan(client, index=f"logs-ascend.*-{NAMESPACE}", size=1000):
        source = hit["_source"]
        header = source["event"]["original"].split("\n")[0].removesuffix("\r")
        place = source["log"]["file"]["path"], source["log"]["offset"]
        assert hit["_id"] == identity(source.get("host", {}).get("name", ""), *place, header)
    failed = client.count(
        index=f"logs-ascend.*-{NAMESPACE}", query={"term": {"event.kind": "pipeline_error"}}
    )
    assert failed["count"] == 0
    # A field that the mapping could not hold would be named here.
    ignored = client.search(
        index=f"logs-ascend.*-{NAMESPACE}",
        query={"exists": {"field": "_ignored"}},
        fields=["_ignored"],
        size=5,
    )
    assert not ignored["hits"]["hits"]


def test_events_are_found_by_their_fields(elasticsearch: Any, pipeline: str) -> None:
    stream = f"logs-ascend.plog-{NAMESPACE}_2"
    line = "[ERROR] HCCL(57,python):2025-03-02-11:20:31.120.004 [a.cc:1][58]EI0006: sockets, timeout[120 s]"
    body = {
        "@timestamp": "2026-11-30T12:00:00.000Z",
        "message": line,
        "ascend": {"source": "plog"},
        "host": {"name": "worker-0"},
        "log": {"file": {"path": "/x/plog-57_1.log"}, "offset": 12},
    }
    (prepared,) = actions(pipeline, [(stream, body)])
    helpers.bulk(elasticsearch.client, [prepared], refresh=True)
    filters = [
        {"term": {"error.code": "EI0006"}},
        {"term": {"process.pid": 57}},
        {"term": {"ascend.error.codes": "cann:EI0006"}},
        {"match": {"message": "sockets"}},
        {"range": {"ascend.timeout.seconds": {"gte": 120}}},
        {
            "range": {
                "@timestamp": {"gte": "2025-03-02T11:20:31.120004Z", "lte": "2025-03-02T11:20:31.120004Z"}
            }
        },
    ]
    for one in filters:
        assert elasticsearch.client.count(index=stream, query=one)["count"] == 1, one


def test_a_field_that_nobody_listed_is_refused_under_ascend_and_ignored_elsewhere(
    elasticsearch: Any, pipeline: str
) -> None:
    body = {"@timestamp": "2026-11-30T12:00:00.000Z", "message": "x", "container": {"id": "c1"}}
    stream = f"logs-ascend.plog-{NAMESPACE}_3"
    client = elasticsearch.client
    client.index(index=stream, op_type="create", document=body, refresh=True)
    mapped = next(iter(client.indices.get_mapping(index=stream).values()))["mappings"]
    assert "container" not in mapped["properties"]
    (result,) = helpers.bulk(
        client,
        [{"_op_type": "create", "_index": stream, "_source": {**body, "ascend": {"unlisted": 1}}}],
        raise_on_error=False,
    )[1]
    assert result["create"]["error"]["type"] == "strict_dynamic_mapping_exception"


def test_the_stack_s_types_are_the_listed_ones(elasticsearch: Any, pipeline: str) -> None:
    client, stream = elasticsearch.client, f"logs-ascend.slog-{NAMESPACE}_4"
    client.index(
        index=stream, op_type="create", document={"@timestamp": "2026-11-30T12:00:00Z"}, refresh=True
    )
    known = client.field_caps(index=stream, fields="*", filters="-metadata")["fields"]
    for item in load_fields():
        listed = "keyword" if item.type == "stored" else TYPES.get(item.type, item.type)
        assert list(known[item.name]) == [listed], item.name
    assert known["event.original"]["keyword"]["searchable"] is False


@pytest.mark.parametrize("stack", ["7.17", "8", "9"])
def test_indices_are_sorted_by_fields_that_exist(stack: str) -> None:
    settings = render_templates(RenderOptions(stack=stack)).components["ascend-elk-settings"]["template"]
    index = settings["settings"]["index"]
    assert index["codec"] == "best_compression"
    assert index.get("mode") == (None if stack == "7.17" else "logsdb")
    types = {item.name: item.type for item in load_fields()}
    assert {types[name] for name in index["sort"]["field"]} <= {"keyword", "long", "date_nanos"}


def test_events_are_the_same_where_a_licence_has_synthetic_source(
    elasticsearch: Any, pipeline: str, namespace: str
) -> None:
    """Elasticsearch then makes an event anew out of its fields: nothing is lost but zeros at the end of times."""
    client, documents_of_it = elasticsearch.client, documents()
    template = render_templates(RenderOptions()).components["ascend-elk-settings"]["template"]
    found = {}
    for kind in ("stored", "synthetic"):
        index = f"{kind}-{namespace}"
        settings = {**template["settings"]["index"], "mapping.source.mode": kind}
        client.indices.create(
            index=index, settings={"index": settings}, mappings=substitutions.mappings(mappings())
        )
        actions_of_it = [
            {"_op_type": "create", "_index": index, "pipeline": pipeline, "_source": body}
            for _, body in documents_of_it
        ]
        helpers.bulk(client, actions_of_it, chunk_size=400, refresh=True)
        hits = helpers.scan(client, index=index, size=1000)
        found[kind] = {hit["_id"]: without_zeros(flat(hit["_source"])) for hit in hits}
    assert len(found["stored"]) == len(documents_of_it)
    for name, event in found["stored"].items():
        assert found["synthetic"][name] == event


def without_zeros(event: dict[str, Any]) -> dict[str, Any]:
    event.pop("event.ingested")
    return {**event, "@timestamp": event["@timestamp"].removesuffix("Z").rstrip("0").rstrip(".")}


def test_the_mapping_is_bounded() -> None:
    body = mappings()
    assert body["dynamic"] is False
    assert body["properties"]["ascend"]["dynamic"] == "strict"

    def leaves(node: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            leaf
            for field in node["properties"].values()
            for leaf in (leaves(field) if "properties" in field else [field])
        ]

    keywords = [leaf for leaf in leaves(body) if leaf["type"] == "keyword" and leaf.get("index", True)]
    assert len(keywords) > 30
    assert all(0 < leaf["ignore_above"] <= 8191 for leaf in keywords)


@pytest.mark.parametrize(("stack", "managed"), [("7.17", "policy"), ("8", "stream"), ("9", "stream")])
def test_retention_is_what_was_asked_for(stack: str, managed: str) -> None:
    templates = render_templates(RenderOptions(stack=stack, retention="14d"))
    (index,) = templates.indices.values()
    assert index["priority"] > 200
    if managed == "policy":
        (policy,) = templates.lifecycles.values()
        assert policy["policy"]["phases"]["delete"]["min_age"] == "14d"
        assert "lifecycle" not in index.get("template", {})
    else:
        assert index["template"]["lifecycle"] == {"data_retention": "14d"}
        assert not templates.lifecycles
