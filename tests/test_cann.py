from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_elk.cann import Version, VersionRange
from ascend_elk.errors import UserError

BY_AGE = [
    "20.0",
    "20.2",
    "3.1",
    "5.0.2",
    "5.0.4.6",
    "5.1.RC1",
    "5.1.RC2",
    "6.0.1",
    "6.3.RC1",
    "7.0.RC1.alpha001",
    "7.0.RC1",
    "7.0.0.alpha003",
    "7.0.0",
    "8.0.T63",
    "8.0.RC1.alpha003",
    "8.0.RC1",
    "8.0.RC2.alpha001",
    "8.0.RC3",
    "8.0.0",
    "8.1.RC1",
    "8.3.RC2",
    "8.5.0-beta.1",
    "8.5.0",
    "9.0.1",
    "9.3.0",
    "10.0",
]


def test_versions_sort_by_age() -> None:
    assert sorted(map(Version.parse, reversed(BY_AGE))) == list(map(Version.parse, BY_AGE))


@pytest.mark.parametrize(
    ("one", "other"), [("8.0", "8.0.0"), ("8.0.rc3", "8.0.RC3"), ("v8.0", "8.0"), (" 8.0 ", "8.0")]
)
def test_spellings_of_one_version_are_equal(one: str, other: str) -> None:
    assert Version.parse(one) == Version.parse(other)


@pytest.mark.parametrize(
    "text", ["", "eight", "8.", "8.0.RCx", "-1", "8.0.RC3.gamma1", "8 0", "8.0.0.0.0.0.0"]
)
def test_other_texts_are_refused_with_a_hint(text: str) -> None:
    with pytest.raises(UserError, match=r"8\.0\.RC3"):
        Version.parse(text)


@pytest.mark.parametrize(
    ("since", "until", "version", "inside"),
    [
        ("8.0", None, "8.0.RC1", True),
        ("8.0", None, "7.0.0", False),
        ("8.0.RC3", None, "8.0", True),
        ("8.0.RC3", None, "8.0.RC1", False),
        (None, "8.0", "8.0.1", True),
        (None, "8.0", "8.1.RC1", False),
        (None, "6.3", "20.2", True),
        ("7.0", "8.2", "8.1.RC1", True),
        (None, None, "9.3.0", True),
    ],
)
def test_ranges(since: str | None, until: str | None, version: str, inside: bool) -> None:
    assert (Version.parse(version) in VersionRange.of(since, until)) is inside


def test_ranges_overlap() -> None:
    assert VersionRange.of("7.0", "8.0").overlaps(VersionRange.of("8.0", None))
    assert not VersionRange.of("7.0", "7.3").overlaps(VersionRange.of("8.0", None))
    assert str(VersionRange.of("7.0", "8.0")) == "7.0 .. 8.0"


@given(st.lists(st.sampled_from(BY_AGE), min_size=3, max_size=3))
def test_order_is_total(texts: list[str]) -> None:
    one, two, three = map(Version.parse, texts)
    assert (one < two) + (two < one) + (one == two) == 1
    if one <= two <= three:
        assert one <= three


@given(st.text(max_size=12))
def test_any_text_is_a_version_or_refused(text: str) -> None:
    with contextlib.suppress(UserError):
        assert str(Version.parse(text)) == text.strip()
