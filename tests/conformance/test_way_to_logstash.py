"""A real Filebeat sends to a Lumberjack receiver; what arrives goes through the model of Logstash."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import yaml

from ascend_elk.formats import compile_program, load_definitions
from ascend_elk.layout import classify
from ascend_elk.parse import Parser
from ascend_elk.render import RenderOptions, render, write
from tests.conformance import logstash_model
from tests.conformance.test_ingest import comparable, flat
from tests.engines.filebeat import logstash_output

LINES = [
    "[ERROR] HCCL(57,python):2025-03-02-11:20:31.120.001 [a.cc:1] [58]wait socket establish timeout, role[1]",
    "   |  192.0.2.12(10)  |  16666  |  192.0.2.2(2)  |  2882681339  |  server  | time out |",
    "",
    "EI0006: Getting socket times out.",
    "[INFO] GE(57,python):2025-03-02-11:20:31.120.002 [a.cc:1]57 Run:an INFO line that is not shipped",
    "[WARNING] GE(57,python):2025-03-02-11:20:31.120.003 [a.cc:1]57 Run:错误 of two\r",
    "\tlines\r",
    "[ERROR] SLOG(57,python):2025-03-02-11:20:31.120.004 [a.cc:1]57 Run:of a muted module",
    "[EVENT] HCCL(57,python):2025-03-02-11:20:31.120.005 [a.cc:1] [58]outside of the order of levels",
    "[ERROR] RUNTIME(57,python):2025-03-02-11:20:31.120.006 [a.cc:1]57 Run:last, retCode=0x7020016",
]
SHIPPED = (0, 5, 8, 9)


def test_filebeat_to_logstash(
    filebeat: Callable[..., Any], lumberjack: Callable[..., Any], tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    options = RenderOptions(
        stack="7.17",
        tls=False,
        roots=(str(logs),),
        timezone="+08:00",
        device_timezone="UTC",
        cluster="east",
        job="j-7",
        labels=(("team", "a"),),
        muted=("SLOG",),
        level="WARNING",
    )
    write(render(options), tmp_path / "rendered", force=False)
    for path in (tmp_path / "rendered" / "filebeat" / "inputs.d").glob("*.yml"):
        inputs = yaml.safe_load(path.read_text())
        for entry in inputs:
            entry["paths"] = [text for text in entry["paths"] if text.startswith(str(logs))]
        path.write_text(yaml.safe_dump([entry for entry in inputs if entry["paths"]]))
    plog = logs / "debug" / "plog" / "plog-57_20250302112031120.log"
    device = logs / "run" / "device-3" / "device-57_20250302112031120.log"
    for path in (plog, device):
        path.parent.mkdir(parents=True)
        path.write_text("".join(f"{line}\n" for line in LINES), newline="")
    receiver = lumberjack()
    receiver.start()
    beat = filebeat(
        tmp_path / "rendered" / "filebeat" / "filebeat.yml",
        settings={"output.logstash.enabled": True, **logstash_output(receiver)},
    )
    beat.start()
    events = receiver.wait_for_events(2 * len(SHIPPED), 90)
    beat.stop()
    assert len(events) == 2 * len(SHIPPED)
    arrived = logstash_model.run(tmp_path / "rendered" / "logstash", events, tmp_path)
    found = {(event["log"]["file"]["path"], event["log"]["offset"]): event for event in arrived}
    east = datetime.fromisoformat("2000-01-01T00:00+08:00").tzinfo
    parser = Parser(compile_program(load_definitions()), host_zone=east, device_zone=timezone.utc)
    for path, source in ((plog, "plog"), (device, "device")):
        fields = {
            "log.file.path": str(path),
            "host.name": arrived[0]["host"]["name"],
            **classify(path).fields,
        }
        stream = io.BytesIO(path.read_bytes())
        ours = list(parser.events(stream, source, fields, datetime.now(timezone.utc)))
        kept = [
            event for event in ours if LINES.index(event.fields["event.original"].split("\n")[0]) in SHIPPED
        ]
        assert len(kept) == len(SHIPPED)
        for event in kept:
            theirs = flat(found.pop((str(path), event.offset)))
            assert theirs.pop("orchestrator.cluster.name") == "east"
            assert theirs.pop("ascend.job.id") == "j-7"
            assert theirs.pop("labels.team") == "a"
            for name in ("data_stream.type", "data_stream.dataset", "data_stream.namespace", "@metadata.id"):
                assert theirs.pop(name)
            assert comparable(theirs) == comparable(event.fields)
    assert not found
