"""A real Filebeat 7.17.28 for the tests, built from its Go module.

7.17.28 is the newest version that the Go module proxy serves. Traps met with it, and how they are handled:
its file output rotates at every start and deletes beyond a number of files, which looks like loss
(`file_output`); a configuration can hang its start or its check (time limits everywhere); a last line
without newline is never sent (`wait_until_read` doesn't wait for it).
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import yaml

from .cache import go_build
from .elasticsearch import ElasticsearchServer
from .lumberjack import Receiver
from .processes import Group, dies_with_us, wait_until

VERSION = "7.17.28"
_MODULE = Path(__file__).with_name("filebeat")
_STOP_SECONDS = 30


def build() -> Path:
    """The binary in the cache; downloads its sources and compiles them when it isn't there."""
    return go_build(_MODULE, f"filebeat-{VERSION}")


def file_output(directory: Path) -> dict[str, Any]:
    """Settings of an output to files that loses nothing over restarts; `Filebeat.events` reads them."""
    return {
        "output.file.enabled": True,
        "output.file.path": str(directory),
        "output.file.filename": "events",
        "output.file.number_of_files": 1024,
        "output.file.rotate_every_kb": 10 * 1024 * 1024,
    }


def elasticsearch_output(server: ElasticsearchServer, **more: Any) -> dict[str, Any]:
    """Settings of an output straight to Elasticsearch, as the superuser where the server has users.

    Args:
        server: where to.
        more: further options of `output.elasticsearch`, `index="…"` or `pipeline="…"` for example.
    """
    output: dict[str, Any] = {"enabled": True, "hosts": [server.url], **more}
    if server.username is not None:
        output |= {"username": server.username, "password": server.password}
        output["ssl.certificate_authorities"] = [str(server.ca)]
    return {
        **{f"output.elasticsearch.{name}": value for name, value in output.items()},
        # Templates are the product's, not Filebeat's.
        "setup.template.enabled": False,
        "setup.ilm.enabled": False,
    }


def logstash_output(receiver: Receiver, **more: Any) -> dict[str, Any]:
    """Settings of an output to the Lumberjack receiver, which stands where Logstash does."""
    output: dict[str, Any] = {"enabled": True, "hosts": [receiver.address], **more}
    if receiver.ca is not None:
        output |= {"ssl.enabled": True, "ssl.certificate_authorities": [str(receiver.ca)]}
    return {f"output.logstash.{name}": value for name, value in output.items()}


@dataclass(frozen=True)
class ConfigTest:
    """What `filebeat test config` said. It checks little: a pass proves nothing, a failure does."""

    ok: bool
    output: str


class Filebeat:
    """One Filebeat with a folder for its registry, log and file output; not started when constructed.

    Args:
        directory: folder of this instance; the same folder again means the same registry.
        config: a rendered filebeat.yml, whose folder becomes `path.config`, or the settings themselves.
        settings: settings on top, dotted names, as by `-E`: `file_output(…)` and so on. Another output in the
            rendered file must be switched off by name (`{"output.logstash.enabled": False}`).
        env: environment variables that the configuration refers to.
    """

    def __init__(
        self,
        directory: Path,
        config: Path | Mapping[str, Any],
        *,
        settings: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory
        self.output = directory / "output"
        self.log = directory / "filebeat.log"
        directory.mkdir(parents=True, exist_ok=True)
        if isinstance(config, Path):
            self.config = config
        else:
            self.config = directory / "filebeat.yml"
            self.config.write_text(yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True))
            self.config.chmod(0o600)
        self._binary = build()
        self._settings = dict(settings or {})
        self._env = {**os.environ, **(env or {})}
        self._process: Group | None = None
        atexit.register(self.kill)

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.running

    def start(self) -> None:
        """Starts it. It reads on where the registry says."""
        if self.running:
            raise RuntimeError("Filebeat runs already")
        self._process = Group(
            [*dies_with_us(), *self._command("run"), "-e"], cwd=self.directory, env=self._env, log=self.log
        )

    def stop(self) -> int:
        """Stops it in order (SIGTERM) and gives its exit code."""
        if self._process is None:
            raise RuntimeError("Filebeat was not started")
        code = self._process.terminate(_STOP_SECONDS)
        self._process = None
        return code

    def kill(self) -> None:
        """Kills it at once, as by `kill -9`."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def restart(self) -> None:
        """Stops (unless stopped or killed before) and starts."""
        if self._process is not None:
            self.stop()
        self.start()

    def test_config(self, timeout: float = 20) -> ConfigTest:
        """Runs `filebeat test config`; one that hangs has failed."""
        try:
            result = subprocess.run(
                self._command("test", "config"),
                cwd=self.directory,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=timeout,
            )
        except subprocess.TimeoutExpired as hung:
            return ConfigTest(False, f"hung for {timeout:g} s; {hung.output!r}")
        return ConfigTest(result.returncode == 0, result.stdout)

    def read(self, files: Iterable[Path], timeout: float = 60) -> list[dict[str, Any]]:
        """Starts, waits until the files are read and acknowledged, stops, gives the file output's events."""
        self.start()
        try:
            self.wait_until_read(files, timeout)
        finally:
            self.stop()
        return self.events()

    def wait_until_read(self, files: Iterable[Path], timeout: float = 60) -> None:
        """Waits until the registry holds the end of each file's last complete line.

        The registry moves on only when the output has acknowledged. Where Filebeat ends meanwhile,
        `RuntimeError` has the end of its log; `TimeoutError` names the files that are not through.
        """
        waiting = [file.resolve() for file in files]

        def through() -> bool:
            if not self.running:
                raise RuntimeError(f"Filebeat ended:\n{self.log_tail()}")
            states = self.registry()
            waiting[:] = [file for file in waiting if not _is_read(file, states)]
            return not waiting

        try:
            wait_until(through, timeout, "reading")
        except TimeoutError as error:
            names = ", ".join(map(str, waiting[:5]))
            raise TimeoutError(
                f"{len(waiting)} files not read within {timeout:g} s: {names}\n{self.log_tail()}"
            ) from error

    def events(self) -> list[dict[str, Any]]:
        """Events of the file output, by all runs in this folder, oldest file first.

        What a kill cut off in mid-line was never acknowledged: such a last line is left out.
        """
        found = []
        for file in sorted(self.output.glob("events*"), key=lambda path: path.stat().st_mtime_ns):
            complete, _, _ = file.read_bytes().rpartition(b"\n")
            found += [orjson.loads(line) for line in complete.splitlines()]
        return found

    def registry(self) -> dict[str, dict[str, Any]]:
        """The filestream states by key: `{"cursor": {"offset": bytes}, "meta": {"source": path}, …}`."""
        folder = self.directory / "data" / "registry" / "filebeat"
        states: dict[str, dict[str, Any]] = {}
        covered = 0
        if (folder / "active.dat").exists():
            # A checkpoint is named by the last operation that it covers: the log may still hold older ones.
            checkpoint = folder / Path((folder / "active.dat").read_text().strip()).name
            covered = int(checkpoint.stem)
            try:
                states = {entry.pop("_key"): entry for entry in orjson.loads(checkpoint.read_bytes())}
            except FileNotFoundError:
                return self.registry()  # a newer one has just taken its place
        if not (folder / "log.json").exists():
            return states
        # Pairs of lines: the operation, then its key and value. A kill may cut the last one.
        lines = (folder / "log.json").read_bytes().split(b"\n")[:-1]
        for operation, entry in zip(
            map(orjson.loads, lines[::2]), map(orjson.loads, lines[1::2]), strict=False
        ):
            if operation["id"] <= covered:
                continue
            if operation["op"] == "remove":
                states.pop(entry["k"], None)
            else:
                states[entry["k"]] = entry["v"]
        return states

    def log_tail(self, lines: int = 30) -> str:
        """End of Filebeat's own log."""
        return (
            "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""
        )

    def _command(self, *arguments: str) -> list[str]:
        paths = ["--path.home", str(self.directory), "--path.data", str(self.directory / "data")]
        paths += ["--path.config", str(self.config.parent), "-c", str(self.config)]
        settings = [f"-E={name}={json.dumps(value)}" for name, value in self._settings.items()]
        return [str(self._binary), *arguments, *paths, *settings]


def _is_read(file: Path, states: Mapping[str, dict[str, Any]]) -> bool:
    complete = _complete_length(file)
    inode = file.stat().st_ino
    for key, state in states.items():
        if (state.get("meta") or {}).get("source") != str(file):
            continue
        # A key is filestream::INPUT::IDENTITY::VALUE. By native identity an earlier file of the same path
        # has a state too.
        *_, identity, value = key.split("::")
        if identity == "native" and not value.startswith(f"{inode}-"):
            continue
        if (state.get("cursor") or {}).get("offset") == complete:
            return True
    return complete == 0


def _complete_length(file: Path) -> int:
    """Bytes up to and with the last newline, looked for from the end."""
    block = 1 << 16
    with file.open("rb") as stream:
        position = stream.seek(0, os.SEEK_END)
        while position > 0:
            start = max(0, position - block)
            stream.seek(start)
            found = stream.read(position - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            position = start
    return 0
