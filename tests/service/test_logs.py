import json
import logging

import pytest

from ascend_elk.service import logs


@pytest.fixture
def log():
    """Loggers as they were before, afterwards."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield logging.getLogger("ascend_elk.service.worker")
    root.handlers[:], root.level = before, level
    logs._secrets.clear()


def written(capsys):
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_lines_are_json_with_ecs_names(log, capsys):
    logs.configure(json=True)
    log.warning("batch of %d took long", 5, extra={"event.duration": 7})
    (line,) = written(capsys)
    assert line["message"] == "batch of 5 took long"
    assert line["log.level"] == "warning"
    assert line["log"]["logger"] == "ascend_elk.service.worker"
    assert line["event"] == {"duration": 7, "dataset": "ascend-elk.log"}
    assert line["service"]["name"] == "ascend-elk"
    assert line["@timestamp"].endswith("Z")
    assert line["ecs.version"]


def test_an_error_keeps_its_trace_on_one_line(log, capsys):
    logs.configure(json=True)
    try:
        raise ValueError("line one\nline two")
    except ValueError:
        log.exception("failed")
    (line,) = written(capsys)
    assert line["error"]["type"] == "ValueError"
    assert line["error"]["message"] == "line one\nline two"
    assert "test_logs.py" in line["error"]["stack_trace"]


@pytest.mark.parametrize("as_json", [True, False])
def test_secrets_stay_out(log, capsys, as_json):
    logs.configure(json=as_json)
    logs.hide('to"ken-1234')
    logs.hide(None)
    log.info("given %s", 'to"ken-1234', extra={"token": 'to"ken-1234'})
    log.info("sent Authorization: ApiKey bXlrZXk6c2VjcmV0 and bearer abc.def-ghi")
    log.info("asked https://elastic:changeme@es.example:9200/_bulk")
    try:
        raise RuntimeError('to"ken-1234')
    except RuntimeError:
        log.exception("failed")
    text = capsys.readouterr().err
    for secret in ("ken-1234", "bXlrZXk6c2VjcmV0", "abc.def-ghi", "changeme"):
        assert secret not in text
    assert "https://[hidden]@es.example:9200/_bulk" in text


def test_plain_lines_are_for_people(log, capsys):
    logs.configure(json=False)
    log.info("ready")
    assert capsys.readouterr().err.rstrip().endswith("INFO ascend_elk.service.worker: ready")
