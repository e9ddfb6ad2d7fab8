"""A real Kafka 4.1.1 for the tests: one broker that is its own controller, and the Java client that Logstash uses.

Everything comes as jars from Maven Central. The broker speaks TLS and asks clients for their certificate.
"""

from __future__ import annotations

import atexit
import base64
import os
import secrets
import socket
import subprocess
import uuid
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from .cache import cache_dir, content_hash, make_once, require, run_with_retries
from .certificates import make_certificates
from .elasticsearch import find_jdk
from .processes import Group, dies_with_us, free_port, wait_until

VERSION = "4.1.1"
_POM = Path(__file__).with_name("kafka") / "pom.xml"
_START_SECONDS = 90
_CONSUME_SECONDS = 60


def fetch() -> Path:
    """Folder of the jars in the cache; downloads them when it isn't there."""

    def download(scratch: Path) -> None:
        maven = require("mvn", f"download Kafka {VERSION}")
        run_with_retries(
            [maven, "-B", "-ntp", "-f", str(_POM), "process-resources", f"-Dtarget={scratch / 'kafka'}"],
            cwd=scratch,
            what=f"downloading Kafka {VERSION} by Maven",
        )
        (scratch / "kafka" / "jars").rename(scratch / target.name)

    target = cache_dir() / f"kafka-{VERSION}-{content_hash(_POM)}"
    return make_once(target, download)


class KafkaBroker:
    """One broker on free ports of the loopback address, over TLS; not started when constructed.

    Args:
        directory: folder of its data, log and certificates.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.log = directory / "kafka.log"
        self.certificates = make_certificates(directory)
        self.port = free_port()
        self.store_password = secrets.token_urlsafe(18)
        self._java = [
            str(find_jdk() / "bin" / "java"),
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
        ]
        self._java += ["-cp", str(fetch() / "*")]
        self._process: Group | None = None
        atexit.register(self.kill)

    @property
    def address(self) -> str:
        """`host:port` of the broker."""
        return f"127.0.0.1:{self.port}"

    @property
    def keystore(self) -> Path:
        """Key and certificate in one PEM file, as Java's clients take them."""
        return self.directory / "keystore.pem"

    @cached_property
    def stores(self) -> tuple[Path, Path]:
        """Truststore and keystore as PKCS #12, with `store_password`, as older Java clients take them."""
        trusted, own = self.directory / "ca.p12", self.directory / "keystore.p12"
        keytool = Path(self._java[0]).with_name("keytool")
        openssl = require("openssl", "make a keystore")
        files, password = self.certificates, self.store_password
        trust = ("-importcert", "-noprompt", "-alias", "ca", "-file", files.ca, "-storetype", "PKCS12")
        export = ("pkcs12", "-export", "-inkey", files.key, "-in", files.certificate, "-out", own)
        for command in (
            (keytool, *trust, "-keystore", trusted, "-storepass", password),
            (openssl, *export, "-passout", f"pass:{password}"),
        ):
            subprocess.run([str(part) for part in command], check=True, capture_output=True)
        return trusted, own

    def start(self) -> None:
        """Formats its folder, starts it and waits until it listens."""
        files = self.certificates
        self.keystore.write_text(files.key.read_text() + files.certificate.read_text())
        settings = self.directory / "server.properties"
        controller = free_port()
        settings.write_text(
            "process.roles=broker,controller\nnode.id=1\n"
            f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
            f"listeners=SSL://{self.address},CONTROLLER://127.0.0.1:{controller}\n"
            f"advertised.listeners=SSL://{self.address}\n"
            "controller.listener.names=CONTROLLER\ninter.broker.listener.name=SSL\n"
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,SSL:SSL\n"
            f"ssl.keystore.type=PEM\nssl.keystore.location={self.keystore}\n"
            f"ssl.truststore.type=PEM\nssl.truststore.location={files.ca}\nssl.client.auth=required\n"
            f"log.dirs={self.directory / 'data'}\nnum.partitions=3\n"
            "offsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\n"
            "group.initial.rebalance.delay.ms=0\nmessage.max.bytes=12582912\n"
        )
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._run("kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(settings))
        self._process = Group(
            [*dies_with_us(), *self._java, "kafka.Kafka", str(settings)],
            cwd=self.directory,
            env=dict(os.environ),
            log=self.log,
        )
        wait_until(self._listens, _START_SECONDS, f"start of Kafka (its log: {self.log})")

    def consume(self, topic: str, count: int, settings: Mapping[str, str]) -> list[dict[str, Any]]:
        """That many messages of a topic, as JSON, by Kafka's own Java client.

        Args:
            topic: of the messages.
            count: how many to wait for; fewer come back where no more arrive within a minute.
            settings: of the consumer, by the names of its documentation.
        """
        file = self.directory / "consumer.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        answer = self._run(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *("--bootstrap-server", self.address, "--topic", topic, "--consumer.config", str(file)),
            *("--max-messages", str(count), "--timeout-ms", str(_CONSUME_SECONDS * 1000)),
        )
        return [orjson.loads(line) for line in answer.splitlines() if line.startswith("{")]

    def kill(self) -> None:
        """Kills it at once."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _run(self, name: str, *arguments: str) -> str:
        result = subprocess.run(
            [*self._java, name, *arguments],
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_START_SECONDS + _CONSUME_SECONDS,
        )
        if result.returncode != 0:
            raise RuntimeError(f"{name} failed:\n{result.stdout[-2000:]}\n{result.stderr[-2000:]}")
        return result.stdout

    def _listens(self) -> bool:
        if self._process is None or not self._process.running:
            raise RuntimeError(f"Kafka ended at its start:\n{self.log.read_text(errors='replace')[-3000:]}")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
