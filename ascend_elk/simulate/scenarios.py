"""The faults: what each card of a job writes when one of them happens.

Every scenario is a function that plays a job and returns who was at fault. Sources of the behaviour are listed
in docs/simulate.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

from ascend_elk.simulate.cluster import CONNECT_TIMEOUT, Job, Process
from ascend_elk.simulate.life import (
    FIRST_STEP,
    INIT,
    STEP,
    Lateness,
    background,
    end_well,
    enter_collective,
    introduce,
    listen,
    train,
    wait_for_link,
    wait_in_vain,
)


@dataclass(frozen=True)
class Fault:
    """What really happened.

    Attributes:
        kind: first-failure, straggler, link or healthy.
        cards: the ranks at fault.
        acceptable: other sets of ranks that are right too.
        code, signal: what the fault's own line carries, where it has one.
        time: seconds from the start of the logs.
    """

    kind: str
    cards: tuple[int, ...] = ()
    acceptable: tuple[tuple[int, ...], ...] = ()
    code: str | None = None
    signal: str | None = None
    time: float | None = None


Play = Callable[[Job], Fault]


@dataclass(frozen=True)
class Scenario:
    """A fault that can be simulated."""

    name: str
    kind: str
    description: str
    play: Play


SCENARIOS: dict[str, Scenario] = {}


def _scenario(name: str, kind: str, description: str) -> Callable[[Play], Play]:
    def register(play: Play) -> Play:
        SCENARIOS[name] = Scenario(name, kind, description, play)
        return play

    return register


def _victim(job: Job) -> Process:
    """The card that the fault hits; not the root of the communicator, whose silence would look different."""
    return job.processes[job.rng.randrange(1, job.size)] if job.size > 1 else job.processes[0]


def _running(job: Job, stop: dict[int, int] | None = None, lateness: Lateness | None = None) -> float:
    introduce(job)
    listen(job)
    end = train(job, job.steps, lateness, stop)
    background(job, end)
    return end


def _others(job: Job, process: Process) -> Iterable[Process]:
    return (other for other in job.processes if other.rank != process.rank)


def _fails_alone(
    job: Job, fail: Callable[[Process, float], None], ffts: bool = False
) -> tuple[Process, float]:
    """One card fails by itself in the middle of a step; all others wait for it until their limit."""
    bad = _victim(job)
    last = max(job.steps - 1, 0)
    end = _running(job, {bad.rank: last - 1})
    time = end - STEP + 0.3
    fail(bad, time)
    for other in _others(job, bad):
        wait_in_vain(other, end - STEP, index=2 * job.steps, ffts=ffts)
    return bad, time


@_scenario("healthy", "healthy", "A run that ends well, with the harmless noise of every run.")
def _play_healthy(job: Job) -> Fault:
    end = _running(job)
    end_well(job, end)
    return Fault("healthy")


@_scenario("healthy-short", "healthy", "A run of two steps.")
def _play_healthy_short(job: Job) -> Fault:
    introduce(job)
    listen(job)
    end = train(job, 2)
    background(job, end, 4)
    end_well(job, end)
    return Fault("healthy")


@_scenario(
    "healthy-pauses", "healthy", "A run that stands still for evaluation now and then: all ranks alike."
)
def _play_healthy_pauses(job: Job) -> Fault:
    end = _running(job, lateness=lambda process, step: 40.0 if step % 10 == 9 else 0.0)
    end_well(job, end)
    return Fault("healthy")


@_scenario("healthy-warnings", "healthy", "A run with many harmless warnings and a healed retry.")
def _play_healthy_warnings(job: Job) -> Fault:
    end = _running(job)
    for process in job.processes:
        for _ in range(job.rng.randrange(6)):
            text = f"[ge_context.cc:55]{process.thread} GetOption:option {job.rng.randrange(99)} is not set"
            process.debug(job.rng.uniform(INIT, end), "GE", text, "WARNING")
    end_well(job, end)
    return Fault("healthy")


@_scenario(
    "aicore-exception", "first-failure", "An AI Core exception on one card; the others time out waiting."
)
def _play_aicore_exception(job: Job) -> Fault:
    bad, time = _fails_alone(job, _aicore)
    return Fault("first-failure", (bad.rank,), code="507015", signal="aicore", time=time)


def _aicore(process: Process, time: float) -> None:
    wording = process.job.wording
    number, core = process.job.rng.randrange(2, 300), process.job.rng.randrange(24)
    error = wording.aicore_error.format(chip=process.device, n=number, core=core)
    where = f"device_id={process.device}, stream_id=2, report_stream_id=2, task_id=6, flip_num=0"
    for offset, (function, text) in enumerate(
        (
            ("ProcessStarsCoreErrorInfo", f"{error}, dump info: pc start: 0x12c0c0052000"),
            (
                "ProcessStarsCoreErrorInfo",
                "The extend info: errcode:(0, 0x800000, 0) errorStr: The DDR address of the MTE instruction is out of range.",
            ),
            (
                "PrintCoreInfo",
                f"{wording.aicore}, {where}, fault kernel_name=add_custom_0, program id=12, hash=17.",
            ),
            ("SetStarsResultForDavinciTask", "AICORE Kernel task happen error, retCode=0x26."),
        )
    ):
        process.debug(
            time + offset * 0.001, "RUNTIME", process.runtime("device_error_proc.cc:1325", function, text)
        )
    process.report(time + 0.1, "EZ9999", "Inner_Error", "Inner Error!")
    process.console(
        time + 0.2,
        f"[ERROR] {process.job.start:%Y-%m-%d-%H:%M:%S} (PID:{process.pid}, Device:{process.device}, RankID:{process.rank}) "
        "ERR00100 PTA call acl api failed\nRuntimeError: NPU function error: aclrtSynchronizeStream, "
        "error code is 507015",
    )


@_scenario(
    "aicpu-exception", "first-failure", "An AI CPU exception on one card; the others time out waiting."
)
def _play_aicpu_exception(job: Job) -> Fault:
    def fail(process: Process, time: float) -> None:
        where = f"device_id={process.device}, stream_id=4, task_id=9"
        text = f"Aicpu kernel execute failed, {where}, flip_num=0, fault so_name=libaicpu.so, fault kernel_name=TopK, errcode:21008"
        process.debug(
            time, "RUNTIME", process.runtime("device_error_proc.cc:880", "PrintAicpuErrorInfo", text)
        )
        text = "AICPU Kernel task happen error, retCode=0x2a."
        process.debug(
            time + 0.001,
            "RUNTIME",
            process.runtime("davinci_task.cc:209", "SetStarsResultForDavinciTask", text),
        )
        process.device_side(
            time - 0.01,
            "CCECPU",
            f"[ae_kernel_lib.cpp:105][CallKernelApi][tid:{process.device_pid}][AICPU_PROCESSER] kernel TopK failed, ret 21008",
        )

    bad, time = _fails_alone(job, fail)
    return Fault("first-failure", (bad.rank,), code="507018", signal="aicpu", time=time)


@_scenario(
    "notify-timeout-silent", "first-failure", "One rank hangs and writes nothing; all others time out."
)
def _play_notify_timeout_silent(job: Job) -> Fault:
    bad, time = _fails_alone(job, lambda process, time: None)
    return Fault("first-failure", (bad.rank,), code="EI0002", signal="timeout", time=time)


@_scenario("ffts-timeout-silent", "first-failure", "As above, the wait is an FFTS+ task.")
def _play_ffts_timeout_silent(job: Job) -> Fault:
    bad, time = _fails_alone(job, lambda process, time: None, ffts=True)
    return Fault("first-failure", (bad.rank,), code="EI0002", signal="timeout", time=time)


@_scenario("hbm-ecc", "first-failure", "A multi-bit ECC error of the memory of one card.")
def _play_hbm_ecc(job: Job) -> Fault:
    def fail(process: Process, time: float) -> None:
        job.event(
            process,
            time - 0.5,
            "0x80e01801",
            "node_type=0x70[HBM]; node_id=0; event_type=0x1[multi bit ecc]",
            3,
        )
        text = f"HBM MULTI BIT ECC, Uncorrectable ECC, device_id={process.device}, retCode=0x5a."
        process.debug(time, "RUNTIME", process.runtime("device_error_proc.cc:1500", "ProcessHbmError", text))
        process.console(time + 0.2, "RuntimeError: HBM MULTI BIT ECC ERROR, error code is 507054")

    bad, time = _fails_alone(job, fail)
    return Fault("first-failure", (bad.rank,), code="507054", signal="ecc", time=time)


@_scenario("device-lost", "first-failure", "The driver loses one device.")
def _play_device_lost(job: Job) -> Fault:
    def fail(process: Process, time: float) -> None:
        text = f"Device[{process.device}] lost heartbeat."
        process.debug(time, "RUNTIME", process.runtime("device_state.cc:40", "DeviceStateCallback", text))
        job.message(
            process.host,
            time,
            f"kernel: [{time + 9000:.6f}] [ascend] [drv_pcie] [ERROR] [devdrv_heartbeat 310] device {process.device} heartbeat lost",
        )
        process.console(time + 0.2, "RuntimeError: NPU function error: error code is 507010")

    bad, time = _fails_alone(job, fail)
    return Fault("first-failure", (bad.rank,), code="507010", signal="device-lost", time=time)


@_scenario(
    "out-of-memory", "first-failure", "One card runs out of memory, its peer sees the connection close."
)
def _play_out_of_memory(job: Job) -> Fault:
    def fail(process: Process, time: float) -> None:
        text = f"halMemAlloc failed:size=2147483648(bytes), type=2, moduleId=3, drvFlag=100, drvRetCode=6, device_id={process.device}, ErrCode=207001"
        process.debug(
            time, "RUNTIME", process.runtime("npu_driver.cc:1000", "DevMemAllocHugePageManaged", text)
        )
        process.console(
            time + 0.1,
            f"RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU {process.device}; 60.97 GiB total capacity)",
        )
        peer = job.processes[(process.rank + 1) % job.size]
        message = "[Recv][RaSocket]errNo[0x000000000500000d] recv fail, data[0xfffceb7ee5e8], size[48]"
        peer.debug(time + 0.4, "HCCL", peer.hccl("hccl_socket.cc:210", message))

    bad, time = _fails_alone(job, fail)
    return Fault("first-failure", (bad.rank,), code="207001", signal="oom", time=time)


@_scenario("host-oom-kill", "first-failure", "The host's kernel kills one process for want of memory.")
def _play_host_oom_kill(job: Job) -> Fault:
    def fail(process: Process, time: float) -> None:
        job.message(
            process.host,
            time,
            f"kernel: [{time + 9000:.6f}] Out of memory: Killed process {process.pid} (python3) total-vm:98304000kB, anon-rss:60129542kB",
        )

    bad, time = _fails_alone(job, fail)
    return Fault("first-failure", (bad.rank,), signal="oom", time=time)


@_scenario(
    "disk-full",
    "first-failure",
    "A forgotten DEBUG level fills the disk of one host; its first card dies of it.",
)
def _play_disk_full(job: Job) -> Fault:
    def fail(process: Process, time: float) -> None:
        for number in range(300):
            text = f"[event_pool.cc:89] {process.thread} FreeEventId: free event_id={number}"
            process.debug(time - 3 + number * 0.01, "RUNTIME", text, "WARNING")
        process.debug(
            time,
            "PROFILING",
            f"[file_aging.cpp:61] (tid:{process.thread}) Available volume:0 (0MB) less than 20MB. Data will not be collected.",
        )
        process.console(time + 0.1, "OSError: [Errno 28] No space left on device")

    bad, time = _fails_alone(job, fail)
    return Fault("first-failure", (bad.rank,), signal="disk-full", time=time)


@_scenario("sdma-error", "first-failure", "A copy on one card hits an address without a page.")
def _play_sdma_error(job: Job) -> Fault:
    def fail(process: Process, time: float) -> None:
        text = (
            f"The error from device({process.device}), serial number is 4. there is a sdma error, sdma channel is 2, "
            "the channel exist the following problems: The SMMU returns a Terminate error. cqeStatus=0x3"
        )
        process.debug(
            time, "RUNTIME", process.runtime("device_error_proc.cc:652", "ProcessSdmaErrorInfo", text)
        )

    bad, time = _fails_alone(job, fail)
    return Fault("first-failure", (bad.rank,), signal="sdma", time=time)


@_scenario("cqe-error", "link", "RDMA gives up on one remote card: several ranks name it.")
def _play_cqe_error(job: Job) -> Fault:
    bad = _victim(job)
    end = _running(job, {bad.rank: max(job.steps - 2, 0)})
    time = end - STEP + 4.3
    reporters = [other for other in _others(job, bad) if other.device == bad.device or job.hosts == 1][:3]
    for other in reporters or list(_others(job, bad))[:3]:
        at = time + job.rng.uniform(0, 1)
        moment = job.moment(other.host, at)
        message = (
            f"[HeartbeatAbnormal][ROCE CQE ERROR]cqe error status[12], time:[{moment:%Y-%m-%d %H:%M:%S.%f}], "
            f"localInfo{{server[{other.server}],deviceId[{other.device}],deviceIp[{other.device_ip}]}}, "
            f"remoteIP{{server[{bad.server}],deviceId[{bad.device}],deviceIp[{bad.device_ip}]}}"
        )
        other.debug(at, "HCCL", other.hccl("heartbeat.cc:551", message))
        other.debug(
            at - 0.1,
            "HCCP",
            f"[ra_hdc_lite.c:300]tid:{other.thread},ra_hdc_lite_period_poll_cqe(300) : [create][ra_hdc_period_poll]failed CQE status[12], wr[0]",
        )
    for other in _others(job, bad):
        wait_in_vain(other, end - STEP, index=2 * job.steps)
    return Fault("link", (bad.rank,), code="12", signal="cqe", time=time)


@_scenario("nic-down", "link", "The network port of one card goes down; many peers lose it.")
def _play_nic_down(job: Job) -> Fault:
    bad = _victim(job)
    end = _running(job, {bad.rank: max(job.steps - 2, 0)})
    time = end - STEP + 0.3
    job.event(bad, time, "0x81078603", "node_type=0x83[PORT]; node_id=0; event_type=0x3[link up to down]", 2)
    text = f"[rs_epoll.c:88]tid:{bad.thread},rs_link_event(88) : phy_id({bad.device}) network port is down"
    bad.debug(time + 0.2, "HCCP", text)
    bad.report(time + 0.3, "EJ0002", "Network_Port_Down", "The network port is down.")
    for other in _others(job, bad):
        wait_in_vain(other, end - STEP, index=2 * job.steps)
    return Fault("first-failure", (bad.rank,), code="EJ0002", signal="link", time=time)


@_scenario("heartbeat-lost", "first-failure", "One process vanishes; its neighbours lose its heartbeat.")
def _play_heartbeat_lost(job: Job) -> Fault:
    def fail(process: Process, time: float) -> None:
        near = [other for other in job.neighbours(process) if other.rank != process.rank][:2]
        far = [
            other for other in job.processes if other.device == process.device and other.host != process.host
        ][:2]
        for informer in [*near, *far]:
            at = time + 30 + job.rng.uniform(0, 2)
            message = (
                f"[TaskExecStage][HeartbeatAbnormal]local rank [{informer.server}/{informer.device}]: crimer rank "
                f"[{process.server}/{process.device}] status[LOST] by informer rank [{informer.server}/{informer.device}]"
            )
            informer.run(at, "HCCL", informer.hccl("heartbeat.cc:700", message), "WARNING")

    bad, time = _fails_alone(job, fail)
    return Fault("first-failure", (bad.rank,), signal="heartbeat", time=time)


@_scenario("heartbeat-stuck", "first-failure", "The host code of one card is stuck outside any collective.")
def _play_heartbeat_stuck(job: Job) -> Fault:
    def fail(process: Process, time: float) -> None:
        where = f"[{process.server}/{process.device}]"
        for other in list(_others(job, process))[:4]:
            message = (
                f"[TaskExecStage][HeartbeatAbnormal]local rank [{other.server}/{other.device}]: crimer rank {where} "
                f"status[STUCK] by informer rank {where}"
            )
            other.run(time + 640, "HCCL", other.hccl("heartbeat.cc:700", message), "WARNING")

    bad, time = _fails_alone(job, fail)
    return Fault("first-failure", (bad.rank,), signal="heartbeat", time=time)


@_scenario("process-crash", "first-failure", "One process dies of a segmentation fault.")
def _play_process_crash(job: Job) -> Fault:
    def fail(process: Process, time: float) -> None:
        process.console(
            time,
            'Fatal Python error: Segmentation fault\n\nCurrent thread (most recent call first):\n  File "train.py", line 88 in step',
        )

    bad, time = _fails_alone(job, fail)
    return Fault("first-failure", (bad.rank,), signal="signal", time=time)


@_scenario(
    "socket-timeout-silent", "first-failure", "At link set-up one rank never connects; its peers wait for it."
)
def _play_socket_timeout_silent(job: Job) -> Fault:
    bad = _victim(job)
    introduce(job)
    listen(job)
    background(job, FIRST_STEP)
    for other in _others(job, bad):
        enter_collective(other, FIRST_STEP + job.rng.uniform(0, 0.1), "AllReduce", 8192)
        wait_for_link(other, bad, FIRST_STEP)
    return Fault("first-failure", (bad.rank,), code="EI0006", signal="link", time=FIRST_STEP)


@_scenario(
    "wait-chain", "first-failure", "Ranks wait for each other in a chain; its last one writes nothing."
)
def _play_wait_chain(job: Job) -> Fault:
    order = job.rng.sample(range(job.size), min(job.size, 4))
    introduce(job)
    listen(job)
    background(job, FIRST_STEP)
    for waiter, cause in pairwise(order):
        wait_for_link(job.processes[waiter], job.processes[cause], FIRST_STEP)
    for process in job.processes:
        if process.rank not in order:
            wait_for_link(process, job.processes[order[0]], FIRST_STEP)
    return Fault("first-failure", (order[-1],), code="EI0006", signal="link", time=FIRST_STEP)


@_scenario("wait-cycle", "link", "Two ranks wait for each other, all others for them.")
def _play_wait_cycle(job: Job) -> Fault:
    one, two = job.rng.sample(range(job.size), 2)
    introduce(job)
    listen(job)
    background(job, FIRST_STEP)
    for process in job.processes:
        peer = two if process.rank == one else one
        wait_for_link(process, job.processes[peer], FIRST_STEP)
    return Fault("link", (one, two), ((one,), (two,)), code="EI0006", signal="link", time=FIRST_STEP)


@_scenario(
    "p2p-timeout", "first-failure", "Inside one server, peers wait in vain for direct access to one card."
)
def _play_p2p_timeout(job: Job) -> Fault:
    bad = _victim(job)
    introduce(job)
    listen(job)
    background(job, FIRST_STEP)
    for other in _others(job, bad):
        if other.host == bad.host:
            time = FIRST_STEP + CONNECT_TIMEOUT + job.rng.uniform(0, 3)
            message = f"[Wait][P2PConnected]connected p2p timeout, timeout:{CONNECT_TIMEOUT} s. local logicDevid:{other.device}, remote physic id:{bad.device}."
            other.debug(time, "HCCL", other.hccl("p2p_mgmt.cc:305", message))
            message = f"[Create][DestSockets]Wait Enable P2P Failed, src devicePhyId[{other.device}], dst devicePhyId[{bad.device}], ret[16]"
            other.debug(time + 0.01, "HCCL", other.hccl("transport_manager.cc:741", message))
        else:
            wait_for_link(other, bad, FIRST_STEP)
    return Fault("first-failure", (bad.rank,), signal="link", time=FIRST_STEP)


@_scenario("rank-missing", "first-failure", "One rank never starts; the root waits for it.")
def _play_rank_missing(job: Job) -> Fault:
    bad = _victim(job)
    joined = {process.rank for process in job.processes} - {bad.rank}
    introduce(job, joining=joined)
    background(job, INIT + 2)
    bad.lines.clear()
    root = job.processes[0]
    time = INIT + CONNECT_TIMEOUT
    for offset, message in enumerate(
        (
            f"[InitGroupStage][RanktableDetect]topo exchange server get socket timeout! timeout[{CONNECT_TIMEOUT} s]",
            f"[InitGroupStage][RanktableDetect]total connected num is [{job.size - 1}],line num is [1]",
            f"[InitGroupStage][RanktableDetect]need connect rankNum is [{job.size}]",
        )
    ):
        root.debug(time + offset * 0.001, "HCCL", root.hccl("topoinfo_exchange_server.cc:300", message))
    for other in job.processes[1:]:
        if other.rank != bad.rank:
            message = f'[InitGroupStage][RanktableDetect]TopoDetect ERROR occur, fault_type[1], fault_info["Failed to connect agent[{bad.rank},]"]'
            at = time + 1 + job.rng.uniform(0, 2)
            other.debug(at, "HCCL", other.hccl("topoinfo_exchange_agent.cc:120", message))
    return Fault("first-failure", (bad.rank,), code="EI0015", signal="timeout", time=INIT)


@_scenario("tls-mismatch", "first-failure", "One card has another TLS setting than all others.")
def _play_tls_mismatch(job: Job) -> Fault:
    bad = _victim(job)
    introduce(job)
    background(job, INIT + 2)
    on = f"[{bad.server}/{bad.rank}]"
    off = ",".join(f"[{other.server}/{other.rank}]" for other in list(_others(job, bad))[:16])
    for process in job.processes:
        message = f'[InitGroupStage][RanktableDetect]The value for config "tls" is invalid. rankList for enabled tls:{on}; rankList for disabled tls:{off};'
        process.debug(
            INIT + 3 + job.rng.uniform(0, 0.2), "HCCL", process.hccl("topoinfo_detect.cc:800", message)
        )
        process.report(INIT + 3.3, "EI0016", "Config_TLS", "The TLS switches of the ranks differ.")
    return Fault("first-failure", (bad.rank,), code="EI0016", time=INIT + 3)


@_scenario("port-taken", "first-failure", "A stale process holds the port of one card.")
def _play_port_taken(job: Job) -> Fault:
    bad = _victim(job)
    introduce(job)
    background(job, INIT + 2)
    message = f"[InitGroupStage][RanktableDetect] socket type[0], listen on ip[{bad.device_ip}] and specific port[16666] fail. Please check the port status and whether the port is being used by other process."
    bad.debug(INIT + 1, "HCCL", bad.hccl("hccl_socket.cc:110", message))
    bad.report(
        INIT + 1.1, "EI0020", "Communication_Error_Bind_IP_Port", "Failed to listen: the port is in use."
    )
    for other in _others(job, bad):
        wait_for_link(other, bad, FIRST_STEP)
    return Fault("first-failure", (bad.rank,), code="EI0020", time=INIT + 1)


@_scenario("rank-table-invalid", "first-failure", "One rank has a rank table that does not fit its card.")
def _play_rank_table_invalid(job: Job) -> Fault:
    bad = _victim(job)
    introduce(job)
    background(job, INIT + 2)
    text = f"[ra_host.c:480]tid:{bad.thread},ra_rdev_init_check_ip(480) : [check][ip]fail, ret(129) the IP address(192.168.9.9) in the ranktable is inconsistent with the IP({bad.device_ip})"
    bad.debug(INIT + 1, "HCCP", text)
    bad.report(INIT + 1.1, "EI0014", "Ranktable_Check", "The device IP in the rank table is wrong.")
    for other in _others(job, bad):
        wait_for_link(other, bad, FIRST_STEP)
    return Fault("first-failure", (bad.rank,), code="EI0014", time=INIT + 1)


@_scenario("version-mismatch", "first-failure", "One card's CANN differs from all others.")
def _play_version_mismatch(job: Job) -> Fault:
    bad = _victim(job)
    introduce(job)
    listen(job)
    background(job, INIT + 2)
    for process in job.processes:
        own, peer = ("8.0.0", "8.1.RC1") if process.rank != bad.rank else ("8.1.RC1", "8.0.0")
        if process.rank == bad.rank or process.rank == (bad.rank + 1) % job.size or process.host == bad.host:
            message = (
                f"[InitChannelStage][VersionConflict]Inconsistent CANN Versions, local[{own}], remote[{peer}]"
            )
            process.debug(
                FIRST_STEP + job.rng.uniform(0, 0.5), "HCCL", process.hccl("transport_manager.cc:90", message)
            )
            process.report(
                FIRST_STEP + 0.6, "EI0008", "Version_Mismatch", "The HCCL versions are inconsistent."
            )
        else:
            wait_for_link(process, bad, FIRST_STEP)
    return Fault("first-failure", (bad.rank,), code="EI0008", time=FIRST_STEP)


def _mismatch(job: Job, op: str, count: int, dtype: str) -> Fault:
    bad = _victim(job)
    end = _running(job)
    for process in job.processes:
        if process.rank == bad.rank:
            enter_collective(process, end, op, count, dtype)
            wait_in_vain(process, end, index=2 * job.steps, op=op, count=count)
        else:
            enter_collective(process, end, "AllReduce", 8192)
            wait_in_vain(process, end, index=2 * job.steps)
    return Fault("first-failure", (bad.rank,), code="EI0002", signal="timeout", time=end)


@_scenario("mismatched-op", "first-failure", "One rank calls another collective than all others.")
def _play_mismatched_op(job: Job) -> Fault:
    return _mismatch(job, "Broadcast", 8192, "float32")


@_scenario("mismatched-count", "first-failure", "One rank gives another count than all others.")
def _play_mismatched_count(job: Job) -> Fault:
    return _mismatch(job, "AllReduce", 16384, "float32")


@_scenario("behind", "first-failure", "One rank is some operations behind and waits like all others.")
def _play_behind(job: Job) -> Fault:
    bad = _victim(job)
    lost = min(3, job.steps - 1)
    end = _running(job, {bad.rank: job.steps - 1 - lost})
    for process in job.processes:
        done = 2 * (job.steps - lost) if process.rank == bad.rank else 2 * job.steps
        wait_in_vain(process, end - STEP, index=done)
    return Fault("first-failure", (bad.rank,), code="EI0002", signal="timeout", time=end)


def _slow(
    job: Job, lateness: Lateness, cards: tuple[int, ...], acceptable: tuple[tuple[int, ...], ...] = ()
) -> Fault:
    end = _running(job, lateness=lateness)
    end_well(job, end)
    return Fault("straggler", cards, acceptable, signal="slow", time=FIRST_STEP)


def _slow_card(job: Job, share: float) -> Fault:
    bad = _victim(job)

    def late(process: Process, step: int) -> float:
        return STEP * share * job.rng.uniform(0.8, 1.2) if process.rank == bad.rank else 0.0

    return _slow(job, late, (bad.rank,))


@_scenario("slow-card-5", "straggler", "One card is 5 % slower in every step.")
def _play_slow_card_5(job: Job) -> Fault:
    return _slow_card(job, 0.05)


@_scenario("slow-card-20", "straggler", "One card is 20 % slower in every step.")
def _play_slow_card_20(job: Job) -> Fault:
    return _slow_card(job, 0.2)


@_scenario("slow-card-double", "straggler", "One card takes twice as long in every step.")
def _play_slow_card_double(job: Job) -> Fault:
    return _slow_card(job, 1.0)


@_scenario("slow-host", "straggler", "All cards of one host are slow.")
def _play_slow_host(job: Job) -> Fault:
    bad = _victim(job)
    cards = tuple(process.rank for process in job.neighbours(bad))

    def late(process: Process, step: int) -> float:
        return STEP * 0.3 * job.rng.uniform(0.8, 1.2) if process.host == bad.host else 0.0

    return _slow(job, late, cards, tuple((card,) for card in cards))


@_scenario("slow-loader", "straggler", "The data loader of one rank stalls now and then.")
def _play_slow_loader(job: Job) -> Fault:
    bad = _victim(job)
    stalls = set(job.rng.sample(range(job.steps), max(job.steps // 4, 1)))

    def late(process: Process, step: int) -> float:
        return job.rng.uniform(4, 9) if process.rank == bad.rank and step in stalls else 0.0

    return _slow(job, late, (bad.rank,))


@_scenario("frequency-drop", "straggler", "One card is throttled from the middle of the run on.")
def _play_frequency_drop(job: Job) -> Fault:
    bad = _victim(job)
    half = job.steps // 2

    def late(process: Process, step: int) -> float:
        return STEP * 0.35 * job.rng.uniform(0.8, 1.2) if process.rank == bad.rank and step >= half else 0.0

    job.event(
        bad,
        FIRST_STEP + half * STEP,
        "0x80c78008",
        "node_type=0x63[AICORE]; node_id=0; event_type=0x8[frequency reduced]",
        1,
    )
    return _slow(job, late, (bad.rank,))


@_scenario("retry-storm", "straggler", "The link of one card flaps: operations are retried again and again.")
def _play_retry_storm(job: Job) -> Fault:
    bad = _victim(job)
    storms = set(job.rng.sample(range(job.steps), max(job.steps // 3, 1)))

    def late(process: Process, step: int) -> float:
        return 1.5 if process.rank == bad.rank and step in storms else 0.0

    for step in storms:
        for number in range(6):
            message = f"[OpRetry][Agent]Get ErrorCode[{number}], receive a cqe error [12][7], dstrank[{(bad.rank + 1) % job.size}]"
            bad.run(FIRST_STEP + step * STEP + number * 0.1, "HCCL", bad.hccl("opretry_agent.cc:77", message))
    return _slow(job, late, (bad.rank,))
