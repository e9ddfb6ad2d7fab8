"""`doctor` on a real Elasticsearch with security, and a Kibana that holds to the recorded contract."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import typer
from elasticsearch import Elasticsearch
from typer.testing import CliRunner

from ascend_elk.doctor import command
from ascend_elk.doctor.stream import check_stream
from ascend_elk.errors import UserError
from ascend_elk.render import RenderOptions
from ascend_elk.stack import elasticsearch as api
from ascend_elk.stack.elasticsearch import Documents
from ascend_elk.stack.http import Credentials, Server
from tests.delivery.site import install as install_documents
from tests.engines.elasticsearch import ElasticsearchServer

from .conftest import run
from .fake_kibana import FakeKibana

pytestmark = pytest.mark.engines

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(command.doctor)

Answer = tuple[int, list[dict[str, Any]]]


def doctor(*arguments: str, env: dict[str, str] | None = None) -> Answer:
    clean = {"ASCEND_ELK_PASSWORD": None, "ASCEND_ELK_API_KEY": None, "ASCEND_ELK_ELASTICSEARCH": None}
    result = CliRunner().invoke(app, ["--only", "stack", "--json", *arguments], env={**clean, **(env or {})})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    document = json.loads(result.stdout)
    order = ["ok", "note", "warning", "error"]
    assert document["severity"] == max((item["severity"] for item in document["findings"]), key=order.index)
    return result.exit_code, document["findings"]


def of(findings: list[dict[str, Any]], check: str) -> list[dict[str, Any]]:
    return [item for item in findings if item["check"] == check]


def secure(server: ElasticsearchServer) -> tuple[list[str], dict[str, str]]:
    assert server.username and server.password
    return (
        ["--elasticsearch", server.url, "--user", server.username, "--ca", str(server.ca)],
        {"ASCEND_ELK_PASSWORD": server.password},
    )


def test_nothing_installed_then_installed_then_broken(
    secured: ElasticsearchServer, fake_kibana: Callable[..., FakeKibana], documents: Documents, namespace: str
) -> None:
    kibana = fake_kibana(version="9.4.3")
    arguments, env = secure(secured)
    both = [*arguments, "--kibana", kibana.url]
    code, findings = doctor(*both, "--namespace", namespace, env=env)
    assert code == 1
    assert [item["text"] for item in of(findings, "content")] == ["nothing of ascend-elk is installed"]
    assert [item["data"]["version"] for item in of(findings, "reach")] == ["9.4.3", "9.4.3"]
    assert of(findings, "security")[0]["severity"] == "ok"
    assert {item["severity"] for item in of(findings, "rights")} == {"ok"}
    assert of(findings, "arrival")[0]["severity"] == "error"

    assert run("install", *both, env=env).code == 0
    _, findings = doctor(*both, env=env)
    (content,) = of(findings, "content")
    assert content["severity"] == "ok", content

    kibana.objects.pop(next(key for key in kibana.objects if key[1] == "dashboard"))
    secured.client.indices.delete_index_template(name="ascend-incidents")
    secured.client.security.invalidate_api_key(name="ascend-elk-enricher")
    code, findings = doctor(*both, env=env)
    missing = [item["subject"] for item in of(findings, "content") if item["severity"] == "error"]
    assert len(missing) == 3
    assert "elasticsearch/index-template/ascend-incidents" in missing
    assert "elasticsearch/api-key/ascend-elk-enricher" in missing
    assert code == 1


def test_the_rights_of_a_key(
    secured: ElasticsearchServer,
    fake_kibana: Callable[..., FakeKibana],
    documents: Documents,
    keys_file: Path,
) -> None:
    arguments, env = secure(secured)
    result = run("install", *arguments, "--kibana", fake_kibana().url, "--keys-file", str(keys_file), env=env)
    assert result.code == 0
    keys = dict(line.split("=", 1) for line in keys_file.read_text().splitlines())
    target = ["--elasticsearch", secured.url, "--ca", str(secured.ca)]
    _, findings = doctor(*target, env={"ASCEND_ELK_API_KEY": keys["ASCEND_ELK_SHIPPER_API_KEY"]})
    rights = {item["data"].get("role"): item for item in of(findings, "rights")}
    assert rights["ascend_elk_shipper"]["severity"] == "ok"
    assert rights["ascend_elk_enricher"]["severity"] == "note"
    assert not any("more" in item["data"] for item in of(findings, "rights"))
    wide = secured.client.security.create_api_key(name="ascend-elk-shipper").body
    _, findings = doctor(*target, env={"ASCEND_ELK_API_KEY": wide["encoded"]})
    (too_much,) = [item for item in of(findings, "rights") if "more" in item["data"]]
    assert too_much["severity"] == "warning"
    assert "manage_security" in too_much["data"]["more"]
    poor = secured.client.security.create_api_key(
        name="ascend-elk-shipper", role_descriptors={"none": {"cluster": ["monitor"]}}
    ).body
    code, findings = doctor(*target, env={"ASCEND_ELK_API_KEY": poor["encoded"]})
    assert code == 1
    assert of(findings, "rights")[0]["severity"] == "error"


def test_a_server_that_does_not_answer_is_a_finding() -> None:
    code, (finding,) = doctor("--elasticsearch", "http://127.0.0.1:9")
    assert code == 1
    assert finding["check"] == "reach"
    assert "cannot be reached" in finding["text"]


def test_wrong_password_is_a_finding(secured: ElasticsearchServer) -> None:
    arguments, _ = secure(secured)
    code, (finding,) = doctor(*arguments, env={"ASCEND_ELK_PASSWORD": "wrong"})
    assert code == 1
    assert "does not accept" in finding["text"]


def test_wrong_use() -> None:
    runner = CliRunner()
    env = {"ASCEND_ELK_ELASTICSEARCH": None}
    for arguments in (["--only", "stack"], ["--only", "all"], ["--root", "relative"]):
        assert isinstance(runner.invoke(app, arguments, env=env).exception, UserError)


def event(minutes: float, **more: Any) -> dict[str, Any]:
    when = datetime.now(timezone.utc) - timedelta(minutes=minutes)
    ingested = when + timedelta(seconds=4)
    body = {"@timestamp": when.isoformat(), "event": {"ingested": ingested.isoformat()}, "message": "x"}
    return {**body, "ascend": {"source": "plog"}, "host": {"name": "worker-7"}, **more}


def write(client: Elasticsearch, namespace: str, events: list[dict[str, Any]]) -> None:
    stream = f"logs-ascend.plog-{namespace}"
    for body in events:
        client.index(index=stream, op_type="create", document=body)
    client.indices.refresh(index=stream)


def test_what_the_streams_tell(elasticsearch: ElasticsearchServer, namespace: str) -> None:
    options = RenderOptions(
        parser="ingest", elasticsearch=(elasticsearch.url,), tls=False, namespace=namespace
    )
    install_documents(elasticsearch, options)
    server = api.Elasticsearch(Server("Elasticsearch", elasticsearch.url, Credentials()))

    def look() -> dict[str, Any]:
        now = datetime.now(timezone.utc).timestamp()
        return {item.check: item for item in check_stream(server, now, namespace)}

    client = elasticsearch.client
    write(client, namespace, [event(1, log={"level": "INFO"}) for _ in range(60)])
    found = look()
    assert {item.severity for item in found.values()} == {"ok"}, found
    assert found["lag"].data["median_seconds"] == pytest.approx(4, abs=0.1)
    assert 55 < found["arrival"].data["seconds"] < 80

    code = {"source": "plog", "error": {"codes": ["cann:EI0006"]}}
    write(
        client,
        namespace,
        [
            event(30, tags=["ascend_unparsed"]),
            event(30, ascend=code),
            event(30, ascend={"source": "plog", "error": {"codes": ["cann:EI0006"], "catalogue": "1"}}),
            event(2, ascend=code),
            *(event(30, log={"level": "DEBUG"}) for _ in range(10)),
        ],
    )
    stream = f"logs-ascend.deadletter-{namespace}"
    client.index(index=stream, op_type="create", document=event(1), refresh=True)
    found = look()
    assert found["parsing"].data == {"events": 74, "unparsed": 1}
    assert found["parsing"].severity == "warning"
    assert "plog (1)" in found["parsing"].text
    assert found["enrichment"].data == {"waiting": 1}
    assert found["level"].subject == "worker-7"
    assert found["dead-letters"].data == {"events": 1}


def test_events_of_the_future(elasticsearch: ElasticsearchServer, namespace: str) -> None:
    options = RenderOptions(
        parser="ingest", elasticsearch=(elasticsearch.url,), tls=False, namespace=namespace
    )
    install_documents(elasticsearch, options)
    write(elasticsearch.client, namespace, [event(-480)])
    server = api.Elasticsearch(Server("Elasticsearch", elasticsearch.url, Credentials()))
    found = {
        item.check: item for item in check_stream(server, datetime.now(timezone.utc).timestamp(), namespace)
    }
    assert "8.0 h ahead" in found["zone"].text
