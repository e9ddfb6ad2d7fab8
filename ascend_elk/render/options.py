"""What a person can choose of the rendered configuration."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from ascend_elk.cann import Version
from ascend_elk.errors import UserError

STACKS = ("7.17", "8", "9")
_NAME = re.compile(r"[a-z0-9_.]{1,100}")


@dataclass(frozen=True)
class RenderOptions:
    """Choices, checked.

    Attributes:
        cann: CANN version, ``None`` for all.
        stack: major line of the Elastic stack: 7.17, 8 or 9.
        elasticsearch: URLs of the cluster.
        logstash: ``host:port`` of the Logstash nodes that Filebeat sends to.
        namespace: of the data streams.
        timezone: zone of the hosts' clocks; ``None``: each host's own, as its Filebeat knows it.
        roots: further directories that hold ``debug/`` and ``run/`` of processes.
        tls: encrypt between Filebeat, Logstash and Elasticsearch.

    Raises:
        UserError: a choice makes no sense.
    """

    cann: Version | None = None
    stack: str = "8"
    elasticsearch: tuple[str, ...] = ("https://localhost:9200",)
    logstash: tuple[str, ...] = ("localhost:5044",)
    namespace: str = "default"
    timezone: str | None = None
    roots: tuple[str, ...] = ()
    tls: bool = True

    def __post_init__(self) -> None:
        """Check the choices."""
        if self.stack not in STACKS:
            raise UserError(f"{self.stack!r} is no stack version; write {', '.join(STACKS)}")
        for url in self.elasticsearch:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise UserError(
                    f"{url!r} is no URL of Elasticsearch; write for example https://es.example:9200"
                )
            if parts.username or parts.password:
                raise UserError("leave user and password out of the URL; they come from the keystore")
            if (
                self.tls
                and parts.scheme == "http"
                and parts.hostname not in ("localhost", "127.0.0.1", "::1")
            ):
                raise UserError(f"{url} is not encrypted; write https://, or --no-tls if that is meant")
        for host in self.logstash:
            if not re.fullmatch(r"[A-Za-z0-9.\-\[\]:]{1,255}:[0-9]{1,5}", host):
                raise UserError(
                    f"{host!r} is no Logstash host; write host:port, for example logstash.example:5044"
                )
        if not _NAME.fullmatch(self.namespace):
            raise UserError(
                f"{self.namespace!r} is no namespace; use lower-case letters, digits, '_' and '.', no '-'"
            )
        for root in self.roots:
            if not root.startswith("/"):
                raise UserError(f"{root!r} is no absolute path; write where debug/ and run/ lie")
