"""Whatever stands in the lines, there is a verdict."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_elk.diagnose import diagnose
from ascend_elk.interest import load_signs
from tests.diagnose.job import COMM, PlainEvent

LITERALS = [literal for sign in load_signs().signs for literal in sign.contains]
PIECES = [
    "rank[{}]",
    "rankNum[{}]",
    f"identifier[{COMM}]",
    "logicDevId[{}]",
    "phydevId[{}]",
    "server[10.0.0.{}]",
    "remote rank:[{}]",
    "missing [{},{}]",
    "|  192.0.2.{}({})   |   192.0.2.1({})   |",
    "deviceIp[192.0.2.{}]",
    "crimer rank [10.0.0.{}/{}] status[LOST] by informer rank [10.0.0.{}/{}]",
    "local[{}], remote[{}]",
    "index[{}], count[{}]",
    "connected rankinfo[LINE 0]: [{}],[{}];",
    "Failed to connect agent[{},{},]",
    "HCCL_EXEC_TIMEOUT set by environment to [{}]s",
]
NUMBERS = st.one_of(
    st.integers(0, 5), st.sampled_from([4294967295, 99999999, 10**9]), st.text("0123456789-x ", max_size=4)
)


@st.composite
def messages(draw: st.DrawFn) -> str:
    parts = draw(st.lists(st.sampled_from(LITERALS + PIECES), min_size=1, max_size=5))
    text = draw(st.sampled_from(["", ", ", " "])).join(parts)
    while "{}" in text:
        text = text.replace("{}", str(draw(NUMBERS)), 1)
    return text


@st.composite
def events(draw: st.DrawFn) -> PlainEvent:
    host = draw(st.sampled_from([None, "worker-0", "worker-1"]))
    pid = draw(st.sampled_from([None, -1, 100, 101, 102]))
    fields: dict[str, Any] = {
        "@timestamp": draw(
            st.sampled_from(
                [
                    None,
                    "2025-03-02T10:00:00.000001Z",
                    "2025-03-02T18:00:00.5Z",
                    "1970-01-01T00:00:01Z",
                    "nonsense",
                    "9999-12-31T23:59:59.999999Z",
                    1740909600,
                ]
            )
        ),
        "host.name": host,
        "process.pid": pid,
        "log.file.path": draw(
            st.sampled_from(["", "w/log/debug/plog/plog-100_1.log", "w/run/device-1/device-101_1.log"])
        ),
        "log.level": draw(st.sampled_from([None, "INFO", "ERROR", "WARNING", "EVENT"])),
        "ascend.source": draw(st.sampled_from([None, "plog", "device", "event", "host-kernel"])),
        "ascend.device.id": draw(st.sampled_from([None, 0, 1])),
        "ascend.error.codes": draw(
            st.sampled_from([None, [], ["acl:507018"], ["cann:EE9999", "hcclresult:9"]])
        ),
        "ascend.signal": draw(st.sampled_from([None, ["timeout"], ["ecc", "hardware"]])),
        "message": draw(messages()),
    }
    return PlainEvent({name: value for name, value in fields.items() if value is not None})


@settings(max_examples=400, deadline=None)
@given(st.lists(events(), max_size=30))
def test_any_lines_give_a_plain_verdict(lines: list[PlainEvent]) -> None:
    document = diagnose(lines).to_json()
    json.dumps(document)
    assert 0 <= document["confidence"] <= 1
    assert document["kind"] in ("first-failure", "straggler", "link", "undetermined", "healthy")
    assert document["sentence"]
    assert bool(document["cards"]) == (document["kind"] not in ("undetermined", "healthy"))
