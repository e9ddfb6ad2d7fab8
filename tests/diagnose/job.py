"""A job that writes lines: what the rules' tests are told with."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

START = datetime(2025, 3, 2, 10, 0, 0, tzinfo=timezone.utc)
COMM = "10.0.0.10%eth0_60000_0_1740909600000000"


@dataclass
class PlainEvent:
    """An event as the service has it: no line number."""

    fields: dict[str, Any]


@dataclass
class Job:
    """Hosts with devices, ranks along them; rank r runs as process 1000 + r on device r % devices."""

    hosts: int = 2
    devices: int = 2
    comm: str = COMM
    events: list[PlainEvent] = field(default_factory=list)
    skew: dict[int, float] = field(default_factory=dict)
    pid_base: int = 1000

    @property
    def size(self) -> int:
        return self.hosts * self.devices

    def server(self, rank: int) -> str:
        return f"10.0.0.{10 + rank // self.devices}"

    def address(self, rank: int) -> str:
        return f"192.0.2.{10 + rank}"

    def line(
        self, rank: int, at: float, message: str, level: str = "ERROR", module: str = "HCCL", **fields: Any
    ) -> None:
        """Write a line of a rank's process, ``at`` seconds after the start."""
        host = rank // self.devices
        pid = self.pid_base + rank
        kind = "run" if level == "INFO" else "debug"
        moment = START + timedelta(seconds=at + self.skew.get(host, 0.0))
        self.events.append(
            PlainEvent(
                {
                    "@timestamp": f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z",
                    "ascend.source": "plog",
                    "event.dataset": "ascend.plog",
                    "host.name": f"worker-{host}",
                    "log.file.path": f"worker-{host}/log/{kind}/plog/plog-{pid}_20250302100000000.log",
                    "log.offset": len(self.events),
                    "log.level": level,
                    "ascend.module": module,
                    "process.pid": pid,
                    "message": message,
                    **fields,
                }
            )
        )

    def start(self, *ranks: int, at: float = 0.0) -> None:
        """Write the identity lines of ranks; of all without any."""
        for rank in ranks or range(self.size):
            device = rank % self.devices
            self.line(
                rank,
                at,
                f"[HCCL_TRACE][Flat]SetupAgent rankNum[{self.size}], rank[{rank}], rootInfo "
                f"identifier[{self.comm}], "
                f"server[{self.server(rank)}%eth0], serverPort[60000]deviceType[2], logicDevId[{device}], "
                f"phydevId[{device}], deviceIp[{self.address(rank)}]",
                "INFO",
            )
            self.line(
                rank,
                at + 3,
                f"[Communicator Key Info]identifier[{self.comm}] rankSize[{self.size}] "
                f"serverNum[{self.hosts}]",
                "INFO",
            )
            self.line(
                rank,
                at + 3,
                f"[LocalRank Key Info]userRank[{rank}] hostIp[{self.server(rank)}] devicePhyId[{device}] "
                f"server[{self.server(rank)}] deviceIp[{self.address(rank)}] superPodId[0]",
                "INFO",
            )

    def notify_timeout(
        self, rank: int, at: float, index: int = 21, tag: str = "AllReduce", count: int = 256
    ) -> None:
        """Write the block of a notify wait that ran out."""
        head = "[TaskExecStage][Timeout][HOST]Task run failed, "
        self.line(
            rank,
            at,
            f"{head}base information is streamID:[2], taskID[21], tag[{tag}_{self.comm}], "
            "AlgType(level 0-1-2):[ring].",
        )
        self.line(
            rank,
            at + 0.001,
            f"{head}groupRank information is group:[{self.comm}], user define information[], "
            f"rankSize[{self.size}], rankId[{rank}].",
        )
        self.line(
            rank,
            at + 0.002,
            f"{head}opData information is timeStamp:[2025-03-02-10:00:10.490.253], "
            f"deviceId[{rank % self.devices}], "
            f"index[{index}], count[{count}], reduceType[sum], src[0x1], dst[0x2], dataType[float32].",
        )

    def socket_timeout(self, rank: int, remote: int, at: float) -> None:
        """Write the lines of a link that was not set up."""
        self.line(
            rank,
            at,
            f"[Wait][LinkEstablish]wait socket establish timeout, role[0] rank[{rank}] timeout[120 s]",
        )
        self.line(
            rank,
            at + 0.0005,
            f"   |  {self.address(remote)}({remote})   |  16666  |   {self.address(rank)}({rank})   |  0  "
            "|  client  | time out |",
        )

    def collective(
        self, rank: int, at: float, op: str = "AllReduce", count: int = 1024, comm: str | None = None
    ) -> None:
        """Write the entry of a collective operation."""
        self.line(
            rank,
            at,
            f"Entry-Hccl{op}: tag[{op}_{comm or self.comm}], sendBuf[0x1], recvBuf[0x2], count[{count}], "
            f"dataType[float32], op[sum], localRank[{rank}], streamId[2],comm[0xfffe], "
            f"deviceLogicId[{rank % self.devices}]",
            "INFO",
        )
