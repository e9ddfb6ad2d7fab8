"""Path → source and the ids that the path gives. Pure: the path need not exist."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import PurePath
from typing import Any, NamedTuple

from ascend_elk.formats.definitions import Definitions, load_definitions
from ascend_elk.formats.grok import PythonPattern

UNKNOWN_SOURCE = "console"
# With what every pattern over a path begins
PATH_START = "%{PATH_START}"


class Classification(NamedTuple):
    """What a path says: the source, the layout that matched (``None``: none did) and ids by field name."""

    source: str
    layout: str | None
    fields: dict[str, Any]


def printable(path: PurePath | str) -> str:
    r"""Return a path as valid text: bytes that are not UTF-8 as ``\xNN``."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


class Classifier:
    """The paths of all sources, compiled."""

    def __init__(self, definitions: Definitions) -> None:
        """Compile; raises GrokError if a pattern is wrong."""
        start = definitions.grok.to_python(PATH_START).regex
        alternatives = []
        self._by_group: dict[int, tuple[str, str, PythonPattern]] = {}
        group = 1
        for source in definitions.sources.values():
            for path in source.paths:
                pattern = definitions.grok.to_python(path.pattern)
                alternatives.append(f"({pattern.regex.removeprefix(start)})")
                self._by_group[group] = (source.name, path.layout, pattern)
                group += 1 + len(pattern.captures)
        # One scan for all: the leftmost match is the one that explains most of the path.
        self._search = re.compile(f"{start}(?:{'|'.join(alternatives)})").search

    def classify(self, path: PurePath | str) -> Classification:
        """Find the source of a file by its path; the pattern that explains the longest end of it decides.

        Args:
            path: absolute or relative; need not exist.
        """
        match = self._search(printable(path.as_posix() if isinstance(path, PurePath) else path))
        if match is None or match.lastindex is None:
            return Classification(UNKNOWN_SOURCE, None, {})
        # The group that closed last is the one around the whole alternative.
        source, layout, pattern = self._by_group[match.lastindex]
        fields: dict[str, Any] = {}
        for number, capture in enumerate(pattern.captures, match.lastindex + 1):
            value = match.group(number)
            if value is not None:
                fields[capture.field] = int(value) if capture.type == "long" else value
        return Classification(source, layout, fields)


def classify(path: PurePath | str, definitions: Definitions | None = None) -> Classification:
    """Find the source of a file by its path; see ``Classifier.classify``."""
    return (default_classifier() if definitions is None else Classifier(definitions)).classify(path)


@lru_cache(maxsize=1)
def default_classifier() -> Classifier:
    """The classifier of the product's own content."""
    return Classifier(load_definitions())
