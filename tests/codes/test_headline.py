"""Which code of several is the headline, as the order of the families demands."""

from __future__ import annotations

import itertools

import pytest

from ascend_elk.cann import Version
from ascend_elk.codes import Catalogue

# One code for each step of the order, the best first.
ORDER = [
    "dms:0x80e01801",  # a raised hardware event
    "cann:EI0006",  # a specific report code
    "aicore:word0.bit8",  # AI Core, hardware
    "aicore:word0.bit3",  # AI Core, software
    "cqe:12",
    "aicpu:21008",
    "rt:0x07150026",
    "ts:0x26",
    "acl:507015",
    "torch:ERR00006",
    "dms:0x81078603",  # an event that needs no action explains nothing by itself
    "acl:507000",  # a wrapper
    "cann:EI9999",  # an inner code
    "torch:ERR99999",
]


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue.load()


@pytest.mark.parametrize(("better", "worse"), list(itertools.combinations(ORDER, 2)))
def test_order(catalogue: Catalogue, better: str, worse: str) -> None:
    assert catalogue.headline([better, worse]) == better
    assert catalogue.headline([worse, better]) == better


@pytest.mark.parametrize(
    ("codes", "headline"),
    [
        (["torch:ERR02200", "cann:EI9999", "cann:EI0006"], "cann:EI0006"),
        (["cann:EI0002", "cann:EI0006"], "cann:EI0002"),
        (["cann:EI0006", "cann:EI0002"], "cann:EI0006"),
        (["cann:EZ9999", "aicore:(0x0,0x8000,0x0)", "acl:507015"], "aicore:(0x0,0x8000,0x0)"),
        (["ts:0x91", "acl:507011", "ts:0x26"], "ts:0x26"),
        (["rt:0x07150050", "acl:507018"], "acl:507018"),
        (["cann:EE8888", "acl:507899", "drv:6"], "drv:6"),
        # A code that is not listed is still more than a catch-all.
        (["cann:EI9999", "cann:EI0099"], "cann:EI0099"),
        (["cann:EI9999"], "cann:EI9999"),
        ([], None),
    ],
)
def test_blocks(catalogue: Catalogue, codes: list[str], headline: str | None) -> None:
    assert catalogue.headline(codes) == headline


def test_version_decides_what_is_a_catch_all(catalogue: Catalogue) -> None:
    codes = ["cann:E10042", "acl:145000"]
    assert catalogue.headline(codes, Version.parse("6.0.RC1")) == "cann:E10042"
    assert catalogue.headline(codes, Version.parse("8.0")) == "acl:145000"


@pytest.mark.parametrize(
    ("wrapper", "codes", "inner"),
    [
        ("acl:507899", ["acl:507899", "cann:EL9999", "drv:16"], "drv:16"),
        ("torch:ERR02200", ["torch:ERR02200", "cann:EI9999", "cann:EI0002"], "cann:EI0002"),
        ("torch:ERR00100", ["torch:ERR00100", "acl:507018"], "acl:507018"),
        ("ts:0x91", ["ts:0x91", "ts:0x26"], "ts:0x26"),
        ("acl:507011", ["acl:507011"], None),
        ("acl:507018", ["acl:507018", "drv:16"], None),
    ],
)
def test_wrappers_are_resolved(
    catalogue: Catalogue, wrapper: str, codes: list[str], inner: str | None
) -> None:
    assert catalogue.unwrap(wrapper, codes) == inner
