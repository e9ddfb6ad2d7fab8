"""Which events the service reads: queries made from the catalogue's signatures and the signs of identity.

A healthy cluster writes millions of DEBUG and INFO lines that nobody looks up. Only events that can gain
something are read, and each of them is written once a catalogue: that leaves ``ascend.error.catalogue`` on
it, so what still has to be done is a question to Elasticsearch, not to a memory of the service.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ascend_elk.codes import Catalogue
from ascend_elk.interest import Signs

Query = dict[str, Any]

MARK = "ascend.error.catalogue"
INGESTED = "event.ingested"
WARNING = 2
"""CANN's number of the level from which on every line is read."""

# Fields of lines that name a card, a rank or a communicator, and those that panels and rules count by card.
_TELLING = (
    "ascend.error.codes",
    "ascend.signal",
    "ascend.communicator.id",
    "ascend.rank.id",
    "ascend.rank.size",
    "ascend.hccl.op",
)
_WORD = re.compile(r"\w+")
# A text with fewer letters is a phrase of half the log.
_LETTERS = 7

FIELDS: tuple[str, ...] = (
    "@timestamp",
    "message",
    "host.name",
    "process.pid",
    "log.level",
    "log.file.path",
    "event.dataset",
    "event.severity",
    "event.ingested",
    "error.code",
    "ascend.cann.version",
    "ascend.communicator.id",
    "ascend.device",
    "ascend.error",
    "ascend.event.assertion",
    "ascend.rank",
    "ascend.signal",
    "ascend.source",
)
"""All that identity and diagnosis look at: what is read of events that are not written."""


def worth(catalogue: Catalogue, signs: Signs) -> Query:
    """Events that can gain something.

    Those from WARNING on; those with a code, a signal, a rank or a communicator; and, of any level, those
    whose message may be a line of identity, or a fault that prints no code.
    """
    return _any(
        {"range": {"event.severity": {"gte": WARNING}}},
        *({"exists": {"field": name}} for name in _TELLING),
        *_faults(catalogue),
        *_identity(signs),
    )


def teaching(signs: Signs) -> Query:
    """Events that may say which card a process drives; a first pass over history reads them alone."""
    return _any({"exists": {"field": "ascend.rank.size"}}, *_identity(signs))


def _faults(catalogue: Catalogue) -> list[Query]:
    """Faults known by their message that lines below WARNING, or without a level, can tell of."""
    without_level: Query = {"bool": {"must_not": [{"exists": {"field": "event.severity"}}]}}
    low: list[Query] = []
    rest: list[Query] = []
    for signature in catalogue.signatures:
        for texts in signature.literals:
            phrases = _phrases(texts)
            if phrases:
                (low if signature.min_level < WARNING else rest).append({"bool": {"filter": phrases}})
    return [*low, {"bool": {"filter": [without_level, _any(*rest)]}}] if rest else low


def _identity(signs: Signs) -> list[Query]:
    return [
        phrase
        for sign in signs.signs
        if sign.role == "identity" or sign.name == "process-start"
        for phrase in _phrases(sign.contains)
    ]


def _phrases(texts: Iterable[str]) -> list[Query]:
    """Texts as phrases of whole words, in the analysis of ``message``."""
    return [
        {"match_phrase": {"message": text}}
        for text in dict.fromkeys(texts)
        if len("".join(_WORD.findall(text))) >= _LETTERS
    ]


def todo(
    wanted: Query,
    catalogue: str,
    *,
    latest: bool = True,
    since_ingest: str | None = None,
    without: Sequence[Query] = (),
) -> Query:
    """What is not enriched yet.

    Args:
        wanted: of these events.
        catalogue: version that has to be on them.
        latest: it is the version in force; else only events that no version has seen are meant, so that two
            services with different catalogues do not undo each other's work.
        since_ingest: taken in since, as Elasticsearch writes dates; bounds the cost of looking often.
        without: what is set aside.
    """
    mark: Query = {"term": {MARK: catalogue}} if latest else {"exists": {"field": MARK}}
    filters = [wanted]
    if since_ingest is not None:
        filters.append({"range": {INGESTED: {"gte": since_ingest}}})
    return {"bool": {"filter": filters, "must_not": [mark, *without]}}


def nameless(wanted: Query, hosts: Sequence[str], pids: Sequence[int]) -> Query:
    """Enriched events of some processes that lack their card or their rank."""
    complete: Query = {
        "bool": {
            "filter": [
                {"exists": {"field": "ascend.device.key"}},
                {"exists": {"field": "ascend.rank.id"}},
            ]
        }
    }
    return {
        "bool": {
            "filter": [
                wanted,
                {"exists": {"field": MARK}},
                {"terms": {"host.name": list(hosts)}},
                {"terms": {"process.pid": list(pids)}},
            ],
            "must_not": [complete],
        }
    }


def since(wanted: Query, start: str) -> Query:
    """Events of a time on, whatever catalogue has seen them."""
    return {"bool": {"filter": [wanted, {"range": {"@timestamp": {"gte": start}}}]}}


# Signals of something that failed; slowness and retries alone are judged with what failed near them.
_FAILED = (
    "timeout",
    "hang",
    "heartbeat",
    "link",
    "oom",
    "aicore",
    "aicpu",
    "ecc",
    "cqe",
    "sdma",
    "hardware",
    "device-lost",
    "signal",
)
_ERROR = 3
# Levels outside of CANN's order, which diagnosis reads whatever the line says.
_UNORDERED = ("EVENT", "TRACE", "OPLOG")


def trouble(newer_than: str | None) -> Query:
    """Events that tell of a failure.

    Args:
        newer_than: taken in, or written, since; ``None``: of all times.
    """
    failed = _any({"range": {"event.severity": {"gte": _ERROR}}}, {"terms": {"ascend.signal": list(_FAILED)}})
    filters = [failed, {"exists": {"field": "@timestamp"}}]
    if newer_than is not None:
        filters.append(
            _any({"range": {INGESTED: {"gte": newer_than}}}, {"range": {"@timestamp": {"gte": newer_than}}})
        )
    return {"bool": {"filter": filters, "must_not": [{"term": {"ascend.error.severity": "info"}}]}}


def entries(newer_than: str | None) -> Query:
    """Entries of collective operations, by which slow cards are told; times as in ``trouble``."""
    filters: list[Query] = [{"exists": {"field": "ascend.hccl.op"}}, {"exists": {"field": "@timestamp"}}]
    if newer_than is not None:
        filters.append({"range": {"@timestamp": {"gte": newer_than}}})
    return {"bool": {"filter": filters}}


def telling(signs: Signs, start: str, end: str, labels: Mapping[str, str | None]) -> Query:
    """Events of a time that diagnosis reads: what a reader of the files would pass on.

    Args:
        signs: that diagnosis knows.
        start: ISO 8601.
        end: ISO 8601.
        labels: fields that have these values, or are absent where the value is ``None``.
    """
    wanted = _any(
        {"range": {"event.severity": {"gte": WARNING}}},
        {"terms": {"log.level": list(_UNORDERED)}},
        *({"exists": {"field": name}} for name in _TELLING),
        *(phrase for sign in signs.signs for phrase in _phrases(sign.contains)),
    )
    filters: list[Query] = [wanted, {"range": {"@timestamp": {"gte": start, "lte": end}}}]
    filters += [{"term": {name: value}} for name, value in labels.items() if value is not None]
    absent: list[Query] = [{"exists": {"field": name}} for name, value in labels.items() if value is None]
    return {"bool": {"filter": filters, "must_not": absent}}


def _any(*queries: Query) -> Query:
    return {"bool": {"should": list(queries), "minimum_should_match": 1}}
