"""The far end of Filebeat's `output.logstash`: a real Lumberjack server, by github.com/elastic/go-lumber.

Logstash itself can't be had from the package registries.
"""

from __future__ import annotations

import atexit
import os
import socket
from pathlib import Path
from typing import Any

import orjson

from .cache import go_build
from .certificates import make_certificates
from .processes import Group, dies_with_us, free_port, wait_until

_MODULE = Path(__file__).with_name("lumberjack")
_START_SECONDS = 10


def build() -> Path:
    """The binary in the cache; compiles it when it isn't there."""
    return go_build(_MODULE, "lumberjack-receiver")


class Receiver:
    """Receives events on a free port and keeps them, one a line; not started when constructed.

    A batch is acknowledged once it is on disk. Over restarts the port stays and the file grows.

    Args:
        directory: folder of the events and the receiver's log.
        tls: speak TLS; `ca` is then what a client must trust.
    """

    def __init__(self, directory: Path, *, tls: bool = False) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.file = directory / "received.ndjson"
        self.log = directory / "receiver.log"
        self.port = free_port()
        self._certificates = make_certificates(directory) if tls else None
        self._binary = build()
        self._process: Group | None = None
        atexit.register(self.kill)

    @property
    def address(self) -> str:
        """`host:port`, as `output.logstash.hosts` takes it."""
        return f"127.0.0.1:{self.port}"

    @property
    def ca(self) -> Path | None:
        """The authority that a client must trust; None without TLS."""
        return self._certificates.ca if self._certificates else None

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.running

    def start(self, *, die_before_ack: int | None = None) -> None:
        """Starts it and waits until it listens.

        Args:
            die_before_ack: die with this many batches on disk and the last of them not acknowledged.
        """
        if self.running:
            raise RuntimeError("the receiver runs already")
        command = [*dies_with_us(), str(self._binary), "-listen", self.address, "-output", str(self.file)]
        if die_before_ack is not None:
            command += ["-die-before-ack", str(die_before_ack)]
        if self._certificates is not None:
            command += ["-cert", str(self._certificates.certificate), "-key", str(self._certificates.key)]
        self._process = Group(command, cwd=self.directory, env=dict(os.environ), log=self.log)
        wait_until(self._listens, _START_SECONDS, f"start of the receiver (its log: {self.log})", pause=0.02)

    def wait_until_dead(self, timeout: float = 60) -> int:
        """Waits for the death that `die_before_ack` ordered and gives the exit code (9)."""
        if self._process is None:
            raise RuntimeError("the receiver was not started")
        return self._process.wait(timeout)

    def kill(self) -> None:
        """Kills it at once; there is nothing that an orderly stop would add."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def events(self) -> list[dict[str, Any]]:
        """All events received so far, in order of arrival, duplicates too; a half-written last line not."""
        if not self.file.exists():
            return []
        complete, _, _ = self.file.read_bytes().rpartition(b"\n")
        return [orjson.loads(line) for line in complete.splitlines()]

    def wait_for_events(self, count: int, timeout: float = 60) -> list[dict[str, Any]]:
        """Waits for that many events, duplicates counted, and gives all."""
        wait_until(lambda: len(self.events()) >= count, timeout, f"{count} events at the receiver")
        return self.events()

    def _listens(self) -> bool:
        if not self.running:
            raise RuntimeError(f"the receiver ended at its start:\n{self.log.read_text(errors='replace')}")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
