"""The built content."""

from __future__ import annotations

from typing import Any

import pytest

from ascend_elk.stack.objects import build_objects
from ascend_elk.stack.source import Source, load_source
from ascend_elk.stack.targets import TARGETS

CODE_PAGE = "https://codes.example:8443/ascend"


@pytest.fixture(scope="session")
def source() -> Source:
    return load_source()


@pytest.fixture(scope="session", params=list(TARGETS))
def target(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def objects(source: Source, target: str) -> list[dict[str, Any]]:
    return build_objects(source, TARGETS[target], code_page=CODE_PAGE)
