"""Wrong use of ``ascend-elk enrich`` gets one sentence; settings come from flags and the environment."""

from __future__ import annotations

import socket
from datetime import datetime, timezone
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from ascend_elk.errors import UserError
from ascend_elk.service.command import enrich, read_since
from ascend_elk.service.settings import Settings, read_listen

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(enrich)
URL = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--elasticsearch", "es.example"], "no URL of Elasticsearch"),
        (["--elasticsearch", "https://me:secret@es.example"], "must not hold a password"),
        (["--listen", "9620"], "no address to listen on"),
        (["--listen", "0.0.0.0:9620"], "set a token in ASCEND_ELK_TOKEN"),
        (["--batch", "0"], "write 1 to 10000"),
        (["--writers", "99"], "write 1 to 16"),
        (["--poll", "0"], "seconds above 0"),
        (["--namespace", "a-*"], "no namespace"),
        (["--since", "yesterday"], "is no time"),
        (["--ca", "missing.pem"], "no CA file"),
        (["--certificate", "missing.pem"], "no file missing.pem"),
        (["--codes", "missing.yml"], "missing.yml"),
    ],
)
def test_wrong_use(arguments: list[str], words: str) -> None:
    given = ["--elasticsearch", URL] if "--elasticsearch" not in arguments else []
    result = CliRunner().invoke(app, [*given, *arguments], env={"ASCEND_ELK_TOKEN": None})
    assert isinstance(result.exception, UserError)
    assert words in str(result.exception)
    assert "secret" not in str(result.exception)


def test_the_address_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        result = CliRunner().invoke(app, ["--elasticsearch", URL, "--listen", listen])
    assert isinstance(result.exception, UserError)
    assert "cannot listen" in str(result.exception)


def test_addresses() -> None:
    assert read_listen("127.0.0.1:9620") == ("127.0.0.1", 9620)
    assert read_listen("[::1]:80") == ("::1", 80)
    for text in ("", ":80", "host:", "host:99999", "host:x"):
        with pytest.raises(UserError):
            read_listen(text)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "es.example"])
def test_a_token_is_required_beyond_loopback(host: str) -> None:
    with pytest.raises(UserError, match="ASCEND_ELK_TOKEN"):
        Settings(URL, listen=(host, 9620))
    Settings(URL, listen=(host, 9620), token="t")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_none_on_loopback(host: str) -> None:
    Settings(URL, listen=(host, 9620))


def test_secrets_are_not_shown() -> None:
    assert "hush" not in repr(Settings(URL, api_key="hush", token="hush"))


def test_since() -> None:
    now = datetime(2026, 11, 30, 12, tzinfo=timezone.utc)
    assert read_since("2026-11-01") == "2026-11-01T00:00:00.000Z"
    assert read_since("2026-11-01T08:00:00+08:00") == "2026-11-01T00:00:00.000Z"
    assert read_since("12h", now) == "2026-11-30T00:00:00.000Z"
    assert read_since("30d", now) == "2026-10-31T12:00:00.000Z"
    for text in ("", "99999999d", "2026-13-01", "999999d"):
        with pytest.raises(UserError):
            read_since(text, now)


def test_help_names_no_default_secret(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "--api-key" not in result.stdout
