"""What the service is told."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ascend_elk.errors import UserError

_EXAMPLE = "127.0.0.1:9620"
_MAX_BATCH = 10_000


@dataclass(frozen=True)
class Settings:
    """Settings of one service.

    Attributes:
        elasticsearch: URL.
        api_key: ``id:key`` or its base64 form; ``None`` where security is off.
        ca: PEM file of the authority that signed Elasticsearch's certificate.
        namespace: of the data streams; ``*`` for all.
        batch: events read and written at a time.
        poll: seconds between looks for new events.
        sweep: seconds between looks at everything, which find what came late.
        writers: bulk requests under way at once.
        incidents: write verdicts.
        listen: ``address:port`` of the HTTP interface; ``None`` for none.
        token: that callers of the HTTP interface must send; required where it is not loopback.
        max_body: bytes that a request to it may have.
        codes: the user's own catalogue files.
    """

    elasticsearch: str
    api_key: str | None = field(default=None, repr=False)
    ca: Path | None = None
    namespace: str = "*"
    batch: int = 1_000
    poll: float = 1.0
    sweep: float = 60.0
    writers: int = 2
    incidents: bool = True
    listen: tuple[str, int] | None = None
    token: str | None = field(default=None, repr=False)
    max_body: int = 8 << 20
    codes: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            UserError: says what to change.
        """
        if not 1 <= self.batch <= _MAX_BATCH:
            raise UserError(f"a batch of {self.batch} events is not possible; write 1 to {_MAX_BATCH}")
        if not 1 <= self.writers <= 16:  # more only queue in Elasticsearch
            raise UserError(f"{self.writers} writers are not possible; write 1 to 16")
        if self.poll <= 0 or self.sweep <= 0:
            raise UserError("--poll and --sweep are seconds above 0")
        if (
            not self.namespace
            or any(sign in self.namespace for sign in ' ,/\\?"<>|#:-')
            or ("*" in self.namespace and self.namespace != "*")
        ):
            raise UserError(
                f"{self.namespace!r} is no namespace of data streams; write for example default, or *"
            )
        if self.listen is not None and self.token is None and not is_loopback(self.listen[0]):
            raise UserError(
                f"--listen {self.listen[0]} is reachable from other machines; "
                "set a token in ASCEND_ELK_TOKEN, or listen on 127.0.0.1"
            )


def read_listen(text: str) -> tuple[str, int]:
    """Read ``address:port``; the address may be an IPv6 one in brackets.

    Raises:
        UserError: it is none.
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 0xFFFF:
        raise UserError(f"{text!r} is no address to listen on; write for example {_EXAMPLE}")
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def secret(environment: Mapping[str, str], name: str) -> str | None:
    """A secret out of the environment; ``None`` where it is not set, or empty."""
    return environment.get(name) or None
