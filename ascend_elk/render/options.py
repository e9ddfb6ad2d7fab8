"""What a person can choose of the rendered configuration."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from ascend_elk.cann import Version
from ascend_elk.errors import UserError
from ascend_elk.formats.fields import load_fields

STACKS = ("7.17", "8", "9")
PARSERS = ("logstash", "ingest")
AUTHENTICATIONS = ("api-key", "basic", "none")
IDENTITIES = ("native", "fingerprint")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_NAMESPACE = re.compile(r"[a-z0-9_.]{1,100}")
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9.\-]{1,255}):([0-9]{1,5})")
_RETENTION = re.compile(r"[1-9][0-9]{0,4}[dh]")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_MODULE = re.compile(r"[A-Za-z0-9_]{1,32}")
_LABEL = re.compile(r"[a-z][a-z0-9_]{0,63}")
# A character class of a glob that does not end
_OPEN_CLASS = re.compile(r"\[[^\]]*$")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class RenderOptions:
    """Choices, checked.

    Attributes:
        cann: CANN versions on the hosts, empty for all.
        stack: major line of the Elastic stack: 7.17, 8 or 9.
        parser: who parses: ``logstash``, or ``ingest`` (Elasticsearch itself, Filebeat sends straight to it).
        elasticsearch: URLs of the cluster.
        logstash: ``host:port`` of the Logstash nodes that Filebeat sends to.
        kafka: ``host:port`` of brokers between Filebeat and Logstash; empty: none.
        topic: Kafka's topic.
        namespace: of the data streams.
        retention: how long data is kept, in days (``30d``) or hours.
        timezone: zone of the hosts' clocks; ``None``: each host's own, as its Filebeat knows it.
        device_timezone: zone of the devices' clocks; ``None``: the hosts'.
        roots: further directories that hold ``debug/`` and ``run/`` of processes: mounts of containers,
            values of ``ASCEND_PROCESS_LOG_PATH``. Globs are allowed.
        homes: further home directories whose ``ascend/log`` and so on are read. Globs are allowed.
        consoles: files with what frameworks print. Globs are allowed.
        cluster: name of the cluster.
        job: id of the job.
        labels: further fields, name and value, under ``labels``.
        original: keep ``event.original``, the line as read.
        muted: modules whose lines are not shipped.
        level: least level that is shipped; levels outside of the order (EVENT …) always are.
        identity: how Filebeat tells files apart; ``fingerprint`` for network shares.
        authentication: towards Elasticsearch.
        tls: encrypt between Filebeat, Kafka, Logstash and Elasticsearch.

    Raises:
        UserError: a choice makes no sense.
    """

    cann: tuple[Version, ...] = ()
    stack: str = "8"
    parser: str = "logstash"
    elasticsearch: tuple[str, ...] = ("https://localhost:9200",)
    logstash: tuple[str, ...] = ()
    kafka: tuple[str, ...] = ()
    topic: str = "ascend-logs"
    namespace: str = "default"
    retention: str = "30d"
    timezone: str | None = None
    device_timezone: str | None = None
    roots: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    consoles: tuple[str, ...] = ()
    cluster: str | None = None
    job: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    original: bool = True
    muted: tuple[str, ...] = ()
    level: str | None = None
    identity: str = "native"
    authentication: str | None = None
    tls: bool = True

    def __post_init__(self) -> None:
        """Check the choices."""
        _one_of(self.stack, STACKS, "stack version")
        _one_of(self.parser, PARSERS, "parser")
        _one_of(self.identity, IDENTITIES, "file identity")
        if self.level is not None:
            _one_of(self.level, LEVELS, "level")
        for url in self.elasticsearch:
            self._check_url(url)
        for host in (*self.logstash, *self.kafka):
            port = _HOST.fullmatch(host)
            if port is None or not 0 < int(port[1]) < 65536:
                raise UserError(f"{host!r} is no host; write host:port, for example logstash.example:5044")
        self._check_contradictions()
        for text, pattern, what in (
            (self.namespace, _NAMESPACE, "namespace; use lower-case letters, digits, '_' and '.', no '-'"),
            (self.retention, _RETENTION, "retention; write days such as 30d, or hours such as 12h"),
            (self.topic, _TOPIC, "Kafka topic; use letters, digits, '.', '_' and '-'"),
            *((name, _MODULE, "module; write for example SLOG") for name in self.muted),
            *(
                (name, _LABEL, "name of a label; use lower-case letters, digits and '_'")
                for name, _ in self.labels
            ),
        ):
            if not pattern.fullmatch(text):
                raise UserError(f"{text!r} is no {what}")
        for path in (*self.roots, *self.homes, *self.consoles):
            if not path.startswith("/"):
                raise UserError(f"{path!r} is no absolute path; begin it with /")
            if _OPEN_CLASS.search(path):
                raise UserError(f"{path!r} has a [ that nothing closes; close it, or write ? for it")
        for path in (*self.roots, *self.homes, *self.consoles, *(value for _, value in self.labels)):
            _check_text(path)
        for value in (self.cluster, self.job):
            if value is not None:
                _check_text(value)
        for zone in (self.timezone, self.device_timezone):
            if zone is not None and zone.lower() == "local":
                raise UserError("leave --timezone out: each host then tells its own zone")

    def _check_url(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            port_is_right = parts.port is None or parts.port > 0
        except ValueError:
            port_is_right = False
            parts = urlsplit("")
        if not port_is_right or parts.scheme not in ("http", "https") or not parts.hostname:
            raise UserError(f"{url!r} is no URL of Elasticsearch; write for example https://es.example:9200")
        if parts.username or parts.password:
            raise UserError("leave user and password out of the URL; they come from the keystore")
        if parts.query or parts.fragment:
            raise UserError(f"{url!r} has more than a path; write for example https://es.example:9200")
        if self.tls and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            raise UserError(f"{url} is not encrypted; write https://, or --no-tls if that is meant")

    def _check_contradictions(self) -> None:
        if len({urlsplit(url).scheme for url in self.elasticsearch}) > 1:
            raise UserError("write all URLs of Elasticsearch with https://, or all with http://")
        if len({host.rpartition(":")[2] for host in self.logstash}) > 1:
            raise UserError("give all Logstash nodes the same port: they get one configuration")
        if self.parser == "ingest" and self.logstash:
            raise UserError("--logstash contradicts --parser ingest: leave one of them out")
        if self.parser == "ingest" and self.kafka:
            raise UserError("--kafka needs Logstash behind it: leave --parser ingest out")
        if self.kafka and self.logstash:
            raise UserError("--logstash contradicts --kafka: Filebeat sends to Kafka, Logstash reads from it")
        _one_of(self.auth, AUTHENTICATIONS, "authentication")
        if self.auth == "api-key" and not self.encrypted:
            raise UserError("an API key is sent encrypted only: write https://, or --auth basic or none")

    @property
    def auth(self) -> str:
        """Authentication: an API key, where nothing else is said and the way is encrypted."""
        if self.authentication is not None:
            return self.authentication
        return "api-key" if self.encrypted else "none"

    @property
    def logstash_hosts(self) -> tuple[str, ...]:
        """Where Filebeat finds Logstash."""
        return self.logstash or ("localhost:5044",)

    @property
    def logstash_port(self) -> int:
        """The port that Logstash listens on."""
        return int(self.logstash_hosts[0].rpartition(":")[2])

    @property
    def encrypted(self) -> bool:
        """Whether Elasticsearch is spoken to over TLS."""
        return all(url.startswith("https:") for url in self.elasticsearch)

    @property
    def versions(self) -> str:
        """CANN versions for people."""
        return ", ".join(map(str, self.cann)) or "all versions"

    @property
    def fields(self) -> dict[str, str]:
        """Fields that every event gets."""
        found = {"orchestrator.cluster.name": self.cluster, "ascend.job.id": self.job}
        if len(self.cann) == 1:
            found["ascend.cann.version"] = str(self.cann[0])
        known = {item.name for item in load_fields()}
        assert known >= set(found)  # noqa: S101 - names of this module
        result = {name: value for name, value in found.items() if value is not None}
        return result | {f"labels.{name}": value for name, value in self.labels}


def _one_of(text: str, allowed: tuple[str, ...], what: str) -> None:
    if text not in allowed:
        raise UserError(f"{text!r} is no {what}; write one of: {', '.join(allowed)}")


def _check_text(text: str) -> None:
    """Values reach configuration files: what would be read as a reference or a line end is refused."""
    if not text or any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise UserError(f"{text!r} is empty or holds control characters; write plain text")
    if "${" in text or "%{" in text or "'" in text or '"' in text:
        raise UserError(
            f"{text!r} holds quotes, ${{ or %{{, which configuration files take for something else"
        )
