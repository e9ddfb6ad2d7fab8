"""Paths to sources and ids; trees to files and hosts."""

from __future__ import annotations

import gzip
import os
import re
import socket
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from ascend_elk.errors import UserError
from ascend_elk.formats import load_definitions
from ascend_elk.formats.definitions import Source, SourcePath
from ascend_elk.layout import Discovery, classify, discover, load_roots, printable

CLUSTERS = Path(__file__).resolve().parents[1] / ".." / "shared" / "clusters"
PLOG_1 = "plog-1_20250302112031120.log"
ARCHIVE = "an archive; unpack it first"
PLOG = "[ERROR] HCCL(11,python):2025-03-02-11:20:31.120.004 [a.cc:1] [2]x\n"


@lru_cache(maxsize=1)
def source_paths() -> list[tuple[Source, SourcePath]]:
    return [(source, path) for source in load_definitions().sources.values() for path in source.paths]


def path_id(item: object) -> str:
    if isinstance(item, tuple):
        return f"{item[0].name}-{item[1].layout}"
    return str(item)


def write(root: Path, *paths: str, text: str = PLOG) -> Path:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def below(root: Path, found: Discovery) -> list[str]:
    return [file.path.relative_to(root).as_posix() for file in found.files]


def hosts(root: Path, found: Discovery) -> dict[str, str | None]:
    return {file.path.relative_to(root).as_posix(): file.fields.get("host.name") for file in found.files}


def reasons(found: Discovery) -> dict[str, str]:
    return {item.path.name: item.reason for item in found.skipped}


# Sources as data


@pytest.mark.parametrize("item", source_paths(), ids=path_id)
def test_samples_of_a_path_are_classified_so(item: tuple[Source, SourcePath]) -> None:
    source, path = item
    assert path.samples, "a path without a sample is not tested"
    for sample in path.samples:
        got = classify(sample["path"])
        assert (got.source, got.layout, got.fields) == (source.name, path.layout, sample["fields"]), sample


@pytest.mark.parametrize("item", source_paths(), ids=path_id)
def test_no_other_source_explains_as_much_of_a_sample(item: tuple[Source, SourcePath]) -> None:
    source, path = item
    grok = load_definitions().grok
    for sample in path.samples:
        starts = {
            other.name: match.start()
            for other, other_path in source_paths()
            if (match := grok.to_python(other_path.pattern).compiled.search(sample["path"]))
        }
        rivals = [
            name for name, start in starts.items() if name != source.name and start <= starts[source.name]
        ]
        assert not rivals, sample


@pytest.mark.parametrize("item", source_paths(), ids=path_id)
def test_glob_finds_the_first_sample(item: tuple[Source, SourcePath]) -> None:
    _, path = item
    # Filebeat: * and ? within a directory, ** for up to eight of them
    regex = re.escape(path.glob).replace(r"\*\*/", r"(?:[^/]+/){0,8}").replace(r"\*", "[^/]*")
    assert re.search(f"(?:^|/){regex}$", path.samples[0]["path"])


@pytest.mark.parametrize("item", source_paths(), ids=path_id)
def test_pattern_means_the_same_to_re2(item: tuple[Source, SourcePath]) -> None:
    _, path = item
    assert path.pattern.startswith("%{PATH_START}")
    pattern = load_definitions().grok.to_python(path.pattern)
    other = re2.compile(pattern.regex)
    for sample in path.samples:
        ours, theirs = pattern.compiled.search(sample["path"]), other.search(sample["path"])
        assert ours and theirs and ours.groups() == theirs.groups()


def test_sources_name_formats_and_roots_that_exist() -> None:
    formats = load_definitions().formats
    for source in load_definitions().sources.values():
        assert set(source.formats) <= set(formats), source.name
        assert {path.root for path in source.paths} <= set(load_roots()), source.name
        assert source.dataset in ("ascend.plog", "ascend.slog", "ascend.console")
        assert (source.framing == "continuation") == bool(source.continuation)


def test_every_format_belongs_to_a_source() -> None:
    used = {name for source in load_definitions().sources.values() for name in source.formats}
    assert used == set(load_definitions().formats)


@pytest.mark.parametrize(
    ("path", "source", "fields"),
    [
        ("train.log", "console", {}),
        ("/a/device-1.log", "console", {}),
        ("/a/plog-.log", "console", {}),
        ("/a/plog/plog-7_20230713074107861.log/x", "console", {}),
        # Process 0 does not exist, so this is firmware even without its tree
        ("x/device-0/device-0_20230607152210099.log", "firmware", {}),
        ("slog/device-10/device-10_20230607152210099.log", "firmware", {"ascend.device.physical_id": 10}),
        (
            "slog/device-10/device-1010_20230607152210099.log",
            "device",
            {"ascend.device.id": 10, "process.pid": 1010},
        ),
        ("messages_for_you/train.log", "console", {}),
        ("syslogic", "console", {}),
    ],
)
def test_neighbours(path: str, source: str, fields: dict[str, int]) -> None:
    got = classify(path)
    assert (got.source, got.fields) == (source, fields)


def test_classification_of_absurd_paths_is_fast_and_safe() -> None:
    assert classify("/".join(["rank_1"] * 3000)).source == "console"
    assert classify("dev-os-1/" * 2000 + "device-0").source == "console"
    assert classify("plog-" + "1" * 100_000 + ".log").source == "console"
    assert classify("").source == "console"
    assert classify("\0\n\udcff").source == "console"


_NAMES = [
    "plog",
    "debug",
    "slog",
    "dev-os-3",
    "device-0",
    "device-12_20230607152210099.log",
    "rank_7",
    "message",
]


@given(st.lists(st.sampled_from(_NAMES) | st.text(max_size=20), max_size=12))
def test_any_path_is_classified(parts: list[str]) -> None:
    got = classify("/".join(parts))
    source = load_definitions().sources[got.source]
    assert got.layout is None or got.layout in {path.layout for path in source.paths}
    # What lies above changes nothing but ids of directories that the pattern names
    assert classify("/above/" + "/".join(parts)).source == got.source or parts[:1] in ([""], [])


# Walking


def test_walk_is_sorted_and_takes_known_names_and_text(tmp_path: Path) -> None:
    write(
        tmp_path,
        "b/debug/plog/plog-12_20250302112031120.log",
        "b/debug/plog/plog-9_20250302112031120.log",
        "a/train.log",
        "a/nohup.out",
        "a/run.err",
        "a/train.log.1",
        "a/train.log-20250101",
        "a/stdout",
        "a/dmesg",
        "a/model.json",
        "a/README.txt",
        "a/ge_proto_00000000_Build.txt",
    )
    found = discover([tmp_path])
    assert below(tmp_path, found) == [
        "a/dmesg",
        "a/nohup.out",
        "a/run.err",
        "a/stdout",
        "a/train.log",
        "a/train.log-20250101",
        "a/train.log.1",
        "b/debug/plog/plog-12_20250302112031120.log",
        "b/debug/plog/plog-9_20250302112031120.log",
    ]
    assert set(reasons(found)) == {"model.json", "README.txt", "ge_proto_00000000_Build.txt"}
    assert found == discover([tmp_path])
    by_name = {file.path.name: file for file in found.files}
    assert by_name["plog-9_20250302112031120.log"].fields == {"process.pid": 9}
    assert by_name["plog-9_20250302112031120.log"].size == len(PLOG)
    assert by_name["dmesg"].source == "host-os"


def test_named_file_is_taken_whatever_its_name(tmp_path: Path) -> None:
    write(tmp_path, "what.xyz", "a.log")
    assert [file.source for file in discover([tmp_path / "what.xyz"]).files] == ["console"]
    # … also when the directory that holds it was walked before
    assert below(tmp_path, discover([tmp_path, tmp_path / "what.xyz"])) == ["a.log", "what.xyz"]


def test_one_real_file_once(tmp_path: Path) -> None:
    write(tmp_path, "a/x.log")
    (tmp_path / "a" / "loop").symlink_to(tmp_path / "a", target_is_directory=True)
    (tmp_path / "b").symlink_to(tmp_path / "a", target_is_directory=True)
    (tmp_path / "y.log").symlink_to(tmp_path / "a" / "x.log")
    os.link(tmp_path / "a" / "x.log", tmp_path / "a" / "z.log")
    assert below(tmp_path, discover([tmp_path, tmp_path / "a", tmp_path / "y.log"])) == ["a/x.log"]


def test_links_never_lead_above_a_root(tmp_path: Path) -> None:
    write(tmp_path, "secret.log", "tree/x.log")
    (tmp_path / "tree" / "up").symlink_to(tmp_path, target_is_directory=True)
    found = discover([tmp_path / "tree"])
    assert below(tmp_path, found) == ["tree/x.log"]
    assert reasons(found) == {"up": "link to a directory above"}


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize(
    ("name", "make", "reason"),
    [
        ("p.log", _fifo, "pipe, not a file"),
        ("s.log", _socket, "socket, not a file"),
        ("n.log", lambda path: path.symlink_to("/dev/null"), "device, not a file"),
        ("l.log", lambda path: path.symlink_to(path), "link that points at itself"),
        ("m.log", lambda path: path.symlink_to("nowhere"), "points nowhere"),
        ("e.log", lambda path: path.touch(), "empty"),
        ("x.log", lambda path: path.write_bytes(b"\x7fELF\2\1\1"), "a program"),
        ("b.log", lambda path: path.write_bytes(b"ab\0\0\0\0" * 99), "binary"),
        ("z.log", lambda path: path.write_bytes(b"PK\3\4abc"), ARCHIVE),
        ("t.log.gz", lambda path: path.write_bytes(gzip.compress(b"a" * 257 + b"ustar")), ARCHIVE),
        ("g.log.gz", lambda path: path.write_bytes(b"\x1f\x8b\x08\xff\xff\xff"), "damaged gzip"),
        ("u.log", lambda path: path.write_bytes("x".encode("utf-16")), "UTF-16; convert it to UTF-8"),
        ("all.tar.gz", lambda path: path.write_bytes(gzip.compress(b"x")), ARCHIVE),
        ("x.pb", lambda path: path.write_bytes(b"x"), "not known as a log; name the file itself to read it"),
    ],
)  # fmt: skip
def test_what_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, make: Callable[[Path], object], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    make(Path(name))
    write(tmp_path, "good.log")
    found = discover([Path()])
    assert below(Path(), found) == ["good.log"]
    assert reasons(found) == {name: reason}


def test_unreadable_file_and_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a.log", "good.log", "closed/b.log")
    real_open, real_list = Path.open, Path.iterdir

    def refuse_open(self: Path, *args: str) -> object:
        if self.name == "a.log":
            raise PermissionError(13, "Permission denied")
        return real_open(self, *args)

    def refuse_list(self: Path) -> Iterable[Path]:
        if self.name == "closed":
            raise PermissionError(13, "Permission denied")
        return real_list(self)

    monkeypatch.setattr(Path, "open", refuse_open)
    monkeypatch.setattr(Path, "iterdir", refuse_list)
    found = discover([tmp_path])
    assert below(tmp_path, found) == ["good.log"]
    assert reasons(found) == {"a.log": "permission denied", "closed": "permission denied"}


def test_known_name_is_never_skipped_as_binary(tmp_path: Path) -> None:
    path = tmp_path / "plog-9_20250302112031120.log"
    path.write_bytes(b"\0" * 5000 + PLOG.encode())
    assert [file.source for file in discover([tmp_path]).files] == ["plog"]


def test_compression_is_told_by_content(tmp_path: Path) -> None:
    (tmp_path / "device-os_20230607152207758_act.log.gz").write_bytes(gzip.compress(PLOG.encode()))
    (tmp_path / "device-os_20230607152207759.log.gz").write_text(PLOG)
    (tmp_path / "device-os_20230607152207760.log").write_bytes(gzip.compress(PLOG.encode()))
    found = discover([tmp_path])
    assert [(file.source, file.compressed) for file in found.files] == [
        ("device-os", True),
        ("device-os", False),
        ("device-os", True),
    ]


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    write(tmp_path, os.fsdecode(b"alpha\xff/process_log/debug/plog/plog-9_20250302112031120.log"))
    write(tmp_path, "worker-0/process_log/debug/plog/plog-8_20250302112031120.log")
    found = discover([tmp_path])
    assert [file.fields for file in found.files] == [
        {"process.pid": 9, "host.name": "alpha\\xff"},
        {"process.pid": 8, "host.name": "worker-0"},
    ]
    for file in found.files:
        file.display.encode()
    assert printable("a\udcff") == "a\\xff"


def test_deep_tree(tmp_path: Path) -> None:
    directory = tmp_path
    for _ in range(400):
        directory = directory / "d"
        directory.mkdir()
    write(directory, "x.log")
    assert len(discover([tmp_path]).files) == 1


# Wrong use


@pytest.mark.parametrize("name", ["nowhere", "nowhere/x.log", "nul\0l", "x" * 5000])
def test_missing_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="no such file or directory"):
        discover([tmp_path / name])


def test_empty_directory(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no log files under .*; point to a directory"):
        discover([tmp_path])


def test_directory_without_logs_says_why(tmp_path: Path) -> None:
    write(tmp_path, "a.bin", "b.json", "c.json")
    with pytest.raises(UserError, match=r"3 skipped, 3 of them because: not known as a log.*\(a.bin\)"):
        discover([tmp_path])


def test_no_path() -> None:
    with pytest.raises(UserError, match="no path given"):
        discover([])


# Hosts


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        pytest.param(
            [f"worker-0/process_log/debug/plog/{PLOG_1}", "worker-1/rank-3.txt"],
            ["worker-0", "worker-1"],
            id="named-like-hosts",
        ),
        pytest.param(
            ["job-a/worker-0/x.log", "job-b/job-b-master-0/x.log", "node-97-40/x.log", "192.0.2.7/x.log"],
            ["192.0.2.7", "worker-0", "job-b-master-0", "node-97-40"],
            id="deepest-name",
        ),
        pytest.param(
            ["crash/192.0.2.7-2024-09-23-11:25:29/vmcore-dmesg.txt", "crash/192.0.2.8-2024-09-23/dmesg"],
            ["192.0.2.7", "192.0.2.8"],
            id="address-and-time",
        ),
        pytest.param(
            [f"alpha/process_log/run/plog/{PLOG_1}", f"beta/process_log/run/plog/{PLOG_1}"],
            ["alpha", "beta"],
            id="side-by-side",
        ),
        pytest.param(
            [
                f"alpha/home/u/ascend/log/run/plog/{PLOG_1}",
                f"alpha/home/v/ascend/log/run/plog/{PLOG_1}",
                "alpha/train.log",
                f"beta/home/u/ascend/log/run/plog/{PLOG_1}",
            ],
            ["alpha", "alpha", "alpha", "beta"],
            id="users-are-no-hosts",
        ),
        pytest.param(
            [
                "alpha/2025-01-02-03-04-05/slog/dev-os-0/run/event/event_20250507195454617.log",
                "beta/2025-01-02-03-04-09/slog/dev-os-0/run/event/event_20250507195454617.log",
            ],
            ["alpha", "beta"],
            id="exports-of-two-machines",
        ),
        pytest.param(
            [
                "2025-01-02-03-04-05/slog/dev-os-0/run/event/event_20250507195454617.log",
                "2025-01-02-03-04-09/slog/dev-os-0/run/event/event_20250507195454617.log",
                f"asys_output_20250508095626087/dfx/log/host/cann/run/plog/{PLOG_1}",
            ],
            [None, None, None],
            id="exports-of-one-machine",
        ),
        pytest.param(
            [f"home/u/ascend/log/run/plog/{PLOG_1}", f"home/v/ascend/log/run/plog/{PLOG_1}"],
            [None, None],
            id="homes-of-one-machine",
        ),
        pytest.param(
            [f"rank_0/debug/plog/{PLOG_1}", f"rank_1/debug/plog/{PLOG_1}"],
            [None, None],
            id="ranks-are-no-hosts",
        ),
        pytest.param(
            [f"process_log/debug/plog/{PLOG_1}", "environment_check/worker-9/npu_info_before.txt"],
            ["worker-9", "worker-9"],
            id="environment-check-speaks-for-its-neighbours",
        ),
        pytest.param(
            [
                f"process_log/debug/plog/{PLOG_1}",
                "environment_check/worker-8/npu_info_before.txt",
                "environment_check/worker-9/npu_info_before.txt",
            ],
            ["worker-8", "worker-9", None],
            id="environment-check-of-two",
        ),
        pytest.param(["worker-3/x.log", "console.log"], ["worker-3", "worker-3"], id="one-name-is-all"),
        pytest.param(["slog/host-0/host-0_20200909152234009.log"], [None], id="the-daemon-of-2020"),
    ],
)  # fmt: skip
def test_hosts_by_directory(tmp_path: Path, tree: list[str], expected: list[str | None]) -> None:
    root = write(tmp_path / "case", *tree)
    found = hosts(root, discover([root]))
    assert found == dict(zip(sorted(tree), expected, strict=True))


def test_host_from_the_root_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path, f"worker-1/process_log/debug/plog/{PLOG_1}")
    assert discover([root / "worker-1"]).hosts == ("worker-1",)
    monkeypatch.chdir(root / "worker-1")
    assert discover([Path()]).hosts == ("worker-1",)


def test_host_from_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"worker-{number}/process_log" for number in range(2)]
    write(tmp_path, *(f"{name}/debug/plog/{PLOG_1}" for name in names))
    monkeypatch.chdir(tmp_path)
    assert discover([Path(names[0])]).hosts == ("worker-0",)
    assert discover([Path(name) for name in names]).hosts == ("worker-0", "worker-1")
    assert discover([tmp_path / name for name in names]).hosts == ("worker-0", "worker-1")


def test_where_the_tree_is_kept_names_no_host(tmp_path: Path) -> None:
    root = write(tmp_path / "node-7" / "case", "x.log")
    assert discover([root]).hosts == ()


def test_host_given_by_a_person(tmp_path: Path) -> None:
    write(tmp_path, "x.log", "worker-1/x.log")
    found = discover([tmp_path], host="here")
    assert hosts(tmp_path, found) == {"worker-1/x.log": "worker-1", "x.log": "here"}


def test_version_files_are_no_logs(tmp_path: Path) -> None:
    write(
        tmp_path,
        "worker-0/version.cfg",
        "worker-1/ascend_toolkit_install.info",
        "worker-1/version.info",
        "x.log",
    )
    found = discover([tmp_path])
    assert below(tmp_path, found) == ["x.log"]
    assert [(file.path.name, file.host) for file in found.version_files] == [
        ("version.cfg", "worker-0"),
        ("ascend_toolkit_install.info", "worker-1"),
        ("version.info", "worker-1"),
    ]


# Real trees


@pytest.mark.skipif(not CLUSTERS.is_dir(), reason="the labelled clusters are not beside the repository")
@pytest.mark.parametrize(
    ("tree", "expected", "sources"),
    [
        ("st_transport_timeout", ("worker-0", "worker-1"), {"plog": 8}),
        ("st_event_timeout", ("worker-0", "worker-1"), {"plog": 6}),
        ("st_cqe", ("worker-9",), {"plog": 2, "console": 1}),
        (
            "st_socket_2023",
            ("worker-0",),
            {
                "plog": 9,
                "console": 12,
                "device": 1,
                "device-os": 2,
                "firmware": 1,
                "hisi-history": 1,
                "black-box": 1,
                "host-os": 1,
            },
        ),
    ],
)
def test_labelled_clusters(tree: str, expected: tuple[str, ...], sources: dict[str, int]) -> None:
    found = discover([CLUSTERS / tree])
    assert found.hosts == expected
    counts: dict[str, int] = {}
    for file in found.files:
        counts[file.source] = counts.get(file.source, 0) + 1
    assert counts == sources
