"""What a person gets wrong is answered with one sentence, exit code 2 and no traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

COMMANDS = ["parse", "check", "diagnose"]


def assert_refused(result, *words: str) -> None:
    assert result.code == 2
    assert "Traceback" not in result.err + result.out
    message = result.err.strip()
    assert message.startswith("error: ")
    assert len(message.splitlines()) == 1
    for word in words:
        assert word in message


@pytest.mark.parametrize("command", COMMANDS)
class TestPaths:
    def test_missing(self, run, command: str, tmp_path: Path) -> None:
        assert_refused(run(command, tmp_path / "nowhere"), "nowhere")

    def test_empty_directory(self, run, command: str, tmp_path: Path) -> None:
        assert_refused(run(command, tmp_path), str(tmp_path))

    def test_pipe(self, run, command: str, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.log")
        assert_refused(run(command, tmp_path / "pipe.log"), "pipe")

    def test_unknown_version(self, run, command: str, cluster: Path) -> None:
        assert_refused(run(command, cluster, "--cann", "eight"), "eight", "8.0")


def test_pipe_beside_logs_is_skipped_and_nothing_else_lost(run, cluster: Path) -> None:
    os.mkfifo(cluster / "worker-0" / "ascend" / "log" / "debug" / "plog" / "plog-1_2.log")
    result = run("parse", cluster, "--format", "ndjson")
    assert result.code == 0
    assert len(result.out.splitlines()) == 10
    assert "skipped" in result.err
    assert "pipe" in result.err


def test_program_beside_logs_is_skipped(run, cluster: Path) -> None:
    (cluster / "core.log").write_bytes(b"\x7fELF" + bytes(5000))
    result = run("parse", cluster, "--format", "ndjson")
    assert len(result.out.splitlines()) == 10
    assert "core.log" in result.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file_is_skipped(run, cluster: Path) -> None:
    (path, *_) = cluster.rglob("plog-*.log")
    path.chmod(0)
    result = run("parse", cluster, "--format", "ndjson")
    assert result.code == 0
    assert "cannot be read" in result.err


def test_line_that_never_ends_is_read_in_bounded_memory(run, tmp_path: Path) -> None:
    path = tmp_path / "plog-7_20250302112029000.log"
    with path.open("wb") as out:
        out.write(b"[ERROR] GE(7,a):2025-03-02-11:20:31.120.004 [a.cc:1]7 Run:")
        out.truncate(64 << 20)
    result = run("check", path, "--json")
    assert result.code == 0
    assert '"events": 64' in result.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--level", "LOUD"], ["LOUD", "ERROR"]),
        (["--since", "yesterday"], ["yesterday", "2025"]),
        (["--timezone", "Mars"], ["Mars", "UTC"]),
    ],
)
def test_options_of_parse(run, cluster: Path, arguments: list[str], words: list[str]) -> None:
    assert_refused(run("parse", cluster, *arguments), *words)


def test_unknown_option_exits_with_two(run, cluster: Path) -> None:
    assert run("parse", cluster, "--nonsense").code == 2
