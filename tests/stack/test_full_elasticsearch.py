"""What the tests' real Elasticsearch lacks: lifecycle policies, deletion of data streams. And kills, at any change."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ascend_elk.stack.documents import load_documents
from ascend_elk.stack.manifest import NAME as MANIFEST
from ascend_elk.stack.objects import build_objects
from ascend_elk.stack.source import load_source
from ascend_elk.stack.targets import TARGETS

from .conftest import Result, run
from .fake_elasticsearch import FakeElasticsearch, contract_problems
from .fake_kibana import FakeKibana

RULES = 7
STREAM = "logs-ascend.plog-default"


@pytest.fixture
def server() -> Iterator[FakeElasticsearch]:
    one = FakeElasticsearch()
    yield one
    one.close()
    assert one.violations == []


@pytest.fixture
def kibana() -> Iterator[FakeKibana]:
    one = FakeKibana()
    yield one
    one.close()
    assert one.violations == []


def both(server: FakeElasticsearch, kibana: FakeKibana) -> tuple[str, ...]:
    return ("--elasticsearch", server.url, "--kibana", kibana.url)


def install(server: FakeElasticsearch, kibana: FakeKibana, *more: str) -> Result:
    return run("install", *both(server, kibana), *more)


def uninstall(server: FakeElasticsearch, kibana: FakeKibana, *more: str) -> Result:
    return run("uninstall", *both(server, kibana), *more)


def complete(server: FakeElasticsearch, kibana: FakeKibana) -> bool:
    wanted = load_documents(elasticsearch=(8, 5), cann=(), parser="logstash", retention="30d")
    objects = build_objects(load_source(), TARGETS["8.x"])
    return (
        set(server.documents["lifecycle"]) == set(wanted.lifecycles) != set()
        and set(server.documents["component-template"]) == {*wanted.component_templates, MANIFEST}
        and set(server.documents["index-template"]) == {*wanted.index_templates, "ascend-incidents"}
        and kibana.ids() == {f"{item['type']}/{item['id']}" for item in objects}
        and len(kibana.rules) == RULES
    )


# ---------------------------------------------------------------- the rendered documents, unchanged


@pytest.mark.parametrize(
    ("version", "parser"),
    [("7.17.28", "ingest"), ("8.16.6", "logstash"), ("8.17.0", "logstash"), ("9.4.3", "ingest")],
)
def test_everything_rendered_holds_to_the_contract(version: str, parser: str) -> None:
    server = FakeElasticsearch(version=version)
    try:
        arguments = (
            "install",
            "--elasticsearch",
            server.url,
            "--no-kibana",
            "--parser",
            parser,
            "--retention",
            "14d",
        )
        first = run(*arguments)
        assert first.code == 0, first
        assert server.violations == []
        old = version in ("7.17.28", "8.16.6")
        assert bool(server.documents["lifecycle"]) is old
        if old:
            (policy,) = server.documents["lifecycle"].values()
            assert policy["policy"]["phases"]["delete"]["min_age"] == "14d"
        assert bool(server.documents["pipeline"]) is (parser == "ingest")
        server.writes.clear()
        second = run(*arguments)
        assert (second.code, server.writes) == (0, []), second
    finally:
        server.close()


def test_the_contract_refuses_what_elasticsearch_would() -> None:
    (policy,) = load_documents(
        elasticsearch=(8, 5), cann=(), parser="logstash", retention="14d"
    ).lifecycles.values()
    assert contract_problems("lifecycle", policy) == []
    phases = policy["policy"]["phases"]
    for broken in (
        policy["policy"],
        {"policy": {"phases": {**phases, "frozen-solid": {}}}},
        {"policy": {"phases": {**phases, "delete": {"min_age": "a fortnight", "actions": {"delete": {}}}}}},
        {"policy": {"phases": {"hot": {"actions": {"rollover": {}}}}}},
        {"policy": {"phases": {"hot": {"actions": {"delete": {}}}}}},
    ):
        assert contract_problems("lifecycle", broken)


def test_a_changed_retention_updates_the_lifecycle_only(
    server: FakeElasticsearch, kibana: FakeKibana
) -> None:
    assert install(server, kibana).code == 0
    kibana.writes.clear()
    shown = install(server, kibana, "--retention", "14d", "--dry-run")
    assert "-policy.phases.delete.min_age: 30d" in shown.output
    assert "+policy.phases.delete.min_age: 14d" in shown.output
    # What Elasticsearch adds on its own is no difference.
    assert "delete_searchable_snapshot" not in shown.output
    assert "0ms" not in shown.output
    result = install(server, kibana, "--retention", "14d")
    assert "elasticsearch/lifecycle/ascend-elk: updated" in result.output
    assert result.output.count(": updated") == 1
    assert kibana.writes == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--retention", "0d"), "'0d' is no retention; write days such as 30d"),
        (("--parser", "grok"), "'grok' is no parser; write one of: logstash, ingest"),
        (("--cann", "newest", "--parser", "ingest"), "'newest' is not a CANN version"),
        (("--kibana-version", "newest"), "'newest' is not a version of Kibana"),
    ],
)
def test_choices_that_make_no_sense(
    server: FakeElasticsearch, kibana: FakeKibana, arguments: tuple[str, ...], words: str
) -> None:
    result = install(server, kibana, *arguments)
    assert result.code == 2
    assert words in result.error
    assert server.writes == kibana.writes == []


# ---------------------------------------------------------------- uninstall


def test_uninstall_keeps_what_data_still_uses_and_says_so(
    server: FakeElasticsearch, kibana: FakeKibana
) -> None:
    install(server, kibana)
    server.streams[STREAM] = "ascend-elk"
    result = uninstall(server, kibana)
    assert result.code == 1
    for kind, name in (
        ("index-template", "ascend-elk-logs"),
        ("component-template", "ascend-elk-mappings"),
        ("lifecycle", "ascend-elk"),
    ):
        assert f"elasticsearch/{kind}/{name}: failed: " in result.output
    assert result.output.count("it stays as long as the data does (--data deletes both)") == 4
    assert kibana.objects == {}
    assert STREAM in server.streams

    del server.streams[STREAM]
    assert uninstall(server, kibana).code == 0
    assert not any(server.documents.values())


def test_uninstall_with_data_deletes_streams_then_templates(
    server: FakeElasticsearch, kibana: FakeKibana
) -> None:
    install(server, kibana)
    server.streams |= {
        STREAM: "ascend-elk",
        "logs-ascend.slog-team": "ascend-elk",
        "logs-other-default": None,
    }
    server.indices |= {"ascend-incidents", "ascend-enrich-state", "ascend-mine", "other"}
    shown = uninstall(server, kibana, "--data", "--dry-run")
    assert f"elasticsearch/data-stream/{STREAM}: to remove" in shown.output
    assert STREAM in server.streams

    result = uninstall(server, kibana, "--data")

    assert result.code == 0, result
    assert set(server.streams) == {"logs-other-default"}
    assert server.indices == {"ascend-mine", "other"}
    assert not any(server.documents.values())
    assert kibana.objects == {}


def test_no_right_to_delete_data(server: FakeElasticsearch, kibana: FakeKibana) -> None:
    install(server, kibana)
    server.streams[STREAM] = "ascend-elk"
    server.forbidden = ("/_data_stream/",)
    result = uninstall(server, kibana, "--data")
    assert result.code == 1
    assert (
        f"elasticsearch/data-stream/{STREAM}: failed: the user may not do this; it needs the index privilege delete_index"
        in result.output
    )
    assert STREAM in server.streams


# ---------------------------------------------------------------- cut off


def test_cut_off_after_a_change_and_run_again_is_complete(
    server: FakeElasticsearch, kibana: FakeKibana
) -> None:
    assert install(server, kibana, "--alerts").code == 0
    changes = len(server.writes)
    assert changes > 10
    for number in range(1, changes, 3):
        assert uninstall(server, kibana).code == 0
        assert not any(server.documents.values())
        server.writes.clear()
        server.stop_after = number
        result = install(server, kibana, "--alerts")
        assert result.code == 2, number
        assert "cannot be reached" in result.error
        server.stop_after = None
        again = install(server, kibana, "--alerts")
        assert again.code == 0, (number, again)
        assert "kept" not in again.output
        assert complete(server, kibana), number


def test_an_uninstall_that_was_cut_off_is_ended_by_the_next(
    server: FakeElasticsearch, kibana: FakeKibana
) -> None:
    for number in (1, 25):
        assert install(server, kibana, "--alerts").code == 0
        server.writes.clear()
        server.stop_after = number
        assert uninstall(server, kibana).code == 2
        server.stop_after = None
        assert uninstall(server, kibana).code == 0
        assert not any(server.documents.values()), number
        assert not kibana.objects
        assert not kibana.rules


@pytest.mark.parametrize("number", [1, 8])
def test_killed_and_run_again_is_complete(server: FakeElasticsearch, kibana: FakeKibana, number: int) -> None:
    """SIGKILL once a change is made, before its answer."""
    child: list[subprocess.Popen[bytes]] = []

    def kill(change: int) -> None:
        if change == number:
            child[0].send_signal(signal.SIGKILL)
            child[0].wait()

    server.on_write = kill
    command = [
        sys.executable,
        "-c",
        "from ascend_elk.cli import main; main()",
        "install",
        *both(server, kibana),
        "--alerts",
    ]
    child.append(
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ})
    )
    assert child[0].wait(120) == -signal.SIGKILL
    assert not complete(server, kibana)
    server.on_write = None
    again = install(server, kibana, "--alerts")
    assert again.code == 0, again
    assert "kept" not in again.output
    assert complete(server, kibana)


def test_without_security_no_keys_file_stays(server: FakeElasticsearch, tmp_path: Path) -> None:
    file = tmp_path / "keys.env"
    result = run("install", "--elasticsearch", server.url, "--no-kibana", "--keys-file", str(file))
    assert result.code == 0
    assert not file.exists()
