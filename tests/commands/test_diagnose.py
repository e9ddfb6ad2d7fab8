"""From logs to a verdict, as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ascend_elk.cann import Version
from ascend_elk.simulate import simulate

SCENARIOS = [
    "aicore-exception",
    "notify-timeout-silent",
    "hbm-ecc",
    "device-lost",
    "socket-timeout-silent",
    "wait-chain",
    "port-taken",
    "slow-card-20",
]


def write(directory: Path, scenario: str) -> list[dict]:
    truth = simulate(directory, scenario, hosts=2, devices=4, cann=Version.parse("8.2"), seed=11)
    return truth.cards


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_card_at_fault_is_found(run, tmp_path: Path, scenario: str) -> None:
    (card,) = write(tmp_path, scenario)
    result = run("diagnose", tmp_path, "--json")
    verdict = json.loads(result.out)
    assert result.code == 1
    found = verdict["cards"][0]
    assert (found["host"], found["device"]) == (card["host"], card["device"])
    assert 0 < verdict["confidence"] <= 1
    for item in verdict["evidence"]:
        lines = Path(item["file"]).read_text().splitlines()
        assert lines[item["line"] - 1].startswith(item["text"][:60].splitlines()[0])


def test_a_healthy_run_exits_with_zero(run, tmp_path: Path) -> None:
    write(tmp_path, "healthy")
    result = run("diagnose", tmp_path)
    assert result.code == 0
    assert "[healthy" in result.out


def test_json_has_the_documented_keys(run, tmp_path: Path) -> None:
    write(tmp_path, "aicore-exception")
    verdict = json.loads(run("diagnose", tmp_path, "--json").out)
    documented = {
        "kind",
        "cards",
        "confidence",
        "chain",
        "episodes",
        "evidence",
        "missing",
        "remediation",
        "remediation_zh",
    }
    assert documented <= set(verdict)
    assert set(verdict["cards"][0]) >= {"host", "device", "rank", "pid"}
    assert {"file", "line", "text"} <= set(verdict["evidence"][0])


def test_one_process_and_two_give_the_same_verdict(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ascend_elk.commands.diagnose._WORTH_A_PROCESS", 0)
    write(tmp_path, "aicore-exception")
    one = json.loads(run("diagnose", tmp_path, "--json", "--jobs", 1).out)
    two = json.loads(run("diagnose", tmp_path, "--json", "--jobs", 2).out)
    assert one == two


def test_html_is_written_and_says_the_verdict(run, tmp_path: Path) -> None:
    write(tmp_path / "logs", "aicore-exception")
    page = tmp_path / "page.html"
    result = run("diagnose", tmp_path / "logs", "--html", page)
    assert result.code == 1
    first = result.out.splitlines()[0]
    assert first in page.read_text()


def test_verdict_speaks_chinese(run, tmp_path: Path) -> None:
    write(tmp_path, "aicore-exception")
    text = run("diagnose", tmp_path, "--lang", "zh").out
    assert any("\u4e00" <= character <= "\u9fff" for character in text.splitlines()[0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--lang", "fr"], "zh"),
        (["--html", "/nowhere/page.html"], "cannot be written"),
        (["--timezone", "Mars"], "Mars"),
        (["--codes", "nowhere.yml"], "nowhere.yml"),
    ],
)
def test_wrong_options_get_one_sentence(run, tmp_path: Path, arguments: list[str], words: str) -> None:
    write(tmp_path, "healthy")
    result = run("diagnose", tmp_path, *arguments)
    assert result.code == 2
    assert "Traceback" not in result.err
    assert words in result.err


def test_demo_goes_all_the_way(run, tmp_path: Path) -> None:
    result = run("demo", tmp_path / "demo", "--hosts", 2, "--devices", 2)
    assert result.code == 0
    assert (tmp_path / "demo" / "timeline.html").is_file()
    truth = json.loads((tmp_path / "demo" / "logs" / "truth.json").read_text())
    assert truth["cards"][0]["host"] in result.out
    again = run("demo", tmp_path / "demo", "--hosts", 2, "--devices", 2)
    assert again.code == 2
    assert run("demo", tmp_path / "demo", "--hosts", 2, "--devices", 2, "--force").code == 0
