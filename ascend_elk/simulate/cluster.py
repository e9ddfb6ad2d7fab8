"""A job on a cluster: who runs where, and the files into which each process writes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import PurePosixPath

from ascend_elk.cann import Version

START = datetime(2025, 3, 2, 10, 0)
CONNECT_TIMEOUT = 120
EXEC_TIMEOUT = 1836


@dataclass(frozen=True)
class Wording:
    """How one CANN version writes what changed between versions (docs/simulate.md names the sources)."""

    hccl_blank: str
    hccl_pid: bool
    stage_keys: bool
    aicore: str
    aicore_error: str
    notify: str
    report: str

    @classmethod
    def of(cls, cann: Version) -> Wording:
        """Choose the wording of a version."""
        newer = cann >= Version.parse("9.1")
        return cls(
            hccl_blank=" " if cann >= Version.parse("8.1.RC1") else "",
            hccl_pid=cann < Version.parse("7.0.RC1"),
            stage_keys=cann >= Version.parse("8.5"),
            aicore=("[DFX_INFO]AI Core kernel execution failed" if newer else "Aicore kernel execute failed"),
            aicore_error=(
                "An error occurs on the device(chipId:{chip}, dieId:0), the serial number is {n}, the error is "
                "aicore error, core id is {core}, error code = 0x800000"
                if newer
                else "The error from device(chipId:{chip}, dieId:0), serial number is {n}, there is an exception "
                "of aicore error, core id is {core}, error code = 0x800000"
                if cann >= Version.parse("8.2")
                else "The error from device(chipId:{chip}, dieId:0), serial number is {n}, there is an aicore "
                "error exception, core id is {core}, error code = 0x800000"
            ),
            notify="Notify wait execution failed" if newer else "Notify wait execute failed",
            report="[PID: {pid}] {stamp} {title}({code}): {text}"
            if cann >= Version.parse("8.3")
            else "{code}: [PID: {pid}] {stamp} {text}"
            if cann >= Version.parse("8.0.RC3")
            else "{code}: {text}",
        )


def stamp(time: datetime) -> str:
    """A time as CANN writes it."""
    return f"{time:%Y-%m-%d-%H:%M:%S}.{time.microsecond // 1000:03d}.{time.microsecond % 1000:03d}"


@dataclass
class Process:
    """One rank: its place, and what it writes, by kind of file, as (seconds since the start, line)."""

    host: str
    device: int
    rank: int
    pid: int
    thread: int
    device_pid: int
    server: str
    device_ip: str
    job: Job = field(repr=False)
    lines: dict[str, list[tuple[float, str]]] = field(default_factory=dict, repr=False)

    def _write(self, kind: str, time: float, level: str, module: str, body: str, pid: int, name: str) -> None:
        moment = self.job.moment(self.host, time, kind == "device")
        self.lines.setdefault(kind, []).append(
            (time, f"[{level}] {module}({pid},{name}):{stamp(moment)} {body}")
        )

    def run(self, time: float, module: str, body: str, level: str = "INFO") -> None:
        """Write into run/plog."""
        self._write("run", time, level, module, body, self.pid, "python3")

    def debug(self, time: float, module: str, body: str, level: str = "ERROR") -> None:
        """Write into debug/plog; INFO and DEBUG only where the job logs them."""
        if level in ("ERROR", "WARNING") or self.job.level != "error":
            self._write("debug", time, level, module, body, self.pid, "python3")

    def device_side(self, time: float, module: str, body: str, level: str = "ERROR") -> None:
        """Write into the device side's log."""
        self._write("device", time, level, module, body, self.device_pid, "aicpu_scheduler")

    def console(self, time: float, text: str) -> None:
        """Print on the console."""
        self.lines.setdefault("console", []).append((time, text))

    def hccl(self, file: str, message: str, thread: int | None = None) -> str:
        """A body as HCCL of this version writes it."""
        wording = self.job.wording
        pid = f"[{self.pid}]" if wording.hccl_pid else ""
        return f"[{file}]{wording.hccl_blank}{pid}[{thread or self.thread}]{message}"

    def runtime(self, file: str, function: str, message: str) -> str:
        """A body as RUNTIME writes its errors."""
        return f"[{file}]{self.thread} {function}:{message}"

    def report(self, time: float, code: str, title: str, text: str) -> None:
        """Print a report code on the console, as the error manager of this version does."""
        moment = stamp(self.job.moment(self.host, time))
        self.console(
            time,
            self.job.wording.report.format(pid=self.pid, stamp=moment, title=title, code=code, text=text),
        )


@dataclass
class Job:
    """All ranks of a job, and what hosts and devices write beside them."""

    hosts: int
    devices: int
    cann: Version
    rng: random.Random
    steps: int
    level: str
    skew: dict[str, float]
    device_utc: bool
    wording: Wording
    identifier: str
    processes: list[Process] = field(default_factory=list)
    messages: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    events: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    start: datetime = START

    @classmethod
    def make(
        cls,
        hosts: int,
        devices: int,
        cann: Version,
        rng: random.Random,
        steps: int,
        level: str,
        skew_seconds: float,
        device_utc: bool,
    ) -> Job:
        """Place the ranks; process ids repeat between hosts, as they do in containers."""
        names = [f"worker-{number}" for number in range(hosts)]
        job = cls(
            hosts,
            devices,
            cann,
            rng,
            steps,
            level,
            {name: round(rng.uniform(-skew_seconds, skew_seconds), 6) for name in names},
            device_utc,
            Wording.of(cann),
            f"10.20.0.1%eth0_60000_0_{rng.randrange(10**15, 10**16)}",
        )
        for number, name in enumerate(names):
            first = rng.randrange(1000, 60_000)
            for device in range(devices):
                pid = first + 2 * device
                job.processes.append(
                    Process(
                        host=name,
                        device=device,
                        rank=number * devices + device,
                        pid=pid,
                        thread=pid + rng.randrange(100, 900),
                        device_pid=rng.randrange(10_000, 30_000),
                        server=f"10.20.{number // 250}.{number % 250 + 1}",
                        device_ip=f"192.168.{100 + number // 30}.{number % 30 * 8 + device + 1}",
                        job=job,
                    )
                )
        return job

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.processes)

    def moment(self, host: str, time: float, on_device: bool = False) -> datetime:
        """What the clock of a host, or of its devices, shows at a time."""
        shift = self.skew[host] - (8 * 3600 if on_device and self.device_utc else 0)
        return self.start + timedelta(seconds=time + shift)

    def neighbours(self, process: Process) -> list[Process]:
        """Ranks of the same host."""
        return [other for other in self.processes if other.host == process.host]

    def message(self, host: str, time: float, text: str) -> None:
        """Write into the host's system log."""
        moment = self.moment(host, time)
        line = f"{moment:%b} {moment.day:2d} {moment:%H:%M:%S} {host} {text}"
        self.messages.setdefault(host, []).append((time, line))

    def event(self, process: Process, time: float, event_id: str, text: str, severity: int) -> None:
        """Write a fault event of a device."""
        moment = self.moment(process.host, time, True)
        line = (
            f"[EVENT] DRV(3423,dms_poll_task):{stamp(moment)} [dms_event.c:1399][fault_manager]"
            f"[{time + 8000:.6f}] event_id={event_id}; device_id={process.device}; {text}; "
            f"severity={severity}; assertion=1"
        )
        self.events.setdefault(process.host, []).append((time, line))

    def files(self) -> Iterator[tuple[PurePosixPath, list[str]]]:
        """Every file with its lines, in order of time."""
        created = f"{self.start:%Y%m%d%H%M%S}"
        flat = self.cann < Version.parse("5.0.5")
        for process in self.processes:
            root = PurePosixPath(process.host, "ascend", "log")
            number = f"{created}{process.device:03d}"
            for kind, lines in process.lines.items():
                mode = "run" if kind == "run" else "debug"
                top = root if flat else root / mode
                if kind == "console":
                    path = PurePosixPath(process.host, "console", f"rank-{process.rank}.log")
                elif kind == "device":
                    path = top / f"device-{process.device}" / f"device-{process.pid}_{number}.log"
                else:
                    number = f"{created}{process.device + (500 if kind == 'run' else 0):03d}"
                    path = top / "plog" / f"plog-{process.pid}_{number}.log"
                yield path, _ordered(lines)
        for host, lines in self.messages.items():
            yield PurePosixPath(host, "messages"), _ordered(lines)
        for host, lines in self.events.items():
            path = PurePosixPath(host, "slog", "dev-os-0", "run", "event", f"event_{created}000.log")
            yield path, _ordered(lines)


def _ordered(lines: list[tuple[float, str]]) -> list[str]:
    return [line for _, line in sorted(lines, key=lambda pair: pair[0])]
