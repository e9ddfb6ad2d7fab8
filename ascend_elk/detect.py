"""The CANN version of a tree: its version files, else what its lines betray.

Logs never state the version. A version file settles it; a path of an installation in a line is a strong
hint; the styles of the lines only narrow a range, and libraries of several versions may write into one tree.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ascend_elk.cann import Version, VersionRange
from ascend_elk.content import content_dir
from ascend_elk.errors import UserError
from ascend_elk.formats.definitions import Definitions, load_definitions, read_yaml
from ascend_elk.formats.grok import PythonPattern
from ascend_elk.layout import LogFile, Tree, printable

_VERSION_FILE_LIMIT = 64 * 1024
# Sources and layouts that follow CANN's version; the device's own follow the driver's.
_CANN_SOURCES = ("plog", "device", "trace", "console", "mindie")
_CANN_ROOTS = ("process-log",)
# Enough lines to tell styles, few enough for a tree of 1,000 hosts: bytes of each end of a file, files of
# each source of a host, files of all hosts.
_SAMPLE_BYTES = 32 * 1024
_SAMPLE_FILES = 12
_SAMPLE_ALL_FILES = 1000

_CONFIG_LINE = re.compile(r"(\w+)_running_version=\[([^:\]]+):([^\]]+)\]")
_KEY_LINE = re.compile(r"\s*(\w+)\s*=\s*(.*?)\s*")
_INTERNAL = re.compile(r"([0-9]+\.[0-9]+)\.(?:[0-9]+\.|[A-Z][0-9]+\.){1,4}[A-Z]?[0-9]+")
_DRIVER_KEYS = ("ascendhal_version", "compatible_version_fw")


@dataclass(frozen=True)
class Detection:
    """What is known about the version.

    Attributes:
        version: the one version that the evidence states; ``None`` if it states none or several.
        range: the versions that the evidence allows; all, where it says nothing or contradicts itself.
        evidence: one sentence per fact, strongest first.
        contradictory: facts exclude each other.
    """

    version: Version | None
    range: VersionRange
    evidence: tuple[str, ...]
    contradictory: bool

    def __str__(self) -> str:
        """For people: ``8.0.0``, ``8.1.RC1 .. 8.2 (inferred)``, ``unknown``."""
        if self.version is not None:
            return str(self.version)
        if self.range == VersionRange():
            return "contradictory" if self.contradictory else "unknown"
        return f"{self.range} (inferred)"


class _Content(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class InstallationPath(_Content):
    """A path in a line that holds a version."""

    pattern: str
    samples: tuple[dict[str, Any], ...] = Field(min_length=1)


class LineStyle(_Content):
    """A way of writing that came or went with a version."""

    name: str
    reason: str
    since: str | None = None
    until: str | None = None
    contains: tuple[str, ...] = Field(min_length=1)
    pattern: str | None = None
    samples: tuple[str, ...] = Field(min_length=1)

    @property
    def versions(self) -> VersionRange:
        """Versions that write so."""
        return VersionRange.of(self.since, self.until)


class VersionHints(_Content):
    """``grok/version-hints.yml``."""

    internal: dict[str, str]
    paths: tuple[InstallationPath, ...]
    styles: tuple[LineStyle, ...]


@lru_cache(maxsize=1)
def load_version_hints() -> VersionHints:
    """Read ``grok/version-hints.yml``."""
    return VersionHints.model_validate(read_yaml(content_dir("grok") / "version-hints.yml"))


def detect_version(
    tree: Tree,
    sample: Iterable[tuple[LogFile, str]] | None = None,
    definitions: Definitions | None = None,
) -> Detection:
    """Find the CANN version of a whole tree.

    Args:
        tree: what was discovered.
        sample: lines to look at, with their file; default: the first ones of some files of every kind.
        definitions: all of ``grok/``; default: the product's.
    """
    return combine(detect_versions(tree, sample, definitions))


def combine(by_host: Mapping[str | None, Detection]) -> Detection:
    """Put several hosts together: the version that all agree on, or a contradiction that names them."""
    found = list(by_host.values())
    if len(found) == 1:
        return found[0]
    versions = {detection.version for detection in found if detection.version is not None}
    common = _intersection(detection.range for detection in found)
    contradictory = len(versions) > 1 or common is None or any(item.contradictory for item in found)
    evidence = [f"{host or 'no host'}: {detection}" for host, detection in by_host.items()]
    evidence += [fact for detection in found for fact in detection.evidence]
    version = next(iter(versions)) if len(versions) == 1 and common is not None else None
    return Detection(version, common or VersionRange(), tuple(dict.fromkeys(evidence)), contradictory)


def detect_versions(
    tree: Tree,
    sample: Iterable[tuple[LogFile, str]] | None = None,
    definitions: Definitions | None = None,
) -> dict[str | None, Detection]:
    """Find the CANN version of each host.

    Args:
        tree: what was discovered.
        sample: lines to look at, with their file; default: the first ones of some files of every kind.
        definitions: all of ``grok/``; default: the product's.

    Returns:
        By host; ``None`` stands for files of no known host.
    """
    hints = _CompiledHints(definitions or load_definitions(), load_version_hints())
    evidence: dict[str | None, _Evidence] = defaultdict(_Evidence)
    for file in tree.version_files:
        evidence[file.host].files += read_version_file(file.path, hints.internal)
    for log_file in tree.files:
        of_host = evidence[log_file.fields.get("host.name")]
        hint = hints.layouts.get((log_file.source, log_file.layout or ""))
        if hint is not None:
            of_host.styles.setdefault(f"layout {log_file.layout}", (hint, log_file.display))
    for log_file, line in sample_lines(tree.files) if sample is None else sample:
        hints.observe(line, log_file.display, evidence[log_file.fields.get("host.name")])
    return {host: item.conclude() for host, item in sorted(evidence.items(), key=lambda pair: pair[0] or "")}


def sample_lines(files: Iterable[LogFile]) -> Iterator[tuple[LogFile, str]]:
    """Yield lines from both ends of some files of every host and source."""
    groups: dict[tuple[str, str], list[LogFile]] = defaultdict(list)
    for file in files:
        if file.source in _CANN_SOURCES:
            groups[file.fields.get("host.name", ""), file.source].append(file)
    wanted = max(1, min(_SAMPLE_FILES, _SAMPLE_ALL_FILES // max(1, len(groups))))
    for group in groups.values():
        for file in group[:wanted]:
            for line in _ends(file).split("\n"):
                yield file, line


def _ends(file: LogFile) -> str:
    """The first and the last lines of a file; of a compressed one the first only."""
    try:
        with gzip.open(file.path) if file.compressed else file.path.open("rb") as stream:
            data = stream.read(_SAMPLE_BYTES)
            if not file.compressed and file.size > 2 * _SAMPLE_BYTES:
                stream.seek(file.size - _SAMPLE_BYTES)
                data += b"\n" + stream.read(_SAMPLE_BYTES).partition(b"\n")[2]
            return data.decode("utf-8", "replace")
    except (OSError, EOFError, zlib.error):
        return ""  # reading it in full reports what is wrong with it


@dataclass(frozen=True)
class StatedVersion:
    """What a version file says.

    Attributes:
        version: CANN's version.
        sentence: where it stands, for people.
        translated: from an internal number, which is coarser than the version.
    """

    version: Version
    sentence: str
    translated: bool = False


def read_version_file(path: Path, internal: Mapping[str, str]) -> list[StatedVersion]:
    """Read what a version file says about CANN; nothing if it is about the driver, damaged or unreadable.

    Args:
        path: ``version.cfg``, ``version.info`` or ``*_install.info``.
        internal: CANN version by internal version.

    Returns:
        The runtime's version, or those of all components where the runtime is not named.
    """
    try:
        with path.open("rb") as stream:
            text = stream.read(_VERSION_FILE_LIMIT).decode("utf-8", "replace").replace("\0", "\n")
    except OSError:
        return []
    where = printable(path)
    running = {component: _version(written) for component, _, written in _CONFIG_LINE.findall(text)}
    components = ["runtime"] if running.get("runtime") else list(running)
    found = [
        StatedVersion(version, f"{where}: {component} runs {version}")
        for component in components
        if (version := running[component])
    ]
    return found or _installed(text, path.name, where, internal)


def _installed(text: str, name: str, where: str, internal: Mapping[str, str]) -> list[StatedVersion]:
    lines = (_KEY_LINE.fullmatch(line) for line in text.split("\n"))
    values: dict[str, str] = {line.group(1): line.group(2) for line in lines if line}
    package = values.get("package_name", name).lower()
    if any(key in values for key in _DRIVER_KEYS) or "driver" in package or "firmware" in package:
        return []
    if "package_name" in values and "cann" not in package:
        return []
    written = values.get("version") or values.get("Version") or ""
    inside = _INTERNAL.fullmatch(written)
    version = _version(internal.get(inside.group(1), "") if inside else written)
    if version is None:
        return []
    if inside:
        return [StatedVersion(version, f"{where}: internal version {written} is CANN {version}", True)]
    return [StatedVersion(version, f"{where}: installed version {version}")]


def _version(text: str) -> Version | None:
    try:
        version = Version.parse(text)
    except UserError:
        return None
    # Driver and firmware count by year: 22.0 to 26.x
    return None if version.release[0] > 20 else version


class _Evidence:
    """What was seen of one host."""

    def __init__(self) -> None:
        self.files: list[StatedVersion] = []
        self.paths: dict[Version, str] = {}
        self.styles: dict[str, tuple[VersionRange, str]] = {}

    def conclude(self) -> Detection:
        facts = [stated.sentence for stated in self.files]
        facts += [f"{where}: a path of an installation of {version}" for version, where in self.paths.items()]
        facts += [f"{where}: {reason}: {versions}" for reason, (versions, where) in self.styles.items()]
        evidence = tuple(facts)
        ranges = [versions for versions, _ in self.styles.values()]
        inferred = _intersection(ranges)
        written = [stated for stated in self.files if not stated.translated] or self.files
        stated = list({stated.version for stated in written})
        if not stated and len(self.paths) == 1:
            stated = list(self.paths)
        if len(stated) > 1:
            return Detection(None, VersionRange(min(stated), max(stated)), evidence, contradictory=True)
        if stated:
            version = stated[0]
            excluded = any(version not in versions for versions in ranges)
            # A file knows; a path in a line may be another installation's.
            if self.files or not excluded:
                return Detection(version, VersionRange(version, version), evidence, excluded)
            return Detection(None, VersionRange(), evidence, contradictory=True)
        return Detection(None, inferred or VersionRange(), evidence, contradictory=inferred is None)


class _CompiledHints:
    def __init__(self, definitions: Definitions, hints: VersionHints) -> None:
        grok = definitions.grok
        self.internal = hints.internal
        self.layouts = {
            (source.name, path.layout): path.versions
            for source in definitions.sources.values()
            for path in source.paths
            if path.root in _CANN_ROOTS and path.versions != VersionRange()
        }
        self._paths = [grok.to_python(path.pattern) for path in hints.paths]
        self._styles: list[tuple[LineStyle, VersionRange, PythonPattern | None]] = [
            (style, style.versions, grok.to_python(style.pattern) if style.pattern else None)
            for style in hints.styles
        ]

    def observe(self, line: str, where: str, evidence: _Evidence) -> None:
        for style, versions, pattern in self._styles:
            if style.reason in evidence.styles or not any(literal in line for literal in style.contains):
                continue
            if pattern is None or _search(pattern, line):
                evidence.styles[style.reason] = (versions, where)
        if (
            "/cann-" in line
            or "/CANN-" in line
            or "ascend-toolkit/" in line
            or "/nnrt/" in line
            or "/nnae/" in line
        ):
            version = self.installed(line)
            if version is not None:
                evidence.paths.setdefault(version, where)

    def installed(self, line: str) -> Version | None:
        """The version in the path of an installation that a line names."""
        for pattern in self._paths:
            match = _search(pattern, line)
            if match:
                text = match.group(1)
                internal = pattern.captures[0].field == "internal"
                return _version(self.internal.get(text, "") if internal else text)
        return None


def _search(pattern: PythonPattern, line: str) -> re.Match[str] | None:
    return pattern.compiled.match(line) if pattern.anchored else pattern.compiled.search(line)


def _intersection(ranges: Iterable[VersionRange]) -> VersionRange | None:
    """The versions that lie in all ranges; ``None`` if there is none."""
    since: Version | None = None
    until: Version | None = None
    for item in ranges:
        if item.since is not None and (since is None or since < item.since):
            since = item.since
        if item.until is not None and (until is None or item.until < until):
            until = item.until
    both = VersionRange(since, until)
    if since is None or until is None or since <= until or since in both:
        return both
    return None
