"""A real Filebeat sends to a Lumberjack receiver, or to a real Kafka; what arrives goes through the model of Logstash."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml

from ascend_elk.formats import compile_program, load_definitions
from ascend_elk.layout import classify
from ascend_elk.parse import Parser
from ascend_elk.render import RenderOptions, render, write
from tests.conformance import logstash_model
from tests.conformance.test_ingest import comparable, flat
from tests.engines.filebeat import logstash_output
from tests.engines.kafka import KafkaBroker

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
TOPIC = "ascend-logs-of-a-test"
# The plugin's own; all others are handed to Kafka's client under the same names, with dots.
OWN_OPTIONS = {"bootstrap_servers", "topics", "codec", "id"}


@dataclass(frozen=True)
class Host:
    """A host with two log files and the rendered configuration."""

    rendered: Path
    plog: Path
    device: Path

    def check(self, events: list[dict[str, Any]], work: Path) -> None:
        """What arrived at Logstash becomes the parser's events, with the fields of the options."""
        assert len(events) == 2 * len(SHIPPED)
        arrived = logstash_model.run(self.rendered / "logstash", events, work)
        found = {(event["log"]["file"]["path"], event["log"]["offset"]): event for event in arrived}
        east = datetime.fromisoformat("2000-01-01T00:00+08:00").tzinfo
        parser = Parser(compile_program(load_definitions()), host_zone=east, device_zone=timezone.utc)
        for path, source in ((self.plog, "plog"), (self.device, "device")):
            fields = {
                "log.file.path": str(path),
                "host.name": arrived[0]["host"]["name"],
                **classify(path).fields,
            }
            stream = io.BytesIO(path.read_bytes())
            ours = list(parser.events(stream, source, fields, datetime.now(timezone.utc)))
            first_lines = [event.fields["event.original"].split("\n")[0] for event in ours]
            kept = [
                event for event, line in zip(ours, first_lines, strict=True) if LINES.index(line) in SHIPPED
            ]
            assert len(kept) == len(SHIPPED)
            for event in kept:
                theirs = flat(found.pop((str(path), event.offset)))
                assert theirs.pop("orchestrator.cluster.name") == "east"
                assert theirs.pop("ascend.job.id") == "j-7"
                assert theirs.pop("labels.team") == "a"
                for name in [name for name in theirs if name.startswith(("data_stream.", "@metadata."))]:
                    assert theirs.pop(name)
                assert comparable(theirs) == comparable(event.fields)
        assert not found


def make_host(directory: Path, **options: Any) -> Host:
    """Render for a log root in a directory, and write the logs."""
    logs = directory / "logs"
    chosen = RenderOptions(
        stack="7.17",
        roots=(str(logs),),
        timezone="+08:00",
        device_timezone="UTC",
        cluster="east",
        job="j-7",
        labels=(("team", "a"),),
        muted=("SLOG",),
        level="WARNING",
        **options,
    )
    write(render(chosen), directory / "rendered", force=False)
    for path in (directory / "rendered" / "filebeat" / "inputs.d").glob("*.yml"):
        inputs = yaml.safe_load(path.read_text())
        for entry in inputs:
            entry["paths"] = [text for text in entry["paths"] if text.startswith(str(logs))]
        path.write_text(yaml.safe_dump([entry for entry in inputs if entry["paths"]]))
    plog = logs / "debug" / "plog" / "plog-57_20250302112031120.log"
    device = logs / "run" / "device-3" / "device-57_20250302112031120.log"
    for path in (plog, device):
        path.parent.mkdir(parents=True)
        path.write_text("".join(f"{line}\n" for line in LINES), newline="")
    return Host(directory / "rendered", plog, device)


def test_filebeat_to_logstash(
    filebeat: Callable[..., Any], lumberjack: Callable[..., Any], tmp_path: Path
) -> None:
    host = make_host(tmp_path, tls=False)
    receiver = lumberjack()
    receiver.start()
    beat = filebeat(
        host.rendered / "filebeat" / "filebeat.yml",
        settings={"output.logstash.enabled": True, **logstash_output(receiver)},
    )
    beat.start()
    events = receiver.wait_for_events(2 * len(SHIPPED), 90)
    beat.stop()
    host.check(events, tmp_path)


def test_filebeat_to_logstash_through_kafka(
    filebeat: Callable[..., Any], kafka: KafkaBroker, tmp_path: Path
) -> None:
    """Both ends as rendered: Filebeat's output, and the options of Logstash's input in the client that it uses."""
    host = make_host(tmp_path, kafka=(kafka.address,), topic=TOPIC)
    certificates = host.rendered / "filebeat" / "certs"
    certificates.mkdir()
    shutil.copy(kafka.certificates.ca, certificates / "ca.crt")
    shutil.copy(kafka.certificates.certificate, certificates / "filebeat.crt")
    shutil.copy(kafka.certificates.key, certificates / "filebeat.key")
    beat = filebeat(host.rendered / "filebeat" / "filebeat.yml", settings={})
    beat.start()
    beat.wait_until_read([host.plog, host.device], 90)
    beat.stop()
    events = consume(kafka, host.rendered / "logstash", group="7")
    # The lines of a file stay in their order.
    for path in (host.plog, host.device):
        offsets = [item["log"]["offset"] for item in events if item["log"]["file"]["path"] == str(path)]
        assert offsets == sorted(offsets)
    host.check(events, tmp_path)
    options = RenderOptions(stack="9", kafka=(kafka.address,), topic=TOPIC)
    write(render(options), tmp_path / "rendered-9", force=False)
    later = consume(kafka, tmp_path / "rendered-9" / "logstash", group="9")
    assert sorted(map(repr, later)) == sorted(map(repr, events))


def consume(kafka: KafkaBroker, directory: Path, group: str) -> list[dict[str, Any]]:
    """What Kafka's client gets with the options of the rendered input and the files that they name."""
    certificates = directory / "certs"
    certificates.mkdir()
    trusted, own = kafka.stores
    shutil.copy(kafka.certificates.ca, certificates / "ca.crt")
    shutil.copy(kafka.keystore, certificates / "logstash.pem")
    shutil.copy(trusted, certificates / "ca.p12")
    shutil.copy(own, certificates / "logstash.p12")
    options = input_options(directory)
    assert options["topics"] == [TOPIC]
    assert options["bootstrap_servers"] == kafka.address
    variables = {
        "${ASCEND_CONFIG}": str(directory),
        "${ASCEND_KAFKA_STORE_PASSWORD}": kafka.store_password,
    }
    settings = {}
    for name in options.keys() - OWN_OPTIONS:
        text = options[name]
        for variable, value in variables.items():
            text = text.replace(variable, value)
        settings[name.replace("_", ".")] = text
    # Each reads from the beginning.
    settings["group.id"] += group
    return kafka.consume(TOPIC, 2 * len(SHIPPED), settings)


def input_options(directory: Path) -> dict[str, Any]:
    """The options of the rendered input."""
    parse = pytest.importorskip("lscl.parser").parse_lscl
    (section,) = (
        section
        for section in parse((directory / "conf.d" / "10-input.conf").read_text("utf-8"))
        if section.name == "input"
    )
    (plugin,) = section.content
    assert plugin.name == "kafka"
    return {attribute.name: attribute.content for attribute in plugin.content}
