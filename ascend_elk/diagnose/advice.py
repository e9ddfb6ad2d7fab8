"""What to do about each rule's verdict, and the verdict in Chinese."""

from __future__ import annotations

from ascend_elk.diagnose.model import Card

# rule → (what to do, the same in Chinese, the finding in Chinese)
_ADVICE: dict[str, tuple[str, str, str]] = {
    "first-error": (
        "Read the first error of this card below and treat its cause; the time-outs of the other "
        "cards go with it.",
        "先处理该卡最早的非超时错误；其他卡上的超时会随之消失。",
        "最早出现非超时错误",
    ),
    "unknown-error": (
        "Look at this error first; if it is harmless, collect the missing logs named below and "
        "diagnose again.",
        "先查看该错误；若确认无害，请补充下列缺失日志后重新诊断。",
        "出现了其他卡没有的错误",
    ),
    "host-kill": (
        "Give the host more memory, or lower what the job keeps there (data loader workers, caches).",
        "为主机增加内存，或减少作业的主机内存占用（数据加载进程、缓存）。",
        "进程被主机内核杀死",
    ),
    "missing-at-init": (
        "Check that the processes of these ranks were started and see their own logs; if they run, check "
        "their route to the root rank's host (HCCL_SOCKET_IFNAME, firewall).",
        "确认这些 rank 的进程已启动并查看其日志；若已运行，检查其到 root 节点的网络"
        "（HCCL_SOCKET_IFNAME、防火墙）。",
        "建立通信域时未连接",
    ),
    "tls-minority": (
        "Set TLS alike on all cards (hccn_tool -i DEVICE -tls -g to read, -tls -s enable 0|1 to set).",
        "统一所有卡的 TLS 开关（hccn_tool -i 设备 -tls -g 查询，-tls -s enable 0|1 设置）。",
        "TLS 开关与其他卡不一致",
    ),
    "conflict-minority": (
        "Make all ranks run the same script, data split and CANN version; compare what this rank passes to "
        "the collective with its peers.",
        "保证所有 rank 的脚本、数据切分与 CANN 版本一致；比较该 rank 与其他 rank 的集合通信入参。",
        "通信参数或版本与其他卡不一致",
    ),
    "detected-link": (
        "Check the port and route between the two ends: hccn_tool -i DEVICE -link -g, -link_stat -g, -ping.",
        "检查两端网口与路由：hccn_tool -i 设备 -link -g、-link_stat -g、-ping。",
        "链路两端无法连接",
    ),
    "heartbeat-lost": (
        "See whether the process of this card still lives and how it ended (exit code, host dmesg, "
        "device logs).",
        "查看该卡进程是否存活及退出原因（退出码、主机 dmesg、device 日志）。",
        "心跳丢失",
    ),
    "heartbeat-mutual": (
        "Check the network between the two ends: hccn_tool -i DEVICE -link_stat -g, switch counters.",
        "检查两端之间的网络：hccn_tool -i 设备 -link_stat -g、交换机计数。",
        "互相丢失心跳",
    ),
    "heartbeat-stuck": (
        "Take the host and device stacks of this process while it hangs (asys collect -r=stacktrace "
        "--remote=PID).",
        "在卡住时采集该进程的主机与设备堆栈（asys collect -r=stacktrace --remote=PID）。",
        "卡住，未下发集合通信",
    ),
    "cqe-common-remote": (
        "Check this card's port and process: hccn_tool -i DEVICE -link_stat -g, and whether it ended "
        "earlier.",
        "检查该卡网口与进程：hccn_tool -i 设备 -link_stat -g，以及进程是否提前退出。",
        "被所有 RDMA 错误指为对端",
    ),
    "cqe-one-reporter": (
        "Check this card's own port first: it lost several peers at once (hccn_tool -i DEVICE "
        "-link_stat -g).",
        "先检查该卡自身网口：它同时失去多个对端（hccn_tool -i 设备 -link_stat -g）。",
        "同时失去多个 RDMA 对端",
    ),
    "cqe-pair": (
        "Check the path between the two ends: ports (-link_stat), retransmissions (-stat), switch.",
        "检查两端之间的链路：网口（-link_stat）、重传（-stat）、交换机。",
        "之间的 RDMA 链路中断",
    ),
    "wait-chain": (
        "See the logs and the process of this card: it is hung, ended early or never issued the operation.",
        "查看该卡的日志与进程：可能挂起、提前退出或未下发该算子。",
        "处于等待链的末端",
    ),
    "wait-cycle": (
        "Compare the operations that both ends issued (tag, order), then check TLS and network between them.",
        "比较两端下发的算子（tag、顺序），再检查两端 TLS 与网络。",
        "互相等待",
    ),
    "silent-rank": (
        "See the logs and the process of this card: it is hung, ended early or never issued the operation.",
        "查看该卡的日志与进程：可能挂起、提前退出或未下发该算子。",
        "没有报错，而其他卡都在等待",
    ),
    "behind": (
        "Find what kept this rank at an earlier operation: data loading, a branch of the script, a "
        "slow host.",
        "查找该 rank 落后于其他卡的原因：数据加载、脚本分支、主机慢。",
        "算子序号落后",
    ),
    "odd-operation": (
        "Compare the script's branches and data split of this rank with its peers.",
        "比较该 rank 与其他卡的脚本分支与数据切分。",
        "下发的算子与其他卡不同",
    ),
    "last-to-fail": (
        "Find what delayed this rank by more than the limit; raise HCCL_EXEC_TIMEOUT or "
        "HCCL_CONNECT_TIMEOUT only if the delay is meant.",
        "查找该 rank 迟到超过超时时间的原因；确属正常时才调大 HCCL_EXEC_TIMEOUT 或 HCCL_CONNECT_TIMEOUT。",
        "最后才开始等待",
    ),
    "lagging": (
        "Look at what this card computes: take its stacks while the others wait.",
        "在其他卡等待时采集该卡堆栈，查看其在执行什么。",
        "没有上报等待，落后于其他卡",
    ),
    "late-arrival": (
        "Compare this card's host load, data loading, clock frequency and temperature with its peers "
        "(npu-smi info -t common, host CPU); then profile a few steps of it and of a fast one.",
        "比较该卡与其他卡的主机负载、数据加载、频率与温度（npu-smi info -t common、主机 CPU），再对快"
        "慢卡做性能采集。",
        "总是最后进入集合通信",
    ),
}
_ADVICE["late-host"] = (
    "Compare this host's CPU load, memory, disk and data source with its peers (top, iostat, cgroup limits).",
    "比较该主机与其他主机的 CPU 负载、内存、磁盘与数据源（top、iostat、cgroup 限制）。",
    "所在主机的卡总是一起最后进入集合通信",
)
_ADVICE["retries"] = (
    "Check the port and cable of this card: hccn_tool -i DEVICE -stat -g (roce_new_pkt_rty_num), "
    "-link_stat -g.",
    "检查该卡网口与光模块：hccn_tool -i 设备 -stat -g（roce_new_pkt_rty_num）、-link_stat -g。",
    "重传次数远多于其他卡",
)
_ADVICE["throttled"] = (
    "Check cooling and power of this card: npu-smi info -t temp and -t power, -t common for its frequency.",
    "检查该卡散热与供电：npu-smi info -t temp、-t power，频率见 -t common。",
    "降频运行",
)
_ADVICE["issue-cost"] = (
    "Compare the CPU load and binding of this process with its peers (top -H, taskset -p, cgroup limits).",
    "比较该进程与其他进程的 CPU 负载与绑核（top -H、taskset -p、cgroup 限制）。",
    "所在主机下发算子耗时远高于其他卡",
)
_ADVICE["cqe-scattered"] = _ADVICE["cqe-pair"]
_ADVICE["odd-entry"] = _ADVICE["odd-operation"]
_ADVICE["stalls"] = (
    "Look for what stops this rank now and then: its data loading, garbage collection, saving, a "
    "flapping link.",
    "查找该 rank 间歇停顿的原因：数据加载、垃圾回收、保存模型、链路抖动。",
    "时常让其他卡等待",
)
_ADVICE["never-entered"] = _ADVICE["unconnected"] = _ADVICE["silent-rank"]


def remediation(rule: str) -> tuple[str, str]:
    """Return what to do about a rule's verdict, in English and Chinese; empty for an unknown rule."""
    en, zh, _ = _ADVICE.get(rule, ("", "", ""))
    return en, zh


def card_zh(card: Card) -> str:
    """Name a card in Chinese."""
    parts = [card.host or "", "" if card.device is None else f"设备 {card.device}"]
    where = " ".join(part for part in parts if part)
    if not where:
        where = card.address or ("" if card.rank is None else f"rank {card.rank}") or f"进程 {card.pid}"
    elif card.rank is not None:
        where += f"（rank {card.rank}）"
    return where


def sentence_zh(rule: str, cards: list[Card]) -> str:
    """Say the verdict in Chinese."""
    finding = _ADVICE.get(rule, ("", "", ""))[2]
    shown = "、".join(card_zh(card) for card in cards[:4])
    more = f"等 {len(cards)} 张卡" if len(cards) > 4 else ""
    return f"{shown}{more}{finding}。"
