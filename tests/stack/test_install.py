"""`install` and `uninstall` against a real Elasticsearch and a Kibana that holds to the recorded contract."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import ApiError, NotFoundError

from ascend_elk.stack.documents import load_documents
from ascend_elk.stack.elasticsearch import Documents
from ascend_elk.stack.manifest import NAME as MANIFEST
from ascend_elk.stack.objects import build_objects
from ascend_elk.stack.source import load_source
from ascend_elk.stack.targets import TARGETS
from tests.engines import substitutions
from tests.engines.certificates import Certificates
from tests.engines.elasticsearch import ElasticsearchServer

from .conftest import Result, run, stream_of
from .fake_kibana import FakeKibana

pytestmark = pytest.mark.engines

MakeKibana = Callable[..., FakeKibana]
RULES = 7


def install(
    server: ElasticsearchServer, kibana: FakeKibana, *more: str, env: dict[str, str] | None = None
) -> Result:
    return run("install", "--elasticsearch", server.url, "--kibana", kibana.url, *more, env=env)


def uninstall(server: ElasticsearchServer, kibana: FakeKibana, *more: str) -> Result:
    return run("uninstall", "--elasticsearch", server.url, "--kibana", kibana.url, *more)


def expected_ids(space: str = "default") -> set[str]:
    return {
        f"{item['type']}/{item['id']}" for item in build_objects(load_source(), TARGETS["8.x"], space=space)
    }


def state(server: ElasticsearchServer, kibana: FakeKibana) -> str:
    """Everything that an installation may touch."""
    client = server.client
    return json.dumps(
        [
            client.cluster.get_component_template().body,
            client.indices.get_index_template().body,
            client.ingest.get_pipeline().body,
            sorted((key, item) for key, item in kibana.objects.items()),
            sorted((key, item) for key, item in kibana.rules.items()),
            kibana.roles,
        ],
        sort_keys=True,
    )


# ---------------------------------------------------------------- the way it should go


@pytest.mark.parametrize("version", ["7.17.28", "8.5.0", "8.9.2", "8.19.4", "9.4.3"])
def test_install_twice_changes_nothing(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents, version: str
) -> None:
    kibana = fake_kibana(version=version)
    first = install(plain, kibana, "--alerts", "--code-page", "http://codes:8088")
    assert first.code == 0, first
    assert kibana.ids() == expected_ids()
    assert len(kibana.rules) == RULES
    assert not any(rule["enabled"] or rule["actions"] for rule in kibana.rules.values())
    assert plain.client.indices.get_index_template(name="ascend-incidents")
    before = state(plain, kibana)
    kibana.writes.clear()

    second = install(plain, kibana, "--alerts", "--code-page", "http://codes:8088")

    assert second.code == 0, second
    assert re.search(r"^\d+ unchanged$", second.output, re.MULTILINE)
    assert "created" not in second.output
    assert kibana.writes == []
    assert state(plain, kibana) == before


def test_documents_reach_elasticsearch_and_work(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents, namespace: str
) -> None:
    assert install(plain, fake_kibana()).code == 0
    stream = stream_of(namespace)
    plain.client.index(
        index=stream, op_type="create", document={"@timestamp": "2026-01-01T00:00:00Z"}, refresh=True
    )
    (hit,) = plain.client.search(index=stream)["hits"]["hits"]
    assert hit["_source"]["event"]["module"] == "ascend"
    assert hit["_index"].startswith(".ds-logs-ascend.")


def test_a_change_of_the_source_is_an_update_of_that_object_only(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents
) -> None:
    kibana = fake_kibana()
    install(plain, kibana)
    kibana.writes.clear()
    result = install(plain, kibana, "--code-page", "https://codes.example")
    assert result.code == 0
    assert sorted(re.findall(r"^kibana/default/(\S+): updated", result.output, re.MULTILINE)) == [
        f"index-pattern/ascend-{name}" for name in ("all", "console", "incidents", "plog", "slog")
    ]
    assert kibana.writes == ["POST /api/saved_objects/_import"]


def test_an_upgrade_of_kibana_is_no_edit(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents
) -> None:
    kibana = fake_kibana()
    install(plain, kibana)
    for item in kibana.objects.values():
        item["attributes"]["added_by_a_migration"] = True
        item["typeMigrationVersion"] = "10.99.0"
    result = install(plain, kibana)
    assert result.code == 0
    assert "kept" not in result.output


def test_dry_run_changes_nothing_and_shows_the_difference(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents, namespace: str
) -> None:
    kibana = fake_kibana()
    result = install(plain, kibana, "--dry-run")
    assert result.code == 0
    assert f"elasticsearch/index-template/{namespace}: to create" in result.output
    assert "kibana/default/dashboard/ascend-overview: to create  ([Ascend] Cluster overview)" in result.output
    assert re.search(r"^\d+ to create; nothing was changed$", result.output, re.MULTILINE)
    assert kibana.writes == []
    with pytest.raises(NotFoundError):
        plain.client.indices.get_index_template(name=namespace)

    install(plain, kibana)
    documents.pipelines[namespace]["processors"][0]["set"]["value"] = "other"  # type: ignore[index]
    before = state(plain, kibana)
    result = install(plain, kibana, "--dry-run")
    assert f"elasticsearch/pipeline/{namespace}: to update" in result.output
    assert "    -processors[0].set.value: ascend" in result.output
    assert "    +processors[0].set.value: other" in result.output
    assert "settings" not in result.output  # what Elasticsearch writes differently is no difference
    assert state(plain, kibana) == before


def test_behind_a_path_prefix_and_in_a_space(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents
) -> None:
    kibana = fake_kibana(prefix="/tools/kibana")
    result = install(plain, kibana, "--space", "team-a")
    assert result.code == 0, result
    assert f"Open {kibana.url}/s/team-a/app/dashboards#/view/ascend-overview-team-a\n" in result.output
    assert kibana.ids("team-a") == expected_ids("team-a")
    assert kibana.ids("default") == set()
    assert install(plain, kibana).code == 0
    assert kibana.ids("default") == expected_ids()
    assert uninstall(plain, kibana).code == 0
    assert kibana.objects == {}


def test_what_is_rendered_is_installed(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The product's own templates and pipelines, with the types that this Elasticsearch knows."""
    rendered: list[Documents] = []

    def load(**options: Any) -> Documents:
        found = load_documents(**options)
        rendered.append(found)
        return replace(
            found,
            component_templates={k: substitutions.template(v) for k, v in found.component_templates.items()},
            index_templates={k: substitutions.template(v) for k, v in found.index_templates.items()},
            pipelines={k: substitutions.pipeline(v) for k, v in found.pipelines.items()},
        )

    monkeypatch.setattr("ascend_elk.stack.documents.load_documents", load)
    kibana = fake_kibana(version="9.4.3")
    arguments = ("--parser", "ingest", "--cann", "8.0", "--retention", "14d")
    # The server is shared: pipelines that other tests put would count as somebody's own, and be left alone.
    held = plain.client.ingest.get_pipeline().body
    for name in sorted((name for name in held if name.startswith("ascend-elk")), key=len):
        plain.client.ingest.delete_pipeline(id=name)
    try:
        first = install(plain, kibana, *arguments)
        assert first.code == 0, first
        (documents,) = rendered
        assert documents.pipelines
        held = plain.client.ingest.get_pipeline().body
        assert set(documents.pipelines) <= set(held)
        (name,) = documents.index_templates
        template = plain.client.indices.get_index_template(name=name)["index_templates"][0]["index_template"]
        assert template["template"]["lifecycle"]["data_retention"] == "14d"
        second = install(plain, kibana, *arguments)
        assert "created" not in second.output + second.error
        assert "updated" not in second.output
    finally:
        assert uninstall(plain, kibana).code == 0
    assert not set(rendered[0].pipelines) & set(plain.client.ingest.get_pipeline().body)


def test_without_kibana(plain: ElasticsearchServer, documents: Documents, namespace: str) -> None:
    result = run("install", "--elasticsearch", plain.url, "--no-kibana")
    assert result.code == 0
    assert "kibana/" not in result.output
    assert plain.client.indices.get_index_template(name=namespace)


# ---------------------------------------------------------------- security


def secure_env(server: ElasticsearchServer) -> dict[str, str]:
    return {"ASCEND_ELK_PASSWORD": str(server.password)}


def secure_arguments(server: ElasticsearchServer) -> list[str]:
    return ["--user", str(server.username), "--ca", str(server.ca)]


def test_roles_and_keys_have_the_least_they_need(
    secured: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents, namespace: str
) -> None:
    kibana = fake_kibana()
    result = install(secured, kibana, *secure_arguments(secured), env=secure_env(secured))
    assert result.code == 0, result
    keys = dict(re.findall(r"^(ASCEND_ELK_\w+_API_KEY)=(\S+)$", result.output, re.MULTILINE))
    assert set(keys) == {"ASCEND_ELK_SHIPPER_API_KEY", "ASCEND_ELK_ENRICHER_API_KEY"}
    shipper = secured.connect(api_key=tuple(keys["ASCEND_ELK_SHIPPER_API_KEY"].split(":")))
    enricher = secured.connect(api_key=tuple(keys["ASCEND_ELK_ENRICHER_API_KEY"].split(":")))
    stream = stream_of(namespace)

    shipper.index(
        index=stream, op_type="create", document={"@timestamp": "2026-01-01T00:00:00Z"}, refresh=False
    )
    secured.client.indices.refresh(index=stream)
    for forbidden in (
        lambda: shipper.search(index=stream),
        lambda: shipper.index(index="other", document={}),
        lambda: shipper.indices.delete(index=stream),
        lambda: shipper.cluster.put_component_template(name="x", template={}),
        lambda: enricher.index(index="other", document={}),
        lambda: enricher.indices.delete(index="ascend-incidents"),
        lambda: enricher.security.get_role(name="ascend_elk_shipper"),
    ):
        with pytest.raises(ApiError) as refusal:
            forbidden()
        assert refusal.value.status_code == 403
    (hit,) = enricher.search(index=stream)["hits"]["hits"]
    enricher.update(index=hit["_index"], id=hit["_id"], doc={"ascend": {"error": {"layer": "device"}}})
    enricher.index(index="ascend-incidents", id="1", document={"@timestamp": "2026-01-01T00:00:00Z"})
    assert kibana.roles["ascend_elk_reader"]["kibana"][0]["spaces"] == ["default"]


def test_keys_are_shown_once_or_go_to_a_private_file(
    secured: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents, keys_file: Path
) -> None:
    kibana = fake_kibana()
    arguments = [*secure_arguments(secured), "--keys-file", str(keys_file)]
    first = install(secured, kibana, *arguments, env=secure_env(secured))
    assert first.code == 0, first
    assert keys_file.stat().st_mode & 0o777 == 0o600
    text = keys_file.read_text()
    for line in text.splitlines():
        assert line.split("=", 1)[1].split(":")[1] not in first.output
    second = install(secured, kibana, *arguments, env=secure_env(secured))
    assert second.code == 0
    assert "API_KEY" not in second.output
    assert keys_file.read_text() == text
    assert secured.password not in first.output + second.output
    meta = secured.client.cluster.get_component_template(name=MANIFEST).body
    for line in text.splitlines():
        assert line.split("=", 1)[1].split(":")[1] not in json.dumps(meta)


def test_an_existing_keys_file_is_not_touched(
    secured: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents, keys_file: Path
) -> None:
    keys_file.write_text("precious")
    kibana = fake_kibana()
    result = install(
        secured, kibana, *secure_arguments(secured), "--keys-file", str(keys_file), env=secure_env(secured)
    )
    assert result.code == 2
    assert result.error == f"{keys_file} exists already; name a new file with --keys-file"
    assert keys_file.read_text() == "precious"
    assert kibana.writes == []


def test_an_invalidated_key_is_made_anew(
    secured: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents
) -> None:
    kibana = fake_kibana()
    install(secured, kibana, *secure_arguments(secured), env=secure_env(secured))
    secured.client.security.invalidate_api_key(name="ascend-elk-shipper")
    result = install(secured, kibana, *secure_arguments(secured), env=secure_env(secured))
    assert "ASCEND_ELK_SHIPPER_API_KEY=" in result.output
    assert "ASCEND_ELK_ENRICHER_API_KEY=" not in result.output


def test_an_api_key_may_install_but_make_no_keys(
    secured: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents
) -> None:
    made = secured.client.security.create_api_key(name="installer").body
    env = {"ASCEND_ELK_API_KEY": f"{made['id']}:{made['api_key']}"}
    result = install(secured, fake_kibana(), "--ca", str(secured.ca), env=env)
    assert result.code == 1
    assert "an API key cannot create API keys; log in as a user, or pass --no-api-keys" in result.output
    again = install(
        secured,
        fake_kibana(),
        "--ca",
        str(secured.ca),
        "--no-api-keys",
        env={"ASCEND_ELK_API_KEY": made["encoded"]},
    )
    assert again.code == 0, again


def test_a_user_without_rights_learns_which(
    secured: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents
) -> None:
    secured.client.security.put_role(name="nearly", cluster=["manage_index_templates", "monitor"])
    secured.client.security.put_user(username="nearly", password="nearly-nearly", roles=["nearly"])
    result = install(
        secured,
        fake_kibana(),
        "--user",
        "nearly",
        "--ca",
        str(secured.ca),
        env={"ASCEND_ELK_PASSWORD": "nearly-nearly"},
    )
    assert result.code == 2
    assert "may not read elasticsearch/pipeline" in result.error


# ---------------------------------------------------------------- trouble half-way


def test_failures_are_reported_object_by_object(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents
) -> None:
    kibana = fake_kibana(
        failing={
            "ascend-overview": {"type": "unknown", "message": "boom", "statusCode": 500},
            "ascend-timeouts": {"type": "unsupported_type"},
            "ascend-retries": {
                "type": "missing_references",
                "references": [{"type": "index-pattern", "id": "x"}],
            },
        }
    )
    result = install(plain, kibana)
    assert result.code == 1
    assert re.search("kibana/default/dashboard/ascend-overview: failed: boom", result.output)
    assert re.search(
        r"kibana/default/search/ascend-timeouts: failed: this Kibana has no objects of type", result.output
    )
    assert "refers to what does not exist: index-pattern x" in result.output
    assert "not imported, because others of the same import failed" in result.output
    kibana.failing.clear()
    again = install(plain, kibana)
    assert again.code == 0, again
    assert kibana.ids() == expected_ids()


def test_one_bad_document_does_not_stop_the_others(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents, namespace: str
) -> None:
    documents.pipelines[namespace]["processors"] = [{"no_such_processor": {}}]  # type: ignore[index]
    kibana = fake_kibana()
    result = install(plain, kibana)
    assert result.code == 1
    assert re.search(rf"elasticsearch/pipeline/{namespace}: failed: .*no_such_processor", result.output)
    assert kibana.ids() == expected_ids()
    documents.pipelines[namespace]["processors"] = []  # type: ignore[index]
    assert install(plain, kibana).code == 0


def test_a_failed_update_leaves_the_old_one_known(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents
) -> None:
    kibana = fake_kibana()
    install(plain, kibana)
    kibana.failing["ascend-all"] = {"type": "unknown", "message": "boom", "statusCode": 500}
    assert install(plain, kibana, "--code-page", "https://codes.example").code == 1
    kibana.edit("index-pattern", "ascend-all", title="mine")
    kibana.failing.clear()
    result = install(plain, kibana, "--code-page", "https://codes.example")
    assert re.search("kibana/default/index-pattern/ascend-all: kept", result.output)


# Without rules there are six requests; the rules' are read first, then written.
@pytest.mark.parametrize("requests", [0, 1, 2, 3, 4, 5, 6, 13, 14, 19])
def test_cut_off_anywhere_and_run_again_is_complete(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents, requests: int
) -> None:
    kibana = fake_kibana(stop_after=requests)
    result = install(plain, kibana, "--alerts")
    assert result.code == 2
    assert "cannot be reached" in result.error
    kibana.stop_after = None

    again = install(plain, kibana, "--alerts")

    assert again.code == 0, again
    assert "kept" not in again.output
    assert kibana.ids() == expected_ids()
    assert len(kibana.rules) == RULES
    assert uninstall(plain, kibana).code == 0
    assert not kibana.objects
    assert not kibana.rules


def test_killed_while_kibana_imports_and_run_again_is_complete(
    plain: ElasticsearchServer, fake_kibana: MakeKibana
) -> None:
    """SIGKILL of the command, once Kibana holds the objects and before it says so."""
    kibana = fake_kibana()
    killed: list[int] = []
    # What is rendered has types that this Elasticsearch lacks: those documents fail, which is no matter here.
    command = [sys.executable, "-c", "from ascend_elk.cli import main; main()", "install", "--alerts"]
    command += ["--elasticsearch", plain.url, "--kibana", kibana.url]
    child: list[subprocess.Popen[bytes]] = []

    def kill() -> None:
        child[0].kill()
        killed.append(child[0].wait())

    kibana.on_write = kill
    child.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    assert child[0].wait(120) == -signal.SIGKILL
    kibana.on_write = None
    assert killed == [-signal.SIGKILL]
    assert kibana.ids() == expected_ids()
    assert not kibana.rules

    again = install(plain, kibana, "--alerts")

    assert "kept" not in again.output
    assert not re.search(r"^kibana\S*: failed", again.output, re.MULTILINE)
    assert kibana.ids() == expected_ids()
    assert len(kibana.rules) == RULES
    assert "nothing is installed" not in uninstall(plain, kibana).output
    assert not kibana.objects
    assert not kibana.rules


def test_a_crash_of_elasticsearch_between_import_and_note(
    plain: ElasticsearchServer,
    fake_kibana: MakeKibana,
    documents: Documents,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ascend_elk.stack.manifest import Manifest

    kibana = fake_kibana()
    with monkeypatch.context() as patched:

        def dies(*_: Any) -> None:
            raise ZeroDivisionError

        patched.setattr(Manifest, "finish", dies)
        with pytest.raises(ZeroDivisionError):
            install(plain, kibana)
    result = install(plain, kibana)
    assert result.code == 0, result
    assert "kept" not in result.output
    assert kibana.ids() == expected_ids()


# ---------------------------------------------------------------- what people do


def test_an_edit_by_a_person_is_kept(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents, namespace: str
) -> None:
    kibana = fake_kibana()
    install(plain, kibana)
    kibana.edit("dashboard", "ascend-overview", title="Ours")
    plain.client.ingest.put_pipeline(id=namespace, processors=[])

    result = install(plain, kibana)

    assert result.code == 0
    assert re.search("kibana/default/dashboard/ascend-overview: kept: changed by someone", result.output)
    assert re.search(f"elasticsearch/pipeline/{namespace}: kept: changed by someone", result.output)
    assert kibana.objects["default", "dashboard", "ascend-overview"]["attributes"]["title"] == "Ours"
    shown = install(plain, kibana, "--dry-run").output
    assert "-attributes.title: Ours" in shown

    result = install(plain, kibana, "--overwrite")
    assert result.code == 0
    title = kibana.objects["default", "dashboard", "ascend-overview"]["attributes"]["title"]
    assert title == "[Ascend] Cluster overview"
    assert plain.client.ingest.get_pipeline(id=namespace)[namespace]["processors"]


def test_objects_of_someone_else_are_not_taken_over(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents, namespace: str
) -> None:
    kibana = fake_kibana()
    other = {"type": "search", "id": "ascend-timeouts", "attributes": {"title": "Other"}, "references": []}
    kibana.objects["default", "search", "ascend-timeouts"] = other
    plain.client.ingest.put_pipeline(id=namespace, processors=[])
    result = install(plain, kibana)
    assert result.code == 0
    assert re.search("kibana/default/search/ascend-timeouts: kept", result.output)
    assert uninstall(plain, kibana).code == 0
    assert kibana.objects == {("default", "search", "ascend-timeouts"): other}
    assert plain.client.ingest.get_pipeline(id=namespace)


def test_a_deleted_object_comes_back(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents
) -> None:
    kibana = fake_kibana()
    install(plain, kibana)
    del kibana.objects["default", "search", "ascend-retries"]
    result = install(plain, kibana)
    assert re.search("kibana/default/search/ascend-retries: created", result.output)


def test_rules_keep_their_switch_and_their_connectors(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents
) -> None:
    kibana = fake_kibana()
    install(plain, kibana, "--alerts")
    key, rule = next(iter(kibana.rules.items()))
    rule["enabled"] = True
    rule["actions"] = [
        {"id": "mail", "group": "query matched", "params": {"to": ["me"]}, "connector_type_id": ".email"}
    ]
    assert "kept" not in install(plain, kibana, "--alerts").output
    rule |= {"name": "renamed", "updated_at": "2026-02-02T00:00:00.000Z"}
    assert "kept" in install(plain, kibana, "--alerts").output
    assert install(plain, kibana, "--alerts", "--overwrite").code == 0
    assert kibana.rules[key]["name"].startswith("[Ascend] ")
    assert kibana.rules[key]["enabled"] is True
    assert kibana.rules[key]["actions"][0]["params"] == {"to": ["me"]}


def test_a_rule_keeps_its_type_when_kibana_is_upgraded(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents
) -> None:
    kibana = fake_kibana(version="8.9.2")
    assert install(plain, kibana, "--alerts").code == 0
    types = {key: rule["rule_type_id"] for key, rule in kibana.rules.items()}
    kibana.version = "8.19.4"
    kibana.writes.clear()
    again = install(plain, kibana, "--alerts")
    assert again.code == 0, again
    assert kibana.writes == []
    assert (
        {key: rule["rule_type_id"] for key, rule in kibana.rules.items()}
        == types
        == dict.fromkeys(types, ".es-query")
    )


def test_rules_without_an_encryption_key(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents
) -> None:
    result = install(plain, fake_kibana(encryption=False), "--alerts")
    assert result.code == 1
    assert "Kibana needs xpack.encryptedSavedObjects.encryptionKey" in result.output


# ---------------------------------------------------------------- uninstall


def test_uninstall_removes_what_was_made_and_no_data(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents, namespace: str
) -> None:
    kibana = fake_kibana()
    mine = {"type": "dashboard", "id": "mine", "attributes": {"title": "Mine"}, "references": []}
    kibana.objects["default", "dashboard", "mine"] = mine
    install(plain, kibana, "--alerts")
    plain.client.index(
        index="ascend-incidents", document={"@timestamp": "2026-01-01T00:00:00Z"}, refresh=True
    )
    kibana.edit("dashboard", "ascend-one-card", title="Edited")

    shown = uninstall(plain, kibana, "--dry-run")
    assert "to remove" in shown.output
    assert len(kibana.objects) == len(expected_ids()) + 1

    result = uninstall(plain, kibana)
    assert result.code == 0, result
    assert set(kibana.objects) == {
        ("default", "dashboard", "mine"),
        ("default", "dashboard", "ascend-one-card"),
    }
    assert kibana.rules == {}
    assert plain.client.count(index="ascend-incidents")["count"] == 1
    for name in (namespace, "ascend-incidents"):
        with pytest.raises(NotFoundError):
            plain.client.indices.get_index_template(name=name)

    assert uninstall(plain, kibana, "--overwrite").code == 0
    assert set(kibana.objects) == {("default", "dashboard", "mine")}
    with pytest.raises(NotFoundError):
        plain.client.cluster.get_component_template(name=MANIFEST)
    assert "nothing is installed" in uninstall(plain, kibana).output


def test_uninstall_with_data(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents
) -> None:
    kibana = fake_kibana()
    install(plain, kibana)
    for index in ("ascend-incidents", "ascend-mine"):
        plain.client.index(index=index, document={"@timestamp": "2026-01-01T00:00:00Z"}, refresh=True)
    result = uninstall(plain, kibana, "--data")
    assert "elasticsearch/index/ascend-incidents" in result.output
    assert not plain.client.indices.exists(index="ascend-incidents")
    assert plain.client.indices.exists(index="ascend-mine")
    plain.client.indices.delete(index="ascend-mine")


def test_a_template_in_use_stays_with_a_reason(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents, namespace: str
) -> None:
    kibana = fake_kibana()
    install(plain, kibana)
    plain.client.index(
        index=stream_of(namespace),
        op_type="create",
        document={"@timestamp": "2026-01-01T00:00:00Z"},
    )
    result = uninstall(plain, kibana)
    assert result.code == 1
    assert re.search(
        rf"elasticsearch/index-template/{namespace}: failed: .*it stays as long as the data does",
        result.output,
    )
    assert kibana.objects == {}


def test_uninstall_ends_the_keys(
    secured: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents
) -> None:
    kibana = fake_kibana()
    install(secured, kibana, *secure_arguments(secured), env=secure_env(secured))
    result = run(
        "uninstall",
        "--elasticsearch",
        secured.url,
        "--kibana",
        kibana.url,
        *secure_arguments(secured),
        env=secure_env(secured),
    )
    assert result.code == 0, result
    keys = secured.client.security.get_api_key(name="ascend-elk-*")["api_keys"]
    assert all(key["invalidated"] for key in keys)
    assert kibana.roles == {}
    with pytest.raises(NotFoundError):
        secured.client.security.get_role(name="ascend_elk_shipper")


# ---------------------------------------------------------------- wrong use: one clear sentence


def test_wrong_password(secured: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents) -> None:
    result = install(secured, fake_kibana(), *secure_arguments(secured), env={"ASCEND_ELK_PASSWORD": "wrong"})
    assert result.code == 2
    assert "does not accept the user name, password or API key" in result.error


def test_wrong_password_of_kibana(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents
) -> None:
    kibana = fake_kibana(user="elastic", password="right")
    result = install(plain, kibana, "--user", "elastic", env={"ASCEND_ELK_PASSWORD": "wrong"})
    assert result.code == 2
    assert result.error.startswith("Kibana at ")
    assert "does not accept the user name" in result.error
    assert install(plain, kibana, "--user", "elastic", env={"ASCEND_ELK_PASSWORD": "right"}).code == 0


def test_nobody_logs_in(secured: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents) -> None:
    result = install(secured, fake_kibana(), "--ca", str(secured.ca))
    assert result.code == 2
    assert "wants to know who asks; pass --user, or set ASCEND_ELK_API_KEY" in result.error


def test_no_password(plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents) -> None:
    result = install(plain, fake_kibana(), "--user", "elastic")
    assert (result.code, result.error) == (2, "no password for 'elastic'; set ASCEND_ELK_PASSWORD")


def test_unknown_authority(
    secured: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents, certificates: Certificates
) -> None:
    result = install(secured, fake_kibana(), "--user", "elastic", env=secure_env(secured))
    assert result.code == 2
    assert "signed by an unknown authority; pass its CA certificate with --ca FILE" in result.error


def test_kibana_with_tls(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents, certificates: Certificates
) -> None:
    kibana = fake_kibana(certificate=(certificates.certificate, certificates.key))
    refused = install(plain, kibana)
    assert refused.code == 2
    assert "the certificate of Kibana" in refused.error
    assert install(plain, kibana, "--ca", str(certificates.ca)).code == 0


def test_kibana_of_another_version_than_asked(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents
) -> None:
    kibana = fake_kibana(version="9.1.0")
    result = install(plain, kibana, "--kibana-version", "7.17")
    assert result.code == 2
    assert "Kibana is version 9.1.0, not 7.17" in result.error
    assert install(plain, kibana, "--kibana-version", "9.x").code == 0


def test_a_space_that_does_not_exist(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents
) -> None:
    result = install(plain, fake_kibana(), "--space", "nowhere")
    assert result.code == 2
    assert "Kibana has no space 'nowhere'; create it first" in result.error
    result = install(plain, fake_kibana(), "--space", "")
    assert (result.code, result.error) == (2, "--space is empty; name a space of Kibana, or leave it out")


@pytest.mark.parametrize(
    ("forbidden", "words"),
    [
        ("/api/spaces", "may not use the space 'default' of Kibana"),
        ("_export", "may not read kibana/default"),
    ],
)
def test_no_rights_in_kibana(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents, forbidden: str, words: str
) -> None:
    kibana = fake_kibana(forbidden=(forbidden,))
    result = install(plain, kibana)
    assert result.code == 2
    assert words in result.error
    assert kibana.writes == []


def test_no_right_to_import(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents
) -> None:
    result = install(plain, fake_kibana(forbidden=("_import",)))
    assert result.code == 1
    assert "the user may not do this; it needs the Kibana privilege to manage saved objects" in result.output


def test_kibana_that_is_not_ready(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents
) -> None:
    result = install(plain, fake_kibana(ready=False))
    assert result.code == 2
    assert "is not ready yet" in result.error


def test_kibana_too_old(plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents) -> None:
    result = install(plain, fake_kibana(version="7.10.2"))
    assert result.code == 2
    assert "Kibana 7.10.2 is too old" in result.error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--elasticsearch", "localhost:9200"], "is no URL of Elasticsearch"),
        (["--elasticsearch", "http://elastic:secret@localhost:9200"], "must not hold a password"),
        (["--elasticsearch", "http://127.0.0.1:1"], "cannot be reached"),
        (["--ca", "/nowhere/ca.pem"], "there is no CA file"),
        (["--ca", __file__], "cannot be used: holds no certificate in PEM form"),
        (["--code-page", "codes:8088"], "is no URL"),
    ],
)
def test_wrong_arguments(documents: Documents, arguments: list[str], words: str) -> None:
    result = run("install", "--no-kibana", *arguments)
    assert result.code == 2
    assert words in result.error
    assert "secret" not in result.error


def test_urls_the_wrong_way_round(
    plain: ElasticsearchServer, fake_kibana: MakeKibana, documents: Documents
) -> None:
    result = run("install", "--elasticsearch", plain.url, "--kibana", plain.url)
    assert result.code == 2
    assert "is not Kibana; check the URL" in result.error
    result = run("install", "--elasticsearch", f"{plain.url}/prefix", "--no-kibana")
    assert result.code == 2
    assert "is not Elasticsearch; check the URL and its prefix" in result.error
    kibana = FakeKibana()
    result = run("install", "--elasticsearch", kibana.url, "--no-kibana")
    kibana.close()
    assert result.code == 2
    assert "is not Elasticsearch; check the URL and its prefix" in result.error
