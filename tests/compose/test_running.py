"""The whole stack in containers, where a Docker daemon is: the sample cluster's logs arrive enriched."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from ascend_elk.compose.files import DIRECTORY, InitOptions, initialise

ROOT = Path(__file__).parents[2]


def why_not() -> str | None:
    """Why the stack cannot be started here."""
    if shutil.which("docker") is None:
        return "there is no docker command"
    for command, problem in (
        (["docker", "info"], "no Docker daemon answers"),
        (["docker", "compose", "version"], "docker has no compose plugin"),
    ):
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            return problem
    return None


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    problem = why_not()
    if problem is not None:
        pytest.skip(problem)
    where = tmp_path_factory.mktemp("stack")
    initialise(where, InitOptions())
    compose = [
        "docker",
        "compose",
        f"--project-name=ascend-elk-test-{uuid.uuid4().hex[:8]}",
        f"--project-directory={where}",
        f"--env-file={where / '.env'}",
        "--file",
        str(where / "docker-compose.yml"),
    ]
    text = (ROOT / "docker-compose.yml").read_text()
    (where / "docker-compose.yml").write_text(text.replace("build: .", f"build: {ROOT}"))
    try:
        subprocess.run([*compose, "up", "--build", "--detach"], check=True)
        yield where
    finally:
        subprocess.run([*compose, "logs", "--tail=50"], check=False)
        subprocess.run([*compose, "down", "--volumes"], check=False)


def test_sample_logs_arrive_parsed_and_enriched(stack: Path) -> None:
    lines = (stack / ".env").read_text().splitlines()
    password = dict(line.split("=", 1) for line in lines if "=" in line)["ELASTIC_PASSWORD"]
    client = Elasticsearch(
        "https://localhost:9200",
        basic_auth=("elastic", password),
        ca_certs=str(stack / DIRECTORY / "certs/clients/ca.crt"),
    )
    deadline = time.monotonic() + float(os.environ.get("ASCEND_ELK_COMPOSE_SECONDS", "900"))
    query: dict[str, Any] = {"bool": {"filter": [{"exists": {"field": "ascend.error.catalogue"}}]}}
    hosts: set[str] = set()
    while hosts != {"worker-0", "worker-1"}:
        assert time.monotonic() < deadline, hosts
        time.sleep(5)
        try:
            answer = client.search(
                index="logs-ascend.*", query=query, aggs={"host": {"terms": {"field": "host.name"}}}, size=0
            )
        except Exception:
            continue
        hosts = {item["key"] for item in answer.get("aggregations", {}).get("host", {}).get("buckets", [])}
    unparsed = client.count(index="logs-ascend.*", query={"term": {"tags": "ascend_unparsed"}})["count"]
    assert unparsed == 0
