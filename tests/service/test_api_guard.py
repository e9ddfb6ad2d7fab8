"""What holds for every request: token, headers, log line, metrics; and the probes."""

import logging

import pytest
from starlette.testclient import TestClient

from ascend_elk.service import logs
from ascend_elk.service.api import OPEN_ROUTES, create_app
from ascend_elk.service.health import Health
from ascend_elk.service.metrics import Metrics

TOKEN = "correct-horse-battery"
OPEN = ["/healthz", "/", "/v1/codes?q=socket", "/v1/codes/EI0006", "/openapi.json", "/docs"]


@pytest.fixture
def guarded(serve):
    yield serve(token=TOKEN)
    logs._secrets.clear()


@pytest.mark.parametrize("path", OPEN)
def test_the_catalogue_and_the_probes_need_no_token(guarded, path):
    assert guarded.client.get(path).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": "Bearer wrong"},
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": TOKEN},
        {"authorization": "Bearer \xe9\xff".encode("latin-1")},
    ],
)
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/enrich"), ("GET", "/metrics"), ("GET", "/nothing")]
)
def test_without_the_token_nothing_else_is_served(guarded, method, path, headers):
    answer = guarded.client.request(
        method, path, headers=headers, content=b"{}" if method == "POST" else None
    )
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert list(answer.json()) == ["error"]
    assert TOKEN not in answer.text


@pytest.mark.parametrize(
    "path", ["/v1/codes/../enrich", "/v1/codes/%2e%2e/enrich", "//v1/enrich", "/v1/enrich/"]
)
def test_no_detour_leads_to_what_is_guarded(guarded, path):
    answer = guarded.client.post(path, content=b"{}")
    assert answer.status_code in (401, 404, 405)


def test_with_the_token_it_is(guarded):
    for scheme in ("Bearer", "bearer"):
        answer = guarded.client.post("/v1/enrich", json={}, headers={"authorization": f"{scheme} {TOKEN}"})
        assert answer.status_code == 200


def test_the_body_is_not_read_without_the_token(guarded):
    def never():
        pytest.fail("the body was read")
        yield b""

    # The client of the tests reads the body when the application asks for it.
    assert guarded.client.post("/v1/enrich", content=b"{" * 10_000).status_code == 401


def test_the_open_routes_exist(holder):
    app = create_app(holder, Metrics(), Health())
    paths = {route.path for route in app.routes}
    assert set(OPEN_ROUTES) <= paths


@pytest.mark.parametrize("path", [*OPEN, "/nothing", "/metrics", "/v1/codes/EI0006?format=html"])
def test_every_answer_has_the_security_headers(client, path):
    headers = client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]


def test_alive_and_ready_are_two_questions(service):
    assert service.client.get("/healthz").json() == {"status": "alive"}
    answer = service.client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "not ready", "reason": "starting"}
    service.health.become_ready()
    assert service.client.get("/readyz").json() == {"status": "ready"}


def test_a_stuck_worker_is_not_alive(holder):
    now = 0.0
    client = TestClient(create_app(holder, Metrics(), Health(clock=lambda: now)))
    now = 61.0
    assert client.get("/healthz").status_code == 503


def test_metrics_are_prometheus_text(service):
    service.client.get("/v1/codes/EI0006")
    answer = service.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "# TYPE ascend_elk_lag_seconds gauge" in answer.text
    assert (
        'ascend_elk_http_requests_total{method="GET",route="/v1/codes/{code:path}",status="200"} 1.0'
        in answer.text
    )


def test_made_up_paths_and_methods_do_not_grow_the_metrics(service):
    for number in range(20):
        service.client.get(f"/made-up/{number}")
        service.client.request(f"M{number}", "/v1/enrich")
    series = [
        line
        for line in service.metrics.text().decode().splitlines()
        if line.startswith("ascend_elk_http_requests_total")
    ]
    assert len(series) == 2


def test_each_request_has_one_line_with_ecs_names(service, caplog):
    with caplog.at_level(logging.INFO):
        service.client.get("/v1/codes/EI0006%0AFORGED?q=private")
        service.client.get("/healthz")
    (record,) = [record for record in caplog.records if record.name.startswith("ascend_elk")]
    assert record.getMessage() == "GET /v1/codes/EI0006?FORGED 404"
    assert record.__dict__["http.response.status_code"] == 404
    assert record.__dict__["event.duration"] > 0


def test_a_failure_is_answered_logged_and_counted(service, caplog, monkeypatch):
    def fail(*arguments):
        raise RuntimeError("a secret detail")

    monkeypatch.setattr("ascend_elk.service.code_pages.answer", fail)
    answer = service.client.get("/v1/codes/EI0006")
    assert answer.status_code == 500
    assert answer.json() == {"error": "the service failed on this request; its log says why"}
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "a secret detail" in caplog.text
    assert (
        service.metric(
            "ascend_elk_http_requests_total", method="GET", route="/v1/codes/{code:path}", status="500"
        )
        == 1
    )
