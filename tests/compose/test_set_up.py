"""The set-up job, on a real Elasticsearch with security and TLS."""

from __future__ import annotations

from pathlib import Path

import pytest
from elasticsearch import ApiError

from ascend_elk.stack.elasticsearch import Documents
from tests.commands.conftest import Run, run
from tests.engines.elasticsearch import ElasticsearchServer
from tests.stack.conftest import documents, secured

__all__ = ["documents", "run", "secured"]

pytestmark = pytest.mark.engines


def keys(path: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in path.read_text().splitlines())


def test_set_up_twice_and_after_the_keys_are_lost(
    secured: ElasticsearchServer,
    documents: Documents,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    password = "pass-word-of-kibana-system-1234"
    monkeypatch.setenv("ASCEND_ELK_PASSWORD", secured.password or "")
    monkeypatch.setenv("ASCEND_ELK_ELASTICSEARCH", secured.url)
    path = tmp_path / "keys.env"
    arguments = ("stack", "set-up", "--ca", secured.ca, "--keys-file", path)
    assert "KIBANA_SYSTEM_PASSWORD is not set" in run(*arguments).err
    monkeypatch.setenv("KIBANA_SYSTEM_PASSWORD", password)
    client = secured.client.options(ignore_status=[404])
    client.cluster.delete_component_template(name="ascend-elk@custom")

    first = run(*arguments)
    assert first.code == 0, first
    assert path.stat().st_mode & 0o777 == 0o600
    assert secured.connect(basic_auth=("kibana_system", password)).info()
    (custom,) = client.cluster.get_component_template(name="ascend-elk@custom")["component_templates"]
    settings = custom["component_template"]["template"]["settings"]
    assert settings["index"]["number_of_replicas"] == "0"
    made = keys(path)
    assert set(made) == {"ASCEND_ELK_SHIPPER_API_KEY", "ASCEND_ELK_ENRICHER_API_KEY"}
    assert not any(value in first.out + first.err for value in made.values())

    again = run(*arguments)
    assert again.code == 0, again
    assert keys(path) == made

    path.unlink()
    third = run(*arguments)
    assert third.code == 0, third
    anew = keys(path)
    assert set(anew) == set(made)
    assert not set(anew.values()) & set(made.values())
    secured.connect(api_key=tuple(anew["ASCEND_ELK_SHIPPER_API_KEY"].split(":"))).info()
    with pytest.raises(ApiError):
        secured.connect(api_key=tuple(made["ASCEND_ELK_SHIPPER_API_KEY"].split(":"))).info()
    client.cluster.delete_component_template(name="ascend-elk@custom")
