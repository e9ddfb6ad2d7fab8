"""One large INFO-heavy plog file, for benchmarks."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path

# Body, level and module as one process of CANN 8 writes them, with how often each comes. {n} is a number.
_LINES = (
    (
        30,
        "INFO",
        "RUNTIME",
        "[api_impl.cc:630] 4077 StreamCreate: create stream, stream_id={n}, priority={n}, flags={n}, pool num={n}, free num={n}",
    ),
    (
        18,
        "DEBUG",
        "RUNTIME",
        "[event_pool.cc:89] 4077 FreeEventId:device_id=3, free event_id={n}, pool event_num ={n}",
    ),
    (
        16,
        "INFO",
        "GE",
        "[graph_manager.cc:879]4021 PreRun:node {n} of graph {n} is ready, input num {n}, output num {n}, shape range unknown",
    ),
    (
        14,
        "INFO",
        "HCCL",
        "[hccl_algorithm.cc:997] [4088][CollAlgOperator][SelectAlg]select algorithm ring for count {n}, stage {n}, tag[AllReduce_10.20.0.1%eth0_60000_0_1740910800000001]",
    ),
    (
        12,
        "INFO",
        "ASCENDCL",
        "[acl.cpp:457]4021 aclrtMemcpyAsync: start to execute, size {n}, kind {n}, stream {n}",
    ),
    (
        10,
        "INFO",
        "DRV",
        "[drv_log_user.c:597][ascend][curpid:4021,4077][drv][devmm][_svm_mem_stats_show]DEV_MEM dev3 Mem stats: pages={n}; used={n}; peak={n}; free={n}",
    ),
    (
        8,
        "INFO",
        "PROFILING",
        "[prof_plugin.cpp:436] (tid:4077) Module[{n}] register callback of ctrl handle, type {n}.",
    ),
    (
        7,
        "DEBUG",
        "GE",
        "[op_tiling.cc:1411]4021 Tiling:compute unit {n}, workspace {n} bytes, key {n}, block dim {n}",
    ),
    (
        5,
        "INFO",
        "TDT",
        "[client_manager.cpp:573][GetInstance][tid:4077] [ClientManager] session {n} of device {n} is alive",
    ),
    (
        4,
        "INFO",
        "IDEDD",
        "[dump_manager.cpp:847][tid:4077] [Dump][Switch] dump switch off, step {n}, model {n}",
    ),
    (
        3,
        "INFO",
        "FE",
        '[fe_type_utils.cc:823]4021 GetRealPath:"path of the binary of kernel {n} is set, version {n}."',
    ),
    (2, "WARNING", "GE", "[ge_context.cc:249]4021 GetOption:option {n} is not set, default {n} is used"),
    (1, "WARNING", "HCCL", "[hccl_socket.cc:283] [4088]socket {n} is slow to answer, go on after {n} us"),
)
_ERROR = (
    "[ERROR] RUNTIME(4021,python3):{time} [error_message_manage.cc:53]4077 FuncErrorReason:report error "
    "module_type=3, module_name=EE8888\n"
    "EE8888: Inner Error!\n"
    "        stream {n} is not found[FUNC:GetStream][FILE:api_impl.cc][LINE:{n}]\n"
)
_BLOCK = 20_000
_ERRORS_PER_BLOCK = 3


def write_info_log(path: Path, size: int, seed: int = 1) -> int:
    """Write a log of about ``size`` bytes: nearly all INFO and DEBUG, some warnings, a few error blocks.

    Lines come from one pre-built block whose times move on, so that writing keeps up with a disk.

    Args:
        path: the file; its name should be that of a plog.
        size: bytes.
        seed: same seed, same bytes.

    Returns:
        Bytes written.
    """
    rng = random.Random(seed)  # noqa: S311 - no secret
    weights = [weight for weight, *_ in _LINES]
    errors = set(rng.sample(range(_BLOCK), _ERRORS_PER_BLOCK))
    block: list[str] = []
    for number in range(_BLOCK):
        clock = f"{number // 500 % 60:02d}.{number % 500 * 2:03d}.{rng.randrange(1000):03d}"
        if number in errors:
            text = _ERROR.replace("{time}", f"@{clock}")
        else:
            _, level, module, body = rng.choices(_LINES, weights)[0]
            text = f"[{level}] {module}(4021,python3):@{clock} {body}\n"
        while "{n}" in text:
            text = text.replace("{n}", str(rng.randrange(1, 10 ** rng.randrange(1, 9))), 1)
        block.append(text)
    template = "".join(block)
    start = datetime(2025, 3, 2, 11, 20)
    written = 0
    with path.open("wb") as out:
        minute = 0
        while written < size:
            stamp = start + timedelta(minutes=minute)
            written += out.write(template.replace("@", f"{stamp:%Y-%m-%d-%H:%M}:").encode())
            minute += 1
    return written
