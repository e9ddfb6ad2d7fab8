"""Faults known by their message."""

from __future__ import annotations

import pytest

from ascend_elk.codes import Catalogue
from ascend_elk.codes.loader import read
from ascend_elk.codes.models import SignaturesFile
from ascend_elk.content import content_dir

CATALOGUE = Catalogue.load()
ROWS = read(content_dir("codes") / "signatures.yml", SignaturesFile).signatures


@pytest.mark.parametrize(("name", "sample"), [(row.name, sample) for row in ROWS for sample in row.samples])
def test_sample_matches(name: str, sample: str) -> None:
    assert name in [one.name for one in CATALOGUE.signatures.match(sample)]


@pytest.mark.parametrize(
    ("name", "sample"), [(row.name, sample) for row in ROWS for sample in row.counter_samples]
)
def test_counter_sample_does_not(name: str, sample: str) -> None:
    assert name not in [one.name for one in CATALOGUE.signatures.match(sample)]


@pytest.mark.parametrize(("row", "alternative"), [(row, one) for row in ROWS for one in row.literals])
def test_no_alternative_is_dead(row, alternative: tuple[str, ...]) -> None:
    message = f"x {' y '.join(alternative)} z"
    assert row.name in [one.name for one in CATALOGUE.signatures.match(message)]


@pytest.mark.parametrize("row", [row for row in ROWS if any(len(one) > 1 for one in row.literals)])
def test_texts_must_follow_one_another(row) -> None:
    for alternative in row.literals:
        if len(alternative) > 1:
            message = " y ".join(reversed(alternative))
            others = [
                one for one in row.literals if one != alternative and all(text in message for text in one)
            ]
            assert others or row.name not in [one.name for one in CATALOGUE.signatures.match(message)]


@pytest.mark.parametrize(
    "wanted",
    [
        "Parse MyLayer op failed",
        "Op not supported",
        "Shape unknown",
        "Memory overflow",
        "Cannot find op",
        "Can not parse model",
        "Input shape not match",
        "Op kernel not found",
        "SocVersion mismatch",
        "NPU out of memory",
        "Compile graph graph_1 cost 12 ms",
        "task timeout",
        "Watchdog caught collective operation timeout",
        "retry to connect",
        "device not ready",
        "No space left on device",
    ],
)
def test_messages_that_articles_name(wanted: str) -> None:
    assert CATALOGUE.signatures.match(wanted)


def test_plain_messages_match_nothing() -> None:
    for message in ("", "initialise succeeded", "Parse op success", "timeout is set to 120", "x" * 100_000):
        assert CATALOGUE.signatures.match(message) == []
