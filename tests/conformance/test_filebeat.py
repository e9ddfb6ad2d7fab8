"""A real Filebeat with the rendered configuration: same records, same ids from the path, same tags as the parser."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml

from ascend_elk.cann import Version
from ascend_elk.formats import compile_program, load_definitions
from ascend_elk.layout import discover
from ascend_elk.parse import Event, Parser
from ascend_elk.render import RenderOptions, render, write
from ascend_elk.simulate import simulate
from tests.engines.filebeat import file_output

READ_AT = datetime(2026, 11, 30, tzinfo=timezone.utc)
IDS = ("process.pid", "ascend.device.id", "log.file.path")


def configuration(directory: Path, log: Path, stack: str = "7.17") -> Path:
    """Render for one log root, and leave out what only exists on a real host."""
    options = RenderOptions(cann=(Version.parse("8.2"),), stack=stack, roots=(str(log),))
    write(render(options), directory, force=False)
    for path in (directory / "filebeat" / "inputs.d").glob("*.yml"):
        inputs = yaml.safe_load(path.read_text())
        for entry in inputs:
            entry["paths"] = [text for text in entry["paths"] if text.startswith(str(log))]
        kept = [entry for entry in inputs if entry["paths"]]
        if kept:
            path.write_text(yaml.safe_dump(kept))
        else:
            path.unlink()
    return directory / "filebeat" / "filebeat.yml"


def to_file(directory: Path) -> dict[str, Any]:
    return {**file_output(directory / "filebeat" / "output"), "output.logstash.enabled": False}


def parsed(log: Path) -> dict[tuple[str, str], tuple[Event, dict[str, Any]]]:
    """Events by path and bytes, with what the path alone says."""
    parser = Parser(compile_program(load_definitions()))
    events: dict[tuple[str, str], tuple[Event, dict[str, Any]]] = {}
    for file in discover([log]).files:
        fields = {"log.file.path": str(file.path), **file.fields}
        for event in parser.events(io.BytesIO(file.path.read_bytes()), file.source, fields, READ_AT):
            events[str(file.path), event.fields["event.original"]] = event, fields
    return events


def value(document: dict[str, Any], name: str) -> Any:
    node: Any = document
    for part in name.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    return node


def test_filebeat_frames_and_tags_as_the_parser_does(filebeat: Callable[..., Any], tmp_path: Path) -> None:
    simulate(
        tmp_path / "logs", "aicore-exception", hosts=1, devices=4, cann=Version.parse("8.2"), seed=5, steps=4
    )
    log = tmp_path / "logs" / "worker-0" / "ascend" / "log"
    (plog, *_) = sorted(log.rglob("debug/plog/plog-*.log"))
    with plog.open("a") as out:
        out.write(
            "[ERROR] GE(7,a):2025-03-02-11:20:31.120.004 [a.cc:1]7 Run:first\n  second\n\nE39999: third\n"
        )
        out.write("[ERROR] GE(7,a):2025-03-02-11:20:31.120.005 [a.cc:1]7 Run:last\n")
    beat = filebeat(configuration(tmp_path / "rendered", log), settings=to_file(tmp_path))
    files = sorted(path for path in log.rglob("*.log"))
    documents = beat.read(files, timeout=90)
    expected = parsed(log)
    assert len(documents) == len(expected) > 100
    for document in documents:
        key = value(document, "log.file.path"), document["message"]
        event, of_path = expected.pop(key)
        for name in IDS:
            assert value(document, name) == of_path.get(name), (name, key)
        assert value(document, "ascend.source") == event.fields["ascend.source"]
        assert value(document, "data_stream.dataset") == event.fields["event.dataset"]
    assert not expected


@pytest.mark.parametrize("stack", ["7.17", "8", "9"])
def test_rendered_configuration_is_accepted(filebeat: Callable[..., Any], tmp_path: Path, stack: str) -> None:
    log = tmp_path / "log"
    log.mkdir()
    config = configuration(tmp_path / "rendered", log, stack)
    beat = filebeat(config, settings=to_file(tmp_path))
    checked = beat.test_config()
    assert checked.ok, checked.output
