"""Elasticsearch as the service needs it: read at a point in time, write with a condition, in few bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from ascend_elk.errors import UserError
from ascend_elk.service.jsons import dumps, loads
from ascend_elk.stack.http import ApiError, Server, segment

Document = dict[str, Any]

_TIMEOUT = (5.0, 45.0)
_KEEP = "2m"
_PAGE_BYTES = 16 << 20
# Overloaded, still starting, or a node gone behind a proxy.
_BUSY = {
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}
_BULK_ANSWER = ",".join(
    f"items.*.{name}"
    for name in ("status", "_seq_no", "_primary_term", "error.type", "error.reason", "error.caused_by.reason")
)
_REFUSED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}


class BusyError(Exception):
    """Elasticsearch is overloaded or not ready: the same request may succeed later."""


@dataclass(frozen=True)
class Names:
    """Where the service reads and writes.

    Attributes:
        streams: pattern of the data streams.
        state: index of the checkpoints.
        processes: index of which card a process drives.
        rejected: index of what could not be written.
        incidents: index of the verdicts.
    """

    streams: str
    state: str
    processes: str
    rejected: str
    incidents: str

    @classmethod
    def of(cls, namespace: str) -> Names:
        """Those for one namespace of data streams, or for all (``*``); a namespace has indices of its own."""
        end = "" if namespace == "*" else f"-{namespace}"
        return cls(
            f"logs-ascend.*-{namespace}",
            f"ascend-enrich-state{end}",
            f"ascend-enrich-processes{end}",
            f"ascend-enrich-rejected{end}",
            f"ascend-incidents{end}",
        )


@dataclass(frozen=True)
class Stored:
    """A document as it is stored.

    Attributes:
        index: the index, of a data stream the one behind it.
        version: sequence number and primary term, the condition of the next write.
        sort: place in the order of the search.
    """

    __slots__ = ("id", "index", "sort", "source", "version")

    index: str
    id: str
    source: Document
    version: tuple[int, int]
    sort: list[Any]


@dataclass(frozen=True)
class Written:
    """What became of one write: HTTP status, new version, reason of a failure."""

    __slots__ = ("reason", "status", "version")

    status: int
    version: tuple[int, int]
    reason: str


class Store:
    """A client for one thread.

    Args:
        server: where, and as whom.
    """

    def __init__(self, server: Server) -> None:
        """Prepare; nothing is sent yet."""
        self._server = server
        self.received = 0
        """Bytes of the last answer."""

    def call(
        self,
        method: str,
        path: str,
        body: Document | bytes | None = None,
        params: dict[str, str] | None = None,
    ) -> Document:
        """Send one request.

        Raises:
            BusyError: it may succeed later.
            UnreachableError: no answer.
            UserError: the key is not accepted, or may not do this.
            ApiError: refused for another reason.
        """
        lines = isinstance(body, bytes)
        data = body if body is None or isinstance(body, bytes) else dumps(body)
        response = self._server.send(
            method,
            path,
            data=data,
            content_type="application/x-ndjson" if lines else "application/json",
            params=params,
            timeout=_TIMEOUT,
        )
        status = response.status_code
        try:
            answer = loads(response.content) if response.content else {}
        except ValueError:
            answer = None
        self.received = len(response.content)
        if status < HTTPStatus.BAD_REQUEST:
            if not isinstance(answer, dict):
                raise BusyError(f"what answers at {self._server.url} is not Elasticsearch, or was cut off")
            return answer
        reason = _reason(answer) or str(response.reason)
        if status in _BUSY:
            raise BusyError(f"{reason} (HTTP {status})")
        if status in _REFUSED and "block" not in reason:
            raise UserError(
                f"Elasticsearch at {self._server.url} refuses {method} {path}: {reason}; "
                "check ASCEND_ELK_ENRICHER_API_KEY and its rights"
            )
        raise ApiError(status, reason, answer)

    def ready(self) -> None:
        """Ask whether Elasticsearch answers and knows the key.

        Raises:
            As ``call``.
        """
        answer = self.call("GET", "/")
        if "version" not in answer:
            raise UserError(
                f"what answers at {self._server.url} is not Elasticsearch; check the URL and its path prefix"
            )

    # ------------------------------------------------------------ search

    def search(self, index: str, body: Document) -> list[Stored]:
        """Documents of an index; none where there is no such index."""
        params = {"ignore_unavailable": "true", "allow_no_indices": "true"}
        answer = self.call("POST", f"/{index}/_search", {"seq_no_primary_term": True, **body}, params)
        return _hits(answer)

    def aggregate(self, index: str, query: Document, aggregations: Document) -> Document:
        """Aggregations over an index; empty where there is no such index."""
        body = {"size": 0, "track_total_hits": False, "query": query, "aggs": aggregations}
        params = {"ignore_unavailable": "true", "allow_no_indices": "true"}
        found = self.call("POST", f"/{index}/_search", body, params).get("aggregations")
        return dict(found or {})

    def count(self, index: str, query: Document) -> int:
        """How many documents match."""
        params = {"ignore_unavailable": "true", "allow_no_indices": "true"}
        return int(self.call("POST", f"/{index}/_count", {"query": query}, params)["count"])

    # ------------------------------------------------------------ single documents

    def get(self, index: str, name: str) -> Stored | None:
        """One document, as last written; ``None`` where there is none."""
        try:
            found = self.call("GET", f"/{index}/_doc/{segment(name)}")
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        version = (int(found["_seq_no"]), int(found["_primary_term"]))
        return Stored(index, name, found["_source"], version, [])

    def put(self, index: str, name: str, document: Document, known: Stored | None) -> bool:
        """Create a document, or replace the one that was read; false where someone else was faster."""
        if known is None:
            params = {"op_type": "create"}
        else:
            params = {"if_seq_no": str(known.version[0]), "if_primary_term": str(known.version[1])}
        try:
            self.call("PUT", f"/{index}/_doc/{segment(name)}", document, params)
        except ApiError as error:
            if error.status == HTTPStatus.CONFLICT:
                return False
            raise
        return True

    def create_index(self, index: str, body: Document) -> None:
        """Create an index, unless it is there."""
        try:
            self.call("PUT", f"/{index}", body)
        except ApiError as error:
            if "resource_already_exists" not in str(error.body):
                raise

    def refresh(self, index: str) -> None:
        """Let searches see what was written."""
        self.call(
            "POST", f"/{index}/_refresh", params={"ignore_unavailable": "true", "allow_no_indices": "true"}
        )

    # ------------------------------------------------------------ bulk

    def bulk(self, lines: Sequence[bytes], *, pipeline: str | None = None) -> list[Written]:
        """Write many documents; ``lines`` holds an action and a body for each.

        Raises:
            As ``call``; what is refused for a single document is in the result instead.
        """
        params = {"filter_path": _BULK_ANSWER}
        if pipeline is not None:
            params["pipeline"] = pipeline
        answer = self.call("POST", "/_bulk", b"\n".join(lines) + b"\n", params)
        written = []
        for item in answer.get("items", ()):
            (result,) = item.values()
            error = result.get("error") or {}
            reason = ": ".join(
                str(part)
                for part in (error.get("type"), error.get("reason"), error.get("caused_by", {}).get("reason"))
                if part
            )
            version = (result.get("_seq_no", -1), result.get("_primary_term", -1))
            written.append(Written(int(result["status"]), version, reason))
        return written


class Point:
    """A point in time over indices or data streams: what is written later does not disturb reading.

    Args:
        store: Elasticsearch.
        pattern: of the indices or data streams.
    """

    def __init__(self, store: Store, pattern: str) -> None:
        """Open it.

        Raises:
            As ``Store.call``.
        """
        self._store = store
        params = {"keep_alive": _KEEP, "ignore_unavailable": "true", "expand_wildcards": "open"}
        self._id = str(store.call("POST", f"/{pattern}/_pit", params=params)["id"])
        self.complete = True
        """Whether all shards have answered so far."""

    def __enter__(self) -> Point:
        """Nothing to do: it is open."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close it; where that fails, it ends by itself."""
        with suppress(BusyError, UserError, ApiError):
            self._store.call("DELETE", "/_pit", {"id": self._id})

    def pages(
        self,
        query: Document,
        size: int,
        *,
        fields: Sequence[str] | None = None,
        sort: Sequence[Document] = ({"_shard_doc": "asc"},),
        part: tuple[int, int] = (0, 1),
    ) -> Iterator[list[Stored]]:
        """All that matches, in pages.

        Args:
            query: what is meant.
            size: of a page; pages of long documents are shorter.
            fields: of the source; ``None``: all, so that the document can be written back.
            sort: order.
            part: number and count of parts of about equal size; only this one is read.
        """
        body: Document = {
            "size": size,
            "query": query,
            "sort": list(sort),
            "_source": True if fields is None else list(fields),
            "seq_no_primary_term": True,
            "track_total_hits": False,
        }
        if part[1] > 1:
            body["slice"] = {"field": "_seq_no", "id": part[0], "max": part[1]}
        while True:
            body["pit"] = {"id": self._id, "keep_alive": _KEEP}
            answer = self._store.call("POST", "/_search", body)
            self._id = str(answer.get("pit_id", self._id))
            self.complete &= not answer.get("timed_out") and not answer.get("_shards", {}).get("failed")
            page = _hits(answer)
            if page:
                yield page
            if len(page) < body["size"]:
                return
            body["size"] = max(1, min(size, _PAGE_BYTES * len(page) // max(1, self._store.received)))
            body["search_after"] = page[-1].sort


def ahead(pages: Iterator[list[Stored]]) -> Iterator[list[Stored]]:
    """The same pages; the next one is read while the last one is worked on."""
    with ThreadPoolExecutor(1, thread_name_prefix="reader") as pool:
        coming = pool.submit(next, pages, None)
        while (page := coming.result()) is not None:
            coming = pool.submit(next, pages, None)
            yield page


def own_index(mappings: Document) -> Document:
    """Settings and mappings of a small index of the service."""
    settings = {"index": {"number_of_shards": 1, "auto_expand_replicas": "0-1"}}
    return {"settings": settings, "mappings": mappings}


def _hits(answer: Document) -> list[Stored]:
    return [
        Stored(
            hit["_index"],
            hit["_id"],
            hit.get("_source") or {},
            (hit["_seq_no"], hit["_primary_term"]),
            hit.get("sort", []),
        )
        for hit in answer.get("hits", {}).get("hits", ())
    ]


def _reason(answer: Any) -> str:
    error = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(error, dict):
        causes = error.get("root_cause") or [error]
        return f"{causes[0].get('type')}: {causes[0].get('reason')}"
    return str(error or "")
