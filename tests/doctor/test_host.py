from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from ascend_elk.doctor.findings import Finding

from .conftest import OVERLAY, THERE, FakeHost


def one(found: list[Finding], severity: str) -> Finding:
    (finding,) = [item for item in found if item.severity == severity]
    return finding


def severities(found: list[Finding]) -> set[str]:
    return {item.severity for item in found}


def test_a_sound_host_has_nothing_to_do(host: FakeHost) -> None:
    host.plog()
    host.answers["chronyc"] = "C0,192.0.2.1,2,1700000000.1,0.000012,0.1,0.1,1,0,0,0.1,0.1,64.0,Normal\n"
    host.process(90, "filebeat", {})
    host.write(
        "/usr/local/Ascend/driver/version.info", "Version=25.2.0\ncompatible_version_fw=[7.0.0,7.7.99]\n"
    )
    host.write("/usr/local/Ascend/firmware/version.info", "Version=7.7.0.6.236\n")
    assert severities(host.findings()) <= {"ok", "note"}


def test_without_a_log_root(host: FakeHost) -> None:
    assert "--root" in one(host.findings("log-roots"), "error").remedy


def test_roots_of_variables_and_options_are_read(host: FakeHost) -> None:
    host.plog(1, home="/data/work/log")
    host.plog(2, home="/mnt/containers/a/log")
    host.process(77, "python3", {"ASCEND_WORK_PATH": "/data/work"})
    found = {item.subject: item for item in host.findings("log-roots", roots=("/mnt/containers/*/log",))}
    assert found["/data/work/log"].data["files"] == 1
    assert "process 77" in found["/data/work/log"].text
    assert found["/mnt/containers/a/log"].data["files"] == 1


def test_logs_that_stay_in_a_container(host: FakeHost) -> None:
    host.plog()
    host.process(5, "python3", {"ASCEND_HOME_PATH": "/a"}, namespace=THERE, mounts=OVERLAY)
    kept = OVERLAY + "32 31 8:1 /data/job\\040one /root/ascend rw - ext4 /dev/sda1 rw\n"
    host.process(6, "python3", {"ASCEND_HOME_PATH": "/a"}, namespace=THERE, mounts=kept)
    host.process(7, "python3", {"ASCEND_HOME_PATH": "/a"}, namespace=THERE)
    found = {item.subject: item for item in host.findings("log-roots")}
    assert found["python3 (5)"].severity == "warning"
    assert "/root/ascend/log" in found["python3 (5)"].remedy
    assert found["python3 (6)"].severity == "ok"
    assert "/data/job one" in found["python3 (6)"].text
    assert found["python3 (7)"].severity == "note"


def test_logs_that_go_to_the_output(host: FakeHost) -> None:
    host.plog()
    host.process(5, "python3", {"ASCEND_SLOG_PRINT_TO_STDOUT": "1"})
    assert "into no file" in one(host.findings("log-roots"), "warning").text


@pytest.mark.parametrize(
    ("variable", "value", "check", "words"),
    [
        ("ASCEND_GLOBAL_LOG_LEVEL", "0", "level", "DEBUG"),
        ("ASCEND_GLOBAL_LOG_LEVEL", "4", "level", "nothing"),
        ("ASCEND_MODULE_LOG_LEVEL", "GE=1:HCCL=0", "level", "HCCL"),
        ("ASCEND_GLOBAL_EVENT_ENABLE", "0", "event-log", "events"),
    ],
)
def test_levels_of_processes(host: FakeHost, variable: str, value: str, check: str, words: str) -> None:
    host.plog()
    host.process(5, "python3", {variable: value})
    finding = one(host.findings(check), "warning")
    assert finding.subject == "python3 (5)"
    assert words in finding.text
    assert "unset" in finding.remedy


@pytest.mark.parametrize("value", ["1", "3", ""])
def test_levels_that_are_right(host: FakeHost, value: str) -> None:
    host.plog()
    host.process(5, "python3", {"ASCEND_GLOBAL_LOG_LEVEL": value, "ASCEND_MODULE_LOG_LEVEL": "GE=1"})
    assert severities(host.findings("level")) == {"ok"}


def test_debug_lines_and_the_daemons_settings(host: FakeHost) -> None:
    path = host.plog(level="DEBUG")
    host.write("/etc/slog.conf", "#global_level=3\nglobal_level=0 # left\nenableEvent=0\n")
    found = host.findings("level")
    assert {item.subject for item in found} == {"/etc/slog.conf", f"/{path.relative_to(host.root)}"}
    assert one(host.findings("event-log"), "warning").subject == "/etc/slog.conf"
    old = time.time() - 7200
    os.utime(path, (old, old))
    (host.root / "etc/slog.conf").unlink()
    assert severities(host.findings("level")) == {"ok"}


def test_growth_is_measured(host: FakeHost) -> None:
    path = host.plog()
    stop = threading.Event()

    def grow() -> None:
        while not stop.wait(0.02):
            with path.open("ab") as out:
                out.write(b"x" * 1000 + b"\n")

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        (finding,) = host.findings("disk", sample=0.5)
    finally:
        stop.set()
        thread.join()
    assert 5_000 < finding.data["bytes_per_second"] < 60_000
    (still,) = host.findings("disk", sample=0.1)
    assert still.data["bytes_per_second"] == 0


def test_a_disk_that_is_nearly_full(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    host.plog()
    usage = type("usage", (), {"total": 10**12, "used": 0, "free": 10**9})
    monkeypatch.setattr("ascend_elk.doctor.logs.shutil.disk_usage", lambda _: usage)
    (finding,) = host.findings("disk")
    assert finding.severity == "error"
    assert finding.remedy


def test_files_that_cannot_be_read(host: FakeHost, tmp_path: Path) -> None:
    path = host.plog()
    path.chmod(0o600)
    assert severities(host.findings("readable")) == {"ok"}
    if os.geteuid() != 0:
        path.chmod(0)
        assert one(host.findings("readable"), "error")
        return
    # As somebody else, who may enter every directory on the way.
    for parent in path.parents:
        if parent.is_relative_to(Path("/tmp")) and parent != Path("/tmp"):
            parent.chmod(0o755)
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            os.setuid(65534)
            finding = one(host.findings("readable"), "error")
            os.write(writer, finding.data["unreadable"][0].encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answers:
        assert answers.read() == f"/{path.relative_to(host.root)}"
    os.wait()


@pytest.mark.parametrize(
    ("tool", "answer", "severity"),
    [
        ("chronyc", "C0,192.0.2.1,2,1.1,0.000012,0,0,1,0,0,0,0,64.0,Normal\n", "ok"),
        ("chronyc", "C0,192.0.2.1,2,1.1,-1.5,0,0,1,0,0,0,0,64.0,Normal\n", "warning"),
        ("chronyc", "7F7F0101,,0,0.0,0.0,0,0,0,0,0,1.0,1.0,0.0,Not synchronised\n", "warning"),
        ("timedatectl", "yes\n", "ok"),
        ("timedatectl", "no\n", "warning"),
        ("neither", "", "note"),
    ],
)
def test_the_clock(host: FakeHost, tool: str, answer: str, severity: str) -> None:
    host.answers[tool] = answer
    assert severities(host.findings("clock")) == {severity}


def test_a_container_that_writes_in_utc(host: FakeHost) -> None:
    host.plog(1)
    host.plog(2, zone="UTC")
    found = host.findings("zone")
    assert "UTC+08:00" in one(found, "ok").text
    finding = one(found, "warning")
    assert finding.data == {"clock": "host", "seconds": -28800.0, "files": 1}
    assert "UTC+00:00" in finding.text
    assert "--timezone +00:00" in finding.remedy


def test_a_clock_that_no_zone_explains(host: FakeHost) -> None:
    path = host.plog(1)
    then = time.time() - 1000
    os.utime(path, (then, then))
    assert "no zone" in one(host.findings("zone"), "warning").text
    device = "[INFO] CCECPU(7,x):1970-01-01-08:00:20.000.000 [m.cpp:1] boot\n"
    path.unlink()
    host.write("/root/ascend/log/run/device-1/device-4021_20250302112031000.log", device)
    assert "1970" in one(host.findings("zone"), "note").text


def test_the_report_survives_rubbish(host: FakeHost) -> None:
    path = host.plog()
    path.write_bytes(bytes(range(256)) * 300)
    host.write("/usr/local/Ascend/driver/version.info", "\0\0=\n=x\nVersion\n")
    host.write("/var/lib/filebeat/registry/filebeat/log.json", "{not json}\n[]\n")
    (host.root / "root/ascend/log/loop").symlink_to(host.root / "root/ascend/log")
    found = host.findings()
    assert any("cannot be read" in item.text for item in found if item.check == "filebeat-lag")
