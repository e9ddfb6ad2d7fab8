"""Pytest fixtures of the real servers; see README.md.

Where an engine can't be had the test is skipped with the reason; under `CI=true` it fails instead.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest

from . import filebeat as filebeat_engine
from . import lumberjack as lumberjack_engine
from .cache import EngineUnavailableError
from .elasticsearch import ElasticsearchServer
from .filebeat import Filebeat
from .kafka import KafkaBroker
from .lumberjack import Receiver

T = TypeVar("T")


def or_skip(make: Callable[[], T]) -> T:
    """What `make` gives; an unavailable engine skips the test, and fails it under `CI=true`."""
    try:
        return make()
    except EngineUnavailableError as error:
        reason = str(error)
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must run this test: {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Brings a shared server back that the test has left paused, stopped or killed."""
    for value in getattr(item, "funcargs", {}).values():
        if isinstance(value, ElasticsearchServer):
            value.resume()
            if not value.running:
                value.start()


@pytest.fixture(scope="session")
def elasticsearch() -> Iterator[ElasticsearchServer]:
    """The shared server, without security."""
    server = or_skip(ElasticsearchServer)
    yield server
    server.close()


@pytest.fixture(scope="session")
def secure_elasticsearch() -> Iterator[ElasticsearchServer]:
    """The shared server with users, roles, API keys and TLS."""
    server = or_skip(lambda: ElasticsearchServer(security=True))
    yield server
    server.close()


@pytest.fixture
def namespace() -> str:
    """A data stream namespace (or part of an index or pipeline name) that no other test uses."""
    return f"t{uuid.uuid4().hex[:12]}"


@pytest.fixture
def filebeat(tmp_path: Path) -> Iterator[Callable[..., Filebeat]]:
    """Makes Filebeats: `filebeat(config, name="filebeat", settings=None, env=None)`; all end with the test.

    `name` is the folder under `tmp_path`. Without settings its events go to files, for `Filebeat.events()`.
    """
    or_skip(filebeat_engine.build)
    made: list[Filebeat] = []

    def make(
        config: Path | Mapping[str, Any],
        *,
        name: str = "filebeat",
        settings: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Filebeat:
        directory = tmp_path / name
        if settings is None:
            settings = filebeat_engine.file_output(directory / "output")
        instance = Filebeat(directory, config, settings=settings, env=env)
        made.append(instance)
        return instance

    yield make
    for instance in made:
        instance.kill()


@pytest.fixture
def lumberjack(tmp_path: Path) -> Iterator[Callable[..., Receiver]]:
    """Makes receivers: `lumberjack(name="lumberjack", tls=False)`, not started; all are killed at the end."""
    or_skip(lumberjack_engine.build)
    made: list[Receiver] = []

    def make(*, name: str = "lumberjack", tls: bool = False) -> Receiver:
        instance = Receiver(tmp_path / name, tls=tls)
        made.append(instance)
        return instance

    yield make
    for instance in made:
        instance.kill()


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaBroker]:
    """A broker over TLS that runs; it ends with the test."""
    broker = or_skip(lambda: KafkaBroker(tmp_path / "kafka"))
    broker.start()
    yield broker
    broker.kill()
