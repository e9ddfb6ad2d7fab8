"""What Filebeat is told frames and tags lines as the parser does."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest

from ascend_elk.formats import compile_program, load_definitions
from ascend_elk.layout import classify
from ascend_elk.layout.roots import load_roots
from ascend_elk.parse.executor import SourceExecutor
from ascend_elk.records import Record, read_records
from ascend_elk.render.filebeat import excluded_files, framing, included_files

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


def glob_matches(pattern: str, path: str) -> bool:
    """Go's filepath.Match: a star stays within its directory."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", "[^/]*"), path) is not None


def in_its_place(glob: str, path: str) -> bool:
    """Whether the end of a path is as it is on a host, not copied out of its tree."""
    depth = glob.count("/") + 1
    return glob_matches(glob, "/".join(path.removesuffix(".gz").split("/")[-depth:]))


PATHS = [
    pytest.param(source.name, path, sample, id=f"{source.name}-{path.layout}-{number}")
    for source in DEFINITIONS.sources.values()
    for path in source.paths
    if path.root != "export"
    for number, sample in enumerate(path.samples)
    if in_its_place(path.glob, sample["path"])
]


def ids(path: Any) -> set[str]:
    """What only part of a source's files have in their path is no matter of dissect."""
    optional = {"ascend.device.os"} if "DEVICE_OS_DIRECTORY" in path.pattern else set()
    return optional | ({"ascend.rank.id"} if "RANK_DIRECTORY" in path.pattern else set())


@pytest.mark.parametrize(("source", "path", "sample"), PATHS)
def test_dissect_reads_the_ids_that_the_pattern_reads(source: str, path: Any, sample: dict[str, Any]) -> None:
    text = sample["path"] if sample["path"].startswith("/") else f"/{sample['path']}"
    expected = {name: value for name, value in classify(text).fields.items() if name not in ids(path)}
    assert (dissect(path.dissect, text) if path.dissect else {}) == expected


def live_files() -> list[tuple[str, str]]:
    """Paths as they are on a host, by the samples, and their sources."""
    roots = load_roots()
    found = []
    for source in DEFINITIONS.sources.values():
        for path in source.paths:
            for sample in path.samples:
                if sample["path"].startswith("/") and roots[path.root].directories:
                    found.append((source.name, sample["path"]))
    return found


@pytest.mark.parametrize(("source", "path"), live_files(), ids=[path for _, path in live_files()])
def test_a_file_is_read_by_one_source_only(source: str, path: str) -> None:
    roots = load_roots()
    if path.endswith(".gz"):
        path = path.removesuffix(".gz")
    readers = set()
    for other in DEFINITIONS.sources.values():
        included = re2.compile(included_files(PROGRAM, other.paths))
        for place in other.paths:
            for directory in (*roots[place.root].directories, "/data/log", "/data/mindie/log"):
                excluded = [re2.compile(text) for text in excluded_files(PROGRAM, other, place)]
                if not glob_matches(f"{directory}/{place.glob}", path) or not included.search(path):
                    continue
                if not any(pattern.search(path) for pattern in excluded):
                    readers.add(other.name)
    assert readers == {source}
