"""What is substituted is accepted by the server and does what the original would."""

from __future__ import annotations

import copy

import pytest

from . import substitutions

TEMPLATE = {
    "index_patterns": [],
    "priority": 700,
    "data_stream": {},
    "composed_of": ["logs@settings", "ecs@mappings"],
    "template": {
        "lifecycle": {"data_retention": "30d"},
        "settings": {
            "index": {"lifecycle": {"name": "policy"}, "codec": "best_compression"},
            "index.lifecycle.rollover_alias": "x",
        },
        "mappings": {
            "dynamic_templates": [
                {"text": {"match_mapping_type": "string", "mapping": {"type": "match_only_text"}}},
            ],
            "properties": {
                "message": {"type": "match_only_text", "fields": {"raw": {"type": "wildcard"}}},
                "type": {"type": "keyword"},
                "event": {"properties": {"module": {"type": "constant_keyword", "value": "ascend"}}},
                "ratio": {"type": "scaled_float", "scaling_factor": 100},
                "big": {"type": "unsigned_long"},
                "release": {"type": "version"},
            },
        },
    },
}


def test_a_substituted_template_works(elasticsearch, namespace):
    before = copy.deepcopy(TEMPLATE)
    stream = f"logs-substituted-{namespace}"
    body = substitutions.template({**TEMPLATE, "index_patterns": [stream]})
    assert before == TEMPLATE
    elasticsearch.client.indices.put_index_template(name=stream, **body)
    elasticsearch.client.index(
        index=stream,
        op_type="create",
        refresh=True,
        document={
            "@timestamp": "2024-01-01T00:00:00Z",
            "message": "wait socket establish timeout",
            "other": "free text",
        },
    )
    for query in ({"match_phrase": {"message": "socket establish"}}, {"match": {"other": "text"}}):
        assert elasticsearch.client.count(index=stream, query=query)["count"] == 1, query
    (index,) = elasticsearch.client.indices.get(index=stream).values()
    assert index["settings"]["index"]["codec"] == "best_compression"
    assert "lifecycle" not in index["settings"]["index"]
    properties = index["mappings"]["properties"]
    assert properties["event"]["properties"]["module"] == {"type": "keyword"}
    assert properties["type"] == {"type": "keyword"}


def test_single_references_become_copies(elasticsearch):
    pipeline = substitutions.pipeline(
        {
            "processors": [
                {"set": {"field": "copied", "value": "{{{ source.name }}}"}},
                {"append": {"field": "tags", "value": ["{{{source.name}}}"]}},
                {
                    "fail": {
                        "message": "stopped",
                        "on_failure": [
                            {"set": {"field": "inner", "value": "{{_ingest.on_failure_message}}"}}
                        ],
                    }
                },
                {"fail": {"message": "at last"}},
            ],
            "on_failure": [{"set": {"field": "error.message", "value": "{{{_ingest.on_failure_message}}}"}}],
        }
    )
    answer = elasticsearch.client.ingest.simulate(
        pipeline=pipeline, docs=[{"_source": {"source": {"name": "a"}}}]
    )
    assert answer["docs"][0]["doc"]["_source"] == {
        "source": {"name": "a"},
        "copied": "a",
        "tags": ["a"],
        "inner": "stopped",
        "error": {"message": "at last"},
    }


@pytest.mark.parametrize(
    "processor",
    [
        {"set": {"field": "a", "value": "in {{{b}}}"}},
        {"set": {"field": "{{{b}}}", "value": 1}},
        {"append": {"field": "a", "value": ["{{{b}}}", "{{{c}}}"]}},
        {"foreach": {"field": "a", "processor": {"set": {"field": "b", "value": "x{{c}}"}}}},
        {"grok": {"field": "a", "patterns": ["x"], "on_failure": [{"fail": {"message": "{{{b}}} failed"}}]}},
    ],
    ids=["mixed", "field", "list", "foreach", "on-failure"],
)
def test_references_that_would_stay_unrendered_are_refused(processor):
    with pytest.raises(NotImplementedError, match="can't render"):
        substitutions.pipeline({"processors": [processor]})


def test_braces_of_patterns_stay():
    body = {"processors": [{"grok": {"field": "message", "patterns": ["a{2}%{WORD:b}{{c"]}}]}
    assert substitutions.pipeline(body) == body


def test_only_lifecycle_settings_go():
    assert substitutions.settings(
        {
            "index": {"lifecycle": {"name": "x", "prefer_ilm": False}},
            "lifecycle.name": "x",
            "number_of_replicas": 0,
        }
    ) == {"index": {"lifecycle": {"prefer_ilm": False}}, "number_of_replicas": 0}


def test_logs_keep_their_source_as_in_a_basic_licence():
    assert substitutions.settings({"index": {"mode": "logsdb"}}) == {
        "index": {"mode": "logsdb", "mapping.source.mode": "stored"}
    }
    assert substitutions.settings({"index.mode": "logsdb"}) == {
        "index.mode": "logsdb",
        "index.mapping.source.mode": "stored",
    }
    assert substitutions.settings({"index.mode": "standard"}) == {"index.mode": "standard"}
