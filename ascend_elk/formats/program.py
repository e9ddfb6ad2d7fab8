"""The definitions that one CANN version needs, ready for any backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ascend_elk.cann import Version, VersionRange
from ascend_elk.formats.definitions import (
    BodyStyle,
    Definitions,
    Extractor,
    LineFormat,
    Prefix,
    Source,
    SourcePath,
)


@dataclass(frozen=True)
class Program:
    """What is left of the definitions for ``version`` (``None``: for all) and for ``others`` beside it."""

    version: Version | None
    definitions: Definitions
    extractors: tuple[Extractor, ...]
    others: tuple[Version, ...] = ()

    @property
    def sources(self) -> dict[str, Source]:
        """Sources by name."""
        return self.definitions.sources

    def formats(self, source: Source) -> list[LineFormat]:
        """Line formats of a source, in the order in which they are tried."""
        known = self.definitions.formats
        return [known[name] for name in source.formats if self._applies(known[name].versions)]

    def bodies(self, group: str, module: str | None = None) -> list[BodyStyle]:
        """Body styles of a group in the order in which they are tried for a module: its own first."""
        styles = [
            style
            for style in self.definitions.bodies[group]
            if self._applies(style.versions) and (not style.exclusive or module in style.modules)
        ]
        return sorted(styles, key=lambda style: module not in style.modules)

    def modules(self, group: str) -> list[str]:
        """Modules that a group of body styles names."""
        return sorted({module for style in self.definitions.bodies[group] for module in style.modules})

    def prefixes(self, source: Source) -> tuple[Prefix, ...]:
        """Prefixes that are looked for: on consoles only, files of CANN have none."""
        return self.definitions.prefixes if source.framing == "continuation" else ()

    def paths(self, source: Source) -> list[SourcePath]:
        """Paths of a source."""
        return [path for path in source.paths if self._applies(path.versions)]

    def _applies(self, versions: VersionRange) -> bool:
        return self.version is None or any(one in versions for one in (self.version, *self.others))


def compile_program(definitions: Definitions, version: Version | None = None, *others: Version) -> Program:
    """Select what a CANN version writes.

    Args:
        definitions: all of ``grok/``.
        version: ``None`` compiles everything.
        others: further versions, for clusters where several run side by side.
    """
    extractors: Sequence[Extractor] = definitions.extractors
    if version is not None:
        extractors = [item for item in extractors if any(one in item.versions for one in (version, *others))]
    return Program(version, definitions, tuple(extractors), others)
