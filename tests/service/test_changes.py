"""What an event gains, and how it is put into the document: pure."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_elk.parse import nested
from ascend_elk.service.changes import apply, flat, gain
from ascend_elk.service.jsons import dumps, loads
from ascend_elk.service.moments import iso, seconds
from ascend_elk.service.processes import ProcessBook

from .site import error, own_catalogue, setup

Document = dict[str, Any]


def test_an_event_that_has_everything_gains_nothing() -> None:
    catalogue = own_catalogue().current
    fields = error(7)
    gained = gain(fields, catalogue, {"ascend.device.key": "a/1"})
    assert gained["ascend.device.key"] == "a/1"
    assert gain({**fields, **gained}, catalogue, {"ascend.device.key": "a/1"}) == {}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({}, {"ascend": {"error": {"layer": "device"}}}),
        ({"ascend": {"error": {"category": "x"}}}, {"ascend": {"error": {"layer": "device"}}}),
        ({"ascend": None}, {"ascend": {"error": {"layer": "device"}}}),
        ({"ascend.error.layer": "old"}, {"ascend.error.layer": "device", "ascend": {"error": {}}}),
    ],
)
def test_fields_are_put_where_they_stand(source: Document, expected: Document) -> None:
    apply({"ascend.error.layer": "device", "ascend.error.category": None}, source)
    assert source == expected


values = st.one_of(st.none(), st.integers(), st.text(), st.booleans(), st.lists(st.text()))
documents = st.recursive(
    st.dictionaries(st.text(), values), lambda inner: st.dictionaries(st.text(), st.one_of(values, inner))
)


@given(documents)
def test_any_document_is_read_and_written_whole(document: Document) -> None:
    flat(document)
    assert loads(dumps(document)) == document


def test_half_a_surrogate_pair_stays() -> None:
    data = b'{"message":"half \\ud83d"}'
    assert loads(dumps(loads(data))) == {"message": "half \ud83d"}
    with pytest.raises(ValueError):
        loads(b"<html>")


@pytest.mark.parametrize(
    "text", ["2025-03-02T11:20:29.123456789Z", "2025-03-02T11:20:29.123Z", "2025-03-02T11:20:29Z"]
)
def test_times(text: str) -> None:
    moment = seconds(text)
    assert moment is not None
    assert iso(moment)[:19] == text[:19]


@pytest.mark.parametrize("value", [None, 5, "", "yesterday", "2025-99-99T00:00:00Z"])
def test_what_is_no_time(value: object) -> None:
    assert seconds(value) is None


def test_earlier_lines_of_another_process_with_the_same_number_teach_nothing() -> None:
    book = ProcessBook("none")
    book.observe(setup(7, 1, 5, **{"@timestamp": "2025-03-05T08:00:00.000Z"}))
    book.observe(setup(7, 3, 2))
    late = error(7, **{"@timestamp": "2025-03-05T08:01:00.000Z"})
    assert book.identify(late)["ascend.device.key"] == "worker-0/5"
    assert book.identify(error(7)) == {}


def test_a_start_makes_room_for_another_process() -> None:
    book = ProcessBook("none")
    book.observe(setup(7, 3, 2))
    start = error(7, **{"@timestamp": "2025-03-02T11:24:00.000Z", "message": "attr init success"})
    book.observe(start)
    # Until a line says who the new one is, the old mapping is what is known.
    assert book.identify(start)["ascend.device.key"] == "worker-0/2"
    book.observe(setup(7, 0, 4, **{"@timestamp": "2025-03-02T11:24:01.000Z"}))
    assert (
        book.identify(error(7, **{"@timestamp": "2025-03-02T11:25:00.000Z"}))["ascend.device.key"]
        == "worker-0/4"
    )
    assert nested(book.identify(error(7))) == {}
