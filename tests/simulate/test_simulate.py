from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ascend_elk.cann import Version
from ascend_elk.errors import UserError
from ascend_elk.layout import discover
from ascend_elk.simulate import SCENARIOS, simulate
from ascend_elk.simulate.bulk import write_info_log

HEADER = re.compile(
    r"\[[A-Z]+\] [A-Za-z0-9_]+\(-?\d+,[^()]*\):\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d\.\d{3}\.\d{3} \S"
)
VERSIONS = ["6.0", "8.0", "8.2", "9.1"]


def run(directory: Path, scenario: str, cann: str = "8.0", **options: object) -> dict:
    chosen = {"hosts": 2, "devices": 2, "seed": 3, "steps": 10} | options
    simulate(directory, scenario, cann=Version.parse(cann), **chosen)  # type: ignore[arg-type]
    return json.loads((directory / "truth.json").read_text())


@pytest.mark.parametrize("scenario", sorted(SCENARIOS))
def test_every_scenario_writes_logs_true_to_the_header_and_its_truth(scenario: str, tmp_path: Path) -> None:
    truth = run(tmp_path, scenario, VERSIONS[len(scenario) % len(VERSIONS)])
    files = discover([tmp_path]).files
    assert {file.source for file in files} >= {"plog", "device"}
    for file in files:
        if file.source in ("plog", "device", "event"):
            for line in file.path.read_text().splitlines():
                assert HEADER.match(line), f"{file.path}: {line}"
    assert truth["kind"] == SCENARIOS[scenario].kind or scenario == "nic-down"
    assert bool(truth["cards"]) == (truth["kind"] != "healthy")
    for card in truth["cards"]:
        assert (tmp_path / card["host"]).is_dir()


def test_equal_arguments_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        run(tmp_path / name, "aicore-exception", skew_seconds=20.0, lost=0.2)
    run(tmp_path / "other", "aicore-exception", skew_seconds=20.0, lost=0.2, seed=4)
    trees = [
        {
            path.relative_to(tmp_path / name): path.read_bytes()
            for path in (tmp_path / name).rglob("*")
            if path.is_file()
        }
        for name in ("one", "two", "other")
    ]
    assert trees[0] == trees[1] != trees[2]


def plogs(directory: Path, host: str, pid: int) -> str:
    return "".join(path.read_text() for path in (directory / host).rglob(f"plog-{pid}_*.log"))


def test_the_silent_rank_writes_no_error_and_all_others_their_time_out(tmp_path: Path) -> None:
    truth = run(tmp_path, "notify-timeout-silent", hosts=2, devices=4)
    (bad,) = truth["cards"]
    pids = {
        (path.relative_to(tmp_path).parts[0], int(re.findall(r"plog-(\d+)_", path.name)[0]))
        for path in tmp_path.rglob("plog-*.log")
    }
    assert len(pids) == 8
    for host, pid in pids:
        waited = "Notify wait execute failed" in plogs(tmp_path, host, pid)
        assert waited == ((host, pid) != (bad["host"], bad["pid"]))


def test_skew_moves_whole_hosts(tmp_path: Path) -> None:
    straight, skewed = (
        run(tmp_path / str(skew), "healthy", skew_seconds=skew)["skew"] for skew in (0.0, 60.0)
    )
    assert set(straight.values()) == {0.0}
    assert all(0 < abs(offset) <= 60 for offset in skewed.values())


def test_lost_files_are_listed(tmp_path: Path) -> None:
    truth = run(tmp_path, "healthy", hosts=4, devices=4, lost=0.3)
    gone = [path for path in truth["lost"] if not (tmp_path / path).exists()]
    assert truth["lost"]
    assert gone


def test_old_versions_have_the_flat_layout(tmp_path: Path) -> None:
    run(tmp_path, "healthy", cann="5.0.2")
    assert list(tmp_path.glob("worker-0/ascend/log/plog/plog-*.log"))


@pytest.mark.parametrize(
    ("scenario", "options", "words"),
    [
        ("aicore-exeption", {}, "aicore-exception"),
        ("healthy", {"hosts": 1, "devices": 1}, "two cards"),
        ("healthy", {"lost": 1.0}, "lost"),
        ("healthy", {"steps": 1}, "steps"),
    ],
)
def test_wrong_arguments_are_refused(scenario: str, options: dict, words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=words):
        run(tmp_path, scenario, **options)


def test_bulk_log_has_the_size_asked_for_and_mostly_info(tmp_path: Path) -> None:
    path = tmp_path / "plog-4021_20250302112029000.log"
    written = write_info_log(path, 5_000_000, seed=2)
    assert written == path.stat().st_size >= 5_000_000
    lines = path.read_text().splitlines()
    quiet = sum(line.startswith(("[INFO]", "[DEBUG]")) for line in lines)
    assert 0.95 < quiet / len(lines) < 1
    assert any(line.startswith("[ERROR]") for line in lines)
