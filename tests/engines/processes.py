"""Processes of the engines: ports that stay free, and groups that end as a whole."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

# Below the range from which Linux takes ports for outgoing connections, so that no client grabs the port
# of a server while that one restarts.
_PORTS = range(20_000, 30_000)


def free_port() -> int:
    """A TCP port on the loopback address that nobody listens on."""
    for _ in range(100):
        port = random.SystemRandom().choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port found in 100 tries")


def dies_with_us() -> list[str]:
    """Command prefix by which a child gets SIGTERM when this process is killed.

    The kernel ties it to the thread that starts the child, so only the main thread may use it.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None or threading.current_thread() is not threading.main_thread():
        return []
    return [setpriv, "--pdeathsig", "TERM"]


def wait_until(condition: Callable[[], bool], timeout: float, what: str, pause: float = 0.1) -> None:
    """Polls until the condition holds; `TimeoutError` naming `what` after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout:g} s")
        time.sleep(pause)


def members(group: int) -> list[int]:
    """Ids of the living processes of a process group (zombies are not alive)."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The name, in brackets, may hold blanks: what follows it doesn't.
            state, _, pgrp = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(pgrp) == group and state != "Z":
            found.append(int(entry.name))
    return found


class Group:
    """A process started as the leader of its own group.

    Args:
        command: program and arguments.
        cwd: its working folder.
        env: its environment.
        log: file that its output is appended to.
    """

    def __init__(self, command: list[str], *, cwd: Path, env: dict[str, str], log: Path) -> None:
        with log.open("ab") as output:
            self._leader = subprocess.Popen(
                command,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Process id of the leader, which is the id of the group too."""
        return self._leader.pid

    @property
    def returncode(self) -> int | None:
        """Exit code of the leader, None while it runs, negative when a signal ended it."""
        return self._leader.poll()

    @property
    def running(self) -> bool:
        """Whether the leader runs."""
        return self.returncode is None

    def wait(self, timeout: float) -> int:
        """Waits for the leader's end and gives its exit code."""
        return self._leader.wait(timeout)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to every process of the group."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return

    def terminate(self, timeout: float) -> int:
        """Asks the leader to end (SIGTERM), kills what is left after `timeout` seconds; gives the code."""
        if self.running:
            self._leader.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._leader.wait(timeout)
        return self.kill()

    def kill(self) -> int:
        """Kills the whole group (SIGKILL), waits until it is gone and gives the leader's exit code."""
        self.signal(signal.SIGKILL)
        code = self._leader.wait(30)
        wait_until(lambda: not members(self.pid), 30, f"end of process group {self.pid}", pause=0.02)
        return code
