"""Nothing is lost: any bytes, by any source, come out again, in order and once."""

from __future__ import annotations

import io
import os
from datetime import datetime, timezone
from functools import cache
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ascend_elk.formats import compile_program, load_definitions
from ascend_elk.parse import Parser, nested

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
READ_AT = datetime(2026, 11, 30, tzinfo=timezone.utc)
DEFINITIONS = load_definitions()
PARSER = Parser(compile_program(DEFINITIONS))
SHARDS = 8
# 200,000 in CI; a quick look elsewhere.
EXAMPLES = (200_000 if os.environ.get("CI") else 4_000) // SHARDS


@cache
def lines() -> list[bytes]:
    """Lines of the definitions' samples, and real ones where they are at hand."""
    found = [sample.line for item in DEFINITIONS.formats.values() for sample in item.samples]
    found += [
        f"[ERROR] {module}(12,python3):2025-03-02-11:20:31.120.004 {sample.message}"
        for styles in DEFINITIONS.bodies.values()
        for style in styles
        for module in style.modules[:1] or ["GE"]
        for sample in style.samples
    ]
    found += [
        f"[INFO] HCCL(12,python3):2025-03-02-11:20:31.120.004 [a.cc:1] [7]{sample.message}"
        for extractor in DEFINITIONS.extractors
        for sample in extractor.samples
        if sample.message
    ]
    raw = [line.encode() for line in found]
    for path in sorted(CORPUS.glob("*.log")):
        raw += path.read_bytes().split(b"\n")
    return raw


MUTATIONS = st.one_of(
    st.tuples(st.just("cut"), st.integers(0, 400)),
    st.tuples(st.just("behead"), st.integers(0, 400)),
    st.tuples(st.just("insert"), st.integers(0, 400), st.binary(max_size=6)),
    st.tuples(st.just("replace"), st.integers(0, 400), st.binary(min_size=1, max_size=3)),
    st.tuples(st.just("repeat"), st.integers(0, 200), st.integers(2, 40)),
)
ENDS = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b"", b"\r", b"\n\n", b"\x00\n"])


def mutate(line: bytes, mutation: tuple) -> bytes:
    kind, place, *rest = mutation
    place = min(place, len(line))
    if kind == "cut":
        return line[:place]
    if kind == "behead":
        return line[place:]
    if kind == "insert":
        return line[:place] + rest[0] + line[place:]
    if kind == "replace":
        return line[:place] + rest[0] + line[place + len(rest[0]) :]
    return line[:place] + line[place : place + 12] * rest[0] + line[place + 12 :]


@st.composite
def files(draw: st.DrawFn) -> bytes:
    known = lines()
    parts: list[bytes] = []
    for _ in range(draw(st.integers(1, 5))):
        line = known[draw(st.integers(0, len(known) - 1))]
        for mutation in draw(st.lists(MUTATIONS, max_size=2)):
            line = mutate(line, mutation)
        parts += [line, draw(ENDS)]
    return b"".join(parts)


def check(data: bytes, source: str) -> None:
    events = list(PARSER.events(io.BytesIO(data), source, {"log.file.path": "x"}, READ_AT))
    assert b"".join(event.raw for event in events) == data
    offset = 0
    for event in events:
        assert event.offset == event.fields["log.offset"] == offset
        offset += len(event.raw)
        assert (
            orjson.loads(orjson.dumps(nested(event.fields)))["event"]["original"]
            == event.fields["event.original"]
        )
        assert ("ascend.format" in event.fields) != ("ascend_unparsed" in event.fields.get("tags", ()))


@pytest.mark.parametrize("shard", range(SHARDS))
def test_mutated_lines_are_conserved(shard: int) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(data=files(), source=st.sampled_from(sorted(DEFINITIONS.sources)))
    def run(data: bytes, source: str) -> None:
        check(data, source)

    run()


@given(data=st.binary(max_size=300), source=st.sampled_from(sorted(DEFINITIONS.sources)))
@settings(max_examples=2_000, deadline=None, database=None)
def test_any_bytes_are_conserved(data: bytes, source: str) -> None:
    check(data, source)


@pytest.mark.parametrize("source", sorted(DEFINITIONS.sources))
def test_real_files_are_conserved(source: str) -> None:
    if not CORPUS.is_dir():
        pytest.skip(f"real logs are not at hand: {CORPUS}")
    for path in sorted(CORPUS.glob("*.log")):
        check(path.read_bytes(), source)
