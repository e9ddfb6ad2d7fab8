from __future__ import annotations

import json
from pathlib import Path


def test_json_counts_lines_events_and_what_is_explained(run, cluster: Path) -> None:
    document = json.loads(run("check", cluster, "--json").out)
    by_name = {Path(file["path"]).name: file for file in document["files"]}
    plog = by_name["plog-4021_20250302112029000.log"]
    assert (plog["lines"], plog["events"], plog["explained"], plog["unparsed"]) == (5, 4, 4, 0)
    assert document["unknown_shapes"] == []


def test_unknown_shapes_come_most_frequent_first(run, tmp_path: Path) -> None:
    (tmp_path / "plog-7_20250302112029000.log").write_text(
        "no header at all\n"
        + "".join(
            f"[ERROR] GE(7,a):2025-03-02-11:20:31.120.004 number {number} at 0x7f{number}\n"
            for number in range(3)
        )
    )
    document = json.loads(run("check", tmp_path, "--json").out)
    shapes = document["unknown_shapes"]
    assert [shape["count"] for shape in shapes] == [3, 1]
    assert shapes[0]["shape"].endswith("number N at H")
    assert document["files"][0]["unparsed"] == 1


def test_fail_under(run, cluster: Path, tmp_path: Path) -> None:
    assert run("check", cluster, "--fail-under", 99).code == 0
    (tmp_path / "bad.log").write_text("[ERROR] GE(7,a):2025-03-02-11:20:31.120.004 who knows\n")
    assert run("check", tmp_path / "bad.log", "--fail-under", 99).code == 1
