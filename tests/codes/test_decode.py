"""What the digits of a code say, listed or not."""

from __future__ import annotations

import pytest

from ascend_elk.codes import Catalogue


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue.load()


@pytest.mark.parametrize(
    ("code", "known", "parts"),
    [
        ("EI0099", False, ["error (E)", "HCCL (I)"]),
        ("ED0001", True, ["RL tuner (D)"]),
        ("EZ9999", True, ["inner code without a cause"]),
        ("0x0715ffff", False, ["scheduler firmware (0x15)", "0xffff"]),
        ("errNo[0x0000000005010009]", True, ["HCOM", "result 9"]),
        ("0x00000000050200ff", False, ["CLTM", "result 255"]),
        ("1343258699", False, ["runtime interface (8)", "value 75"]),
        ("0x81078603", True, ["network port of the NPU (0x83)", "link and safety (0xc3)", "went down"]),
        ("0x80e18001", False, ["HBM", "RAS"]),
        ("0x8900a123", False, ["0x480 (not known)"]),
        ("0x40f84e00", True, ["side host"]),
        ("0xa6060099", False, ["task scheduler (0x3)", "raised", "major (3)", "0x99"]),
        ("0x98028802", True, ["over (recovered)"]),
        ("0xb4060006", True, ["happened once (occurred)"]),
        ("ERR03200", True, ["graph mode (03)", "HCCL"]),
        ("ERR01013", False, ["operator (01)", "013 (not known)"]),
        ("MIE1AE66666B", False, ["1A (not known)", "66666B"]),
        ("MIE05E000001", True, ["MindIE LLM (05)"]),
        ("507999", False, ["internal (5)", "runtime (07)"]),
        ("228205", False, ["resources (2)", "HCCP (28)"]),
        ("(0x10, 0, 0)", True, ["word0.bit4"]),
    ],
)
def test_shape(catalogue: Catalogue, code: str, known: bool, parts: list[str]) -> None:
    decoding = catalogue.decode(code)[0]
    assert decoding.known is known
    for part in parts:
        assert part in decoding.sentence()
    assert decoding.sentence("zh") != decoding.sentence()


def test_what_is_no_code_has_no_shape(catalogue: Catalogue) -> None:
    assert catalogue.decode("hello") == []
    assert catalogue.decode("0x12345678901234567890") == []


def test_a_shape_that_fits_anything_is_read_only_where_it_is_named(catalogue: Catalogue) -> None:
    assert [one.family for one in catalogue.decode("0x07150099")] == ["rt"]
    assert [one.family for one in catalogue.decode("bmc:0x5d000003")] == ["bmc"]


@pytest.mark.parametrize(
    ("word", "bits"),
    [(0, []), (1, [0]), (1 << 63, [63]), ((1 << 64) - 1, list(range(64))), (0x8000_0001, [0, 31])],
)
def test_every_bit_of_an_ai_core_word(catalogue: Catalogue, word: int, bits: list[int]) -> None:
    found = catalogue.lookup(f"({word:#x}, 0, 0)")
    assert [entry.code for entry in found] == ([f"word0.bit{bit}" for bit in bits] or ["none"])
