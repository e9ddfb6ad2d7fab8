"""A host made of files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from ascend_elk.doctor.findings import Finding
from ascend_elk.doctor.host import HostOptions, check_host
from ascend_elk.doctor.machine import Machine

HERE, THERE = "mnt:[4026531840]", "mnt:[4026532999]"
OVERLAY = "31 1 0:50 / / rw,relatime - overlay overlay rw,lowerdir=/a\n"


@dataclass
class FakeHost:
    """A root directory that looks like a training host's."""

    root: Path
    zone: str = "Asia/Shanghai"
    answers: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.root / "etc").mkdir(parents=True)
        (self.root / "etc/localtime").symlink_to(f"/usr/share/zoneinfo/{self.zone}")
        self.process(1, "systemd", {})

    def write(self, path: str, text: str) -> Path:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def plog(
        self,
        pid: int = 4021,
        *,
        home: str = "/root/ascend/log",
        level: str = "INFO",
        zone: str | None = None,
        lines: int = 3,
        age: float = 5,
    ) -> Path:
        """A log whose last line was written ``age`` seconds ago, in the zone of its writer."""
        when = datetime.now(ZoneInfo(zone or self.zone)).timestamp() - age
        stamp = datetime.fromtimestamp(when, ZoneInfo(zone or self.zone)).strftime("%Y-%m-%d-%H:%M:%S")
        line = f"[{level}] HCCL({pid},python3):{stamp}.123.456 [a.cc:1] [{pid}]ready\n"
        path = self.write(f"{home}/run/plog/plog-{pid}_20250302112029000.log", line * lines)
        os.utime(path, (when, when))
        return path

    def process(
        self,
        pid: int,
        name: str,
        environment: Mapping[str, str],
        *,
        namespace: str = HERE,
        mounts: str = "",
    ) -> None:
        directory = self.root / f"proc/{pid}"
        (directory / "ns").mkdir(parents=True)
        (directory / "ns/mnt").symlink_to(namespace)
        (directory / "environ").write_text("".join(f"{key}={value}\0" for key, value in environment.items()))
        (directory / "comm").write_text(f"{name}\n")
        (directory / "mountinfo").write_text(mounts)

    def machine(self) -> Machine:
        def run(command: Sequence[str]) -> str | None:
            return self.answers.get(command[0])

        return Machine(self.root, self.environment, run)

    def findings(self, check: str | None = None, **options: object) -> list[Finding]:
        chosen = HostOptions(**{"sample": 0, **options})  # type: ignore[arg-type]
        found = list(check_host(self.machine(), chosen))
        return [item for item in found if check is None or item.check == check]


MakeHost = Callable[..., FakeHost]


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path / "host")
