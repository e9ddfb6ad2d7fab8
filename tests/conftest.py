"""Fixtures that all tests may take."""

pytest_plugins = ["tests.engines.fixtures"]
