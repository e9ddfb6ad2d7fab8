"""The whole way with security and TLS on: certificates of ``stack init``, rendered Filebeat, keys, the service.

A real Filebeat sends to a real Elasticsearch as the shipper; the service enriches there as the enricher; and
each key is refused whatever is not its own.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from elasticsearch import ApiError, Elasticsearch

from ascend_elk.compose.files import DIRECTORY, InitOptions, initialise
from ascend_elk.render import RenderOptions, render, write
from ascend_elk.service.settings import Settings
from ascend_elk.service.store import Store
from ascend_elk.stack import documents as stack_documents
from ascend_elk.stack.elasticsearch import Documents
from ascend_elk.stack.http import Credentials, Server
from tests.commands.conftest import Run, run
from tests.engines import substitutions
from tests.engines.elasticsearch import ElasticsearchServer
from tests.engines.filebeat import Filebeat
from tests.engines.fixtures import or_skip
from tests.engines.processes import wait_until
from tests.service.site import Service, own_catalogue

__all__ = ["run"]

pytestmark = pytest.mark.engines

FORBIDDEN, UNAVAILABLE = 403, 503


class StackServer(ElasticsearchServer):
    """With the certificate that ``stack init`` gives Elasticsearch."""

    certificates: Path

    def _node_settings(self, security: bool) -> dict[str, Any]:
        settings = super()._node_settings(security)
        folder = self._config / "stack"
        shutil.copytree(self.certificates / "elasticsearch", folder)
        self.ca = self.certificates / "clients" / "ca.crt"
        return settings | {
            "xpack.security.http.ssl.certificate": folder / "elasticsearch.crt",
            "xpack.security.http.ssl.key": folder / "elasticsearch.key",
        }


@dataclass
class Stack:
    """What was started, and the keys that install made."""

    server: ElasticsearchServer
    directory: Path
    keys: dict[str, str]

    def as_key(self, name: str) -> Elasticsearch:
        identifier, _, secret = self.keys[f"ASCEND_ELK_{name}_API_KEY"].partition(":")
        return self.server.connect(api_key=(identifier, secret))


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ElasticsearchServer, Path]]:
    where = tmp_path_factory.mktemp("stack")
    initialise(where, InitOptions())
    StackServer.certificates = where / DIRECTORY / "certs"
    server = or_skip(lambda: StackServer(security=True))
    yield server, where / DIRECTORY
    server.close()


def adapted(**options: Any) -> Documents:
    """The product's documents, for the build of the tests."""
    found = stack_documents.load_documents_as_rendered(**options)  # type: ignore[attr-defined]
    return Documents(
        component_templates={
            name: substitutions.template(body) for name, body in found.component_templates.items()
        },
        index_templates={name: substitutions.template(body) for name, body in found.index_templates.items()},
        pipelines={name: substitutions.pipeline(body) for name, body in found.pipelines.items()},
    )


@pytest.fixture
def stack(
    started: tuple[ElasticsearchServer, Path], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Stack:
    server, directory = started
    original = stack_documents.load_documents
    monkeypatch.setattr(stack_documents, "load_documents_as_rendered", original, raising=False)
    monkeypatch.setattr(stack_documents, "load_documents", adapted)
    monkeypatch.setenv("ASCEND_ELK_PASSWORD", server.password or "")
    server.client.security.invalidate_api_key(owner=True)
    path = tmp_path / "keys.env"
    arguments = [
        "install",
        "--elasticsearch",
        server.url,
        "--no-kibana",
        "--user",
        "elastic",
        "--ca",
        server.ca,
    ]
    result = run(*arguments, "--parser", "ingest", "--cann", "8.0", "--keys-file", path)
    assert result.code == 0, result
    return Stack(server, directory, dict(line.split("=", 1) for line in path.read_text().splitlines()))


def shipper(stack: Stack, make: Callable[..., Filebeat], directory: Path, key: str) -> tuple[Filebeat, Path]:
    """A Filebeat with the rendered configuration, below which only the log root is the test's."""
    logs = directory / "logs"
    options = RenderOptions(
        stack="7.17",
        parser="ingest",
        elasticsearch=(stack.server.url,),
        roots=(str(logs),),
        timezone="UTC",
    )
    write(render(options), directory / "rendered", force=True)
    home = directory / "rendered" / "filebeat"
    (home / "certs").mkdir()
    shutil.copy(stack.directory / "filebeat/certs/ca.crt", home / "certs/ca.crt")
    for path in (home / "inputs.d").glob("*.yml"):
        inputs = yaml.safe_load(path.read_text())
        for entry in inputs:
            entry["paths"] = [text for text in entry["paths"] if text.startswith(str(logs))]
        kept = [entry for entry in inputs if entry["paths"]]
        path.write_text(yaml.safe_dump(kept)) if kept else path.unlink()
    environment = {"ASCEND_ELK_SHIPPER_API_KEY": key}
    beat = make(home / "filebeat.yml", name="secured", settings={"name": "worker-3"}, env=environment)
    log = logs / "debug/plog/plog-4021_20261201080000000.log"
    log.parent.mkdir(parents=True)
    return beat, log


def record(number: int) -> str:
    stamp = datetime.now(timezone.utc).strftime("%Y-%m-%d-%H:%M:%S.%f")
    stamp = f"{stamp[:-3]}.{stamp[-3:]}"
    return (
        f"[ERROR] HCCL(4021,python3):{stamp} [rank.cc:{number}] [4021]"
        f"report EI0006: wait socket establish timeout, role[1] rank[{number}] timeout[120 s]\n"
    )


def test_written_on_one_side_enriched_on_the_other(
    stack: Stack, filebeat: Callable[..., Filebeat], tmp_path: Path
) -> None:
    beat, log = shipper(stack, filebeat, tmp_path, stack.keys["ASCEND_ELK_SHIPPER_API_KEY"])
    key = Credentials(api_key=stack.keys["ASCEND_ELK_ENRICHER_API_KEY"])

    def connect() -> Store:
        return Store(Server("Elasticsearch", stack.server.url, key, ca=stack.server.ca))

    settings = Settings(stack.server.url, poll=0.2, sweep=1.0, incidents=False, namespace="default")
    log.write_text("".join(record(number) for number in range(20)))
    beat.start()
    query = {
        "bool": {
            "filter": [{"term": {"host.name": "worker-3"}}, {"exists": {"field": "ascend.error.catalogue"}}]
        }
    }

    def enriched() -> bool:
        index = "logs-ascend.plog-default"
        try:
            stack.server.client.indices.refresh(index=index, ignore_unavailable=True)
            count = stack.server.client.count(index=index, query=query, ignore_unavailable=True)["count"]
        except ApiError as error:
            # A stream that is just being made has no shard to ask yet.
            assert error.meta.status == UNAVAILABLE, error
            return False
        return bool(count == 20)

    with Service(settings, connect, own_catalogue()).running():
        wait_until(enriched, 90, f"20 enriched events; Filebeat's log: {beat.log_tail()[-3000:]}")
    hits = stack.server.client.search(index="logs-ascend.plog-default", query=query, size=50)["hits"]["hits"]
    for hit in hits:
        error = hit["_source"]["ascend"]["error"]
        assert error["codes"] == ["cann:EI0006"]
        assert error["meaning"] and error["remediation"]
    assert len({hit["_id"] for hit in hits}) == 20


def test_filebeat_says_what_is_wrong(stack: Stack, filebeat: Callable[..., Filebeat], tmp_path: Path) -> None:
    """The messages that docs/operate.md explains."""
    beat, log = shipper(stack, filebeat, tmp_path, "wrong:key")
    log.write_text(record(1))
    beat.start()
    wait_until(lambda: "401 Unauthorized" in beat.log_tail(200), 60, "a refusal of the key")
    beat.stop()
    authority = tmp_path / "rendered/filebeat/certs/ca.crt"
    other = tmp_path / "other"
    initialise(other, InitOptions())
    authority.write_text((other / DIRECTORY / "certs/clients/ca.crt").read_text())
    beat.start()
    wait_until(
        lambda: "x509: certificate signed by unknown authority" in beat.log_tail(200), 60, "a refusal of TLS"
    )


def refused(action: Callable[[], Any]) -> None:
    with pytest.raises(ApiError) as caught:
        action()
    assert caught.value.meta.status == FORBIDDEN, caught.value


def test_the_shipper_can_add_and_nothing_else(stack: Stack) -> None:
    client, root = stack.as_key("SHIPPER"), stack.server.client
    stream = "logs-ascend.plog-rights"
    document = {"@timestamp": "2026-12-01T08:00:00Z", "message": "x"}
    made = client.index(index=stream, op_type="create", document=document, id="one")
    assert made["result"] == "created"
    root.indices.refresh(index=stream)
    index = made["_index"]
    refused(lambda: client.search(index=stream))
    refused(lambda: client.get(index=index, id="one"))
    refused(lambda: client.update(index=index, id="one", doc={"message": "y"}))
    refused(lambda: client.delete(index=index, id="one"))
    refused(lambda: client.delete_by_query(index=stream, query={"match_all": {}}))
    refused(lambda: client.index(index="other", document=document))
    refused(lambda: client.index(index="logs-other-default", op_type="create", document=document))
    refused(lambda: client.index(index="ascend-incidents", document=document))
    refused(lambda: client.indices.delete(index=index))
    refused(lambda: client.indices.put_mapping(index=stream, properties={"x": {"type": "keyword"}}))
    others_rights(client)


def test_the_enricher_can_update_and_write_verdicts_and_nothing_else(stack: Stack) -> None:
    client, root = stack.as_key("ENRICHER"), stack.server.client
    stream = "logs-ascend.plog-rights"
    document = {"@timestamp": "2026-12-01T08:00:00Z", "message": "x"}
    made = root.index(index=stream, op_type="create", document=document, refresh=True)
    assert client.search(index=stream)["hits"]["total"]["value"] >= 1
    assert client.update(index=made["_index"], id=made["_id"], doc={"message": "y"})["result"] == "updated"
    assert client.index(index="ascend-incidents", document=document)["result"] == "created"
    assert client.index(index="ascend-enrich-test", document=document)["result"] == "created"
    refused(lambda: client.delete(index=made["_index"], id=made["_id"]))
    refused(lambda: client.delete_by_query(index=stream, query={"match_all": {}}))
    refused(lambda: client.indices.delete(index=made["_index"]))
    refused(lambda: client.indices.delete(index="ascend-incidents"))
    refused(lambda: client.index(index="other", document=document))
    refused(lambda: client.search(index="logs-other-default"))
    others_rights(client)


def others_rights(client: Elasticsearch) -> None:
    """What only the installer may, and what nobody of the product may."""
    refused(lambda: client.search(index=".security"))
    refused(lambda: client.ingest.put_pipeline(id="ascend-elk", processors=[]))
    refused(lambda: client.ingest.delete_pipeline(id="ascend-elk"))
    refused(lambda: client.indices.put_index_template(name="mine", index_patterns=["mine-*"]))
    refused(lambda: client.cluster.put_component_template(name="mine", template={}))
    refused(lambda: client.cluster.put_settings(persistent={"cluster.max_shards_per_node": 10}))
    refused(lambda: client.security.create_api_key(name="mine"))
    refused(lambda: client.security.put_user(username="mine", password="long-enough", roles=["superuser"]))
    refused(lambda: client.security.put_role(name="mine", cluster=["all"]))
    refused(lambda: client.snapshot.create_repository(name="mine", repository={"type": "fs", "settings": {}}))


def test_without_a_key_or_with_an_ended_one_nothing_opens(stack: Stack) -> None:
    for client in (stack.server.connect(), stack.server.connect(api_key=("no", "such"))):
        with pytest.raises(ApiError) as caught:
            client.info()
        assert caught.value.meta.status == 401
    ended = stack.as_key("SHIPPER")
    stack.server.client.security.invalidate_api_key(name="ascend-elk-shipper")
    with pytest.raises(ApiError) as caught:
        ended.index(index="logs-ascend.plog-rights", op_type="create", document={"@timestamp": 1})
    assert caught.value.meta.status == 401
