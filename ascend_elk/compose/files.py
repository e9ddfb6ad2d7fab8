"""The files that ``docker-compose.yml`` mounts, and ``.env``."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ascend_elk.cann import Version
from ascend_elk.compose.certificates import KeyPair, issue, make_authority
from ascend_elk.errors import UserError
from ascend_elk.render import RenderOptions, render
from ascend_elk.render.tree import MARKER

ENVIRONMENT = ".env"
DIRECTORY = "ascend-elk-stack"
# The stack whose images docker-compose.yml names
STACK = "9"
# The user of Elastic's images; taken where root runs init, since Elasticsearch refuses to run as root.
_IMAGE_USER = 1000
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SECRET_BYTES = 24
# Part → where its certificate goes
_CERTIFICATES: Mapping[str, str] = {
    "elasticsearch": "certs/elasticsearch",
    "kibana": "certs/kibana",
    "logstash": "logstash/certs",
    "filebeat": "filebeat/certs",
    "enrich": "certs/enrich",
}
_AUTHORITY = "certs/authority"
_CLIENTS = "certs/clients"
# Where docker-compose.yml mounts a host of the sample cluster
_SAMPLE_CONSOLES = "/home/job/console/*.log"
_LOGSTASH_YML = "# Written by ascend-elk stack init.\napi.http.host: 127.0.0.1\n"


@dataclass(frozen=True)
class InitOptions:
    """What a person chooses.

    Attributes:
        cann: CANN versions on the hosts, empty for all.
        bind: address that ports are published on.
        names: further names and addresses under which the stack is reached.
        log_root: this machine's log root, for the profile ``filebeat``.
        sample: also start what writes and ships a sample cluster's logs.
        retention: how long logs are kept.
    """

    cann: tuple[Version, ...] = ()
    bind: str = "127.0.0.1"
    names: Sequence[str] = ()
    log_root: str = "/root/ascend/log"
    sample: bool = True
    retention: str = "30d"


def initialise(where: Path, options: InitOptions, *, force: bool = False) -> None:
    """Write secrets, certificates and rendered configuration beside ``docker-compose.yml``.

    Args:
        where: the directory of ``docker-compose.yml``.
        options: choices.
        force: replace what is there; a stack that has started with the old secrets no longer opens.

    Raises:
        UserError: something is there already, or cannot be written.
    """
    environment, directory = where / ENVIRONMENT, where / DIRECTORY
    present = [path for path in (environment, directory) if path.exists()]
    if present and not force:
        raise UserError(
            f"{present[0]} exists already, and a stack may run with it; ascend-elk stack renew renews "
            "certificates and configuration, --force replaces everything, passwords too"
        )
    files = _configuration(options)
    authority = make_authority()
    with _writing(where):
        # Once it has begun to replace, nothing old may stay beside the new.
        shutil.rmtree(directory, ignore_errors=True)
        environment.unlink(missing_ok=True)
        _write_tree(directory, files)
        _write(directory / _AUTHORITY / "ca.crt", authority.certificate)
        _write(directory / _AUTHORITY / "ca.key", authority.key)
        _issue_all(directory, authority, options.names, options.bind)
        _write(environment, environment_text(options), mounted=False)


def renew(where: Path, options: InitOptions) -> None:
    """Render again, and issue new certificates by the authority that is there; passwords stay.

    Raises:
        UserError: there is no stack, or it cannot be written.
    """
    directory = where / DIRECTORY
    try:
        authority = KeyPair(
            (directory / _AUTHORITY / "ca.crt").read_text(), (directory / _AUTHORITY / "ca.key").read_text()
        )
    except OSError as error:
        raise UserError(
            f"{directory / _AUTHORITY} cannot be read ({error.strerror}); run ascend-elk stack init first"
        ) from None
    files = _configuration(options)
    with _writing(where):
        for name in ("logstash", "filebeat", "elasticsearch"):
            shutil.rmtree(directory / name, ignore_errors=True)
        _write_tree(directory, files)
        _issue_all(directory, authority, options.names, options.bind)


def environment_text(options: InitOptions) -> str:
    """The text of ``.env``, with new secrets."""
    values = {
        "COMPOSE_PROFILES": "sample" if options.sample else "",
        "ASCEND_ELK_UID": str(os.getuid() or _IMAGE_USER),
        "ASCEND_ELK_BIND": options.bind,
        "ASCEND_ELK_RETENTION": options.retention,
        "ASCEND_ELK_LOG_ROOT": options.log_root,
        "ELASTIC_PASSWORD": _secret(),
        "KIBANA_SYSTEM_PASSWORD": _secret(),
        "KIBANA_SECURITY_KEY": _secret(),
        "KIBANA_OBJECTS_KEY": _secret(),
        "KIBANA_REPORTING_KEY": _secret(),
        "ASCEND_ELK_TOKEN": _secret(),
    }
    head = "# Written by ascend-elk stack init. Holds passwords: keep it to yourself, and back it up.\n"
    return head + "".join(f"{name}={value}\n" for name, value in values.items())


def _secret() -> str:
    # 32 characters, which Kibana's keys need at least, none of which a shell or compose would expand.
    return secrets.token_urlsafe(_SECRET_BYTES)


def _configuration(options: InitOptions) -> dict[str, str]:
    rendered = render(
        RenderOptions(
            cann=options.cann,
            stack=STACK,
            elasticsearch=("https://elasticsearch:9200",),
            logstash=("logstash:5044",),
            consoles=(_SAMPLE_CONSOLES,) if options.sample else (),
            retention=options.retention,
        )
    )
    rendered.pop(MARKER)
    return {**rendered, "logstash.yml": _LOGSTASH_YML}


def _issue_all(directory: Path, authority: KeyPair, names: Sequence[str], bind: str) -> None:
    outside = [*_LOOPBACK, *names, *([bind] if bind not in ("0.0.0.0", "::") else [])]  # noqa: S104 - compared
    for part, place in _CERTIFICATES.items():
        pair = issue(authority, part, [part, *(() if part == "filebeat" else outside)])
        _write(directory / place / "ca.crt", authority.certificate)
        _write(directory / place / f"{part}.crt", pair.certificate)
        _write(directory / place / f"{part}.key", pair.key)
    _write(directory / _CLIENTS / "ca.crt", authority.certificate)


def _write_tree(directory: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        _write(directory / name, text)


def _write(path: Path, text: str, *, mounted: bool = True) -> None:
    """Write a file that only its owner can read: the user of the containers, where it is mounted."""
    missing = [parent for parent in path.parents if not parent.exists()]
    for parent in reversed(missing):
        parent.mkdir(mode=0o700)
        _own(parent)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text)
    if mounted:
        _own(path)


def _own(path: Path) -> None:
    if os.getuid() == 0:
        os.chown(path, _IMAGE_USER, 0)


@contextlib.contextmanager
def _writing(where: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{where} cannot be written ({error.strerror}); name another directory") from error
