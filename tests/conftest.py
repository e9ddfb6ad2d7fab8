"""Fixtures that all tests may take, and the marker of those that need a real server."""

import pytest

pytest_plugins = ["tests.engines.fixtures"]

ENGINES = {"elasticsearch", "secure_elasticsearch", "filebeat", "lumberjack", "kafka"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if ENGINES & set(getattr(item, "fixturenames", ())) or "tests/engines/" in item.nodeid:
            item.add_marker(pytest.mark.engines)
