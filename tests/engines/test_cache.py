"""Engines are made once, never half, and a missing one skips a test except in CI."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from . import cache
from . import elasticsearch as elasticsearch_engine
from .fixtures import or_skip
from .processes import Group, free_port, members

ROOT = Path(__file__).parents[2]


def test_several_processes_make_an_engine_once(tmp_path):
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from tests.engines.cache import make_once\n"
        "folder = Path(sys.argv[1])\n"
        "def make(scratch):\n"
        "    with (folder / 'made').open('a') as made: made.write('x')\n"
        "    time.sleep(0.3)\n"
        "    (scratch / 'engine').write_text('whole')\n"
        "print(make_once(folder / 'engine', make).read_text())\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    running = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate(timeout=30)[0] for process in running] == ["whole\n"] * 4
    assert (tmp_path / "made").read_text() == "x"


def test_a_failed_make_leaves_nothing_and_can_be_tried_again(tmp_path):
    def fail(scratch: Path) -> None:
        (scratch / "engine").write_text("half")
        raise cache.EngineUnavailableError("connection lost")

    with pytest.raises(cache.EngineUnavailableError):
        cache.make_once(tmp_path / "engine", fail)
    assert [path.name for path in tmp_path.iterdir()] == ["engine.lock"]
    cache.make_once(tmp_path / "engine", lambda scratch: (scratch / "engine").mkdir())
    assert (tmp_path / "engine").is_dir()


def test_a_download_is_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "PAUSE_SECONDS", 0)
    third = ["sh", "-c", "echo x >> tries; echo unreachable; test $(wc -l < tries) -ge 3"]
    cache.run_with_retries(third, cwd=tmp_path, what="downloading")
    with pytest.raises(cache.EngineUnavailableError, match=r"downloading failed 3 times.*\nunreachable"):
        cache.run_with_retries(["sh", "-c", "echo unreachable; exit 1"], cwd=tmp_path, what="downloading")


def missing() -> None:
    cache.require("no-such-program", "build an engine")


def test_a_missing_engine_skips(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no-such-program is not installed"):
        or_skip(missing)


def test_a_missing_engine_fails_in_ci(monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no-such-program is not installed"):
        or_skip(missing)


@pytest.mark.parametrize(
    ("version", "modules", "suits"),
    [
        ("25.0.3", "java.base jdk.jdi", True),
        ("17.0.15", "java.base jdk.jdi", False),
        ("25", "java.base", False),
    ],
    ids=["full", "too-old", "runtime-only"],
)
def test_only_a_full_new_jdk_is_taken(tmp_path, monkeypatch, version, modules, suits):
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch()
    (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    monkeypatch.setattr(elasticsearch_engine, "_JDK_FOLDERS", tmp_path)
    for name in ("ES_JAVA_HOME", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)
    if suits:
        assert elasticsearch_engine.find_jdk() == home
    else:
        with pytest.raises(cache.EngineUnavailableError, match="needs a full JDK"):
            elasticsearch_engine.find_jdk()


def test_a_group_ends_as_a_whole(tmp_path):
    """Elasticsearch's launcher has a child too, which must not outlive it."""
    group = Group(
        ["sh", "-c", "sleep 60 & sleep 60 & trap '' TERM; : > ready; wait; wait"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
        log=tmp_path / "log",
    )
    while len(members(group.pid)) < 3 or not (tmp_path / "ready").exists():
        assert group.running
    group.terminate(timeout=0.2)
    assert members(group.pid) == []
    assert group.returncode == -9


def test_ports_are_outside_the_range_of_clients():
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(free_port() < first for _ in range(20))
