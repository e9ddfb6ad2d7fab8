"""Requests that are too large, answers that are cut, pages of long documents: without a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ascend_elk.service import store as stores
from ascend_elk.service import writing
from ascend_elk.service.backoff import Backoff
from ascend_elk.service.metrics import Metrics
from ascend_elk.service.store import BusyError, Point, Store, Written
from ascend_elk.service.writing import Update, Writer
from ascend_elk.stack.http import ApiError


class Narrow:
    """Takes a few documents a request; refuses one that is too long for itself."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.sizes: list[int] = []
        self.noted: list[bytes] = []

    def bulk(self, lines: Sequence[bytes], *, pipeline: str | None = None) -> list[Written]:
        if pipeline is None:
            self.noted += lines
            return []
        self.sizes.append(len(lines) // 2)
        if len(lines) // 2 > self.most or any(b"too long" in line for line in lines):
            raise ApiError(413, "Request Entity Too Large")
        return [Written(200, (number + 10, 1), "") for number in range(len(lines) // 2)]


def writer(store: Any) -> Writer:
    return Writer(lambda: store, "rejected", Metrics(), 1)


def updates(count: int, text: str = "x") -> list[Update]:
    return [Update("index", str(number), (number, 1), {"message": text}) for number in range(count)]


def test_a_request_that_is_too_large_is_halved() -> None:
    store: Any = Narrow(3)
    one = writer(store)
    one.submit(updates(10), 0.0)
    assert one.collect(store, "v", everything=True).written == 10
    assert max(size for size in store.sizes if size <= 3) <= 3


def test_one_document_that_is_too_large_is_set_aside_alone() -> None:
    store: Any = Narrow(100)
    one = writer(store)
    one.submit([*updates(5), Update("index", "long", (9, 1), {"message": "too long"})], 0.0)
    tally = one.collect(store, "v", everything=True)
    assert (tally.written, tally.refused) == (5, 1)
    assert one.set_aside() == [{"ids": {"values": ["long"]}}]
    assert b'"reason"' in store.noted[1]


def test_requests_are_cut_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_REQUEST_BYTES", 1_000)
    store: Any = Narrow(100)
    one = writer(store)
    one.submit(updates(10, "x" * 400), 0.0)
    assert one.collect(store, "v", everything=True).written == 10
    assert store.sizes == [2] * 5 or max(store.sizes) <= 3


def test_an_answer_that_is_cut_is_no_success() -> None:
    class Cut(Narrow):
        def bulk(self, lines: Sequence[bytes], *, pipeline: str | None = None) -> list[Written]:
            return super().bulk(lines, pipeline=pipeline)[:-1]

    store: Any = Cut(100)
    one = writer(store)
    one.submit(updates(3), 0.0)
    with pytest.raises(BusyError):
        one.collect(store, "v", everything=True)


def test_what_was_just_written_is_not_written_again() -> None:
    store: Any = Narrow(100)
    one = writer(store)
    one.submit(updates(1), 0.0)
    one.collect(store, "v", everything=True)
    # The update made version 10; a search that shows an earlier one is late.
    assert one.is_stale("index", "0", (9, 1))
    assert not one.is_stale("index", "0", (10, 1))
    one.age()
    assert one.is_stale("index", "0", (9, 1))
    one.distrust()
    assert not one.is_stale("index", "0", (9, 1))


def test_no_more_than_a_bounded_list_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MAX_ASIDE", 3)
    store: Any = Narrow(100)
    one = writer(store)
    for number in range(5):
        one.put_aside(store, "index", str(number), "kind", "reason", "v")
    assert one.set_aside() == [{"ids": {"values": ["2", "3", "4"]}}]
    one.forget()
    assert one.set_aside() == []


def test_pages_of_long_documents_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_PAGE_BYTES", 1_000)
    asked: list[int] = []

    class Long(Store):
        def __init__(self) -> None:
            self.received = 0

        def call(self, method: str, path: str, body: Any = None, params: Any = None) -> dict[str, Any]:
            if path != "/_search":
                return {"id": "p"}
            start = body.get("search_after", [0])[0]
            asked.append(body["size"])
            end = min(start + body["size"], 100)
            self.received = (end - start) * 100
            hits = [
                {"_index": "i", "_id": str(n), "_seq_no": n, "_primary_term": 1, "sort": [n + 1]}
                for n in range(start, end)
            ]
            return {"hits": {"hits": hits}, "_shards": {"failed": 0}}

    with Point(Long(), "x") as point:
        found = [hit.id for page in point.pages({}, 40) for hit in page]
    assert found == [str(number) for number in range(100)]
    assert asked[0] == 40
    assert set(asked[1:]) == {10}


def test_pauses_grow_to_a_limit_and_differ() -> None:
    backoff = Backoff(first=1.0, longest=8.0)
    pauses = [backoff.pause() for _ in range(20)]
    assert 0.5 <= pauses[0] <= 1
    assert all(4 <= pause <= 8 for pause in pauses[5:])
    assert len(set(pauses)) > 10
    backoff.reset()
    assert backoff.pause() <= 1
