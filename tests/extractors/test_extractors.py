"""Every extractor gives what its samples say, among all the others, and nothing where it must not."""

from __future__ import annotations

import pytest

from ascend_elk.formats import compile_program, load_definitions
from ascend_elk.formats.definitions import Extractor, MessageSample
from ascend_elk.parse.extraction import Extraction

DEFINITIONS = load_definitions()
PROGRAM = compile_program(DEFINITIONS)
ALL = Extraction(PROGRAM.extractors, DEFINITIONS.headline, DEFINITIONS.grok)
SAMPLES = [
    pytest.param(extractor, sample, id=f"{extractor.name}-{number}")
    for extractor in DEFINITIONS.extractors
    for number, sample in enumerate(extractor.samples)
]


def apply(extraction: Extraction, text: str, extractor: Extractor, sample: MessageSample) -> dict:
    module = sample.module or (extractor.modules[0] if extractor.modules else None)
    fields = {"ascend.module": module} if module else {}
    extraction.apply(text, fields)
    fields.pop("ascend.module", None)
    return fields


@pytest.mark.parametrize(("extractor", "sample"), SAMPLES)
def test_extractor_explains_its_samples(extractor: Extractor, sample: MessageSample) -> None:
    alone = Extraction([extractor], DEFINITIONS.headline, DEFINITIONS.grok)
    if sample.unmatched is not None:
        assert apply(alone, sample.unmatched, extractor, sample) == {}
        return
    assert sample.message is not None
    text = sample.message.replace("\\n", "\n")
    assert apply(alone, text, extractor, sample), "does not fire on its own sample"
    found = apply(ALL, text, extractor, sample)
    assert {name: found.get(name) for name in sample.fields} == sample.fields


def test_names_are_unique() -> None:
    names = [extractor.name for extractor in DEFINITIONS.extractors]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("extractor", DEFINITIONS.extractors, ids=lambda item: item.name)
def test_extractor_has_samples_of_both_kinds_and_does_something(extractor: Extractor) -> None:
    assert any(sample.message for sample in extractor.samples)
    assert any(sample.unmatched for sample in extractor.samples)
    assert extractor.pattern or extractor.set or extractor.signal
    assert (extractor.code is None) == ("code}" not in (extractor.pattern or ""))


def test_catch_alls_and_wrappers_never_win() -> None:
    assert ALL.headline(["cann:EZ9999", "acl:507015"]) == "507015"
    assert ALL.headline(["acl:507899", "rt:0x07020010"]) == "0x07020010"
    assert ALL.headline(["torch:ERR00100", "acl:507046"]) == "507046"
    assert ALL.headline(["cann:EE8888", "cann:EI0002"]) == "EI0002"
    assert ALL.headline(["ts:0x91", "ts:0x25"]) == "0x25"
    assert ALL.headline(["rt:0x07150050", "rt:0x07150026"]) == "0x07150026"
    assert ALL.headline(["cann:EE9999", "torch:ERR99999"]) == "EE9999"
    assert ALL.headline(["acl:507018", "cann:EI0006", "dms:0x80f78003"]) == "0x80f78003"
