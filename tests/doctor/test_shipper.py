"""Filebeat's registry, as a real Filebeat writes it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from ascend_elk.doctor.shipper import complete_length, read_registry
from tests.engines.filebeat import Filebeat

from .conftest import FakeHost


def registry(host: FakeHost, *lines: object, checkpoint: list[object] | None = None) -> Path:
    directory = host.root / "var/lib/filebeat/registry/filebeat"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "log.json").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    if checkpoint is not None:
        (directory / "7.json").write_bytes(orjson.dumps(checkpoint))
        (directory / "active.dat").write_text("/var/lib/filebeat/registry/filebeat/7.json")
    return directory


def entry(path: Path, host: FakeHost, offset: int) -> tuple[str, dict[str, object]]:
    status = path.stat()
    key = f"filestream::ascend-plog-run::native::{status.st_ino}-{status.st_dev}"
    meta = {"source": f"/{path.relative_to(host.root)}"}
    return key, {"cursor": {"offset": offset}, "meta": meta}


def test_delivered_behind_and_unknown(host: FakeHost) -> None:
    host.process(9, "filebeat", {})
    first, second = host.plog(1, age=600), host.plog(2, age=600)
    size = first.stat().st_size
    key, value = entry(first, host, size)
    registry(host, {"op": "set", "id": 8}, {"k": key, "v": value}, checkpoint=[])
    (finding,) = host.findings("filebeat-lag")
    assert finding.data == {"bytes": size, "files_behind": 1, "files_unknown": 1}
    assert str(second.relative_to(host.root)) in finding.text
    key2, value2 = entry(second, host, size)
    registry(
        host,
        {"op": "set", "id": 7},
        {"k": key2, "v": {}},
        checkpoint=[{"_key": key2, **value2}, {"_key": key, **value}],
    )
    (finding,) = host.findings("filebeat-lag")
    assert finding.severity == "ok"
    registry(
        host,
        {"op": "remove", "id": 8},
        {"k": key},
        checkpoint=[{"_key": key2, **value2}, {"_key": key, **value}],
    )
    (finding,) = host.findings("filebeat-lag")
    assert finding.data["files_unknown"] == 1


def test_a_last_line_without_its_end_is_no_lag(host: FakeHost) -> None:
    path = host.plog(1)
    size = path.stat().st_size
    with path.open("a") as out:
        out.write("[ERROR] HCCL(1,a):cut")
    old = time.time() - 600
    os.utime(path, (old, old))
    key, value = entry(path, host, size)
    registry(host, {"op": "set", "id": 1}, {"k": key, "v": value})
    (finding,) = host.findings("filebeat-lag")
    assert finding.severity == "ok", finding
    assert complete_length(path, path.stat().st_size) == size


def test_without_filebeat(host: FakeHost) -> None:
    host.plog()
    assert [item.severity for item in host.findings("filebeat")] == ["warning"]
    assert [item.severity for item in host.findings("filebeat-lag")] == ["note"]


def test_a_registry_that_is_cut(host: FakeHost) -> None:
    path = host.plog()
    key, value = entry(path, host, 5)
    directory = registry(host, {"op": "set", "id": 1}, {"k": key, "v": value}, {"op": "set", "id": 2})
    with (directory / "log.json").open("ab") as out:
        out.write(b'{"k":"filestream::a::nat')
    assert [state.offset for state in read_registry(directory)] == [5]


@pytest.mark.engines
def test_a_real_registry(filebeat: Callable[..., Filebeat], host: FakeHost) -> None:
    path = host.plog(lines=200, age=600)
    inputs = [
        {
            "type": "filestream",
            "id": "ascend-plog-run",
            "paths": [str(path.parent / "*.log")],
            "prospector.scanner.check_interval": "1s",
        }
    ]
    beat = filebeat({"filebeat.inputs": inputs})
    beat.read([path])
    shutil.copytree(beat.directory / "data", host.root / "var/lib/filebeat")
    (finding,) = host.findings("filebeat-lag")
    assert finding.severity == "ok", finding
    with path.open("ab") as out:
        out.write(path.read_bytes()[:500].rpartition(b"\n")[0] + b"\n")
    old = time.time() - 600
    os.utime(path, (old, old))
    (finding,) = host.findings("filebeat-lag")
    assert finding.severity == "warning"
    assert 0 < finding.data["bytes"] <= 500
    assert finding.data["files_unknown"] == 0
