"""Each rule on a job that it is made for, and beside its trap."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from ascend_elk.diagnose import Verdict, diagnose
from tests.diagnose.job import COMM, START, Job, PlainEvent


def places(verdict: Verdict) -> list[tuple[str | None, int | None]]:
    return [(card.host, card.device) for card in verdict.cards]


def test_earliest_own_error_beats_the_time_outs_of_the_others() -> None:
    job = Job()
    job.start()
    for rank in (0, 1, 3):
        job.notify_timeout(rank, 1900 + rank * 0.1)
    job.line(2, 60, "an exception occurred during AICPU execution, stream_id:2, task_id:1", module="RUNTIME")
    verdict = diagnose(job.events)
    assert (verdict.kind, verdict.rule) == ("first-failure", "first-error")
    assert places(verdict) == [("worker-1", 0)]
    assert verdict.cards[0].rank == 2
    assert "AICPU" in verdict.evidence[0].text


def test_an_error_after_the_time_outs_is_no_cause() -> None:
    job = Job()
    job.start()
    for rank in (0, 1, 3):
        job.notify_timeout(rank, 1900)
    job.line(
        0, 1960, "an exception occurred during AICPU execution, stream_id:2, task_id:1", module="RUNTIME"
    )
    verdict = diagnose(job.events)
    assert places(verdict) == [("worker-1", 0)]


def test_silent_rank_is_accused_by_the_waiting_ones() -> None:
    job = Job()
    job.start()
    for rank in (0, 2, 3):
        job.notify_timeout(rank, 1900 + rank * 0.1)
    verdict = diagnose(job.events)
    assert verdict.rule == "silent-rank"
    assert places(verdict) == [("worker-0", 1)]


def test_chain_of_waits_ends_at_its_cause() -> None:
    job = Job(hosts=2, devices=4)
    job.start()
    job.socket_timeout(0, 4, 130)
    job.socket_timeout(4, 6, 130.5)
    job.socket_timeout(6, 5, 131)
    job.socket_timeout(1, 5, 131.2)
    verdict = diagnose(job.events)
    assert verdict.rule == "wait-chain"
    assert [card.rank for card in verdict.chain] == [0, 4, 6, 5]
    assert places(verdict) == [("worker-1", 1)]


def test_cycle_of_waits_names_its_members() -> None:
    job = Job(hosts=2, devices=2)
    job.start()
    job.socket_timeout(0, 3, 130)
    job.socket_timeout(3, 0, 130.1)
    verdict = diagnose(job.events)
    assert (verdict.kind, verdict.rule) == ("link", "wait-cycle")
    assert {card.rank for card in verdict.cards} == {0, 3}


def test_waiting_for_a_card_without_logs_names_what_to_collect() -> None:
    job = Job(hosts=2, devices=2)
    job.start(2, 3)
    job.socket_timeout(2, 0, 130)
    verdict = diagnose(job.events)
    assert verdict.kind in ("link", "undetermined")
    assert any("192.0.2.10" in text or "rank 0" in text for text in verdict.missing)


def test_missing_agents_are_named_by_the_set_up() -> None:
    job = Job(hosts=4, devices=4)
    job.start(*(rank for rank in range(16) if rank != 6))
    for rank in range(16):
        if rank != 6:
            job.line(
                rank,
                140,
                "[InitGroupStage][RanktableDetect] TopoDetect ERROR occur !!! fault_type[1], "
                'fault_info["Failed to connect agent[6,]"]',
            )
    verdict = diagnose(job.events)
    assert verdict.rule == "missing-at-init"
    assert places(verdict) == [("worker-1", 2)], "its place follows from the numbering of the others"
    assert any("logs of" in text for text in verdict.missing)


def test_connected_list_names_the_missing_rank() -> None:
    job = Job(hosts=2, devices=2)
    job.start(0, 1, 2)
    job.line(
        0, 130, "[InitGroupStage][RanktableDetect]topo exchange server get socket timeout! timeout[120 s]"
    )
    job.line(
        0, 130.001, "[InitGroupStage][DisplayConnectionedRank]total connected num is [3],line num is [1]"
    )
    job.line(0, 130.002, "[InitGroupStage][DisplayConnectionedRank]need connect rankNum is [4]")
    job.line(
        0,
        130.003,
        "[InitGroupStage][DisplayConnectionedRank]connected rankinfo[LINE 0]: "
        "[0000000000000000],[0000000000000001],[0000000000000002];",
    )
    verdict = diagnose(job.events)
    assert verdict.rule == "missing-at-init"
    assert verdict.cards[0].rank == 3


def test_tls_minority_is_at_fault() -> None:
    job = Job(hosts=2, devices=2)
    job.start()
    for rank in range(4):
        job.line(
            rank,
            20,
            '[InitGroupStage][RanktableCheck] Value Disable for config "tls" is invalid. Expected Value:"All '
            "ranks are consistent. Current status : rankList for enabled "
            "tls:[10.0.0.10/0][10.0.0.10/1][10.0.0.11/3]; rankList "
            'for disabled tls:[10.0.0.11/2]; rankList for query failure tls:".;',
        )
    verdict = diagnose(job.events)
    assert verdict.rule == "tls-minority"
    assert places(verdict) == [("worker-1", 0)]


def test_two_informers_that_lost_one_card() -> None:
    job = Job(hosts=2, devices=4)
    job.start()
    for reader in (0, 1, 2, 3, 4, 6, 7):
        for informer in ("10.0.0.11/0", "10.0.0.10/1"):
            job.line(
                reader,
                400,
                f"[TaskExecStage][HeartbeatAbnormal]local rank [{job.server(reader)}/{reader % 4}]: "
                f"crimer rank [10.0.0.11/1] status[LOST] by informer rank [{informer}]",
                "INFO",
            )
    verdict = diagnose(job.events)
    assert verdict.rule == "heartbeat-lost"
    assert places(verdict) == [("worker-1", 1)]


def test_two_that_lost_each_other_are_a_link() -> None:
    job = Job(hosts=2, devices=2)
    job.start()
    for reader in range(4):
        for crimer, informer in (("10.0.0.10/0", "10.0.0.11/0"), ("10.0.0.11/0", "10.0.0.10/0")):
            job.line(
                reader,
                400,
                f"local rank [10.0.0.10/0]: crimer rank [{crimer}] status[LOST] "
                f"by informer rank [{informer}]",
                "INFO",
            )
    verdict = diagnose(job.events)
    assert verdict.kind == "link"
    assert {card.rank for card in verdict.cards} == {0, 2}


def _cqe(job: Job, rank: int, remote: int, at: float = 500) -> None:
    def end(rank: int) -> str:
        device, address = rank % job.devices, job.address(rank)
        return f"server[{job.server(rank)}],deviceId[{device}],deviceIp[{address}]"

    job.line(
        rank,
        at,
        f"[TaskExecStage][HeartbeatAbnormal][ROCE CQE ERROR]cqe error status[12], "
        f"time:[2025-03-02 10:08:20.776654],localInfo{{{end(rank)}}}, remoteIP{{{end(remote)}}}",
    )


def test_remote_that_all_completion_errors_name() -> None:
    job = Job(hosts=4, devices=2)
    job.start()
    for rank in (0, 2, 6):
        _cqe(job, rank, 4)
    verdict = diagnose(job.events)
    assert verdict.rule == "cqe-common-remote"
    assert places(verdict) == [("worker-2", 0)]


def test_one_reporter_that_lost_many_peers_is_the_fault_itself() -> None:
    job = Job(hosts=4, devices=2)
    job.start()
    for remote in (0, 2, 6):
        _cqe(job, 4, remote)
    verdict = diagnose(job.events)
    assert places(verdict) == [("worker-2", 0)]


def test_smallest_operation_index_is_behind() -> None:
    job = Job(hosts=2, devices=2)
    job.start()
    for rank in range(4):
        job.notify_timeout(rank, 1900 + rank * 0.1, index=20 if rank == 3 else 21)
    verdict = diagnose(job.events)
    assert verdict.rule == "behind"
    assert places(verdict) == [("worker-1", 1)]


@pytest.mark.parametrize("odd", [{"tag": "AllGather"}, {"count": 128}], ids=["operation", "count"])
def test_rank_in_another_operation(odd: dict[str, object]) -> None:
    job = Job(hosts=2, devices=2)
    job.start()
    for rank in range(4):
        job.notify_timeout(rank, 1900 + rank * 0.1, **(odd if rank == 2 else {}))  # type: ignore[arg-type]
    verdict = diagnose(job.events)
    assert verdict.rule == "odd-operation"
    assert places(verdict) == [("worker-1", 0)]


def test_last_to_time_out_beyond_the_limit_came_last() -> None:
    job = Job(hosts=2, devices=2)
    job.start()
    for rank in range(4):
        job.notify_timeout(rank, 1900 + (2400 if rank == 1 else rank))
    verdict = diagnose(job.events)
    assert verdict.rule == "last-to-fail"
    assert places(verdict) == [("worker-0", 1)]


def test_all_time_out_alike_is_undetermined() -> None:
    job = Job(hosts=2, devices=2)
    job.start()
    for rank in range(4):
        job.notify_timeout(rank, 1900 + rank)
    verdict = diagnose(job.events)
    assert verdict.kind == "undetermined"
    assert not verdict.cards
    assert any("HCCL_ENTRY_LOG_ENABLE=1" in text for text in verdict.missing)


def _steps(
    job: Job, late: Callable[[int, int], float], steps: int = 50, seed: int = 1, jitter: float = 0.004
) -> None:
    noise = random.Random(seed)
    at = 20.0
    for step in range(steps):
        enters = [at + 1.0 + noise.gauss(0, jitter) + late(rank, step) for rank in range(job.size)]
        for rank, moment in enumerate(enters):
            job.collective(rank, moment)
        at = max(enters) + 0.05


@pytest.mark.parametrize("share", [0.05, 0.2, 1.0])
def test_card_that_is_always_late_is_the_straggler(share: float) -> None:
    job = Job(hosts=2, devices=4)
    job.start()
    _steps(job, lambda rank, step: share if rank == 6 else 0.0)
    verdict = diagnose(job.events)
    assert verdict.kind == "straggler"
    assert places(verdict) == [("worker-1", 2)]
    assert verdict.confidence > 0.8
    assert any(mark.kind == "late" for lane in verdict.timeline.lanes for mark in lane.marks)


def test_followers_in_other_communicators_are_not_accused() -> None:
    job = Job(hosts=4, devices=4)
    job.start()
    noise = random.Random(3)
    at = [20.0] * job.size
    for _ in range(40):
        # Within each host (tensor parallel), then the same device of all hosts (data parallel).
        enter = [at[rank] + 1.0 + noise.gauss(0, 0.003) + (0.25 if rank == 5 else 0) for rank in range(16)]
        for rank in range(16):
            job.collective(rank, enter[rank], "AllGather", 64, comm=f"tp_{rank // 4}_10000001")
        leave = [max(enter[rank // 4 * 4 : rank // 4 * 4 + 4]) + 0.01 for rank in range(16)]
        enter = [leave[rank] + 0.02 + noise.gauss(0, 0.003) for rank in range(16)]
        for rank in range(16):
            job.collective(rank, enter[rank], "ReduceScatter", 128, comm=f"dp_{rank % 4}_10000002")
        at = [max(enter[rank % 4 :: 4]) + 0.01 for rank in range(16)]
    verdict = diagnose(job.events)
    assert (verdict.kind, places(verdict)) == ("straggler", [("worker-1", 1)])


def test_card_is_late_although_lines_are_lost() -> None:
    job = Job(hosts=2, devices=4)
    job.start()
    _steps(job, lambda rank, step: 0.2 if rank == 6 else 0.0, steps=60)
    lost = random.Random(5)
    kept = [e for e in job.events if "Entry-Hccl" not in e.fields["message"] or lost.random() > 0.1]
    first = {3: 25, 5: 10}  # ranks whose first file was rotated away
    seen: dict[int, int] = {}
    events = []
    for event in kept:
        pid = event.fields["process.pid"]
        if "Entry-Hccl" in event.fields["message"]:
            seen[pid] = seen.get(pid, 0) + 1
            if seen[pid] <= first.get(pid - 1000, 0):
                continue
        events.append(event)
    verdict = diagnose(events)
    assert (verdict.kind, places(verdict)) == ("straggler", [("worker-1", 2)])


def test_card_that_retries_far_more_than_its_peers() -> None:
    job = Job(hosts=2, devices=4)
    job.start()
    for rank in range(8):
        for number in range(200 if rank == 3 else 2):
            job.line(rank, 30 + number, "[OpRetry][Agent]Get ErrorCode[12], begin to exec retry", "INFO")
    verdict = diagnose(job.events)
    assert verdict.rule == "retries"
    assert places(verdict) == [("worker-0", 3)]


def test_even_cards_are_healthy() -> None:
    job = Job(hosts=2, devices=4)
    job.start()
    _steps(job, lambda rank, step: 0.0)
    verdict = diagnose(job.events)
    assert verdict.kind == "healthy"
    assert not verdict.cards


def test_skewed_clock_is_no_straggler_and_is_removed() -> None:
    job = Job(hosts=3, devices=4, skew={1: 0.7, 2: -30.0})
    job.start()
    _steps(job, lambda rank, step: 0.2 if rank == 9 else 0.0)
    verdict = diagnose(job.events)
    assert places(verdict) == [("worker-2", 1)]
    offsets = {clock.host: clock.offset for clock in verdict.clocks}
    assert offsets["worker-2"] == pytest.approx(-30, abs=0.1)
    assert offsets["worker-1"] == pytest.approx(0.7, abs=0.1)


def test_hosts_in_other_time_zones_still_order_the_errors() -> None:
    job = Job(hosts=2, devices=2, skew={1: 8 * 3600})
    job.start()
    for rank in (0, 1, 3):
        job.notify_timeout(rank, 1900)
    job.line(2, 60, "an exception occurred during AICPU execution, stream_id:2, task_id:1", module="RUNTIME")
    verdict = diagnose(job.events)
    assert places(verdict) == [("worker-1", 0)]


def test_copied_directory_counts_once() -> None:
    job = Job()
    job.start()
    for rank in (0, 2, 3):
        job.notify_timeout(rank, 1900)
    copies = [
        PlainEvent({**event.fields, "log.file.path": "copy/" + event.fields["log.file.path"]})
        for event in job.events
    ]
    verdict = diagnose([*job.events, *copies])
    assert places(verdict) == [("worker-0", 1)]
    assert verdict.seen == 4
    assert any("copies" in note for note in verdict.notes)


def test_other_job_on_the_same_hosts_is_set_aside() -> None:
    job = Job()
    job.start()
    for rank in (0, 2, 3):
        job.notify_timeout(rank, 1900)
    other = Job(hosts=2, devices=1, comm="10.0.0.10%eth0_60001_0_1740909700000000", pid_base=7000)
    other.start()
    verdict = diagnose([*job.events, *other.events])
    assert places(verdict) == [("worker-0", 1)]
    assert any("other or earlier jobs" in note for note in verdict.notes)


def test_no_events_at_all() -> None:
    verdict = diagnose([])
    assert verdict.kind == "undetermined"
    assert verdict.missing


def test_restart_counts_the_newest_run_only() -> None:
    first = Job(pid_base=500, comm=COMM.replace("1740909600", "1740906000"))
    first.start(at=-3600)
    first.line(3, -1900, "an exception occurred during AICPU execution, stream_id:2", module="RUNTIME")
    for rank in range(3):
        first.notify_timeout(rank, -1700)
    job = Job()
    job.start()
    for rank in (0, 2, 3):
        job.notify_timeout(rank, 1900)
    verdict = diagnose([*first.events, *job.events])
    assert places(verdict) == [("worker-0", 1)]
    assert all(card.pid is None or card.pid >= 1000 for card in verdict.cards)


def test_host_whose_cards_are_late_together() -> None:
    job = Job(hosts=3, devices=4, skew={2: -0.4})
    job.start()
    _steps(job, lambda rank, step: 0.25 if 4 <= rank < 8 else 0.0)
    verdict = diagnose(job.events)
    assert (verdict.kind, verdict.rule) == ("straggler", "late-host")
    assert places(verdict) == [("worker-1", device) for device in range(4)]


def test_skewed_clock_without_barriers_accuses_nobody() -> None:
    job = Job(hosts=3, devices=4, skew={1: 0.3})
    job.start()
    job.events = [event for event in job.events if "Key Info" not in event.fields["message"]]
    _steps(job, lambda rank, step: 0.0)
    assert diagnose(job.events).kind == "healthy"


def test_late_host_is_told_from_a_skewed_clock_without_barriers() -> None:
    job = Job(hosts=6, devices=4, skew={1: 0.8, 3: -1.5})
    noise = random.Random(7)
    for rank in range(job.size):
        job.start(rank, at=noise.uniform(0, 0.1))
    job.events = [event for event in job.events if "Key Info" not in event.fields["message"]]
    _steps(job, lambda rank, step: 0.3 if rank // 4 == 4 else 0.0)
    verdict = diagnose(job.events)
    assert verdict.rule == "late-host"
    assert {place[0] for place in places(verdict)} == {"worker-4"}


def test_console_of_a_process_joins_its_logs() -> None:
    job = Job(hosts=2, devices=2)
    job.start()
    for rank in (0, 2, 3):
        job.notify_timeout(rank, 1900)
        console = {
            "ascend.source": "console",
            "event.dataset": "ascend.console",
            "log.file.path": f"worker-{rank // 2}/console/out-{rank}.log",
            "ascend.error.codes": ["cann:EI0002"],
        }
        job.line(rank, 1901, "EI0002: the wait timed out", **console)
    verdict = diagnose(job.events)
    assert verdict.seen == 4
    assert places(verdict) == [("worker-0", 1)]


def test_rank_that_entered_one_collective_less() -> None:
    job = Job(hosts=2, devices=2)
    job.start()
    for step in range(20):
        for rank in range(4):
            if not (step == 19 and rank == 1):
                job.collective(rank, 20 + step)
    for rank in range(4):
        job.notify_timeout(rank, 1900 + rank * 0.1)
    verdict = diagnose(job.events)
    assert verdict.rule == "never-entered"
    assert places(verdict) == [("worker-0", 1)]


def _system(job: Job, source: str, path: str, at: float, message: str, host: int, **fields: object) -> None:
    moment = START + timedelta(seconds=at + job.skew.get(host, 0.0))
    job.events.append(
        PlainEvent(
            {
                "@timestamp": f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z",
                "ascend.source": source,
                "host.name": f"worker-{host}",
                "log.file.path": f"worker-{host}/{path}",
                "log.offset": len(job.events),
                "log.level": "EVENT",
                "message": message,
                **fields,
            }
        )
    )


EVENT = (
    "[fault_manager][23618.657855] event_id=0x80e01801; device_id={device}; node_type=0x62[HBM]; node_id=0; "
    "event_type=0x3[multi bit ecc]; severity={severity}[Critical]; assertion={assertion}[Event occur]"
)


def test_hardware_event_just_before_beats_the_silence() -> None:
    job = Job(hosts=2, devices=2)
    job.start()
    for rank in (0, 1, 2):
        job.notify_timeout(rank, 1900)
    _system(job, "event", "msg/run/event/event_1.log", 50, EVENT.format(device=1, severity=3, assertion=1), 1)
    verdict = diagnose(job.events)
    assert verdict.rule == "first-error"
    assert places(verdict) == [("worker-1", 1)]
    assert "event_id=0x80e01801" in verdict.evidence[0].text


@pytest.mark.parametrize(("severity", "assertion"), [(0, 1), (1, 2), (3, 0)])
def test_minor_or_recovered_hardware_event_is_no_cause(severity: int, assertion: int) -> None:
    job = Job(hosts=2, devices=2)
    job.start()
    for rank in (0, 1, 2):
        job.notify_timeout(rank, 1900)
    text = EVENT.format(device=0, severity=severity, assertion=assertion)
    _system(job, "event", "msg/run/event/event_1.log", 50, text, 0)
    assert places(diagnose(job.events)) == [("worker-1", 1)]


def test_stamp_of_1970_neither_orders_nor_hides_an_event() -> None:
    job = Job(hosts=2, devices=2)
    job.start()
    for rank in (0, 1, 2):
        job.notify_timeout(rank, 1900)
    unset = {"ascend.clock.unsynchronised": True}
    text = EVENT.format(device=1, severity=3, assertion=1)
    _system(job, "event", "msg/run/event/event_1.log", 0, text, 1, **unset)
    assert places(diagnose(job.events)) == [("worker-1", 1)]


def test_process_that_the_kernel_killed() -> None:
    job = Job(hosts=2, devices=2)
    job.start()
    for rank in (0, 1, 3):
        job.notify_timeout(rank, 1900)
    text = "Out of memory: Killed process 1002 (python3) total-vm:91234kB, anon-rss:81234kB"
    _system(job, "host-kernel", "var/log/messages", 70, text, 1)
    verdict = diagnose(job.events)
    assert places(verdict) == [("worker-1", 0)]
    assert verdict.rule in ("host-kill", "first-error")


def test_device_clocks_in_utc_are_shifted_by_whole_hours() -> None:
    job = Job(hosts=1, devices=4)
    job.start()
    job.line(0, 1990, "hcom destroy complete", "INFO")
    for rank in (0, 1, 3):
        job.notify_timeout(rank, 1900)
    for rank in range(4):
        job.line(rank, 1990, "Entry-HcclCommDestroy", "INFO")
        path = f"worker-0/log/debug/device-{rank}/device-{1000 + rank}_2.log"
        device = {"ascend.source": "device", "log.file.path": path}
        job.line(rank, 40 - 8 * 3600, "TLS SWITCH (1)", "INFO", **device)
        if rank == 2:
            job.line(rank, 1800 - 8 * 3600, "Aicpu kernel execute failed, fault kernel_name=X", **device)
    verdict = diagnose(job.events)
    assert places(verdict) == [("worker-0", 2)]
    assert verdict.rule == "first-error"


def test_address_report_names_the_card_that_left_no_logs() -> None:
    job = Job(hosts=4, devices=2)
    job.start(*(rank for rank in range(8) if rank != 4))
    for rank in (0, 2, 6):
        _cqe(job, rank, 4)
    path = "environment_check/npu_info_after.txt"
    for device in range(2):
        ask = f"/usr/local/Ascend/driver/tools/hccn_tool -i {device} -ip -g"
        _system(job, "console", path, 0, ask, 2)
        _system(job, "console", path, 0, f"ipaddr:{job.address(4 + device)}", 2)
    verdict = diagnose(job.events)
    assert places(verdict) == [("worker-2", 0)]


def _old_notify_timeout(job: Job, rank: int, remote: int | str, at: float) -> None:
    head = "[TaskExceptionHandler][Callback]Task run failed, "
    tag = f"AllReduce_{job.comm}"
    base = (
        f"streamID:[3], taskID[77], taskType[Notify Wait], tag[{tag}], index[3], AlgType(level 0-1-2):[ring]"
    )
    job.line(rank, at, f"{head}base information is {base}.")
    job.line(
        rank, at, f"{head}para information is notify id:[0x48], stage:[ffffffff], remote rank:[{remote}]."
    )


def test_chain_of_notify_waits_ends_at_the_rank_that_waits_for_itself() -> None:
    job = Job(hosts=1, devices=3)
    job.start()
    _old_notify_timeout(job, 0, 1, 1900)
    _old_notify_timeout(job, 1, 2, 1900.1)
    _old_notify_timeout(job, 2, "local", 1900.2)
    verdict = diagnose(job.events)
    assert [card.rank for card in verdict.chain] == [0, 1, 2]
    assert places(verdict) == [("worker-0", 2)]


def test_cycle_of_notify_waits() -> None:
    job = Job(hosts=2, devices=2)
    job.start()
    for rank in range(4):
        _old_notify_timeout(job, rank, (rank + 1) % 4, 1900 + rank * 0.1)
    verdict = diagnose(job.events)
    assert verdict.rule == "wait-cycle"
    assert {card.rank for card in verdict.cards} == {0, 1, 2, 3}


def test_device_side_wait_names_the_card_whose_copy_failed_before() -> None:
    job = Job(hosts=2, devices=1)
    job.start()
    for rank, kind, remote, at in ((1, "SDMA", 0, 60.0), (0, "NOTIFY WAIT", 1, 1890.0)):
        path = f"worker-{rank}/log/debug/device-0/device-{1000 + rank}_2.log"
        job.line(
            rank,
            at,
            f"[TaskException][AICPU]base information is streamId:149, sqid:153, head:1, tail:2, type:{kind}, "
            f"localRank:{rank}, remoteRank:{remote}, taskId:26, notifyId:0",
            **{"ascend.source": "device", "log.file.path": path},
        )
    verdict = diagnose(job.events)
    assert places(verdict)[0] == ("worker-1", 0)


def test_links_that_name_server_and_device() -> None:
    job = Job(hosts=3, devices=1)
    job.start()
    for rank, remote in ((2, "10.0.0.11/0"), (1, "10.0.0.10/0")):
        job.line(
            rank,
            130 - rank,
            "[Create][DestLink]Transport init error! createLink para:rank[443]-localUserrank[443]-"
            f"localIpAddr[], dst_rank[0]-remoteUserrank[0]-remoteIpAddr[{remote}], machineType[1], "
            "tag[AllGather_group_name_0]",
        )
    verdict = diagnose(job.events)
    assert [card.host for card in verdict.chain] == ["worker-2", "worker-1", "worker-0"]
    assert places(verdict) == [("worker-0", 0)]


def test_card_that_stalls_now_and_then() -> None:
    job = Job(hosts=2, devices=4)
    job.start()
    stalls = {5, 9, 14, 22, 30, 41}
    _steps(job, lambda rank, step: 3.0 if rank == 6 and step in stalls else 0.0)
    verdict = diagnose(job.events)
    assert (verdict.kind, verdict.rule) == ("straggler", "stalls")
    assert places(verdict) == [("worker-1", 2)]


def test_cards_that_stall_in_turn_are_nobodys_fault() -> None:
    job = Job(hosts=2, devices=4)
    job.start()
    _steps(job, lambda rank, step: 3.0 if step % 5 == 0 and rank == step // 5 % 8 else 0.0)
    assert diagnose(job.events).kind == "healthy"


def test_rank_that_entered_another_count_where_its_time_out_is_lost() -> None:
    job = Job(hosts=2, devices=4)
    job.start()
    for step in range(20):
        for rank in range(8):
            job.collective(rank, 20 + step, count=512 if step == 19 and rank == 3 else 1024)
    for rank in range(8):
        if rank != 3:
            job.notify_timeout(rank, 1900)
    verdict = diagnose(job.events)
    assert verdict.rule == "odd-entry"
    assert places(verdict) == [("worker-0", 3)]


def test_silent_card_that_entered_everything_only_lost_its_log() -> None:
    job = Job(hosts=2, devices=4)
    job.start()
    for step in range(20):
        for rank in range(8):
            if not (step == 19 and rank == 5):
                job.collective(rank, 20 + step)
    for rank in range(8):
        if rank not in (2, 5, 6):
            job.notify_timeout(rank, 1900)
    verdict = diagnose(job.events)
    assert places(verdict) == [("worker-1", 1)]


def test_card_without_identity_lines_has_the_rank_of_its_place() -> None:
    job = Job(hosts=2, devices=4)
    job.start(0, 1, 2, 3, 4, 5, 7)
    for rank in (0, 1, 2, 3, 4, 5, 7):
        job.socket_timeout(rank, 6, 150)
    job.line(6, 30, "aclrtSetDevice: open device", "ERROR", "RUNTIME", **{"ascend.device.id": 2})
    verdict = diagnose(job.events)
    assert verdict.cards[0].rank == 6
    assert verdict.cards[0].pid == 1006


def test_what_a_process_printed_without_a_time_counts_if_it_did_not_wait() -> None:
    job = Job(hosts=2, devices=4)
    job.start()
    for rank in (0, 1, 2, 3, 4, 6):
        job.notify_timeout(rank, 1900)
    for rank, text in ((5, "Fatal Python error: Segmentation fault"), (0, "Segmentation fault")):
        path = f"console/rank-{rank}.log"
        _system(job, "console", path, 0, text, rank // 4)
        del job.events[-1].fields["@timestamp"]
    verdict = diagnose(job.events)
    assert places(verdict)[0] == ("worker-1", 1)


def test_slow_card_does_not_distract_from_a_break() -> None:
    job = Job(hosts=2, devices=4)
    job.start()
    _steps(job, lambda rank, step: 0.3 if rank == 6 else 0.0, steps=20)
    for rank in range(8):
        if rank != 1:
            job.notify_timeout(rank, 1900)
    job.line(1, 60, "an exception occurred during AICPU execution, stream_id:2", module="RUNTIME")
    assert places(diagnose(job.events)) == [("worker-0", 1)]


def test_hang_is_told_from_those_that_only_wait_in_another_communicator() -> None:
    job = Job(hosts=4, devices=4)
    job.start()
    for step in range(20):
        for rank in range(16):
            hung = step == 19 and rank == 6
            if not hung:
                job.collective(rank, 20 + step, "AllGather", comm=f"tp_{rank // 4}_10000001")
            if not (step == 19 and rank // 4 == 1):
                job.collective(rank, 20.5 + step, "ReduceScatter", comm=f"dp_{rank % 4}_10000002")
    for rank in range(16):
        if rank not in (6, 5):  # the log of rank 5 is lost
            job.notify_timeout(rank, 1900)
    assert places(diagnose(job.events)) == [("worker-1", 2)]


def test_one_rank_only_asks_for_the_others() -> None:
    job = Job(hosts=2, devices=4)
    job.start(3)
    job.notify_timeout(3, 1900)
    verdict = diagnose(job.events)
    assert verdict.kind == "undetermined"
    assert any("0-2, 4-7" in text for text in verdict.missing)


def test_without_run_logs_the_silent_card_is_not_invented() -> None:
    job = Job(hosts=2, devices=4)
    for rank in range(7):
        job.line(rank, 1900, "Notify wait execute failed, device_id=0, stream_id=5, task_id=1, notify_id=3")
    verdict = diagnose(job.events)
    assert verdict.kind == "undetermined"
    assert any("run logs" in text for text in verdict.missing)


def test_clock_that_jumps_accuses_nobody() -> None:
    job = Job(hosts=3, devices=4)
    job.start()
    _steps(job, lambda rank, step: 0.0, steps=40)
    for event in job.events:
        fields = event.fields
        if fields["host.name"] == "worker-1" and fields["@timestamp"] > "2025-03-02T10:00:45":
            moment = datetime.fromisoformat(fields["@timestamp"][:-1]) + timedelta(hours=1)
            fields["@timestamp"] = f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"
    verdict = diagnose(job.events)
    assert verdict.kind in ("healthy", "undetermined")
    assert not verdict.cards


def test_remedy_of_the_causes_code_comes_from_the_catalogue() -> None:
    from ascend_elk.codes import Catalogue

    job = Job(hosts=2, devices=2)
    job.start()
    for rank in (0, 1, 3):
        job.notify_timeout(rank, 1900)
    job.line(
        2, 60, "rtX execute failed", module="RUNTIME", **{"ascend.error.codes": ["cann:EE9999", "acl:507018"]}
    )
    verdict = diagnose(job.events, catalogue=Catalogue.load())
    assert verdict.codes == ("cann:EE9999", "acl:507018")
    assert "507018: " in verdict.remediation
    assert "507018：" in verdict.remediation_zh


def test_host_that_issues_slowly_stands_out_by_cost() -> None:
    job = Job(hosts=2, devices=4)
    job.start()
    for rank in range(8):
        for step in range(20):
            cost = (900 if rank == 4 else 40) + step
            text = f"Entry-HcclAllReduce:success,take time: {cost} us, tag[AllReduce_{COMM}]"
            job.line(rank, 20 + step, text, "INFO")
    verdict = diagnose(job.events)
    assert (verdict.kind, verdict.rule) == ("straggler", "issue-cost")
    assert places(verdict) == [("worker-1", 0)]
