"""A real Elasticsearch takes events into the rendered data streams: nothing is refused, nothing lost or doubled."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from elasticsearch import helpers

from ascend_elk.formats.fields import load_fields
from ascend_elk.render import RenderOptions
from ascend_elk.render.templates import mappings, render_templates
from tests.conformance.test_ingest import made_up_cases, put_pipelines, sample_cases
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
        body = {**case.document, "log": {"file": {"path": f"/var/log/{number}.log"}, "offset": 0}}
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
