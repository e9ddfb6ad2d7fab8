"""Every format, body style and prefix explains its own samples, and nothing before it does."""

from __future__ import annotations

import io
from datetime import datetime, timezone

import pytest

from ascend_elk.formats import compile_program, load_definitions
from ascend_elk.formats.definitions import BodyStyle, LineFormat, LineSample, MessageSample, Prefix
from ascend_elk.parse import Parser

DEFINITIONS = load_definitions()
READ_AT = datetime(2026, 11, 30, tzinfo=timezone.utc)


def source_of(format_name: str) -> str:
    named = [source.name for source in DEFINITIONS.sources.values() if format_name in source.formats]
    assert named, f"no source may hold {format_name}"
    return "console" if "console" in named else named[0]


def parse_line(source: str, line: str) -> dict:
    parser = Parser(compile_program(DEFINITIONS))
    events = list(parser.events(io.BytesIO(line.encode()), source, {"log.file.path": "x.log"}, READ_AT))
    assert len(events) == 1, [event.raw for event in events]
    return events[0].fields


FORMAT_SAMPLES = [
    pytest.param(item, sample, id=f"{item.name}-{number}")
    for item in DEFINITIONS.formats.values()
    for number, sample in enumerate(item.samples)
]
BODY_SAMPLES = [
    pytest.param(group, style, sample, id=f"{group}-{style.name}-{number}")
    for group, styles in DEFINITIONS.bodies.items()
    for style in styles
    for number, sample in enumerate(style.samples)
]
PREFIX_SAMPLES = [
    pytest.param(prefix, sample, id=f"{prefix.name}-{number}")
    for prefix in DEFINITIONS.prefixes
    for number, sample in enumerate(prefix.samples)
]


@pytest.mark.parametrize(("item", "sample"), FORMAT_SAMPLES)
def test_format_explains_its_samples(item: LineFormat, sample: LineSample) -> None:
    fields = parse_line(source_of(item.name), sample.line)
    matched = fields.get("ascend.format", "").partition("/")[0]
    if sample.unmatched:
        assert matched != item.name
        return
    assert matched == item.name
    assert {name: fields.get(name) for name in sample.fields} == sample.fields


@pytest.mark.parametrize(("group", "style", "sample"), BODY_SAMPLES)
def test_body_style_is_the_first_to_explain_its_samples(
    group: str, style: BodyStyle, sample: MessageSample
) -> None:
    program = compile_program(DEFINITIONS)
    assert sample.message is not None
    for module in [sample.module] if sample.module else style.modules or [None]:
        first = next(
            candidate
            for candidate in program.bodies(group, module)
            if DEFINITIONS.grok.to_python(candidate.pattern).compiled.match(sample.message)
        )
        assert first.name == style.name, f"{module}: {first.name} comes first"
    pattern = DEFINITIONS.grok.to_python(style.pattern)
    match = pattern.compiled.match(sample.message)
    assert match is not None
    convert = {"string": str, "long": int, "double": float}
    found = {
        capture.field: convert[capture.type](text)
        for capture, text in zip(pattern.captures, match.groups(), strict=True)
        if text and capture.field != "ascend.clock.written"
    }
    assert {name: found.get(name) for name in sample.fields} == sample.fields
    assert pattern.anchored


@pytest.mark.parametrize(("prefix", "sample"), PREFIX_SAMPLES)
def test_prefix_is_taken_off(prefix: Prefix, sample: LineSample) -> None:
    fields = parse_line("console", sample.line)
    assert {name: fields.get(name) for name in sample.fields} == sample.fields
    if not prefix.needs_header:
        assert fields["message"] == "text"
    else:
        assert fields["ascend.format"].startswith("plog/")


def test_patterns_are_portable_and_linear_by_construction() -> None:
    re2 = pytest.importorskip("re2")
    patterns = [item.pattern for item in DEFINITIONS.formats.values()]
    patterns += [style.pattern for styles in DEFINITIONS.bodies.values() for style in styles]
    patterns += [prefix.pattern for prefix in DEFINITIONS.prefixes]
    patterns += [item.pattern for item in DEFINITIONS.extractors if item.pattern]
    options = re2.Options()
    options.max_mem = 64 << 20
    for pattern in patterns:
        re2.compile(DEFINITIONS.grok.to_python(pattern).regex, options)
