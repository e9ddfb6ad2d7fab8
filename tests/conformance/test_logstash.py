"""The rendered Logstash filters give what the parser gives, field by field, in a model of Logstash."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest

from ascend_elk.render import RenderOptions, render, write
from tests.conformance import logstash_model
from tests.conformance.test_ingest import (
    CORPUS,
    Case,
    cases,
    comparable,
    flat,
    made_up_cases,
    sample_cases,
)


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("rendered")
    write(render(RenderOptions()), directory, force=False)
    return directory / "logstash"


def identity(host: str, path: str, offset: int, line: str) -> str:
    """As docs/delivery.md says: which file, where in it, what stood there."""
    file = hashlib.sha256(f"{host}|{path}".encode()).digest()[:8]
    header = hashlib.sha256(line.encode()).digest()[:5]
    return base64.urlsafe_b64encode(file + offset.to_bytes(5, "big") + header).decode()


def received(document: dict[str, Any]) -> dict[str, Any]:
    """What reaches Logstash: Filebeat's offset of a zone, and fields that are taken off again."""
    zone = {"UTC": "+00:00"}.get(document["event"]["timezone"], document["event"]["timezone"])
    return {
        **document,
        "@version": "1",
        "agent": {"id": "0"},
        "ecs": {"version": "8.0.0"},
        "input": {"type": "filestream"},
        "tags": ["beats_input_codec_plain_applied"],
        "event": {"timezone": zone},
    }


def differences(directory: Path, all_cases: list[Case], work: Path) -> list[str]:
    events = logstash_model.run(directory, [received(case.document) for case in all_cases], work)
    found: list[str] = []
    for case, event in zip(all_cases, events, strict=True):
        line = case.document["message"].split("\n", 1)[0].removesuffix("\r")
        log = event["log"]
        assert event.pop("@metadata")["id"] == identity("worker-0", log["file"]["path"], log["offset"], line)
        ours, theirs = case.expected, comparable(flat(event))
        if ours != theirs:
            names = sorted(name for name in ours | theirs if ours.get(name) != theirs.get(name))
            details = ", ".join(f"{name}: {ours.get(name)!r} but {theirs.get(name)!r}" for name in names)
            found.append(f"{case.name}: {details}\n    {case.document['message'][:200]!r}")
    return found


def test_samples(rendered: Path, tmp_path: Path) -> None:
    all_cases = [*sample_cases(), *made_up_cases()]
    assert len(all_cases) > 400
    found = differences(rendered, all_cases, tmp_path)
    assert not found, "\n".join(found[:20])


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the shared corpus of real logs is not here")
def test_real_logs(rendered: Path, tmp_path: Path) -> None:
    all_cases = [
        case
        for path in sorted(CORPUS.glob("*.log"))
        for source in ("console", "plog")
        for case in cases(path.name, source, path.read_bytes())
    ]
    assert len(all_cases) > 3000
    found = differences(rendered, all_cases, tmp_path)
    assert not found, "\n".join(found[:20])


def test_what_fails_is_kept(rendered: Path, tmp_path: Path) -> None:
    """An offset that is no number makes a script fail; the record comes through all the same."""
    document = {
        "@timestamp": "2026-11-30T12:00:00.000Z",
        "message": "a line\n  and more",
        "log": {"offset": "none", "file": {"path": "/a"}},
        "ascend": {"source": "plog"},
    }
    (event,) = logstash_model.run(rendered, [document], tmp_path)
    assert event["message"] == "a line\n  and more"
    assert event["event"]["kind"] == "pipeline_error"
    assert event["tags"] == ["ascend_unparsed", "ascend_pipeline_error"]
    assert "_rubyexception" in event["error"]["message"]


def test_original_can_be_left_out(tmp_path: Path) -> None:
    write(render(RenderOptions(original=False)), tmp_path / "rendered", force=False)
    case = next(sample_cases())
    (event,) = logstash_model.run(tmp_path / "rendered" / "logstash", [received(case.document)], tmp_path)
    assert "original" not in event["event"]
    assert event["@metadata"]["id"]
