"""Which card a process drives."""

from __future__ import annotations

from typing import Any

from ascend_elk.identity import ProcessKey, Registry, log_root

COMM = "10.0.0.1%eth0_60000_0_1750325244673428"


def event(
    message: str, pid: int = 57, host: str = "worker-0", path: str | None = None, **more: Any
) -> dict[str, Any]:
    return {
        "host.name": host,
        "process.pid": pid,
        "log.file.path": path or f"{host}/log/run/plog/plog-{pid}_20250619092607584.log",
        "event.dataset": "ascend.plog",
        "message": message,
        **more,
    }


def agent(rank: int, device: int, pid: int = 57, host: str = "worker-0", **more: Any) -> dict[str, Any]:
    return event(
        f"[HCCL_TRACE]SetupAgent rankNum[16], rank[{rank}], rootInfo identifier[{COMM}], "
        f"server[10.0.0.1%eth0], logicDevId[{device}], phydevId[{device + 4}], deviceIp[192.0.2.{rank}]",
        pid,
        host,
        **more,
    )


def observed(*events: dict[str, Any]) -> Registry:
    registry = Registry()
    for fields in events:
        registry.observe(fields)
    return registry


def test_identity_line_gives_every_later_and_earlier_event_its_card() -> None:
    registry = observed(event("anything"), agent(9, 1))
    assert registry.identify(event("anything")) == {
        "ascend.device.id": 1,
        "ascend.device.physical_id": 5,
        "ascend.device.ip": "192.0.2.9",
        "ascend.device.key": "worker-0/1",
        "ascend.rank.id": 9,
        "ascend.rank.size": 16,
        "ascend.communicator.id": COMM,
    }


def test_same_pid_on_two_hosts_is_two_processes() -> None:
    registry = observed(agent(0, 0, 57, "worker-0"), agent(8, 3, 57, "worker-1"))
    assert registry.identify(event("x", 57, "worker-0"))["ascend.device.id"] == 0
    assert registry.identify(event("x", 57, "worker-1"))["ascend.device.id"] == 3


def test_same_pid_in_two_containers_of_a_host_is_two_processes() -> None:
    one = "job/rank_0/debug/plog/plog-57_1.log"
    other = "job/rank_1/debug/plog/plog-57_1.log"
    registry = observed(agent(0, 0, path=one), agent(1, 1, path=other))
    assert registry.identify(event("x", path=one))["ascend.device.id"] == 0
    assert registry.identify(event("x", path=other))["ascend.device.id"] == 1


def test_forked_child_follows_the_header_and_inherits_the_device() -> None:
    parent_file = "worker-0/log/debug/plog/plog-57_1.log"
    registry = observed(agent(2, 2, path=parent_file), event("x", pid=58, path=parent_file))
    added = registry.identify(event("x", pid=58, path=parent_file))
    assert added["ascend.device.id"] == 2
    assert "ascend.rank.id" not in added, "the child need not be in the communicator"


def test_forked_child_with_lines_of_its_own_has_its_own_device() -> None:
    parent_file = "worker-0/log/run/plog/plog-57_1.log"
    registry = observed(
        agent(2, 2, path=parent_file),
        event(
            "[Start][Vnic]Listen on ip[192.168.2.196], port[16666] sucess, devPhyId[3], devLogicId[3]",
            pid=58,
            path=parent_file,
        ),
    )
    assert registry.identify(event("x", pid=58, path=parent_file))["ascend.device.id"] == 3


def test_contradiction_is_reported_not_guessed() -> None:
    registry = observed(agent(2, 2), agent(2, 5))
    assert "ascend.device.id" not in registry.identify(event("x"))
    assert any("device as 2 and as 5" in text for text in registry.contradictions)


def test_lines_that_only_mention_a_device_count_where_nothing_states_it() -> None:
    registry = observed(*[event("x", **{"ascend.device.id": 6})] * 3)
    assert registry.identify(event("x"))["ascend.device.id"] == 6
    registry.observe(agent(4, 4))
    assert registry.identify(event("x"))["ascend.device.id"] == 4


def test_mentions_that_disagree_leave_the_device_open() -> None:
    registry = observed(*(event("x", **{"ascend.device.id": device}) for device in (0, 1, 0, 1)))
    assert "ascend.device.id" not in registry.identify(event("x"))


def test_device_side_file_joins_its_host_process() -> None:
    registry = observed(agent(9, 1))
    device_side = event("TLS SWITCH (1)", path="worker-0/log/run/device-1/device-57_2.log")
    assert registry.identify(device_side)["ascend.rank.id"] == 9


def test_rank_in_a_sub_communicator_is_told_apart() -> None:
    registry = observed(
        agent(9, 1),
        event("[HCCL_TRACE]create success, sub commm identifier[tp_group_1], rankNum[8], rank[1]"),
    )
    assert registry.identify(event("x", **{"ascend.communicator.id": "tp_group_1"}))["ascend.rank.id"] == 1
    assert registry.identify(event("x"))["ascend.rank.id"] == 9


def test_key_info_of_two_lines_belongs_together() -> None:
    registry = observed(
        event(f"[Communicator Key Info]identifier[{COMM}] rankSize[8] serverNum[1] moduleNum[1]"),
        event(
            "[LocalRank Key Info]userRank[6] hostIp[10.0.0.1] devicePhyId[6] server[10.0.0.1] "
            "deviceIp[0.0.0.0] superPodId[0]"
        ),
    )
    added = registry.identify(event("x"))
    assert (added["ascend.rank.id"], added["ascend.rank.size"], added["ascend.device.physical_id"]) == (
        6,
        8,
        6,
    )
    assert "ascend.device.ip" not in added


def test_rank_of_the_directory_counts_where_no_line_says_it() -> None:
    path = "job/process_log/rank_76/debug/plog/plog-12337_1.log"
    registry = observed(event("x", pid=12337, path=path))
    assert registry.identify(event("x", pid=12337, path=path))["ascend.rank.id"] == 76


def test_what_an_event_has_is_left_alone() -> None:
    registry = observed(agent(9, 1))
    assert "ascend.device.id" not in registry.identify(event("x", **{"ascend.device.id": 3}))


def test_lines_of_no_process_are_nobodys() -> None:
    registry = observed(agent(9, 1))
    assert registry.observe({"message": "x", "host.name": "worker-0", "log.file.path": "a"}) is None
    assert registry.observe({"message": "x", "host.name": "worker-0", "process.pid": -1}) is None


def test_registries_of_two_readers_merge() -> None:
    one, other = observed(event("x")), observed(agent(9, 1))
    one.merge(other)
    assert one.identify(event("x"))["ascend.rank.id"] == 9


def test_log_root_is_the_directory_above_the_log_tree() -> None:
    assert log_root("worker-0/log/debug/plog/plog-1_2.log") == "worker-0/log"
    assert log_root("a/b/run/device-3/device-1_2.log") == "a/b"
    assert log_root("plog/plog-1_2.log") == ""
    assert log_root("x/plog-1_2.log") == "x"


def test_process_key_tells_host_root_and_pid() -> None:
    registry = observed(event("x"))
    assert list(registry.processes) == [ProcessKey("worker-0", "worker-0/log", 57)]
