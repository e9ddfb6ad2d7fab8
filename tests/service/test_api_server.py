"""What only a real server shows: bodies of 100 MB, long paths, the log on stderr."""

import http.client
import json
import re
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.applications import Starlette

from ascend_elk.errors import UserError
from ascend_elk.service.server import listen, make_server
from tests.engines.certificates import make_certificates

HUGE = 100 * 1024 * 1024
PIECE = b"x" * 65_536


class Server:
    def __init__(self, log: Path, *arguments: Path) -> None:
        self.log = log
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.service.serving", *map(str, arguments)],
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=Path(__file__).parents[2],
            )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def peak(self) -> int:
        """Bytes of memory that the process held at most."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        match = re.search(r"VmHWM:\s+(\d+) kB", text)
        assert match is not None
        return int(match.group(1)) * 1024

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(20) in (0, -signal.SIGTERM)

    def get(self, path: str) -> tuple[int, bytes]:
        connection = self.connect()
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("service") / "log.ndjson")
    yield server
    server.stop()


def post_huge(server: Server, chunked: bool) -> tuple[int, dict, int]:
    """Send 100 MB, as far as the server takes it; the status, the answer and the bytes sent."""
    head = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {HUGE}"
    sent = 0
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(f"POST /v1/enrich HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n".encode())
        piece = b"%x\r\n%s\r\n" % (len(PIECE), PIECE) if chunked else PIECE
        try:
            while sent < HUGE:
                connection.sendall(piece)
                sent += len(PIECE)
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return answer.status, json.loads(answer.read()), sent


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("chunked", [False, True], ids=["with a length", "in chunks"])
def test_a_body_of_100_mb_is_refused_without_being_held(server, chunked):
    assert server.get("/v1/codes/EI0006")[0] == 200
    before = server.peak()
    status, answer, sent = post_huge(server, chunked)
    assert status == 413
    assert answer == {"error": "the body is longer than 10485760 bytes; send fewer events at a time"}
    # What the sockets buffer is sent, and with chunks what comes before the limit.
    assert sent < HUGE // 2
    assert server.peak() - before < 48 * 1024 * 1024
    assert server.get("/healthz")[0] == 200


def test_ten_bodies_at_once_are_answered(server):
    body = b'{"ascend.error.codes":["cann:EI0006"]}\n' * 1_000
    connections = [server.connect() for _ in range(10)]
    for connection in connections:
        connection.request("POST", "/v1/enrich", body, {"content-type": "application/x-ndjson"})
    for connection in connections:
        answer = connection.getresponse()
        assert answer.status == 200
        assert answer.read().count(b"\n") == 1_000


def test_a_code_of_ten_thousand_characters_is_answered(server):
    for path in (f"/v1/codes/{'E' * 10_000}", f"/v1/codes/{'%E6%B1%89' * 10_000}"):
        status, text = server.get(path)
        assert status == 404
        assert json.loads(text)["known"] is False


def test_a_client_that_goes_away_leaves_no_error(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(b"POST /v1/enrich HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
    assert server.get("/healthz")[0] == 200
    assert b"Traceback" not in server.log.read_bytes()


def test_every_line_of_the_log_is_json_with_ecs_names(server):
    server.get("/v1/codes/EI0006")
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    assert any(line.get("url", {}).get("path") == "/v1/codes/EI0006" for line in lines)
    assert all({"@timestamp", "log.level", "message", "service"} <= set(line) for line in lines)


def test_https_is_spoken_with_a_certificate(tmp_path):
    files = make_certificates(tmp_path)
    server = Server(tmp_path / "log.ndjson", files.certificate, files.key)
    try:
        trust = ssl.create_default_context(cafile=str(files.ca))
        connection = http.client.HTTPSConnection("localhost", server.port, timeout=30, context=trust)
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
    finally:
        server.stop()


def test_a_certificate_that_cannot_be_used_is_a_persons_error(tmp_path):
    (tmp_path / "bad.pem").write_text("no certificate")
    for name in ("bad.pem", "none.pem"):
        with pytest.raises(UserError, match=f"cannot speak HTTPS with the certificate .*{name}"):
            make_server(Starlette(), certificate=tmp_path / name, key=tmp_path / name)


def test_an_address_that_is_taken_is_a_persons_error():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            listen("127.0.0.1", port)
    with pytest.raises(UserError, match=r"cannot listen on 192\.0\.2\.1:1"):
        listen("192.0.2.1", 1)
