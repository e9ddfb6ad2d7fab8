from __future__ import annotations

import io
import json
import re

import pytest
from rich.console import Console

from ascend_elk.diagnose.model import Card, Episode, Evidence, Lane, Mark, Suspect, Timeline, Verdict
from ascend_elk.report import page, show

HOSTILE = "[ERROR] GE(1,a):… </script><img src=x onerror=alert(1)> \x1b[2J"


def verdict(kind: str = "first-failure", cards: int = 8) -> Verdict:
    lanes = tuple(
        Lane(
            Card("worker-0", rank, rank, 100 + rank),
            0.0,
            60.0,
            (Mark("timeout", 5.0, 50.0, 3, HOSTILE, "EI0002", "a.log", 7),),
            suspect=rank == 3,
        )
        for rank in range(cards)
    )
    at_fault = lanes[3].card
    return Verdict(
        kind,  # type: ignore[arg-type]
        cards=(at_fault,),
        confidence=0.93,
        sentence="worker-0 device 3 failed first.",
        sentence_zh="worker-0 的 3 号卡最先出错。",
        rule="own-error",
        chain=(lanes[0].card, at_fault),
        suspects=(Suspect(at_fault, 0.9, "own-error", "its own error came first"),),
        evidence=(Evidence("a.log", 7, HOSTILE, "2026-01-01T10:00:00Z", "its own error", at_fault),),
        episodes=(Episode("timeout", HOSTILE, 24, 8, "2026-01-01T10:00:05Z", "2026-01-01T10:00:50Z"),),
        missing=("Collect the run logs of worker-1.",),
        remediation="Check the operator.",
        remediation_zh="检查算子。",
        timeline=Timeline("2026-01-01T10:00:00.000000Z", "2026-01-01T10:01:00Z", 60.0, lanes, ((0, 3),)),
    )


def test_page_is_self_contained_and_holds_every_lane() -> None:
    text = page(verdict(cards=64), "logs of <today>")
    assert not re.search(r'(?:src|href)="(?!data:)', text)
    (embedded,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    data = json.loads(embedded)
    assert len(data["lanes"]) == 64
    assert data["lanes"][3]["suspect"]
    assert data["lanes"][0]["marks"][0][5] == HOSTILE
    assert "logs of &lt;today&gt;" in text


def test_a_hostile_line_stays_text() -> None:
    text = page(verdict(), "x")
    assert "<img src=x" not in text
    assert text.count("</script>") == 2


@pytest.mark.parametrize("kind", ["first-failure", "straggler", "link", "undetermined", "healthy"])
def test_terminal_says_the_verdict_first_and_stays_plain_in_a_pipe(kind: str) -> None:
    out = io.StringIO()
    show(verdict(kind), Console(file=out, width=120, highlight=False))
    text = out.getvalue()
    assert text.startswith("worker-0 device 3 failed first.")
    assert f"[{kind}, confidence 93%]" in text
    assert "\x1b" not in text
    assert "a.log:7" in text
    assert "Collect the run logs of worker-1." in text


def test_terminal_speaks_chinese() -> None:
    out = io.StringIO()
    show(verdict(), Console(file=out, width=120, highlight=False), lang="zh")
    assert out.getvalue().startswith("worker-0 的 3 号卡最先出错。")
    assert "检查算子。" in out.getvalue()
