"""What a job writes while nothing is wrong: who is who, steps, noise, harmless trouble."""

from __future__ import annotations

from collections.abc import Callable

from ascend_elk.simulate.cluster import CONNECT_TIMEOUT, EXEC_TIMEOUT, Job, Process, stamp

INIT = 5.0
FIRST_STEP = 20.0
STEP = 2.0
Lateness = Callable[[Process, int], float]

_NOISE = (
    ("RUNTIME", "[api_impl.cc:{n}] {tid} StreamCreate: create stream, id={n}"),
    ("GE", "[graph_manager.cc:{n}]{pid} PreRun:PreRun start: graph id {n}"),
    ("ASCENDCL", "[acl.cpp:{n}]{pid} aclrtMemcpyAsync: start"),
    ("PROFILING", "[prof_atls_plugin.cpp:{n}] (tid:{tid}) Module[{n}] register callback of ctrl handle."),
    ("DRV", "[drv_log_user.c:623][ascend][curpid:{pid},{tid}][drv][devmm][show_mem]DEV_MEM used={n}"),
)
_HARMLESS = (
    ("WARNING", "GE", "[ge_context.cc:55]{tid} GetOption:option ge.exec.{n} is not set, use default"),
    ("WARNING", "DRV", "[ascend][curpid: {pid}, {tid}][drv][devmm][devmm_query 99]no such node {n}, go on"),
    ("ERROR", "TBE", "[ascendc_runtime.cpp:232]  {tid} AscendCheckSoCVersion:cur soc version not found."),
    (
        "ERROR",
        "GE",
        "[op_compiler.cc:{n}]{tid} Query: ErrorNo: 4294967295(failed) this error log can be ignored.",
    ),
    ("WARNING", "HCCL", "[hccl_socket.cc:88]{blank}[{tid}]socket closed by peer during release"),
)


def introduce(job: Job, late: dict[int, float] | None = None, joining: set[int] | None = None) -> None:
    """Write the identity lines of the ranks that come up; ``late`` holds seconds of delay by rank."""
    for process in job.processes:
        if joining is not None and process.rank not in joining:
            continue
        time = INIT + job.rng.uniform(0, 0.4) + (late or {}).get(process.rank, 0.0)
        process.run(
            time - 3, "ATRACE", f"[trace_attr.c:189](tid:{process.pid}) attr init success, timeout=0ms."
        )
        process.run(
            time - 2,
            "DRV",
            f"[drv_log_user.c:623][ascend][curpid:{process.pid},{process.thread}][drv][hdc]"
            f"[share_log_read_in_single_module]Setup device succeeded. (logical_devid={process.device}; "
            f"devid={process.device}; vfid=0; hostpid={process.pid}; devpid={process.device_pid})",
        )
        for name, value in (("CONNECT", CONNECT_TIMEOUT), ("EXEC", EXEC_TIMEOUT)):
            message = f"HCCL_{name}_TIMEOUT set by default to [{value}]s"
            process.run(time - 1, "HCCL", process.hccl("externalinput.cc:407", message, process.pid))
        process.run(
            time,
            "HCCL",
            process.hccl(
                "op_base.cc:644",
                f"Entry-HcclCommInitRootInfo:ranks[{job.size}], rank[{process.rank}], rootinfo: host ip[10.20.0.1] "
                f"port[60000] nicDeploy[1] identifier[{job.identifier}], deviceLogicId[{process.device}]",
                process.pid,
            ),
        )
        process.run(
            time + 0.2,
            "HCCL",
            process.hccl(
                "topoinfo_detect.cc:506",
                f"[HCCL_TRACE][Flat]SetupAgent rankNum[{job.size}], rank[{process.rank}], rootInfo identifier"
                f"[{job.identifier}], server[{process.server}%eth0], serverPort[60000]deviceType[2], "
                f"logicDevId[{process.device}], phydevId[{process.device}], deviceIp[{process.device_ip}]",
                process.pid,
            ),
        )


def listen(job: Job) -> None:
    """Write the lines of ports that ranks listen on."""
    for process in job.processes:
        process.run(
            INIT + 1 + job.rng.uniform(0, 0.3),
            "HCCL",
            process.hccl(
                "network_manager.cc:685",
                f"[Start][Nic]Listen on ip[{process.device_ip}], port[16666] sucess, devPhyId[{process.device}], "
                f"devLogicId[{process.device}], isAutoPort[0]",
                process.pid,
            ),
        )


def train(
    job: Job,
    steps: int,
    lateness: Lateness | None = None,
    last: dict[int, int] | None = None,
    step_seconds: float = STEP,
) -> float:
    """Write the collectives of some steps, entered by each rank in lockstep.

    Args:
        job: the job.
        steps: number of steps.
        lateness: seconds by which a rank enters a step after the others would.
        last: by rank, the number of its last step, where it stops before the others.
        step_seconds: length of a step.

    Returns:
        Time at which the step after the last would begin.
    """
    time = FIRST_STEP
    for step in range(steps):
        delays = {
            process.rank: abs(job.rng.gauss(0, 0.004)) + (lateness(process, step) if lateness else 0.0)
            for process in job.processes
        }
        slowest = max(delays.values())
        for process in job.processes:
            if last is not None and step > last.get(process.rank, steps):
                continue
            enter = time + delays[process.rank]
            for number, (op, count) in enumerate((("AllReduce", 8192), ("AllGather", 4096))):
                enter_collective(process, enter + number * 0.01, op, count)
            process.console(enter, f"step {step} loss {4.2 - step * 0.01:.3f}")
        time += step_seconds + slowest
    return time


def enter_collective(process: Process, time: float, op: str, count: int, dtype: str = "float32") -> None:
    """Write the entry of one collective operation."""
    job = process.job
    process.run(
        time,
        "HCCL",
        process.hccl(
            "hccl_opbase_atrace_info.cc:56",
            f"Entry-Hccl{op}: tag[{op}_{job.identifier}], sendBuf[0x1241d3dcdc00], recvBuf[0x1241d3ddc000], "
            f"count[{count}], dataType[{dtype}], op[sum], localRank[{process.rank}], streamId[2], "
            f"comm[0x2a3b4c], deviceLogicId[{process.device}]",
            process.pid,
        ),
    )


def background(job: Job, end: float, per_process: int = 12) -> None:
    """Write noise of other modules, and harmless warnings and errors on some cards."""
    for process in job.processes:
        for _ in range(per_process):
            module, body = job.rng.choice(_NOISE)
            number = job.rng.randrange(1, 2000)
            text = body.format(n=number, tid=process.thread, pid=process.pid)
            time = job.rng.uniform(INIT, max(end, INIT + 1))
            process.run(time, module, text)
            process.debug(time, module, text, "INFO")
        if job.rng.random() < 0.4:
            level, module, body = job.rng.choice(_HARMLESS)
            number = job.rng.randrange(1, 2000)
            blank = job.wording.hccl_blank
            text = body.format(n=number, tid=process.thread, pid=process.pid, blank=blank)
            process.debug(job.rng.uniform(INIT, FIRST_STEP), module, text, level)
        process.device_side(
            INIT + 1,
            "CCECPU",
            f"[main.cpp:270][main][tid:{process.device_pid}][AICPU_SCHEDULE] Aicpu schedule start, "
            f"host pid[{process.pid}]",
            "INFO",
        )


def end_well(job: Job, time: float) -> None:
    """Write the clean end of all ranks."""
    for process in job.processes:
        at = time + job.rng.uniform(0, 0.5)
        message = f"Entry-HcclCommDestroy: op_base comm destroy begin, identifier[{job.identifier}]"
        process.run(at, "HCCL", process.hccl("op_base.cc:2900", message, process.pid))
        process.run(at + 0.3, "RUNTIME", f"[runtime.cc:1540] {process.pid} ~Runtime: deconstruct runtime")


def wait_in_vain(
    process: Process,
    issued: float,
    limit: float = EXEC_TIMEOUT,
    index: int = 100,
    op: str = "AllReduce",
    count: int = 8192,
    ffts: bool = False,
) -> None:
    """Write what a rank does whose collective never completes: time-out, task exception, report."""
    job = process.job
    time = issued + limit + job.rng.uniform(0.5, 12)
    stream, task, notify = 5, job.rng.randrange(20, 900), job.rng.randrange(1, 90)
    where = f"device_id={process.device}, stream_id={stream}, task_id={task}"
    if ffts:
        text = f"hccl fftsplus task timeout occurred during task execution, {where}, stuck notify num:3, timeout:{limit:.0f}."
        process.debug(
            time,
            "RUNTIME",
            process.runtime("device_error_proc.cc:1139", "ProcessStarsHcclFftsPlusTimeoutErrorInfo", text),
        )
    else:
        text = f"{job.wording.notify}, {where}, flip_num=0, notify_id={notify}"
        process.debug(
            time, "RUNTIME", process.runtime("task_info.cc:2650", "PrintErrorInfoForNotifyWaitTask", text)
        )
    key = "[TaskExecStage][Timeout][HOST]" if job.wording.stage_keys else "[TaskExceptionHandler][Callback]"
    tag = f"{op}_{job.identifier}"
    issued_at = job.moment(process.host, issued)
    for offset, message in enumerate(
        (
            f"{key}Task run failed, base information is streamID:[{stream}], taskID[{task}], tag[{tag}], "
            "AlgType(level 0-1-2):[fullmesh-ring-NHR].",
            f"{key}groupRank information is group:[{job.identifier}], user define information[Unspecified], "
            f"rankSize[{job.size}], rankId[{process.rank}]",
            f"{key}opData information is timeStamp:[{issued_at:%Y-%m-%d %H:%M:%S.%f}], "
            f"deviceId[{process.device}], index[{index}], count[{count}], reduceType[sum], "
            "src[0x12c1c0000000], dst[0x12c1c0400000], dataType[float32].",
        )
    ):
        process.debug(
            time + 0.001 * (offset + 1), "HCCL", process.hccl("task_exception_handler.cc:868", message)
        )
    process.report(
        time + 0.1,
        "EI0002",
        "Communication_Error_Timeout",
        "The wait execution of the Notify register times out. Reason: The Notify register has not received "
        f"the Notify record from remote rank [unknown].base information: [streamID:[{stream}], taskID[{task}], "
        f"tag[{tag}]] task information: [] group information: [group:[{job.identifier}], rankSize[{job.size}], "
        f"rankId[{process.rank}]]\n        Possible Cause: 1. An exception occurs on other cards.\n"
        "        Solution: 1. Look at the cards that report another error, or none.",
    )
    process.console(
        time + 0.2,
        "RuntimeError: npuSynchronizeDevice:build/CMakeFiles/torch_npu.dir/compiler_depend.ts:479 NPU function "
        "error: AclrtSynchronizeDeviceWithTimeout, error code is 507048",
    )


def wait_for_link(process: Process, peer: Process, issued: float, limit: float = CONNECT_TIMEOUT) -> None:
    """Write what a rank does that cannot connect to a peer."""
    job = process.job
    time = issued + limit + job.rng.uniform(0.1, 6)
    role = 1 if process.rank > peer.rank else 0
    name = "client" if role else "server"
    file = "hccl_socket_manager.cc"
    rows = (
        (
            816,
            f"[Wait][LinkEstablish]wait socket establish timeout, role[{role}] rank[{process.rank}] timeout[{limit:.0f} s]",
        ),
        (591, "   _________________________LINK_ERROR_INFO___________________________"),
        (592, f"   |  comm error, device[{process.device}] "),
        (
            594,
            "   |  dest_ip(user_rank)  |   dest_port   |  src_ip(user_rank)   |   src_port   |   MyRole   |   Status   |",
        ),
        (
            553,
            f"   |  {peer.device_ip}({peer.rank})   |  16666  |   {process.device_ip}({process.rank})   |  0  |  {name}  | time out |",
        ),
        (600, "   ___________________________________________________________________"),
    )
    for offset, (line, message) in enumerate(rows):
        process.debug(time + offset * 0.0001, "HCCL", process.hccl(f"{file}:{line}", message))
    message = (
        f"[Create][DestLink]Transport init error! createLink para:rank[{process.rank}]-localUserrank[{process.rank}]-"
        f"localIpAddr[{process.server}/{process.device}], remoteRank[{peer.rank}]-remoteUserrank[{peer.rank}]-"
        f"remoteIpAddr[{peer.server}/{peer.device}], machineType[0], linkMode[1], tag[AllReduce_{job.identifier}]"
    )
    process.debug(time + 0.01, "HCCL", process.hccl("transport_manager.cc:1432", message))
    process.report(
        time + 0.1,
        "EI0006",
        "Communication_Error_Get_Socket",
        "Getting socket times out. Reason: Remote Rank did not send the data in time.",
    )


def moment_text(process: Process, time: float) -> str:
    """A time as the process's clock shows it."""
    return stamp(process.job.moment(process.host, time))
