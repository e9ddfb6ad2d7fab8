"""The wheel carries the content and works from anywhere."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An unpacked wheel, far from the checkout."""
    directory = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(directory),
        str(ROOT),
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = directory.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory / "site")
    return directory / "site"


def run(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; from ascend_elk.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=installed.parent,
        env={"PYTHONPATH": str(installed), "PATH": "/usr/bin:/bin", "PYTHONNOUSERSITE": "1"},
    )


def test_content_comes_from_the_wheel(installed: Path) -> None:
    for content in ("grok/sources/plog.yml", "grok/patterns/base.grok", "codes/cann.yml"):
        assert (installed / "ascend_elk" / "content" / content).is_file()
    assert (installed / "ascend_elk" / "py.typed").is_file()
    assert (installed / "ascend_elk" / "report" / "page.html.j2").is_file()


def test_commands_work_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    log = tmp_path / "plog-7_20250302112029000.log"
    log.write_text("[ERROR] HCCL(7,a):2025-03-02-11:20:31.120.004 [a.cc:1] [7]wait timeout[120 s]\n")
    parsed = run(installed, "parse", str(log), "--format", "ndjson")
    assert parsed.returncode == 0, parsed.stderr
    assert '"seconds":120.0' in parsed.stdout
    explained = run(installed, "codes", "EI0006", "--cann", "8.0")
    assert explained.returncode == 0, explained.stderr
    assert "EI0006" in explained.stdout
