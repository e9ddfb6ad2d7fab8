"""Directories → the files to read. Deterministic: the same tree gives the same list."""

from __future__ import annotations

import errno
import os
import re
import stat
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

from ascend_elk.errors import UserError
from ascend_elk.formats.definitions import Definitions
from ascend_elk.layout.classify import Classifier, default_classifier, printable
from ascend_elk.layout.files import Discovery, LogFile, Skipped, VersionFile
from ascend_elk.layout.hosts import name_hosts

_Identity = tuple[int, int]

_VERSION_FILE = re.compile(r"version\.cfg|(?:[a-z_]*)version\.info|[A-Za-z0-9_-]*_install\.info")
_TEXT_NAME = re.compile(
    r"(?i)(?:.*[._-])?(?:log|txt|out|err|stdout|stderr)(?:[._-][0-9][0-9T:._-]*)?(?:\.old|\.bak)?(?:\.gz)?"
)
# Text that is no log: graphs and settings beside the logs in exports of the tools
_NOT_A_LOG = re.compile(r"(?i)ge_(?:proto|onnx)_.*|requirements.*\.txt|readme.*|license.*|cmakelists\.txt")
_ARCHIVE = re.compile(r"(?i).*\.(?:zip|7z|rar|bz2|xz|zst|lz4|tar|tgz|tbz2|txz|tar\.gz|tar\.zst)")
_SNIFF = 8192
_MAGIC = (
    (b"\x7fELF", "a program"),
    (b"PK\x03\x04", "an archive; unpack it first"),
    (b"BZh", "an archive; unpack it first"),
    (b"\xfd7zXZ", "an archive; unpack it first"),
    (b"(\xb5/\xfd", "an archive; unpack it first"),
    (b"7z\xbc\xaf", "an archive; unpack it first"),
    (b"\x89PNG", "binary"),
    (b"%PDF", "binary"),
    (b"\xff\xfe", "UTF-16; convert it to UTF-8"),
    (b"\xfe\xff", "UTF-16; convert it to UTF-8"),
)
# Text may hold a few NULs (a log that a crash left with a hole); a file of which a tenth is NUL is none.
_NUL_SHARE = 10


def discover(
    paths: Sequence[Path | str], *, definitions: Definitions | None = None, host: str | None = None
) -> Discovery:
    """Find the log files under paths.

    A file that is named is taken whatever its name; in directories only known names and text-like
    suffixes are.

    Args:
        paths: files and directories.
        definitions: all of ``grok/``; default: the product's.
        host: name of the host for files whose directories name none.

    Raises:
        UserError: a path does not exist, or there is no log file under them.
    """
    if not paths:
        raise UserError("no path given; name a log file or a directory with logs")
    classifier = default_classifier() if definitions is None else Classifier(definitions)
    roots = [Path(path) for path in paths]
    files: list[LogFile] = []
    skipped: list[Skipped] = []
    version_files: list[Path] = []
    wanted = _named_files(roots)
    seen: set[_Identity] = set()
    for path in _walk(roots, skipped):
        try:
            status = path.stat()
        except OSError as error:
            skipped.append(Skipped(path, _os_reason(error)))
            continue
        identity = _identity(status)
        if identity in seen:
            continue
        seen.add(identity)
        if not stat.S_ISREG(status.st_mode):
            skipped.append(Skipped(path, _kind(status.st_mode)))
        elif _VERSION_FILE.fullmatch(path.name):
            version_files.append(path)
        else:
            taken = _take(path, status.st_size, identity in wanted, classifier)
            if isinstance(taken, Skipped):
                skipped.append(taken)
            else:
                files.append(taken)
    if not files:
        raise UserError(_nothing(roots, skipped))
    hosts = name_hosts(roots, [*(file.path for file in files), *version_files], host)
    return Discovery(
        tuple(_on_host(file, hosts.get(file.path)) for file in files),
        tuple(skipped),
        tuple(VersionFile(path, hosts.get(path)) for path in version_files),
    )


def _on_host(file: LogFile, host: str | None) -> LogFile:
    return file if host is None else replace(file, fields={**file.fields, "host.name": host})


def _identity(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino


def _named_files(roots: Sequence[Path]) -> set[_Identity]:
    """What a person named and is no directory; also checks that everything named is there."""
    named: set[_Identity] = set()
    for root in roots:
        try:
            status = root.stat()
        except PermissionError as error:
            raise UserError(f"{printable(root)}: permission denied; run as a user who may read it") from error
        except (OSError, ValueError) as error:
            raise UserError(f"{printable(root)}: no such file or directory") from error
        if not stat.S_ISDIR(status.st_mode):
            named.add(_identity(status))
    return named


def _walk(roots: Sequence[Path], skipped: list[Skipped]) -> Iterator[Path]:
    """Yield what is no directory, in order; each real directory once."""
    visited: set[_Identity] = set()
    for root in roots:
        above = {_identity(parent.stat()) for parent in root.resolve().parents}
        # An explicit stack: a tree may be deeper than Python's recursion allows.
        stack = [root]
        while stack:
            path = stack.pop()
            try:
                if not path.is_dir():
                    yield path
                    continue
                identity = _identity(path.stat())
                if identity in above:
                    skipped.append(Skipped(path, "link to a directory above"))
                elif identity not in visited:
                    visited.add(identity)
                    stack.extend(sorted(path.iterdir(), key=os.fsencode, reverse=True))
            except OSError as error:
                skipped.append(Skipped(path, _os_reason(error)))


def _os_reason(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return "permission denied"
    if error.errno == errno.ENOENT:
        return "points nowhere"
    if error.errno == errno.ELOOP:
        return "link that points at itself"
    return (error.strerror or str(error)).lower()


def _kind(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "pipe, not a file"
    return "socket, not a file" if stat.S_ISSOCK(mode) else "device, not a file"


def _nothing(roots: Sequence[Path], skipped: Sequence[Skipped]) -> str:
    where = ", ".join(printable(root) for root in roots[:3]) + (" …" if len(roots) > 3 else "")
    if not skipped:
        return f"no log files under {where}; point to a directory with plog, slog or console logs"
    reason, count = Counter(item.reason for item in skipped).most_common(1)[0]
    example = printable(next(item.path.name for item in skipped if item.reason == reason))
    return (
        f"no log files under {where}; {len(skipped)} skipped, {count} of them because: {reason} ({example})"
    )


def _take(path: Path, size: int, named: bool, classifier: Classifier) -> LogFile | Skipped:
    absolute = PurePath(os.path.abspath(path))  # noqa: PTH100 - without resolving links: their names count
    source, layout, fields = classifier.classify(absolute)
    known = layout is not None
    if not known and _ARCHIVE.fullmatch(path.name):
        return Skipped(path, "an archive; unpack it first")
    if not known and not named and (not _TEXT_NAME.fullmatch(path.name) or _NOT_A_LOG.fullmatch(path.name)):
        return Skipped(path, "not known as a log; name the file itself to read it")
    if size == 0:
        return Skipped(path, "empty")
    try:
        with path.open("rb") as stream:
            head = stream.read(_SNIFF)
    except OSError as error:
        return Skipped(path, _os_reason(error))
    compressed = head[:3] == b"\x1f\x8b\x08"
    if compressed:
        try:
            head = zlib.decompressobj(31).decompress(head, _SNIFF)
        except zlib.error:
            return Skipped(path, "damaged gzip")
    reason = _binary(head)
    if reason is not None and not known:
        return Skipped(path, reason)
    return LogFile(path, source, layout, fields, size, compressed)


def _binary(head: bytes) -> str | None:
    for magic, reason in _MAGIC:
        if head.startswith(magic):
            return reason
    if head[257:262] == b"ustar":
        return "an archive; unpack it first"
    return "binary" if head.count(0) * _NUL_SHARE > len(head) else None
