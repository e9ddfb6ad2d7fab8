"""Filebeat on training nodes: each target checked by its own schema or tool."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from ascend_elk.errors import UserError
from ascend_elk.render import RenderOptions, render, write
from ascend_elk.render.kubernetes import CERTIFICATES, CREDENTIALS
from ascend_elk.render.targets import EMPTY_DIR, TARGETS, TargetOptions
from tests.commands.conftest import Run, run
from tests.engines.filebeat import Filebeat, file_output

__all__ = ["run"]

SCHEMA = json.loads(Path(__file__).with_name("schemas").joinpath("kubernetes-1.33.json").read_text())
KINDS = {
    "DaemonSet": "io.k8s.api.apps.v1.DaemonSet",
    "ConfigMap": "io.k8s.api.core.v1.ConfigMap",
    "ServiceAccount": "io.k8s.api.core.v1.ServiceAccount",
    "Namespace": "io.k8s.api.core.v1.Namespace",
}
LOGSTASH = RenderOptions(stack="9", consoles=("/data/job/*/train.log",))
INGEST = RenderOptions(parser="ingest", roots=("/mnt/containers/*/log",))
ALL = TargetOptions(TARGETS, pod_volumes=True)


def problems(document: dict[str, Any]) -> list[str]:
    schema = {"$ref": f"#/$defs/{KINDS[document['kind']]}", "$defs": SCHEMA["$defs"]}
    return [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(document)]


@pytest.fixture(scope="module", params=["logstash", "ingest"])
def files(request: pytest.FixtureRequest) -> dict[str, str]:
    return render(LOGSTASH if request.param == "logstash" else INGEST, ALL)


def manifests(files: dict[str, str]) -> dict[str, dict[str, Any]]:
    documents = [yaml.safe_load(text) for name, text in files.items() if name.startswith("kubernetes/")]
    return {document["kind"]: document for document in documents}


def pod(files: dict[str, str]) -> dict[str, Any]:
    spec: dict[str, Any] = manifests(files)["DaemonSet"]["spec"]["template"]["spec"]
    return spec


def test_manifests_hold_to_the_schema_of_kubernetes(files: dict[str, str]) -> None:
    documents = manifests(files)
    assert set(documents) == set(KINDS)
    for document in documents.values():
        assert problems(document) == []
    documents["DaemonSet"]["spec"]["template"]["spec"]["nodeSelektor"] = {}
    assert problems(documents["DaemonSet"])


def test_the_daemonset_has_the_least_rights(files: dict[str, str]) -> None:
    spec = pod(files)
    assert spec["automountServiceAccountToken"] is False
    assert manifests(files)["ServiceAccount"]["automountServiceAccountToken"] is False
    assert not any("rbac" in document["apiVersion"] for document in manifests(files).values())
    (container,) = spec["containers"]
    security = container["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"], "add": ["DAC_READ_SEARCH"]}
    assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    assert set(container["resources"]) == {"requests", "limits"}
    writable = [mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")]
    assert writable == ["/usr/share/filebeat/data"]
    assert re.search(r":\d+\.\d+\.\d+$", container["image"])


def test_secrets_are_references(files: dict[str, str]) -> None:
    spec = pod(files)
    (container,) = spec["containers"]
    references = [item["valueFrom"] for item in container["env"]]
    assert all("value" not in item for item in container["env"])
    if "output.elasticsearch" in files["filebeat/filebeat.yml"]:
        assert {"secretKeyRef": {"name": CREDENTIALS, "key": "ASCEND_ELK_SHIPPER_API_KEY"}} in references
    (config,) = [volume for volume in spec["volumes"] if volume["name"] == "config"]
    secret = config["projected"]["sources"][1]["secret"]
    assert secret["name"] == CERTIFICATES
    named = set(re.findall(r"\$\{path\.config\}/(certs/[\w.]+)", files["filebeat/filebeat.yml"]))
    assert {item["path"] for item in secret["items"]} == named


def test_the_daemonset_goes_to_ascend_nodes(files: dict[str, str]) -> None:
    spec = pod(files)
    assert spec["nodeSelector"] == {"workerselector": "dls-worker-node"}
    assert {item["key"] for item in spec["tolerations"]} >= {"huawei.com/Ascend910", "device-plugin"}
    options = TargetOptions(("kubernetes",), ("accelerator=huawei-Ascend910", "a/b=c"), "logs")
    changed = render(RenderOptions(), options)
    assert pod(changed)["nodeSelector"] == {"accelerator": "huawei-Ascend910", "a/b": "c"}
    assert {item["metadata"].get("namespace", "logs") for item in manifests(changed).values()} == {"logs"}


def input_paths(files: dict[str, str]) -> list[str]:
    texts = [text for name, text in files.items() if name.startswith("filebeat/inputs.d/")]
    return [path for text in texts for entry in yaml.safe_load(text) for path in entry["paths"]]


def test_every_input_is_mounted(files: dict[str, str]) -> None:
    """What Filebeat looks for in the container is the host's, at the same path."""
    spec = pod(files)
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"] if "hostPath" in volume}
    (container,) = spec["containers"]
    mounted = [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"].startswith("host-")]
    for mount in container["volumeMounts"]:
        if mount["name"].startswith("host-"):
            assert paths[mount["name"]] == mount["mountPath"]
    compose = yaml.safe_load(files["compose/docker-compose.yml"])["services"]["filebeat"]
    bound = [item["target"] for item in compose["volumes"] if isinstance(item, dict)]
    wanted = input_paths(files)
    assert any(path.startswith(EMPTY_DIR) for path in wanted)
    for path in wanted:
        assert any(path.startswith(f"{directory}/") for directory in mounted), path
        assert any(path.startswith(f"{directory}/") for directory in bound), path
    # Nothing more than needed: /root holds keys.
    assert "/root" not in mounted and "/" not in mounted


def test_the_config_map_holds_the_rendered_files(files: dict[str, str]) -> None:
    data = manifests(files)["ConfigMap"]["data"]
    assert data["filebeat.yml"] == files["filebeat/filebeat.yml"]
    for name, text in files.items():
        if name.startswith("filebeat/inputs.d/"):
            assert data[Path(name).name] == text
    assert len(files["kubernetes/20-config.yaml"]) < 1 << 20
    (config,) = [volume for volume in pod(files)["volumes"] if volume["name"] == "config"]
    assert {item["key"] for item in config["projected"]["sources"][0]["configMap"]["items"]} == set(data)


def test_the_compose_file_holds_to_its_schema(files: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "compose.yml"
    path.write_text(files["compose/docker-compose.yml"])
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    service = yaml.safe_load(path.read_text())["services"]["filebeat"]
    assert service["cap_drop"] == ["ALL"] and service["read_only"] is True
    for value in service.get("environment", {}).values():
        assert re.fullmatch(r"\$\{\w+:\?.*\}", value)


def test_the_drop_in_holds_to_systemd(files: dict[str, str], tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze")
    unit = tmp_path / "filebeat.service"
    unit.write_text(
        "[Unit]\nDescription=Filebeat\n[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"
    )
    drop_in = tmp_path / "filebeat.service.d" / "ascend-elk.conf"
    drop_in.parent.mkdir()

    def verify(text: str) -> str:
        drop_in.write_text(text)
        environment = {**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"}
        command = ["systemd-analyze", "verify", str(unit)]
        result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        return "\n".join(line for line in result.stderr.splitlines() if str(tmp_path) in line)

    text = files["systemd/filebeat.service.d/ascend-elk.conf"]
    assert verify(text) == ""
    assert verify(text + "Nonsense=yes\n") != ""


def test_the_playbook_holds_to_ansible(tmp_path: Path) -> None:
    pytest.importorskip("ansible", reason="ansible-core is not installed")
    write(render(LOGSTASH, TargetOptions(("ansible",))), tmp_path / "out", force=False)
    playbook = tmp_path / "out" / "ansible" / "site.yml"
    environment = {**os.environ, "ANSIBLE_HOME": str(tmp_path / "home"), "LC_ALL": "C.UTF-8"}
    command = [str(Path(sys.executable).with_name("ansible-playbook")), "--inventory"]
    command += [str(playbook.with_name("hosts.ini")), str(playbook), "--syntax-check"]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    command[-1] = "--list-tasks"
    listed = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert "Put the drop-in of its unit" in listed.stdout
    # What the role copies is there.
    tasks = (playbook.parent / "roles/ascend_elk_filebeat/tasks/main.yml").read_text()
    sources = re.findall(r'\{\{ ascend_elk_config \}\}/([^"]+)"', tasks)
    assert len(sources) == 4
    for source in sources:
        assert source == "filebeat/certs/" or (tmp_path / "out" / source).exists(), source


def test_without_a_target_nothing_is_added() -> None:
    parts = {name.split("/")[0] for name in render(RenderOptions())}
    assert not parts & set(TARGETS)
    # What lets Filebeat into the volumes of all pods has to be asked for.
    plain = render(RenderOptions(), TargetOptions(("kubernetes",)))
    assert EMPTY_DIR not in " ".join(input_paths(plain))
    assert "/var/lib/kubelet" not in plain["kubernetes/30-daemonset.yaml"]


def test_wrong_targets(run: Run, tmp_path: Path) -> None:
    for arguments in (
        ("--target", "docker"),
        ("--target", "kubernetes", "--node-selector", "nonsense"),
        ("--target", "kubernetes", "--kubernetes-namespace", "Not_One"),
        ("--target", "kubernetes", "--root", "/*/logs"),
        ("--target", "systemd", "--pod-volumes"),
    ):
        result = run("render", "--cann", "8.0", "--out", tmp_path / "out", *arguments)
        assert result.code == 2, arguments
        assert result.err.startswith("error: ")
    assert not (tmp_path / "out").exists()
    with pytest.raises(UserError):
        TargetOptions(("x",))


@pytest.mark.engines
def test_a_real_filebeat_with_the_volume_that_kubernetes_would_make(
    filebeat: Callable[..., Filebeat], tmp_path: Path
) -> None:
    """Files behind links, as in a projected volume; the node gives the host's name."""
    logs = tmp_path / "kubelet" / "pod-1" / "ascend-log"
    options = RenderOptions(stack="7.17", parser="logstash", roots=(str(tmp_path / "kubelet/*/ascend-log"),))
    spec = pod(render(options, TargetOptions(("kubernetes",))))
    data = manifests(render(options, TargetOptions(("kubernetes",))))["ConfigMap"]["data"]
    (config,) = [volume for volume in spec["volumes"] if volume["name"] == "config"]
    volume, hidden = tmp_path / "volume", tmp_path / "volume" / "..2026_12_01"
    for item in config["projected"]["sources"][0]["configMap"]["items"]:
        path = hidden / item["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(data[item["key"]])
        path.chmod(config["projected"]["defaultMode"])
    (volume / "..data").symlink_to(hidden.name)
    for name in {
        item["path"].split("/")[0] for item in config["projected"]["sources"][0]["configMap"]["items"]
    }:
        (volume / name).symlink_to(f"..data/{name}")
    log = logs / "debug/plog/plog-57_20250302112031120.log"
    log.parent.mkdir(parents=True)
    stamp = datetime.now(timezone.utc).strftime("%Y-%m-%d-%H:%M:%S.000.001")
    log.write_text(
        f"[ERROR] HCCL(57,python):{stamp} [a.cc:1] [57]one\n[ERROR] HCCL(57,python):{stamp} [a.cc:1] [57]two\n"
    )
    (container,) = spec["containers"]
    assert container["args"][-2:] == ["-E", "name=$(NODE_NAME)"]
    beat = filebeat(
        volume / "filebeat.yml",
        settings={
            **file_output(tmp_path / "filebeat/output"),
            "output.logstash.enabled": False,
            "name": "node-7",
        },
    )
    events = beat.read([log], timeout=90)
    assert [event["message"][-3:] for event in events] == ["one", "two"]
    assert {event["host"]["name"] for event in events} == {"node-7"}
