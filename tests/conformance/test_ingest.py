"""A real Elasticsearch runs the rendered ingest pipelines: field by field what the parser gives.

Every sample of ``grok/`` and every line of the real logs goes through both. What may differ stands in
``KNOWN_DIFFERENCES``, each with its reason.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ascend_elk.commands.options import read_zone
from ascend_elk.content import content_dir
from ascend_elk.formats import compile_program, load_definitions
from ascend_elk.parse import Event, Parser
from ascend_elk.parse.event import nested
from ascend_elk.records import decode
from ascend_elk.render import RenderOptions
from ascend_elk.render.ingest import ENTRY, render_ingest
from ascend_elk.render.steps import Steps
from tests.engines import substitutions

DEFINITIONS = load_definitions()
PROGRAM = compile_program(DEFINITIONS)
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
READ_AT = datetime(2026, 11, 30, 12, 0, tzinfo=timezone.utc)
READ_AT_TEXT = "2026-11-30T12:00:00.000Z"
BATCH = 400
# Kinds of files that real logs of unknown origin are read as
CORPUS_SOURCES = ("console", "plog", "device", "host-os", "mindie", "mindcluster")
# What the two cannot agree on, with the reason; how records are cut out of a file is compared in test_filebeat.
KNOWN_DIFFERENCES = {
    "event.ingested": "when the stack took the event in; the parser takes nothing in",
    "tags:ascend_split": "the parser's record had reached its limit; a stack never sees that a record goes on",
}


@dataclass(frozen=True)
class Case:
    """An event of the parser and the document that Filebeat makes of the same bytes."""

    name: str
    expected: dict[str, Any]
    document: dict[str, Any]


@cache
def parser(zone: str) -> Parser:
    """The parser of hosts in a zone."""
    return Parser(PROGRAM, host_zone=read_zone(zone))


def cases(name: str, source: str, data: bytes, zone: str = "UTC") -> Iterator[Case]:
    """The events of a file of a source, each with its document; the hosts' clocks are in a zone."""
    path = f"/var/log/{name}.log"
    fields: dict[str, Any] = {"log.file.path": path, "host.name": "worker-0"}
    if DEFINITIONS.sources[source].clock == "device":
        # As the path of a device's file says; the header names another process.
        fields |= {"process.pid": 4711, "ascend.device.id": 3}
    for event in parser(zone).events(io.BytesIO(data), source, fields, READ_AT):
        yield Case(
            f"{name} as {source}, line {event.line}", expected(event), document(event, source, fields, zone)
        )


def document(event: Event, source: str, fields: dict[str, Any], zone: str) -> dict[str, Any]:
    # Filebeat gives the record without its last line end, and the place of its last line that is not empty.
    text = event.raw.removesuffix(b"\n")
    last_line = text.rstrip(b"\n").rfind(b"\n") + 1
    return nested(
        {
            **fields,
            "@timestamp": READ_AT_TEXT,
            "message": decode(text),
            "ascend.source": source,
            "event.timezone": zone,
            "log.offset": event.offset + last_line,
        }
    )


def expected(event: Event) -> dict[str, Any]:
    fields = dict(event.fields)
    # A line without a time keeps that of reading in the stack.
    fields.setdefault("@timestamp", READ_AT_TEXT)
    return comparable(fields)


def flat(node: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in node.items():
        if isinstance(value, dict):
            result |= flat(value, f"{prefix}{name}.")
        else:
            result[f"{prefix}{name}"] = value
    return result


def comparable(fields: dict[str, Any]) -> dict[str, Any]:
    """Without known differences; times at one precision, tags in one order."""
    result = {name: value for name, value in fields.items() if name not in KNOWN_DIFFERENCES}
    tags = sorted(tag for tag in result.pop("tags", []) if f"tags:{tag}" not in KNOWN_DIFFERENCES)
    if tags:
        result["tags"] = tags
    result["@timestamp"] = result["@timestamp"].removesuffix("Z").ljust(29, "0")
    return result


def put_pipelines(client: Any, namespace: str) -> str:
    """Put the rendered pipelines under names of this test; returns that of the first."""
    steps, scripts = Steps(PROGRAM), content_dir("elasticsearch") / "scripts"
    for name, body in render_ingest(steps, RenderOptions(), scripts).items():
        text = json.dumps(substitutions.pipeline(body)).replace(f'"{ENTRY}-', f'"{namespace}-')
        client.ingest.put_pipeline(id=name.replace(ENTRY, namespace), **json.loads(text))
    return namespace


def simulate(client: Any, pipeline: str, documents: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for start in range(0, len(documents), BATCH):
        docs = [{"_index": "x", "_source": item} for item in documents[start : start + BATCH]]
        for result in client.ingest.simulate(id=pipeline, docs=docs)["docs"]:
            assert "doc" in result, result
            yield flat(result["doc"]["_source"])


def differences(client: Any, pipeline: str, all_cases: list[Case]) -> list[str]:
    """One text per event that differs, with what differs."""
    found: list[str] = []
    answers = simulate(client, pipeline, [case.document for case in all_cases])
    for case, answer in zip(all_cases, answers, strict=True):
        ours, theirs = case.expected, comparable(answer)
        if ours != theirs:
            names = sorted(name for name in ours | theirs if ours.get(name) != theirs.get(name))
            details = ", ".join(f"{name}: {ours.get(name)!r} but {theirs.get(name)!r}" for name in names)
            found.append(f"{case.name}: {details}\n    {case.document['message'][:200]!r}")
    return found


def sources_of(format_name: str) -> list[str]:
    return [source.name for source in DEFINITIONS.sources.values() if format_name in source.formats]


def with_header(group: str, module: str | None, message: str) -> tuple[str, str]:
    """A line that has a message of a group of body styles behind its header, and a source that reads it."""
    name, time = module or "OTHER", "2025-03-02-11:20:31.120.004"
    return {
        "plog": (f"[ERROR] {name}(57,python):{time} {message}", "plog"),
        "ddk": (f"[ERROR] {name}:{time} {message}", "plog"),
        "mindspore": (f"[ERROR] {name}(57,fffd6e363470,python):{time} {message}", "console"),
        "error-manager": (message, "console"),
    }[group]


def sample_cases() -> Iterator[Case]:
    for item in DEFINITIONS.formats.values():
        for number, sample in enumerate(item.samples):
            for source in sources_of(item.name):
                yield from cases(f"{item.name}-{number}", source, sample.line.encode())
    for prefix in DEFINITIONS.prefixes:
        for number, sample in enumerate(prefix.samples):
            yield from cases(f"prefix-{prefix.name}-{number}", "console", sample.line.encode())
            # Before a line that has a header, too
            line = f"{sample.line.removesuffix('text')}[INFO] GE(7,):2025-03-02-11:20:31.120.004 text"
            yield from cases(f"prefix-{prefix.name}-{number}-header", "console", line.encode())
    for group, styles in DEFINITIONS.bodies.items():
        for style in styles:
            for number, body in enumerate(style.samples):
                for module in [body.module] if body.module else style.modules or [None]:
                    line, source = with_header(group, module, body.message or body.unmatched or "")
                    yield from cases(f"{group}-{style.name}-{number}-{module}", source, line.encode())
    for extractor in DEFINITIONS.extractors:
        for number, fact in enumerate(extractor.samples):
            module = fact.module or (extractor.modules[0] if extractor.modules else None)
            text = (fact.message or fact.unmatched or "").replace("\\n", "\n")
            line, _ = with_header("plog", module, f"[a.cc:1]57 Run:{text}")
            yield from cases(f"{extractor.name}-{number}", "plog", line.encode())
            yield from cases(f"{extractor.name}-{number}-bare", "console", text.encode())


def made_up_cases() -> Iterator[Case]:
    """What neither samples nor real logs hold: cut, broken, unsynchronised and undated lines."""
    head = b"[ERROR] HCCL(57,python):2025-03-02-11:20:31.120.004 [a.cc:1][58]"
    lines = {
        "cut": head + b"x" * (1023 - len(head)),
        "not-quite-cut": head + b"x" * (1024 - len(head)),
        "cut-wide": head + "错".encode() * 319 + b"x" * (1023 - len(head) - 957),
        "invalid-utf8": head + b"\xff\xfe broken \xe9\x94",
        "no-such-day": b"[ERROR] HCCL(57,python):2025-02-30-11:20:31.120.004 [a.cc:1][58]x",
        "no-such-second": b"[ERROR] HCCL(57,python):2025-02-28-11:20:61.120.004 [a.cc:1][58]x",
        "year-zero": b"[ERROR] HCCL(57,python):0000-02-28-11:20:31.120.004 [a.cc:1][58]x",
        "beyond-nanoseconds": b"[ERROR] HCCL(57,python):2300-02-28-11:20:31.120.004 [a.cc:1][58]x",
        "unsynchronised": b"[ERROR] TSCH(-1,null):1970-01-01-00:02:11.410.002 12 x",
        "several-lines": head + b"first\n  EI0006: second\n\nEJ0001: third, error code is 507018\nlast",
        "carriage-return": head + b"first\r\nsecond\r\n",
        "empty-message": b"[ERROR] HCCL(57,python):2025-03-02-11:20:31.120.004 ",
        "no-process-name": b"[ERROR] HCCL(57,):2025-03-02-11:20:31.120.004 [a.cc:1][58]x",
        "many-codes": head + b" ".join(b"EI000%d: a; error code is 50700%d;" % (n, n) for n in range(1, 9)),
        "unparsed": b"nothing that a header would begin with",
        "blank": b" ",
        "far-zone": b"[2025-12-15 15:19:22.681+23:30] [38] [452] [server] [ERROR] [a.cpp:163] : x",
        "no-such-zone": b"[2025-12-15 15:19:22.681+24:30] [38] [452] [server] [ERROR] [a.cpp:163] : x",
        "after-reading": b"ERROR 12-24 10:46:57 [multiproc_executor.py:824] of the year before",
        "day-of-reading": b"ERROR 12-01 10:46:57 [multiproc_executor.py:824] a day ahead",
        "triple": head + b"errcode: (0, 0x1000000, 0X0A)",
    }
    for name, line in lines.items():
        for source in ("plog", "device", "console"):
            yield from cases(name, source, line)


def report(found: list[str], total: int) -> str:
    return f"{len(found)} of {total} events differ:\n" + "\n".join(found[:40])


@pytest.fixture(scope="module")
def pipeline(elasticsearch: Any) -> str:
    return put_pipelines(elasticsearch.client, "conformance-ingest")


def test_samples(elasticsearch: Any, pipeline: str) -> None:
    all_cases = list(sample_cases())
    assert len(all_cases) > 500
    found = differences(elasticsearch.client, pipeline, all_cases)
    assert not found, report(found, len(all_cases))


def test_made_up_lines(elasticsearch: Any, pipeline: str) -> None:
    all_cases = list(made_up_cases())
    found = differences(elasticsearch.client, pipeline, all_cases)
    assert not found, report(found, len(all_cases))


def test_real_logs(elasticsearch: Any, pipeline: str) -> None:
    if not CORPUS.is_dir():
        pytest.skip(f"real logs are not at hand: {CORPUS}")
    all_cases = [
        case
        for path in sorted(CORPUS.glob("*.log"))
        for source in CORPUS_SOURCES
        for case in cases(path.stem, source, path.read_bytes())
    ]
    assert len(all_cases) > 5_000
    found = differences(elasticsearch.client, pipeline, all_cases)
    assert not found, report(found, len(all_cases))


def test_a_failure_keeps_the_line(elasticsearch: Any, pipeline: str) -> None:
    # An agent that sends an object where a text is due
    broken = {"@timestamp": READ_AT_TEXT, "message": {"not": "a text"}, "ascend": {"source": "plog"}}
    (answer,) = simulate(elasticsearch.client, pipeline, [broken])
    assert answer["event.kind"] == "pipeline_error"
    assert answer["error.message"]
    assert "ascend_pipeline_error" in answer["tags"]
    assert "a text" in str([value for name, value in answer.items() if name.startswith("message")])
    assert not [name for name in answer if name.startswith("_ascend")]


# Two records that a writer did not end with a line feed
GLUED = (
    b"[ERROR] HCCL(57,python):2025-03-02-11:20:31.120.004 [a.cc:1][58]first"
    b"[INFO] GE(57,python):2025-03-02-11:20:31.120.005 [b.cc:2]58 Run:second"
)


def test_glued_records_stay_one_event(elasticsearch: Any, pipeline: str) -> None:
    """The parser takes them apart; Filebeat sends the line as it is, and nothing of it is lost."""
    first, second = cases("glued", "plog", GLUED)
    (answer,) = simulate(elasticsearch.client, pipeline, [{**first.document, "message": decode(GLUED)}])
    assert answer["process.thread.id"] == first.expected["process.thread.id"] == 58
    assert answer["message"] == first.expected["message"] + second.expected["event.original"]


@pytest.mark.parametrize("zone", ["+08:00", "-03:30", "Asia/Shanghai", "Europe/Berlin"])
def test_zones(elasticsearch: Any, pipeline: str, zone: str) -> None:
    """Around midnight, the new year, and the hours that summer time leaves out and repeats."""
    dates = ("2025-03-30", "2025-10-26", "2025-12-31", "2024-02-29", "2262-01-01")
    lines = [
        f"[INFO] GE(7,a):{date}-{hour:02}:59:59.999.999 [a.cc:1]7 Run:x"
        for date in dates
        for hour in (0, 1, 2, 3, 23)
    ]
    lines += [
        "ERROR 11-30 23:46:57 [a.py:1] x",
        "Jul  9 23:11:12 node-3 kernel: x",
        "W0130 00:10:01.123456 7 a.cc:1] x",
    ]
    all_cases = [case for line in lines for case in cases("zones", "console", line.encode(), zone)]
    found = differences(elasticsearch.client, pipeline, all_cases)
    assert not found, report(found, len(all_cases))


LONG = {
    "one-line": b"x" * 1_000_000,
    "many-lines": b"\n".join([b"y" * 1000] * 1040),
    "wide": "\n".join(["错误" * 500] * 300).encode(),
    "many-codes": b" ".join([b"timeout[3 s] EI0006: x"] * 40_000),
}


@pytest.mark.parametrize("name", LONG)
def test_the_longest_records(elasticsearch: Any, pipeline: str, name: str) -> None:
    """As long as Filebeat sends them: one mebibyte."""
    head = b"[ERROR] HCCL(57,python):2025-03-02-11:20:31.120.004 [a.cc:1][58]"
    all_cases = list(cases(name, "plog", head + LONG[name]))
    found = differences(elasticsearch.client, pipeline, all_cases)
    assert not found, report(found, len(all_cases))[:2000]


def test_known_differences_are_there(elasticsearch: Any, pipeline: str) -> None:
    """An entry that excuses nothing is taken off the list."""
    data = b"[INFO] GE(7,a):2025-03-02-11:20:31.120.004 [a.cc:1]7 Run:" + b"\nmore" * 250_000
    events = list(parser("UTC").events(io.BytesIO(data), "plog", {"log.file.path": "x"}, READ_AT))
    answers = list(
        simulate(elasticsearch.client, pipeline, [document(event, "plog", {}, "UTC") for event in events])
    )
    differing = set()
    for event, answer in zip(events, answers, strict=True):
        differing |= {name for name in answer if name not in event.fields and name != "@timestamp"}
        differing |= {f"tags:{tag}" for tag in {*event.fields.get("tags", [])} ^ {*answer.get("tags", [])}}
    assert differing == set(KNOWN_DIFFERENCES)
