"""The CANN version of a tree."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_elk.cann import Version, VersionRange
from ascend_elk.detect import (
    Detection,
    InstallationPath,
    LineStyle,
    detect_version,
    detect_versions,
    load_version_hints,
    read_version_file,
)
from ascend_elk.formats import load_definitions
from ascend_elk.layout import discover

SHARED = Path(__file__).resolve().parents[1] / ".." / "shared"
NAME = "process_log/debug/plog/plog-1_20250302112031120.log"

BRACKETS = "[ERROR] HCCL(1,p):2024-04-30-02:49:24.126.100 [hcom.cc:5][12][Wait][Link]x"  # 7.0 .. 8.0
BLANK = "[ERROR] HCCL(1,p):2025-12-04-14:46:07.911.325 [hcom.cc:5] [12][Wait][Link]x"  # since 8.1.RC1
STAGE = "[ERROR] RUNTIME(1,p):2024-06-29-16:19:28.521.933 [a.cc:4]4 rtMalloc:[INIT][DEFAULT]x"  # 5.0.2 .. 8.2
PLAIN = "[ERROR] RUNTIME(1,p):2024-06-29-16:19:28.521.933 [a.cc:4]4 rtMalloc:x"
CONFIG = "# version: 1.0\nruntime_running_version=[{}]\nruntime_upgrade_version=[7.9.0.1.1:9.0.0]\n"


def write(root: Path, path: str, text: str) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return root


def of_lines(root: Path, *lines: str) -> Detection:
    return detect_version(discover([write(root, NAME, "\n".join(lines) + "\n")]))


def within(detection: Detection, *versions: str) -> list[bool]:
    return [Version.parse(version) in detection.range for version in versions]


# Hints as data


@pytest.mark.parametrize("style", load_version_hints().styles, ids=lambda style: style.name)
def test_samples_of_a_style(style: LineStyle, tmp_path: Path) -> None:
    for sample in style.samples:
        found = detect_version(discover([write(tmp_path, "train.log", f"{sample}\n")]))
        assert any(f": {style.reason}: {style.versions}" in fact for fact in found.evidence), sample
        assert not found.contradictory


@pytest.mark.parametrize("style", load_version_hints().styles, ids=lambda style: style.name)
def test_a_style_is_guarded_and_bounded(style: LineStyle) -> None:
    assert style.since or style.until
    assert VersionRange.of(style.since, style.until) == style.versions
    if style.pattern:
        assert load_definitions().grok.to_python(style.pattern)


def test_reasons_tell_styles_apart() -> None:
    reasons = [style.reason for style in load_version_hints().styles]
    assert len(reasons) == len(set(reasons))


@pytest.mark.parametrize("hint", load_version_hints().paths, ids=lambda hint: hint.pattern)
def test_samples_of_a_path(hint: InstallationPath, tmp_path: Path) -> None:
    for sample in hint.samples:
        found = of_lines(tmp_path, sample["line"])
        assert (str(found.version) if found.version else None) == sample["version"]


def test_internal_versions_are_in_order() -> None:
    versions = [Version.parse(version) for version in load_version_hints().internal.values()]
    assert versions == sorted(versions)


# Version files


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("version.cfg", CONFIG.format("7.6.0.1.220:8.0.0"), ["8.0.0"]),
        ("version.cfg", "runtime_running_version=[1.84.15.1.310:6.0.1]", ["6.0.1"]),
        ("version.cfg", CONFIG.format("7.6.T13.0.B094:8.0.T63"), ["8.0.T63"]),
        (
            "version.cfg",
            "hccl_running_version=[7.5.0.1.1:8.0.RC3]\nruntime_running_version=[7.6.0.1.2:8.0.0]\n",
            ["8.0.0"],
        ),
        ("version.cfg", "hccl_running_version=[7.5.0.1.1:8.0.RC3]\n", ["8.0.RC3"]),
        ("version.cfg", "hccl_installed_version=[7.5.0.1.1:8.0.RC3]\n", []),
        ("ascend_toolkit_install.info", "package_name=Ascend-cann-toolkit\nversion=8.3.RC2\n\0", ["8.3.RC2"]),
        ("x_install.info", "package_name=Ascend-cann-nnrt\r\nversion = 7.0.0.alpha03\r\n", ["7.0.0.alpha03"]),
        ("ascend_nnal_install.info", "package_name=Ascend-mindie-atb\nversion=1.0.0\n", []),
        ("ascend_install.info", "UserName=HwHiAiUser\nDriver_Install_Path_Param=/usr/local/Ascend\n", []),
        ("version.info", "Version=7.6.0.1.220\n", ["8.0.0"]),
        ("version.info", "Version=1.83.T8.0.B128\n", ["6.0"]),
        ("version.info", "Version=7.9.0.1.220\n", []),
        ("version.info", "Version=9.0.1\n", ["9.0.1"]),
        ("version.info", "Version=25.2.0\nascendhal_version=7.35.23\npackage_version=25.2.0\n", []),
        ("version.info", "Version=7.5.0.1.129\ncompatible_version_fw=[7.0.0,7.7.99]\n", []),
        ("version.info", "Version=24.1.rc2\n", []),
        ("version.info", "", []),
        ("version.info", "Version=\nversion\n=8.0\n", []),
        ("version.cfg", "\ufffd\0\0", []),
    ],
)  # fmt: skip
def test_version_file(tmp_path: Path, name: str, text: str, expected: list[str]) -> None:
    write(tmp_path, name, text)
    found = read_version_file(tmp_path / name, load_version_hints().internal)
    assert [str(item.version) for item in found] == expected
    assert all(str(tmp_path / name) in item.sentence for item in found)


def test_components_that_disagree_without_the_runtime(tmp_path: Path) -> None:
    write(
        tmp_path,
        "version.cfg",
        "hccl_running_version=[7.5.0.1.1:8.0.RC3]\nopp_running_version=[7.6.0.1.2:8.0.0]\n",
    )
    found = of_lines(tmp_path, PLAIN)
    assert found.version is None
    assert found.contradictory
    assert within(found, "8.0.RC3", "8.0.0", "8.1.RC1", "7.0") == [True, True, False, False]


def test_a_written_version_outranks_a_translated_one(tmp_path: Path) -> None:
    write(tmp_path, "runtime/version.info", "Version=7.7.0.1.238\n")
    assert str(of_lines(tmp_path, PLAIN).version) == "8.1"
    write(tmp_path, "ascend_toolkit_install.info", "package_name=Ascend-cann-toolkit\nversion=8.1.RC1\n")
    found = of_lines(tmp_path, PLAIN)
    assert str(found.version) == "8.1.RC1"
    assert not found.contradictory


def test_unreadable_version_file_says_nothing(tmp_path: Path) -> None:
    assert read_version_file(tmp_path / "version.cfg", {}) == []


@given(st.binary(max_size=300))
def test_any_bytes_in_a_version_file(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.mktemp("any") / "version.info"
    for mark in (b"", b"Version=", b"runtime_running_version=["):
        file.write_bytes(mark + content)
        read_version_file(file, load_version_hints().internal)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the corpus is not beside the repository")
@pytest.mark.parametrize(
    ("begins", "name", "expected"),
    [
        ("package_name=Ascend-cann-toolkit\nversion=7", "ascend_toolkit_install.info", ["7.0.0.alpha003"]),
        ("package_name=Ascend-cann-toolkit\nversion=8", "ascend_toolkit_install.info", ["8.3.RC2"]),
        ("Version=25.2.0", "version.info", []),
        ("runtime_running_version", "version.cfg", ["6.0.1"]),
    ],
)
def test_version_files_as_people_pasted_them(
    tmp_path: Path, begins: str, name: str, expected: list[str]
) -> None:
    pasted = (SHARED / "corpus" / "version_files.txt").read_text()
    start = pasted.index(begins)
    ends = [pasted.find(mark, start + 1) for mark in ("package_name", "Version=", "runtime_running")]
    text = pasted[start : min([end for end in ends if end > 0], default=len(pasted))]
    write(tmp_path, name, text)
    found = read_version_file(tmp_path / name, load_version_hints().internal)
    assert [str(item.version) for item in found] == expected


# Putting facts together


def test_nothing_known(tmp_path: Path) -> None:
    found = detect_version(discover([write(tmp_path, "train.log", "epoch 1\n")]))
    assert (found.version, found.range, found.evidence, found.contradictory) == (
        None,
        VersionRange(),
        (),
        False,
    )
    assert str(found) == "unknown"


def test_layout_narrows(tmp_path: Path) -> None:
    found = of_lines(tmp_path, PLAIN)
    assert within(found, "5.0.4", "5.0.5", "9.3.0") == [False, True, True]
    (fact,) = found.evidence
    assert "layout process-log: since 5.0.5" in fact


def test_styles_narrow_together(tmp_path: Path) -> None:
    found = of_lines(tmp_path, STAGE, BLANK)
    assert found.version is None
    assert str(found) == "8.1.RC1 .. 8.2 (inferred)"
    assert within(found, "8.0.0", "8.1.RC1", "8.2.RC1", "8.3.RC1") == [False, True, True, False]


def test_styles_that_exclude_each_other(tmp_path: Path) -> None:
    found = of_lines(tmp_path, BRACKETS, BLANK)
    assert found.contradictory
    assert found.range == VersionRange()
    assert str(found) == "contradictory"
    assert len(found.evidence) == 3


def test_file_beats_styles_but_says_that_they_differ(tmp_path: Path) -> None:
    write(tmp_path, "version.cfg", CONFIG.format("7.8.0.1.1:8.2.RC1"))
    assert not of_lines(tmp_path, BLANK).contradictory
    found = of_lines(tmp_path, BRACKETS)
    assert str(found.version) == "8.2.RC1"
    assert found.contradictory


def test_path_in_a_line_is_a_version_unless_styles_exclude_it(tmp_path: Path) -> None:
    path = "[INFO] GE(1,p):2025-12-04-14:46:07.911.325 [a.cc:1]2 Load:/usr/local/Ascend/cann-9.0.1/lib64/x.so"
    assert str(of_lines(tmp_path, path, BLANK).version) == "9.0.1"
    found = of_lines(tmp_path, path, BRACKETS)
    assert found.version is None
    assert found.contradictory


def test_paths_of_two_installations_are_no_version(tmp_path: Path) -> None:
    found = of_lines(
        tmp_path, "/usr/local/Ascend/cann-9.0.1/lib64", "/usr/local/Ascend/ascend-toolkit/8.0.RC3/x"
    )
    assert found.version is None
    assert not found.contradictory
    assert len(found.evidence) == 3


def test_two_hosts_with_two_versions(tmp_path: Path) -> None:
    for number, written in enumerate(["7.6.0.1.220:8.0.0", "7.7.0.1.1:8.1.RC1"]):
        write(tmp_path, f"worker-{number}/version.cfg", CONFIG.format(written))
        write(tmp_path, f"worker-{number}/{NAME}", PLAIN)
    tree = discover([tmp_path])
    by_host = detect_versions(tree)
    assert {host: str(item.version) for host, item in by_host.items()} == {
        "worker-0": "8.0.0",
        "worker-1": "8.1.RC1",
    }
    assert not any(item.contradictory for item in by_host.values())
    found = detect_version(tree)
    assert found.version is None
    assert found.contradictory
    assert found.evidence[:2] == ("worker-0: 8.0.0", "worker-1: 8.1.RC1")


def test_hosts_that_agree(tmp_path: Path) -> None:
    for number in range(2):
        write(tmp_path, f"worker-{number}/version.cfg", CONFIG.format("7.6.0.1.220:8.0.0"))
        write(tmp_path, f"worker-{number}/{NAME}", STAGE)
    found = detect_version(discover([tmp_path]))
    assert str(found.version) == "8.0.0"
    assert not found.contradictory


def test_a_host_without_a_version_file_keeps_its_range(tmp_path: Path) -> None:
    write(tmp_path, "worker-0/version.cfg", CONFIG.format("7.6.0.1.220:8.0.0"))
    write(tmp_path, f"worker-0/{NAME}", PLAIN)
    write(tmp_path, f"worker-1/{NAME}", BLANK)
    by_host = detect_versions(discover([tmp_path]))
    assert str(by_host["worker-0"]) == "8.0.0"
    assert str(by_host["worker-1"]) == "since 8.1.RC1 (inferred)"
    assert detect_version(discover([tmp_path])).contradictory


def test_compressed_and_long_files_are_looked_into(tmp_path: Path) -> None:
    packed = tmp_path / "a.log.gz"
    packed.write_bytes(gzip.compress(BLANK.encode()))
    assert str(detect_version(discover([packed]))) == "since 8.1.RC1 (inferred)"
    found = of_lines(tmp_path / "long", *[PLAIN] * 5000, BLANK)
    assert "HCCL with a blank before the thread" in " ".join(found.evidence)


def test_lines_of_the_callers_choice(tmp_path: Path) -> None:
    tree = discover([write(tmp_path, "train.log", BLANK)])
    assert str(detect_version(tree, sample=[(tree.files[0], STAGE)])) == "5.0.2 .. 8.2 (inferred)"


@given(st.lists(st.sampled_from([BRACKETS, BLANK, STAGE, PLAIN]) | st.text(max_size=80)))
def test_any_lines(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    tree = discover([write(tmp_path_factory.mktemp("any"), "train.log", "x")])
    found = detect_version(tree, sample=[(tree.files[0], line) for line in lines])
    # The order of lines must not matter
    assert found.range == detect_version(tree, sample=[(tree.files[0], line) for line in lines[::-1]]).range
    assert found.contradictory == (BRACKETS in lines and BLANK in lines)


# Real logs


@pytest.mark.skipif(not SHARED.is_dir(), reason="the corpus is not beside the repository")
@pytest.mark.parametrize(
    ("name", "true"),
    [
        ("oam_2020-12_plog_nopid.log", "20.2"),
        ("oam_2020_host-0_slog.log", "20.1"),
        ("mc_hccl_socket_timeout_2023.log", "6.0.1"),
        ("mc_hccl_cqe_error.log", "6.0.1"),
        ("oam_2023_plog-370_info.log", "6.3"),
        ("issue_ascend_pytorch_29.log", "7.0.0.alpha003"),
        ("issue_ascend_samples_21_16.log", "7.0.RC1"),
        ("page_hiascend_oom_drv.log", "8.0.RC2"),
        ("mc_hccl_link_error_event_timeout.log", "8.0.0"),
        ("issue_vllm_ascend_486.log", "8.0.RC3"),
        ("mc_transport_timeout.log", "8.1.RC1"),
        ("issue_vllm_ascend_2542_stdout.log", "8.1.RC1"),
        ("issue_vllm_ascend_2105.log", "8.2.RC1"),
        ("issue_vllm_ascend_4972_5493.log", "8.3.RC1"),
        ("issue_vllm_ascend_10861_debuglevel.log", "8.5.0"),
        ("issue_ptoas_acl_console.log", "8.5.0"),
        ("issue_oamtools_cann930_cube.log", "9.3.0"),
    ],
)
def test_the_version_that_a_log_comes_from_is_not_excluded(name: str, true: str) -> None:
    found = detect_version(discover([SHARED / "corpus" / name]))
    assert not found.contradictory
    assert found.range != VersionRange()
    assert Version.parse(true) in found.range


@pytest.mark.skipif(not SHARED.is_dir(), reason="the labelled clusters are not beside the repository")
@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ("st_transport_timeout", "since 8.1.RC1 (inferred)"),
        ("st_event_timeout", "7.0 .. 8.0 (inferred)"),
        ("st_cqe", "6.0 .. 6.3 (inferred)"),
        ("st_socket_2023", "6.0 .. 6.3 (inferred)"),
    ],
)
def test_labelled_clusters(tree: str, expected: str) -> None:
    assert {str(item) for item in detect_versions(discover([SHARED / "clusters" / tree])).values()} == {
        expected
    }
