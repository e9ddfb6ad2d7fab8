from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ascend_elk.cli import main


@dataclass
class Result:
    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run the command line as a person does; returns exit code and both outputs."""

    def call(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["ascend-elk", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capfd.readouterr()
        return Result(code, out, err)

    return call


PLOG = """\
[INFO] HCCL(4021,python3):2025-03-02-11:20:29.100.004 [topoinfo_detect.cc:506] [4021][HCCL_TRACE][Flat]SetupAgent rankNum[16], rank[9], rootInfo identifier[192.0.2.7%eth0_60000_0_17], server[192.0.2.8%eth0], serverPort[60000]deviceType[2], logicDevId[1], phydevId[1], deviceIp[198.51.100.9]
[INFO] RUNTIME(4021,python3):2025-03-02-11:20:30.100.004 [runtime.cc:1540] 4021 Start: ready
[ERROR] RUNTIME(4021,python3):2025-03-02-11:20:31.120.004 [stars_engine.cc:1548]4077 ProcLogicCqReport:Task run failed, device_id=1
  its second line
[INFO] RUNTIME(4021,python3):2025-03-02-11:20:32.120.004 [runtime.cc:1600] 4021 Stop: over
"""
DEVICE = """\
[INFO] CCECPU(77,aicpu_scheduler):2025-03-02-11:20:31.000.000 [main.cpp:270][Main][tid:77][AICPU_SCHEDULE] started
[ERROR] CCECPU(77,aicpu_scheduler):2025-03-02-11:20:31.119.000 [main.cpp:280][Main][tid:77][AICPU_SCHEDULE] task gone
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Two hosts with the same process id; worker-1 has a device side too."""
    for host in ("worker-0", "worker-1"):
        log = tmp_path / "logs" / host / "ascend" / "log"
        for path, text in (
            ("debug/plog/plog-4021_20250302112029000.log", PLOG),
            ("debug/device-1/device-4021_20250302112031000.log", DEVICE),
        ):
            if host == "worker-0" and "device" in path:
                continue
            (log / path).parent.mkdir(parents=True)
            (log / path).write_text(text)
    return tmp_path / "logs"
