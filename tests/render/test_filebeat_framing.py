"""What Filebeat is told frames and tags lines as the parser does."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest

from ascend_elk.formats import compile_program, load_definitions
from ascend_elk.layout import classify
from ascend_elk.parse.executor import SourceExecutor
from ascend_elk.records import Record, read_records
from ascend_elk.render.filebeat import dissect_of, framing

re2 = pytest.importorskip("re2")
DEFINITIONS = load_definitions()
PROGRAM = compile_program(DEFINITIONS)
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"


def filebeat_records(lines: list[bytes], settings: dict[str, Any]) -> list[bytes]:
    """Frame lines as Filebeat's multiline reader with ``match: after`` documents."""
    options = re2.Options()
    options.max_mem = 64 << 20
    pattern = re2.compile(settings["pattern"].encode("utf-8"), options)
    records: list[bytes] = []
    for line in lines:
        matched = pattern.search(line) is not None
        joins = not matched if settings["negate"] else matched
        if joins and records:
            records[-1] += b"\n" + line
        else:
            records.append(line)
    return records


def sample_lines() -> list[bytes]:
    lines = [sample.line.encode() for item in DEFINITIONS.formats.values() for sample in item.samples]
    mixed: list[bytes] = []
    for number, line in enumerate(lines):
        mixed.append(line)
        if number % 3 == 0:
            mixed += [b"        a continuation", b""]
    return mixed


@pytest.mark.parametrize("source", sorted(DEFINITIONS.sources))
def test_filebeat_frames_as_the_parser_does(source: str) -> None:
    definition = DEFINITIONS.sources[source]
    executor = SourceExecutor(PROGRAM, definition)
    texts = [sample_lines()]
    if CORPUS.is_dir():
        texts += [path.read_bytes().split(b"\n")[:-1] for path in sorted(CORPUS.glob("oam_*.log"))]
    for lines in texts:
        # Two records on one line are split in-process only.
        lines = [line for line in lines if line.count(b"):") < 2]
        data = b"\n".join(lines) + b"\n"
        ours = [
            record.raw.rstrip(b"\n")
            for record in read_records(io.BytesIO(data), executor.opens, executor.continues, Record)
        ]
        theirs = [record.rstrip(b"\n") for record in filebeat_records(lines, framing(PROGRAM, definition))]
        if definition.framing == "continuation":
            # A header may start with blanks on a console; Filebeat cannot tell it from a continuation.
            assert sum(map(len, theirs)) + len(theirs) <= len(data) + len(theirs)
            continue
        assert theirs == ours


def dissect(tokenizer: str, text: str) -> dict[str, Any] | None:
    """Filebeat's dissect: literal delimiters in order, the first place each is found."""
    parts = re.split(r"%\{([^}]*)\}", tokenizer)
    delimiters, keys = parts[0::2], parts[1::2]
    position, found = len(delimiters[0]), {}
    for key, delimiter in zip(keys, delimiters[1:], strict=True):
        end = text.find(delimiter, position) if delimiter else len(text)
        if end < 0:
            return None
        name, _, kind = key.partition("|")
        if name:
            found[name] = int(text[position:end]) if kind else text[position:end]
        position = end + len(delimiter)
    return found


PATHS = [
    pytest.param(source.name, path, sample, id=f"{source.name}-{path.layout}-{number}")
    for source in DEFINITIONS.sources.values()
    for path in source.paths
    if path.root != "export" and dissect_of(path.pattern)
    for number, sample in enumerate(path.samples)
]


@pytest.mark.parametrize(("source", "path", "sample"), PATHS)
def test_dissect_reads_the_ids_that_the_pattern_reads(source: str, path: Any, sample: dict[str, Any]) -> None:
    text = sample["path"] if sample["path"].startswith("/") else f"/{sample['path']}"
    tokenizer = dissect_of(path.pattern)
    assert tokenizer is not None
    found = dissect(tokenizer, text)
    expected = classify(sample["path"]).fields
    assert found
    for name, value in found.items():
        assert expected[name] == value


def test_process_and_device_are_dissected() -> None:
    by_source = {
        source.name: {dissect_of(path.pattern) for path in source.paths}
        for source in DEFINITIONS.sources.values()
    }
    assert "%{}/plog/plog-%{process.pid|integer}_%{}" in by_source["plog"]
    assert any(
        text and "device-%{ascend.device.id|integer}/device-%{process.pid|integer}_" in text
        for text in by_source["device"]
    )
