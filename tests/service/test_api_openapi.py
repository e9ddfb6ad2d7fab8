"""The description of the API holds: it is valid, whole, and what is answered fits it."""

import re

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from starlette.routing import Route

from ascend_elk.enrich import READ_FIELDS, enrich
from ascend_elk.service.api import create_app
from ascend_elk.service.health import Health
from ascend_elk.service.metrics import Metrics
from ascend_elk.service.openapi import document

SPEC = document(1_000)


def plain(path: str) -> str:
    """``/v1/codes/{code:path}`` → ``/v1/codes/{code}``; a slash at the end is the same resource."""
    return re.sub(r":\w+}", "}", path).rstrip("/") or "/"


def test_the_description_is_valid_openapi():
    validate(SPEC)


def test_every_route_is_described_and_nothing_else(holder):
    routes = create_app(holder, Metrics(), Health()).routes
    assert all(isinstance(route, Route) for route in routes)
    served = {
        (plain(route.path), method.lower())
        for route in routes
        for method in route.methods
        if method != "HEAD"
    }
    described = {(path, method) for path, methods in SPEC["paths"].items() for method in methods}
    assert described == served


def test_what_needs_the_token_is_described_so(serve):
    client = serve(token="correct-horse").client
    for path, methods in SPEC["paths"].items():
        for method, operation in methods.items():
            status = client.request(method, path.replace("{code}", "EI0006")).status_code
            assert (status == 401) == ("security" in operation), path


def test_the_events_fields_are_described(holder):
    fields = SPEC["components"]["schemas"]["Event"]["properties"]
    added = enrich({"message": "x", "ascend.error.codes": ["cann:EI0006"]}, holder.current)
    assert set(added) | set(READ_FIELDS) <= set(fields)


@pytest.mark.parametrize(
    ("method", "path", "options"),
    [
        ("get", "/v1/codes/EI0006", {}),
        ("get", "/v1/codes/507899", {}),
        ("get", "/v1/codes/0x80e01802", {}),
        ("get", "/v1/codes/0x80e01801", {}),
        ("get", "/v1/codes/disk-full", {}),
        ("get", "/v1/codes/6", {}),
        ("get", "/v1/codes/EI0006?cann=x", {}),
        ("get", "/v1/codes?q=socket", {}),
        ("get", "/v1/codes?q=disk+full", {}),
        ("get", "/v1/codes?family=messages", {}),
        ("get", "/v1/codes?family=aicpu", {}),
        ("get", "/v1/codes", {}),
        ("get", "/healthz", {}),
        ("get", "/readyz", {}),
        ("get", "/openapi.json", {}),
        ("post", "/v1/enrich", {"json": {"message": "x", "ascend.error.codes": ["cann:EI0006"]}}),
        ("post", "/v1/enrich", {"content": b"{"}),
        ("post", "/v1/enrich", {"content": b"x" * 2_000}),
        ("post", "/v1/enrich", {"content": b"x", "headers": {"content-encoding": "br"}}),
    ],
)
def test_what_is_answered_fits_the_description(serve, method, path, options):
    answer = getattr(serve(max_body=1_000).client, method)(path, **options)
    template = re.sub(r"^(/v1/codes/)[^?]+", r"\1{code}", path).partition("?")[0]
    response = SPEC["paths"][template][method]["responses"][str(answer.status_code)]
    if "$ref" in response:
        response = SPEC["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
    schema = response["content"]["application/json"]["schema"]
    Draft202012Validator({**schema, "components": SPEC["components"]}).validate(answer.json())


def test_the_examples_are_answered(client):
    for media, content in SPEC["paths"]["/v1/enrich"]["post"]["requestBody"]["content"].items():
        example = content["example"]
        body = {"content": example} if isinstance(example, str) else {"json": example}
        answer = client.post("/v1/enrich", headers={"content-type": media}, **body)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == media


def test_the_page_shows_every_path_and_schema(client):
    text = client.get("/docs").text
    for path in SPEC["paths"]:
        assert f"</span> {path}</h3>" in text
    for name in SPEC["components"]["schemas"]:
        assert f'id="schema-{name}"' in text
