"""docker-compose.yml, without a Docker daemon: by schema, and every mount, variable, check and order."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from ascend_elk import __version__
from ascend_elk.cli import app
from ascend_elk.compose.files import STACK, InitOptions, initialise

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
TEXT = FILE.read_text()
COMPOSE = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
JOBS = {"set-up", "content", "sample"}
OURS = {*JOBS, "enrich"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("stack")
    initialise(where, InitOptions())
    return where


def test_the_schema_of_compose() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(FILE)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_schema_would_refuse(tmp_path: Path) -> None:
    broken = tmp_path / "compose.yml"
    broken.write_text(TEXT.replace("    healthcheck:\n", "    healthchekc:\n", 1))
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        "vendor.compose-spec",
        str(broken),
    ]
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0


def test_every_variable_is_written_or_has_a_default(made: Path) -> None:
    lines = (made / ".env").read_text().splitlines()
    written = {line.partition("=")[0] for line in lines if not line.startswith("#")}
    used = re.findall(r"(?<!\$)\$\{(\w+)(:[-?])?", TEXT)
    assert used
    for name, operator in used:
        assert name in written or operator == ":-", name
        # A secret is never made up by compose.
        if name.endswith(("PASSWORD", "_KEY", "TOKEN")):
            assert operator == ":?", name
    assert written <= {name for name, _ in used} | {"COMPOSE_PROFILES"}


def mounts(service: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """Source, target and whether it is read-only."""
    found = []
    for volume in service.get("volumes", ()):
        if isinstance(volume, str):
            source, target, *mode = volume.split(":")
            found.append((source, target, mode == ["ro"]))
        else:
            found.append((volume["source"], volume["target"], volume.get("read_only", False)))
    return found


def test_every_mount_is_there(made: Path) -> None:
    count = 0
    for name, service in SERVICES.items():
        for source, target, read_only in mounts(service):
            count += 1
            assert target.startswith("/"), (name, target)
            if source.startswith("./"):
                assert (made / source).exists(), (name, source)
                assert read_only, (name, source)
                assert "authority" not in source
            elif source.startswith(("/", "${")):
                assert read_only, (name, source)
            else:
                assert source in COMPOSE["volumes"], (name, source)
    assert count > 15


def test_every_volume_is_used() -> None:
    used = {source for service in SERVICES.values() for source, _, _ in mounts(service)}
    assert set(COMPOSE["volumes"]) <= used


def test_what_the_sample_and_the_host_mount_is_read(made: Path) -> None:
    """The places in the containers are among the rendered inputs."""
    inputs = "".join(path.read_text() for path in (made / "ascend-elk-stack/filebeat/inputs.d").glob("*.yml"))
    assert "/home/*/ascend/log/" in inputs
    assert "/home/job/console/*.log" in inputs
    targets = [target for service in SERVICES.values() for _, target, _ in mounts(service)]
    assert "/home/job" in targets
    assert "/home/host/ascend/log" in targets


def test_certificates_are_where_the_configuration_looks(made: Path) -> None:
    stack = made / "ascend-elk-stack"
    beat = yaml.safe_load((stack / "filebeat/filebeat.yml").read_text())["output.logstash"]
    assert beat["hosts"] == ["logstash:5044"]
    named = [beat["ssl.certificate"], beat["ssl.key"], *beat["ssl.certificate_authorities"]]
    for path in named:
        assert (stack / "filebeat" / path.removeprefix("${path.config}/")).is_file()
    conf = "".join(path.read_text() for path in (stack / "logstash/conf.d").glob("*.conf"))
    conf += (stack / "logstash/pipelines.yml").read_text()
    found = re.findall(r'\$\{ASCEND_CONFIG\}/([^"]+)"', conf)
    assert len(found) > 8
    for path in found:
        assert list((stack / "logstash").glob(path)), path
    assert 'hosts => ["https://elasticsearch:9200"]' in conf
    assert "ASCEND_ELK_SHIPPER_API_KEY" in conf
    environment = SERVICES["logstash"]["environment"]
    targets = {target for _, target, _ in mounts(SERVICES["logstash"])}
    assert {environment["ASCEND_CONFIG"], environment["ASCEND_DATA"]} <= targets
    for service, home in (
        ("elasticsearch", "/usr/share/elasticsearch/config"),
        ("kibana", "/usr/share/kibana"),
    ):
        texts = [str(value) for value in SERVICES[service]["environment"].values()]
        ((source, target),) = [pair[:2] for pair in mounts(SERVICES[service]) if pair[0].startswith("./")]
        for text in [text for text in texts if text.endswith((".crt", ".key"))]:
            assert (made / source / Path(f"{home}/{text}").relative_to(target)).is_file(), text


def test_images_are_pinned_and_of_one_version() -> None:
    versions = set()
    for name, service in SERVICES.items():
        image, _, tag = service["image"].rpartition(":")
        assert re.fullmatch(r"\d+\.\d+\.\d+", tag), name
        if image.startswith("docker.elastic.co/"):
            versions.add(tag)
        else:
            assert (image, tag) == ("ascend-elk", __version__)
    (version,) = versions
    assert version.startswith(f"{STACK}.")


def test_every_part_is_bounded_and_unprivileged() -> None:
    for name, service in SERVICES.items():
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert "mem_limit" in service and "cpus" in service, name
        assert "privileged" not in service
        if name == "filebeat":
            assert service["user"] == "0:0"
            assert service["cap_add"] == ["DAC_READ_SEARCH"]
        else:
            assert service["user"].startswith("${ASCEND_ELK_UID"), name
            assert "cap_add" not in service, name
        if service["image"].startswith(("ascend-elk:", "docker.elastic.co/beats/")):
            assert service["read_only"] is True, name


def test_ports_are_on_loopback_unless_told_otherwise() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert len(ports) == 4
    for port in ports:
        assert re.fullmatch(r"\$\{ASCEND_ELK_BIND:-127\.0\.0\.1\}:(\d+):\1", port), port


def test_order_and_health_checks() -> None:
    for name, service in SERVICES.items():
        assert (name in JOBS) is ("healthcheck" not in service), name
        assert (name in JOBS) is (service["restart"] == "on-failure:3"), name
        for other, how in service.get("depends_on", {}).items():
            wanted = "service_completed_successfully" if other in JOBS else "service_healthy"
            assert how["condition"] == wanted, (name, other)
            # A part without a profile must not wait for one that may be left out.
            assert set(SERVICES[other].get("profiles", ())) <= set(service.get("profiles", ())), (name, other)
    order: list[str] = []
    while len(order) < len(SERVICES):
        ready = [
            name
            for name, service in SERVICES.items()
            if name not in order and set(service.get("depends_on", ())) <= set(order)
        ]
        assert ready, "a circle"
        order += ready


def command_of(service: dict[str, Any]) -> list[str]:
    """Arguments of ascend-elk, out of the command or the shell's line."""
    command = service["command"]
    if service.get("entrypoint") == ["/bin/sh", "-c"]:
        (line,) = command
        words = re.sub(r'"\$\$\(.*\)"', "2026-12-01T08:00:00", line).split()
        return words[words.index("ascend-elk") + 1 :]
    return [re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", word) for word in command]


@pytest.mark.parametrize("name", sorted(OURS))
def test_commands_exist_and_take_these_options(name: str) -> None:
    words = command_of(SERVICES[name])
    group: Any = typer.main.get_command(app)
    while hasattr(group, "commands"):
        assert words[0] in group.commands, words
        group = group.commands[words.pop(0)]
    group.make_context(name, list(words), resilient_parsing=False)


def test_the_image_copies_what_the_wheel_needs() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copied = {
        word
        for line in lines
        if line.startswith("COPY") and "--from" not in line
        for word in line.split()[1:-1]
    }
    project = (ROOT / "pyproject.toml").read_text()
    included = set(re.findall(r'^"(\w+)" = "ascend_elk/content', project, re.MULTILINE))
    assert included <= copied
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert copied == allowed
    for name in copied:
        assert (ROOT / name).exists()
    assert any(line.startswith("USER 10001") for line in lines)
    bases = [line for line in lines if line.startswith("FROM")]
    assert all(re.match(r"FROM python:3\.\d+-slim-\w+", line) for line in bases)


def test_the_service_has_its_certificate_and_its_secrets(made: Path) -> None:
    service = SERVICES["enrich"]
    ((source, target),) = [pair[:2] for pair in mounts(service) if pair[0].startswith("./")]
    named = [word.partition("=")[2] for word in service["command"] if word.endswith((".crt", ".key"))]
    assert len(named) == 3
    for path in named:
        assert (made / source / Path(path).relative_to(target)).is_file(), path
    assert "keys.env" in service["entrypoint"][2]
    # Beyond loopback the service wants a token.
    assert service["environment"]["ASCEND_ELK_TOKEN"].startswith("${ASCEND_ELK_TOKEN:?")


def test_the_check_of_the_service_is_python() -> None:
    program, option, text = SERVICES["enrich"]["healthcheck"]["test"][1:]
    assert (program, option) == ("python", "-c")
    compile(text, "healthcheck", "exec")


def test_the_shell_lines_do_what_they_say(tmp_path: Path) -> None:
    """With stand-ins for the programs: the keys reach the environment, the arguments the program."""
    keys = tmp_path / "keys.env"
    keys.write_text("ASCEND_ELK_SHIPPER_API_KEY=id:secret\nASCEND_ELK_ENRICHER_API_KEY=other:secret\n")
    for name in ("ascend-elk", "docker-entrypoint"):
        program = tmp_path / name
        program.write_text('#!/bin/sh\nprintf "%s\\n" "$ASCEND_ELK_SHIPPER_API_KEY" "$#" "$@"\n')
        program.chmod(0o755)

    def run(service: dict[str, Any]) -> list[str]:
        words = [word.replace("$$", "$") for word in [*service["entrypoint"], *service.get("command", [])]]
        words = [
            word.replace("/var/lib/ascend-elk/keys", str(tmp_path))
            .replace("/usr/local/bin", str(tmp_path))
            .replace("/var/lib/ascend-elk/sample", str(tmp_path))
            for word in words
        ]
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        result = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        return result.stdout.splitlines()

    assert run(SERVICES["logstash"]) == ["id:secret", "0"]
    command = SERVICES["enrich"]["command"]
    assert run(SERVICES["enrich"]) == ["id:secret", str(len(command)), *command]
    sample = run(SERVICES["sample"])
    assert sample[2:5] == ["simulate", str(tmp_path / "job"), "--hosts"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", sample[-1])
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "truth.json").write_text("{}")
    assert run(SERVICES["sample"]) == []
