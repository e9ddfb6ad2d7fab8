"""The service as the compose file starts it: its certificate, its token, its health check."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from ascend_elk.compose.files import DIRECTORY, InitOptions, initialise
from tests.engines.processes import free_port, wait_until

from .test_file import SERVICES


@pytest.fixture
def started(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """The command of the file, on a port and with paths of the test; Elasticsearch is not there yet."""
    initialise(tmp_path, InitOptions())
    certificates, port = tmp_path / DIRECTORY / "certs/enrich", free_port()
    words = [
        word.replace("/etc/ascend-elk/certs", str(certificates)).replace("0.0.0.0:9620", f"0.0.0.0:{port}")
        for word in SERVICES["enrich"]["command"]
    ]
    environment = {
        **os.environ,
        "ASCEND_ELK_ELASTICSEARCH": f"https://127.0.0.1:{free_port()}",
        "ASCEND_ELK_ENRICHER_API_KEY": "id:secret",
        "ASCEND_ELK_TOKEN": "token-of-the-test",
    }
    log = tmp_path / "service.log"
    code = "import sys; from ascend_elk.cli import main; sys.exit(main())"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", code, *words], env=environment, stdout=out, stderr=out
        )
    try:
        yield port, certificates
    finally:
        process.terminate()
        process.wait(60)


def test_health_check_and_token(started: tuple[int, Path]) -> None:
    port, certificates = started
    program, option, text = SERVICES["enrich"]["healthcheck"]["test"][1:]
    assert program == "python"
    text = text.replace(":9620", f":{port}").replace("/etc/ascend-elk/certs", str(certificates))

    def healthy() -> bool:
        return (
            subprocess.run([sys.executable, option, text], capture_output=True, check=False).returncode == 0
        )

    wait_until(healthy, 90, "a health check that passes", pause=0.5)
    context = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    with urllib.request.urlopen(f"https://localhost:{port}/v1/codes/EI0006", context=context) as page:
        assert page.status == 200
    request = urllib.request.Request(f"https://localhost:{port}/v1/enrich", data=b"{}", method="POST")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, context=context)
    assert refused.value.code == 401
