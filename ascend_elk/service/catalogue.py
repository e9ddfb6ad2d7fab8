"""The catalogue in force, and its replacement while the service runs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from ascend_elk.codes import Catalogue
from ascend_elk.content import content_dir
from ascend_elk.errors import UserError
from ascend_elk.service.metrics import Metrics

_log = logging.getLogger(__name__)
# What tells that a file may have changed: path, mtime_ns, size, inode; only the path where it is gone.
_Stamp = tuple[object, ...]


class CatalogueHolder:
    """Holds the catalogue that comes with the package, with the users' own files over it."""

    def __init__(self, paths: Sequence[Path] = (), metrics: Metrics | None = None) -> None:
        """Load the catalogue.

        Args:
            paths: YAML files with users' codes, as ``--codes`` takes them.
            metrics: counts the reloads.

        Raises:
            UserError: a file has an error; says file, line and reason.
        """
        self._paths = tuple(paths)
        self._metrics = metrics
        self._lock = Lock()
        self._stamps = self._look()
        self._current = _load(self._paths)
        self._note_version(None)

    @property
    def current(self) -> Catalogue:
        """The catalogue in force."""
        return self._current

    def reload_if_changed(self) -> bool:
        """Load anew if a file has changed since.

        A broken file is refused: its file, line and reason are logged, once for each state of the files, and
        the old catalogue stays in force.

        Returns:
            Whether another catalogue is in force now.
        """
        with self._lock:
            stamps = self._look()
            if stamps == self._stamps:
                return False
            self._stamps = stamps
            before = self._current.version
            try:
                loaded = _load(self._paths)
            except UserError as error:
                self._count("refused")
                _log.error("catalogue refused, %s stays in force: %s", before, error)
                return False
            if loaded.version == before:
                return False
            self._current = loaded
            self._count("loaded")
            self._note_version(before)
            _log.info("catalogue %s replaces %s", loaded.version, before)
            return True

    def _look(self) -> tuple[_Stamp, ...]:
        return tuple(_stamp(path) for path in [*sorted(content_dir("codes").glob("*.yml")), *self._paths])

    def _count(self, result: str) -> None:
        if self._metrics is not None:
            self._metrics.reloads.labels(result=result).inc()

    def _note_version(self, before: str | None) -> None:
        if self._metrics is None:
            return
        if before is not None:
            self._metrics.catalogue.remove(before)
        self._metrics.catalogue.labels(version=self._current.version).set(1)


def _load(paths: Sequence[Path]) -> Catalogue:
    """Load completely: families are read when first needed, and their errors must show now."""
    catalogue = Catalogue.load(paths)
    for _ in catalogue.entries():
        pass
    len(catalogue.signatures)
    catalogue.is_muted("")
    return catalogue


def _stamp(path: Path) -> _Stamp:
    try:
        status = path.stat()
    except OSError:
        return (path,)
    return (path, status.st_mtime_ns, status.st_size, status.st_ino)
