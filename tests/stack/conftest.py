"""Servers and a way to run the commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ascend_elk.errors import UserError
from ascend_elk.stack import command
from ascend_elk.stack.elasticsearch import Documents
from ascend_elk.stack.manifest import NAME as MANIFEST
from tests.engines.certificates import Certificates, make_certificates
from tests.engines.elasticsearch import ElasticsearchServer

from .fake_kibana import FakeKibana

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(command.install)
app.command()(command.uninstall)


@dataclass
class Result:
    """What a command did: 2 is wrong use, in one sentence; 1 is trouble."""

    code: int
    output: str
    error: str = ""


def run(*arguments: str, env: dict[str, str] | None = None) -> Result:
    """Run a command as the command line does."""
    clean = {"ASCEND_ELK_PASSWORD": None, "ASCEND_ELK_API_KEY": None, "COLUMNS": "200", **(env or {})}
    result = CliRunner().invoke(app, list(arguments), env=clean)
    if isinstance(result.exception, UserError):
        return Result(2, result.stdout, str(result.exception))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Result(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
def fake_kibana() -> Iterator[Callable[..., FakeKibana]]:
    """Makes Kibanas; none may have been sent a request that breaks the contract."""
    made: list[FakeKibana] = []

    def make(**options: Any) -> FakeKibana:
        made.append(FakeKibana(**options))
        return made[-1]

    yield make
    for one in made:
        one.close()
        assert one.violations == []


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def documents(monkeypatch: pytest.MonkeyPatch, namespace: str) -> Documents:
    """Small documents in the place of the rendered ones, named by the namespace: streams can't be deleted here."""
    mappings = {"dynamic": False, "properties": {"ascend": {"properties": {"rank": {"type": "object"}}}}}
    given = Documents(
        component_templates={
            namespace: {"template": {"mappings": mappings}, "_meta": {"managed_by": "ascend-elk"}}
        },
        pipelines={
            namespace: {"processors": [{"set": {"tag": "a", "field": "event.module", "value": "ascend"}}]}
        },
        index_templates={
            namespace: {
                "index_patterns": [stream_of(namespace)],
                "data_stream": {},
                "priority": 300,
                "composed_of": [namespace],
                "template": {"settings": {"index": {"number_of_replicas": 0, "default_pipeline": namespace}}},
            }
        },
    )
    monkeypatch.setattr("ascend_elk.stack.documents.load_documents", lambda **_: given)
    return given


def stream_of(namespace: str) -> str:
    """A data stream that the documents of a namespace are for."""
    return f"logs-ascend.{namespace}-default"


def _clean(server: ElasticsearchServer) -> None:
    client = server.client.options(ignore_status=[404])
    client.cluster.delete_component_template(name=MANIFEST)
    client.indices.delete_index_template(name="ascend-incidents")
    client.indices.delete(index="ascend-incidents", ignore_unavailable=True)


@pytest.fixture
def plain(elasticsearch: ElasticsearchServer) -> Iterator[ElasticsearchServer]:
    """The server without security, with nothing of ours."""
    _clean(elasticsearch)
    yield elasticsearch
    _clean(elasticsearch)


@pytest.fixture
def secured(secure_elasticsearch: ElasticsearchServer) -> Iterator[ElasticsearchServer]:
    """The server with security and TLS, with nothing of ours."""
    _clean(secure_elasticsearch)
    client = secure_elasticsearch.client.options(ignore_status=[404])
    yield secure_elasticsearch
    _clean(secure_elasticsearch)
    for name in ("ascend_elk_shipper", "ascend_elk_enricher"):
        client.security.delete_role(name=name)
    for name in ("ascend-elk-shipper", "ascend-elk-enricher"):
        client.security.invalidate_api_key(name=name)


@pytest.fixture
def keys_file(tmp_path: Path) -> Path:
    return tmp_path / "keys.env"
