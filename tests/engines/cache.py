"""Where engines are kept once downloaded or built, and how several processes share that place."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

TRIES = 3
PAUSE_SECONDS = 10


class EngineUnavailableError(Exception):
    """An engine can't be had on this machine; the message says what is missing."""


def cache_dir() -> Path:
    """The folder of all engines: `ASCEND_ELK_CACHE`, else `~/.cache/ascend-elk`."""
    configured = os.environ.get("ASCEND_ELK_CACHE")
    path = Path(configured) if configured else Path.home() / ".cache" / "ascend-elk"
    path.mkdir(parents=True, exist_ok=True)
    return path


def require(tool: str, purpose: str) -> str:
    """Path of a program, or `EngineUnavailableError`."""
    found = shutil.which(tool)
    if found is None:
        raise EngineUnavailableError(f"{tool} is not installed, it is needed to {purpose}")
    return found


def content_hash(*files: Path) -> str:
    """Short hash of files' contents, so that a changed recipe makes a new entry in the cache."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def make_once(target: Path, make: Callable[[Path], None]) -> Path:
    """Makes `target` unless it is there already.

    Only one process makes it while others wait; it appears by a rename, so never half done.

    Args:
        target: file or folder inside the cache.
        make: gets an empty folder and leaves there a file or folder named like `target`.
    """
    if target.exists():
        return target
    with _locked(target.with_name(target.name + ".lock")):
        if target.exists():
            return target
        with tempfile.TemporaryDirectory(prefix=f"{target.name}.", dir=target.parent) as scratch:
            make(Path(scratch))
            (Path(scratch) / target.name).rename(target)
    return target


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def run_with_retries(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None = None, what: str
) -> None:
    """Runs a command that downloads, up to three times; then `EngineUnavailableError` with its last lines."""
    for attempt in range(1, TRIES + 1):
        result = subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        if result.returncode == 0:
            return
        if attempt < TRIES:
            print(f"{what} failed (try {attempt} of {TRIES}), trying again in {PAUSE_SECONDS} s", flush=True)
            time.sleep(PAUSE_SECONDS)
    tail = "\n".join(result.stdout.strip().splitlines()[-15:])
    raise EngineUnavailableError(f"{what} failed {TRIES} times; its last lines:\n{tail}")


def go_build(module: Path, name: str) -> Path:
    """Builds a folder's Go module into the cache.

    Args:
        module: folder with go.mod, go.sum and main.go.
        name: name of the binary.
    """
    digest = content_hash(*sorted(module.glob("go.*")), *sorted(module.glob("*.go")))

    def build(scratch: Path) -> None:
        go = require("go", f"build {name}")
        output = scratch / f"{name}-{digest}"
        # Compiling takes minutes of all cores: what else runs here goes first.
        nice = [found, "-n", "10"] if (found := shutil.which("nice")) else []
        run_with_retries(
            [*nice, go, "build", "-trimpath", "-ldflags=-s -w", "-o", str(output), "."],
            cwd=module,
            env={"GOFLAGS": "-mod=readonly -buildvcs=false"},
            what=f"building {name}",
        )

    return make_once(cache_dir() / f"{name}-{digest}", build)
