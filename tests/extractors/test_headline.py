"""The parser's order of codes is that of the catalogue, which knows more of each code."""

from __future__ import annotations

import io
from datetime import datetime, timezone
from pathlib import Path

import pytest

from ascend_elk.codes import Catalogue
from ascend_elk.formats import compile_program, load_definitions
from ascend_elk.parse import Parser

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
DEFINITIONS = load_definitions()
PARSER = Parser(compile_program(DEFINITIONS))
READ_AT = datetime(2026, 11, 30, tzinfo=timezone.utc)
HEADER = "[ERROR] RUNTIME(7,a):2025-03-02-11:20:31.120.004 [a.cc:1]7 Run:"
MESSAGES = [
    "call failed, detail:EZ9999: Inner Error! EI0002: wait, error code is 507048",
    "EE8888: Inner Error! error code is 507011, retCode=0x7150026",
    "ERR00100 PTA call acl api failed, error code is 507018",
    "event_id=0x80e01801; assertion=1[raised] EI0006: sockets",
    "errNo[0x0000000005000009] ret(128203), EI0006: sockets",
    "ErrCode=207001, desc=[driver error:out of memory], InnerCode=0x7020010, drvRetCode=6,",
]


def assert_same_headline(text: str, source: str = "plog") -> int:
    catalogue = Catalogue.load()
    several = 0
    for event in PARSER.events(io.BytesIO(text.encode()), source, {"log.file.path": "x"}, READ_AT):
        codes = event.fields.get("ascend.error.codes", [])
        if len(codes) > 1:
            several += 1
            chosen = catalogue.headline(codes)
            assert chosen is not None
            assert event.fields["error.code"] == chosen.partition(":")[2], codes
    return several


@pytest.mark.parametrize("message", MESSAGES)
def test_made_up_blocks(message: str) -> None:
    assert assert_same_headline(f"{HEADER}{message}\n") == 1


def test_real_blocks() -> None:
    if not CORPUS.is_dir():
        pytest.skip(f"real logs are not at hand: {CORPUS}")
    several = sum(
        assert_same_headline(path.read_text("utf-8", "replace"), "console") for path in CORPUS.glob("*.log")
    )
    assert several > 40
