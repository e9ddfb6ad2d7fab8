"""`ascend-elk stack init` and `renew`."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import threading
from pathlib import Path

import pytest

from ascend_elk.compose.certificates import issue, make_authority
from ascend_elk.compose.files import DIRECTORY, ENVIRONMENT, InitOptions, initialise, renew
from ascend_elk.errors import UserError
from tests.commands.conftest import Run, run

__all__ = ["run"]


def variables(where: Path) -> dict[str, str]:
    lines = (where / ENVIRONMENT).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("stack")
    initialise(where, InitOptions(names=("stack.example", "192.0.2.7")))
    return where


def test_secrets_are_long_different_and_private(made: Path, tmp_path: Path) -> None:
    initialise(tmp_path, InitOptions())
    first, second = variables(made), variables(tmp_path)
    secrets = [name for name in first if name.endswith(("PASSWORD", "_KEY", "TOKEN"))]
    assert len(secrets) == 6
    values = [values[name] for values in (first, second) for name in secrets]
    assert len(set(values)) == len(values)
    assert all(len(value) >= 32 for value in values)
    assert not any(character in value for value in values for character in "$'\"#\\ ")
    for path in [made / ENVIRONMENT, *(made / DIRECTORY).rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path
    assert not any(value in path.read_text() for value in values for path in _files(made))


def _files(where: Path) -> list[Path]:
    return [path for path in (where / DIRECTORY).rglob("*") if path.is_file()]


def test_files_belong_to_the_containers_user(made: Path) -> None:
    user = int(variables(made)["ASCEND_ELK_UID"])
    assert user != 0
    assert {path.stat().st_uid for path in _files(made)} == {user}
    assert (made / ENVIRONMENT).stat().st_uid == os.getuid()


def test_nothing_is_overwritten_unless_asked(made: Path, run: Run) -> None:
    before = (made / ENVIRONMENT).read_bytes()
    refused = run("stack", "init", made)
    assert refused.code == 2
    assert "--force" in refused.err
    assert (made / ENVIRONMENT).read_bytes() == before
    extra = made / DIRECTORY / "logstash/conf.d/99-old.conf"
    extra.write_text("")
    result = run(
        "stack", "init", made, "--force", "--no-sample", "--bind", "192.0.2.9", "--name", "a.example"
    )
    assert result.code == 0, result.err
    assert not extra.exists()
    after = variables(made)
    assert after["COMPOSE_PROFILES"] == ""
    assert after["ASCEND_ELK_BIND"] == "192.0.2.9"
    assert before != (made / ENVIRONMENT).read_bytes()
    assert not any(value in result.out for name, value in after.items() if name.endswith("PASSWORD"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("--bind", "a$b"),
        ("--log-root", "relative"),
        ("--log-root", "/a b"),
        ("--retention", "soon"),
        ("--cann", "x"),
        ("--name", 'a"'),
    ],
)
def test_bad_choices_write_nothing(run: Run, tmp_path: Path, arguments: tuple[str, str]) -> None:
    result = run("stack", "init", tmp_path, *arguments)
    assert result.code == 2
    assert "Traceback" not in result.err
    assert list(tmp_path.iterdir()) == []


def test_renewing_keeps_secrets_and_authority(tmp_path: Path, run: Run) -> None:
    with pytest.raises(UserError, match="stack init first"):
        renew(tmp_path, InitOptions())
    initialise(tmp_path, InitOptions())
    directory = tmp_path / DIRECTORY
    kept = [
        tmp_path / ENVIRONMENT,
        directory / "certs/authority/ca.crt",
        directory / "certs/authority/ca.key",
    ]
    changed = [directory / "certs/kibana/kibana.crt", directory / "logstash/certs/logstash.key"]
    before = {path: path.read_bytes() for path in [*kept, *changed]}
    assert run("stack", "renew", tmp_path, "--cann", "8.0").code == 0
    assert all(path.read_bytes() == before[path] for path in kept)
    assert not any(path.read_bytes() == before[path] for path in changed)
    assert "8.0" in (directory / "filebeat/filebeat.yml").read_text().splitlines()[0]


def test_certificates_hold_in_a_handshake(made: Path) -> None:
    """Server and client, by another library than the one that made them; the wrong name is refused."""
    directory = made / DIRECTORY
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    logstash, filebeat = directory / "logstash/certs", directory / "filebeat/certs"
    server.load_cert_chain(logstash / "logstash.crt", logstash / "logstash.key")
    server.load_verify_locations(logstash / "ca.crt")
    server.verify_mode = ssl.CERT_REQUIRED
    assert handshake(server, filebeat, "logstash")
    assert handshake(server, filebeat, "localhost")
    assert not handshake(server, filebeat, "kibana")
    stranger = make_authority()
    pair = issue(stranger, "filebeat", ["filebeat"])
    other = made / "other"
    other.mkdir(exist_ok=True)
    (other / "ca.crt").write_text((filebeat / "ca.crt").read_text())
    (other / "filebeat.crt").write_text(pair.certificate)
    (other / "filebeat.key").write_text(pair.key)
    assert not handshake(server, other, "logstash")


def handshake(server: ssl.SSLContext, certificates: Path, name: str) -> bool:
    client = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    client.load_cert_chain(certificates / "filebeat.crt", certificates / "filebeat.key")
    here, there = socket.socketpair()
    accepted: list[bool] = []

    def serve() -> None:
        try:
            with server.wrap_socket(there, server_side=True) as secure:
                accepted.append(secure.recv(2) == b"hi")
                secure.send(b"ok")
        except (ssl.SSLError, OSError):
            accepted.append(False)
            there.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(here, server_hostname=name) as secure:
            secure.send(b"hi")
            answered = secure.recv(2) == b"ok"
    except (ssl.SSLError, OSError):
        answered = False
    finally:
        here.close()
        thread.join(10)
    return answered and accepted == [True]


def test_keys_are_what_logstash_takes(made: Path) -> None:
    text = (made / DIRECTORY / "logstash/certs/logstash.key").read_text()
    assert text.startswith("-----BEGIN PRIVATE KEY-----")


def test_openssl_agrees(made: Path) -> None:
    for path in (made / DIRECTORY).rglob("*.crt"):
        if path.name == "ca.crt":
            continue
        command = ["openssl", "verify", "-x509_strict", "-CAfile", str(path.parent / "ca.crt"), str(path)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
