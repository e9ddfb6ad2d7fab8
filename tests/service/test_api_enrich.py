"""``POST /v1/enrich``."""

import json

import anyio
import pytest

from ascend_elk.service import api

EVENT = {"message": "x", "ascend": {"error": {"codes": ["cann:EI0006"]}}}
NDJSON = {"content-type": "application/x-ndjson"}


def test_one_event_is_answered_as_one_event(client):
    answer = client.post("/v1/enrich", json=EVENT)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    event = answer.json()
    assert event["error"]["code"] == "EI0006"
    assert "socket" in event["ascend"]["error"]["meaning_zh"]
    assert event["ascend"]["error"]["reference"] == "/v1/codes/cann:EI0006"


def test_lines_are_answered_as_lines(client):
    body = "\n".join(json.dumps({**EVENT, "n": number}) for number in range(50))
    answer = client.post("/v1/enrich", content=body, headers=NDJSON)
    assert answer.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [line["n"] for line in lines] == list(range(50))


def test_lines_are_told_from_one_document_without_a_content_type(client):
    answer = client.post("/v1/enrich", content=b'{"a":1}\n{"a":2}\n')
    assert answer.headers["content-type"] == "application/x-ndjson"


def test_the_version_of_the_query_decides(client):
    old = client.post("/v1/enrich?cann=5.0.4", json=EVENT).json()
    new = client.post("/v1/enrich?cann=8.0", json=EVENT).json()
    assert old["ascend"]["error"]["meaning"] == "A resource that was passed in is wrong."
    assert new["ascend"]["error"]["meaning"].startswith("Two ranks could not connect")


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("/v1/enrich", b"{", {"error": "line 1: not valid JSON: unexpected end of data", "line": 1}),
        (
            "/v1/enrich",
            b'{"a":1}\n{"a":}\n',
            {"error": "line 2: not valid JSON: unexpected character, expected a JSON value", "line": 2},
        ),
        (
            "/v1/enrich?cann=latest",
            b"{}",
            {"error": "'latest' is not a CANN version; write for example 8.0, 8.0.RC3 or 7.0.0.alpha003"},
        ),
    ],
)
def test_a_mistake_is_answered_with_one_sentence(client, path, body, says):
    answer = client.post(path, content=body)
    assert answer.status_code == 400
    assert answer.json() == says


def test_a_compressed_body_is_refused(client):
    answer = client.post("/v1/enrich", content=b"x", headers={"content-encoding": "gzip"})
    assert answer.status_code == 415
    assert answer.json() == {"error": "send the body uncompressed"}


def test_only_post_is_allowed(client):
    answer = client.get("/v1/enrich", headers={"accept": "application/json"})
    assert answer.status_code == 405
    assert answer.json() == {"error": "this method is not allowed here; use POST"}
    assert answer.headers["allow"] == "POST"


def test_a_body_of_the_longest_length_is_taken_and_one_byte_more_is_not(serve):
    client = serve(max_body=1_000).client
    body = b'{"message": "%s"}' % (b"x" * (1_000 - 15))
    assert len(body) == 1_000
    assert client.post("/v1/enrich", content=body).status_code == 200
    answer = client.post("/v1/enrich", content=body + b" ")
    assert answer.status_code == 413
    assert answer.json() == {"error": "the body is longer than 1000 bytes; send fewer events at a time"}


def test_a_body_in_chunks_is_refused_when_it_becomes_too_long(serve):
    taken = 0

    def chunks():
        nonlocal taken
        for _ in range(100):
            taken += 1
            yield b" " * 100

    answer = serve(max_body=1_000).client.post("/v1/enrich", content=chunks())
    assert answer.status_code == 413


def test_a_body_that_does_not_arrive_is_not_waited_for(service, monkeypatch):
    monkeypatch.setattr(api, "BODY_SECONDS", 0.05)
    sent = []

    async def receive():
        await anyio.sleep_forever()

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/enrich",
        "query_string": b"",
        "headers": [(b"content-length", b"10")],
    }
    anyio.run(service.client.app, scope, receive, send)
    assert sent[0]["status"] == 408
    # What may still come is not waited for either.
    assert (b"connection", b"close") in sent[0]["headers"]


def test_events_and_unknown_codes_are_counted(service):
    lines = [
        {"ascend.error.codes": ["cann:EI0006"]},
        {"ascend.error.codes": ["cann:EI0099"]},
        {"message": "fine"},
    ]
    service.client.post("/v1/enrich", content="\n".join(map(json.dumps, lines)))
    assert service.metric("ascend_elk_events_enriched_total") == 3
    assert service.metric("ascend_elk_unknown_codes_total") == 1


def test_a_muted_line_is_no_unknown_code(service):
    message = "errors can be ignored"
    assert service.holder.current.is_muted(message)
    answer = service.client.post(
        "/v1/enrich", json={"message": message, "ascend.error.codes": ["cann:EI0006"]}
    )
    assert answer.json()["ascend.error.severity"] == "info"
    assert service.metric("ascend_elk_unknown_codes_total") == 0
