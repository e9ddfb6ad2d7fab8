"""A real Elasticsearch 9.4.3 for the tests.

The server is the unmodified one that SonarQube ships inside its application archive on Maven Central. That
build lacks some modules of a full distribution: `substitutions.py` adapts what the product renders to it.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from elasticsearch import ApiError, Elasticsearch, TransportError

from .cache import EngineUnavailableError, cache_dir, content_hash, make_once, require, run_with_retries
from .certificates import make_certificates
from .processes import Group, dies_with_us, free_port, wait_until

VERSION = "9.4.3"
MINIMUM_JDK = 21
_POM = Path(__file__).with_name("elasticsearch") / "pom.xml"
_JDK_FOLDERS = Path("/usr/lib/jvm")
# The server refuses to run as root: this is `nobody`.
_UNPRIVILEGED_ID = 65534
_START_SECONDS = 180
_STOP_SECONDS = 60


def find_jdk() -> Path:
    """Home of a full JDK for the server: `ES_JAVA_HOME`, `JAVA_HOME`, else the oldest that suits."""
    named = [Path(os.environ[name]) for name in ("ES_JAVA_HOME", "JAVA_HOME") if os.environ.get(name)]
    installed = sorted(_JDK_FOLDERS.glob("*"), key=_jdk_version) if _JDK_FOLDERS.is_dir() else []
    for home in [*named, *installed]:
        if _jdk_version(home) >= MINIMUM_JDK:
            return home
    raise EngineUnavailableError(
        f"Elasticsearch {VERSION} needs a full JDK (one with jdk.jdi) of version {MINIMUM_JDK} or later, "
        f"none was found in ES_JAVA_HOME, JAVA_HOME or {_JDK_FOLDERS}"
    )


def _jdk_version(home: Path) -> int:
    """Major version of a JDK by its `release` file; 0 for anything else, a bare runtime included."""
    try:
        release = (home / "release").read_text()
    except OSError:
        return 0
    version = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    complete = re.search(r'^MODULES=".*\bjdk\.jdi\b', release, re.MULTILINE)
    return int(version[1]) if version and complete and (home / "bin" / "java").exists() else 0


def fetch() -> Path:
    """Home of the unpacked server in the cache; downloads and unpacks it when it isn't there."""

    def unpack(scratch: Path) -> None:
        maven = require("mvn", f"download Elasticsearch {VERSION}")
        run_with_retries(
            [maven, "-B", "-ntp", "-f", str(_POM), "process-resources", f"-Dtarget={scratch / 'unpacked'}"],
            cwd=scratch,
            what=f"downloading Elasticsearch {VERSION} by Maven",
        )
        (home,) = scratch.glob("unpacked/sonarqube-*/elasticsearch")
        home.rename(scratch / target.name)

    target = cache_dir() / f"elasticsearch-{VERSION}-{content_hash(_POM)}"
    return make_once(target, unpack)


class ElasticsearchServer:
    """One node on free ports of the loopback address, with a work folder of its own.

    It starts when constructed. A server that is shared between tests must be left running by each of them,
    and tests tell their data apart by unique names (fixture `namespace`).

    Args:
        security: with users, roles and API keys over TLS; the superuser is `elastic`.
        heap: the JVM's heap, as `-Xmx` takes it.
        settings: more settings of the node.
    """

    def __init__(
        self, *, security: bool = False, heap: str = "512m", settings: Mapping[str, Any] | None = None
    ) -> None:
        jdk, unpacked = find_jdk(), fetch()
        # Not in pytest's folder: the server's user can't enter that when root runs the tests.
        self.work = Path(tempfile.mkdtemp(prefix=f"ascend-elk-elasticsearch-{os.getpid()}-"))
        self.home = self.work / "home"
        self.data = self.work / "data"
        self.snapshots = self.work / "snapshots"
        self.log = self.work / "server.log"
        self.port = free_port()
        self.username = "elastic" if security else None
        self.password = secrets.token_urlsafe(18) if security else None
        self.ca: Path | None = None
        self._java = jdk / "bin" / "java"
        self._process: Group | None = None
        self._config = self.work / "config"
        atexit.register(self.close)
        try:
            # Links instead of copies where the file system allows: the unpacked server stays as it is.
            shutil.copytree(unpacked, self.home, copy_function=_link_or_copy)
            shutil.copytree(unpacked / "config", self._config)
            for folder in (self.data, self.work / "logs", self.work / "tmp", self.snapshots):
                folder.mkdir()
            self._settings = self._node_settings(security) | dict(settings or {})
            self._env = {
                **os.environ,
                "ES_HOME": str(self.home),
                "ES_PATH_CONF": str(self._config),
                "ES_TMPDIR": str(self.work / "tmp"),
                "ES_JAVA_HOME": str(jdk),
                "JAVA": str(self._java),
                "JAVA_TYPE": "ES_JAVA_HOME",
                "ES_DISTRIBUTION_TYPE": "tar",
                "ES_JAVA_OPTS": f"-Xms{heap} -Xmx{heap} -XX:-UsePerfData",
                # The helper that works out the JVM's options leaves folders in its temporary folder.
                "CLI_JAVA_OPTS": f"-Djava.io.tmpdir={self.work / 'tmp'} -XX:-UsePerfData",
                "HOSTNAME": "localhost",
            }
            if self.password is not None:
                self._store_password(self.password)
            self._give_away()
            self.start()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """Base URL, without credentials."""
        return f"{'https' if self.ca else 'http'}://127.0.0.1:{self.port}"

    @cached_property
    def client(self) -> Elasticsearch:
        """A client with all rights."""
        if self.username is None or self.password is None:
            return self.connect()
        return self.connect(basic_auth=(self.username, self.password))

    def connect(self, **options: Any) -> Elasticsearch:
        """A new client, by default without credentials; `basic_auth` or `api_key` give some."""
        if self.ca is not None:
            options = {"ca_certs": str(self.ca), **options}
        return Elasticsearch(self.url, request_timeout=60, **options)

    @property
    def running(self) -> bool:
        """Whether the server's processes run; it may be up but not ready, or paused."""
        return self._process is not None and self._process.running

    def start(self) -> None:
        """Starts the stopped or killed server on its old ports and data, and waits until it is ready."""
        if self.running:
            raise RuntimeError("Elasticsearch runs already")
        arguments = [f"-E{name}={_setting(value)}" for name, value in self._settings.items()]
        self._process = Group(
            [
                *self._as_user(),
                *(str(self._java), "-Xms4m", "-Xmx64m", "-XX:+UseSerialGC", "-XX:-UsePerfData"),
                *("-cp", f"{self.home}/lib/tools/server-launcher/*"),
                *("org.elasticsearch.server.launcher.ServerLauncher", *arguments),
            ],
            cwd=self.home,
            env=self._env,
            log=self.log,
        )
        wait_until(self._ready, _START_SECONDS, f"start of Elasticsearch (its log: {self.log})", pause=0.25)

    def stop(self) -> None:
        """Stops the server in order; its data stays."""
        if self._process is not None:
            self._process.terminate(_STOP_SECONDS)
            self._process = None

    def kill(self) -> None:
        """Kills the server at once, as by `kill -9`; its data stays."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def restart(self) -> None:
        """Stops (unless stopped or killed before) and starts."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Halts the server (SIGSTOP): connections stay open, answers don't come."""
        if self._process is not None:
            self._process.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets a paused server go on."""
        if self._process is not None:
            self._process.signal(signal.SIGCONT)

    def close(self) -> None:
        """Stops the server and deletes its work folder."""
        self.resume()
        self.stop()
        if "client" in self.__dict__:
            self.client.close()
        shutil.rmtree(self.work, ignore_errors=True)
        atexit.unregister(self.close)

    def _node_settings(self, security: bool) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "path.data": self.data,
            "path.logs": self.work / "logs",
            "path.repo": self.snapshots,
            "network.host": "127.0.0.1",
            "http.port": self.port,
            "transport.port": free_port(),
            "discovery.type": "single-node",
            "node.name": "test",
            "cluster.name": "ascend-elk-tests",
            # A nearly full disk of the machine is no business of the tests.
            "cluster.routing.allocation.disk.threshold_enabled": False,
            "xpack.security.enabled": security,
        }
        if security:
            folder = self._config / "certificates"
            folder.mkdir()
            files = make_certificates(folder)
            self.ca = files.ca
            settings |= {
                "xpack.security.http.ssl.enabled": True,
                "xpack.security.http.ssl.certificate": files.certificate,
                "xpack.security.http.ssl.key": files.key,
                "xpack.security.authc.api_key.enabled": True,
            }
        return settings

    def _store_password(self, password: str) -> None:
        subprocess.run(
            [
                *(str(self._java), "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
                *("-Dcli.name=keystore", "-Dcli.libs=lib/tools/keystore-cli", "-Des.distribution.type=tar"),
                *(f"-Des.path.home={self.home}", f"-Des.path.conf={self._config}"),
                *("-cp", f"{self.home}/lib/*:{self.home}/lib/cli-launcher/*"),
                *("org.elasticsearch.launcher.CliToolLauncher", "add", "--stdin", "--force"),
                "bootstrap.password",
            ],
            input=password,
            text=True,
            cwd=self.home,
            env=self._env,
            check=True,
            capture_output=True,
        )

    def _give_away(self) -> None:
        """Hands the work folder, but not the linked server, to the user that runs the server."""
        if os.geteuid() != 0:
            return
        self.work.chmod(0o755)
        for path in [self.work, *self.work.rglob("*")]:
            if self.home not in path.parents:
                os.chown(path, _UNPRIVILEGED_ID, _UNPRIVILEGED_ID)

    @staticmethod
    def _as_user() -> list[str]:
        if os.geteuid() != 0:
            return dies_with_us()
        setpriv = require("setpriv", "start Elasticsearch, which refuses to run as root")
        user = [f"--reuid={_UNPRIVILEGED_ID}", f"--regid={_UNPRIVILEGED_ID}", "--clear-groups"]
        return [*(dies_with_us() or [setpriv]), *user]

    def _ready(self) -> bool:
        if not self.running:
            code = self._process.returncode if self._process else None
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])
            raise RuntimeError(f"Elasticsearch ended with exit code {code} at its start:\n{tail}")
        patient = self.client.options(request_timeout=5, max_retries=0)
        try:
            patient.cluster.health(wait_for_status="yellow")
            if self.username is not None:
                # The index that holds the users comes up a moment after the node.
                patient.security.get_user()
        except (ApiError, TransportError):
            return False
        return True


def _setting(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str).strip('"')


def _link_or_copy(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target
