"""``ascend-elk codes`` as a person uses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from ascend_elk.codes.command import codes
from ascend_elk.errors import UserError

app = typer.Typer()
app.command()(codes)
KEYS = [
    "family", "code", "symbol", "since", "until", "layer", "category", "severity",
    "meaning", "remediation", "meaning_zh", "remediation_zh", "source",
]  # fmt: skip


def call(*arguments: str):
    return CliRunner().invoke(app, arguments)


def test_explains_a_code() -> None:
    result = call("EI0006", "--cann", "8.0")
    assert result.exit_code == 0
    assert "could not connect in time" in result.stdout
    assert "hccn_tool -i N -tls -g" in result.stdout
    assert "since 5.1.RC2" in result.stdout
    assert "A resource that was passed in" not in result.stdout


def test_shows_both_meanings_without_a_version() -> None:
    result = call("EI0006")
    assert result.exit_code == 0
    assert "could not connect in time" in result.stdout
    assert "last seen in 5.1.RC1" in result.stdout
    assert "--cann VERSION" in result.stdout


def test_speaks_chinese() -> None:
    result = call("507018", "--lang", "zh")
    assert "AI CPU 算子执行异常" in result.stdout
    assert "处理建议" in result.stdout
    assert "What to do" not in result.stdout


def test_json_has_the_stable_keys() -> None:
    result = call("EI0006", "0x7150026", "--json")
    rows = json.loads(result.stdout)
    assert [row["code"] for row in rows] == ["EI0006", "EI0006", "0x07150026"]
    assert all(list(row) == KEYS for row in rows)


def test_an_unknown_code_is_said_to_be_unknown_and_read_by_its_shape() -> None:
    result = call("EI0099")
    assert result.exit_code == 1
    assert "EI0099: not in the catalogue" in result.stdout
    assert "reported by HCCL" in result.stdout


def test_json_of_an_unknown_code_stays_json() -> None:
    result = call("EI0099", "EI0009", "--json")
    assert result.exit_code == 1
    assert [row["code"] for row in json.loads(result.stdout)] == ["EI0009"]
    assert "not in the catalogue" in result.stderr


def test_nonsense_and_ten_thousand_characters() -> None:
    result = call("hello", "E" * 10_000)
    assert result.exit_code == 1
    assert result.stdout.count("no code of any family looks like this") == 2
    assert len(result.stdout) < 500


def test_markup_in_a_code_is_no_markup() -> None:
    result = call("[red]EI0099[/red]")
    assert result.exit_code == 1
    assert "[red]EI0099[/red]" in result.stdout


def test_a_signature_is_explained_by_its_name() -> None:
    result = call("disk-full")
    assert result.exit_code == 0
    assert "df -h" in result.stdout


def test_search() -> None:
    result = call("--search", "ranks connect links")
    assert result.exit_code == 0
    assert "cann:EI0006\terror\t" in result.stdout
    assert call("--search", "no such words").exit_code == 1
    assert json.loads(call("--search", "建链超时", "--lang", "zh", "--json").stdout)[0]["code"] == "EI0006"


def test_lines_are_not_broken_in_a_pipe() -> None:
    lines = call("EI0013").stdout.splitlines()
    assert max(len(line) for line in lines) > 200
    assert all(line == line.rstrip() for line in lines)


def test_own_codes(tmp_path: Path) -> None:
    own = tmp_path / "own.yml"
    own.write_text("codes: [{family: cann, code: EI0009, meaning: Ours., remediation: Ask us.}]")
    assert "Ours." in call("EI0009", "--codes", str(own)).stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name at least one code"),
        (["EI0006", "--search", "x"], "not both"),
        (["EI0006", "--lang", "fr"], "--lang fr is not known"),
        (["EI0006", "--cann", "eight"], "'eight' is not a CANN version"),
        (["EI0006", "--codes", "nowhere.yml"], "cannot read the catalogue file nowhere.yml"),
    ],
)
def test_wrong_use_is_one_sentence(arguments: list[str], words: str) -> None:
    result = call(*arguments)
    assert isinstance(result.exception, UserError)
    assert words in str(result.exception)
    assert "\n" not in str(result.exception)
