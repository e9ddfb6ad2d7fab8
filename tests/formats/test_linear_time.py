"""No pattern takes more than linear time: hostile lines of 128 KiB, which would take a quadratic one minutes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from ascend_elk.formats import load_definitions
from ascend_elk.formats.grok import PythonPattern

DEFINITIONS = load_definitions()
SIZE = 128 << 10
FILLERS = [
    "a",
    "0",
    "[",
    " ",
    "]",
    ":",
    "a:",
    "a::",
    "0.",
    "[a",
    ",[",
    "::~a",
    "a/",
    "x[1] ",
    "(",
    "timeout[",
]
# A linear pattern needs a fraction of a second for all its lines, a quadratic one hours.
SECONDS = 60


@contextmanager
def watchdog(name: str) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"{name}: still not done after {SECONDS} s: not linear")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def patterns() -> Iterator[tuple[str, PythonPattern, list[str]]]:
    grok = DEFINITIONS.grok.to_python
    for item in DEFINITIONS.formats.values():
        yield f"format-{item.name}", grok(item.pattern), [sample.line for sample in item.samples]
    for group, styles in DEFINITIONS.bodies.items():
        for style in styles:
            yield (
                f"{group}-{style.name}",
                grok(style.pattern),
                [s.message for s in style.samples if s.message],
            )
    for prefix in DEFINITIONS.prefixes:
        yield f"prefix-{prefix.name}", grok(prefix.pattern), [sample.line for sample in prefix.samples]
    for extractor in DEFINITIONS.extractors:
        if extractor.pattern:
            samples = [sample.message for sample in extractor.samples if sample.message]
            yield f"extractor-{extractor.name}", grok(extractor.pattern), samples


@pytest.mark.parametrize(
    ("name", "pattern", "samples"), [pytest.param(*case, id=case[0]) for case in patterns()]
)
def test_hostile_lines_take_linear_time(name: str, pattern: PythonPattern, samples: list[str]) -> None:
    run = pattern.compiled.match if pattern.anchored else pattern.compiled.search
    with watchdog(name):
        for sample in samples[:2]:
            pieces = sorted({*range(0, min(len(sample), 120), 24), len(sample)})
            for filler in FILLERS:
                hostile = filler * (SIZE // len(filler))
                for cut in pieces:
                    run(sample[:cut] + hostile + sample[cut:])
            # The start of the sample again and again: every place is a false start.
            for cut in pieces[1:]:
                run(sample[:cut] * (SIZE // cut))
