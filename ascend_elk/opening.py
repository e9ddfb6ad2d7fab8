"""From paths to events: what there is to read, by which program, written by which processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from pathlib import Path
from typing import Any

from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

from ascend_elk.cann import Version
from ascend_elk.formats import Program, compile_program, load_definitions
from ascend_elk.identity import Registry
from ascend_elk.interest import load_signs
from ascend_elk.layout import LogFile, Skipped, VersionFile, discover
from ascend_elk.parse import Event, Parser
from ascend_elk.reading import Reader


@dataclass
class Logs:
    """Log files, ready to be read.

    Attributes:
        version: the CANN version that was declared, ``None`` for ``auto`` and ``all``.
        files: what there is to read.
        skipped: what was left out.
        version_files: files that state CANN's version.
    """

    version: Version | None
    program: Program
    files: Sequence[LogFile]
    skipped: Sequence[Skipped]
    version_files: Sequence[VersionFile]
    reader: Reader = field(repr=False)

    def registry(self) -> Registry:
        """Learn from a first, fast pass which card each process drives."""
        literals = [text for sign in load_signs().signs if sign.role == "identity" for text in sign.contains]
        registry = Registry()
        for event in Reader(self.reader.parser).events(self.files, literal_search(literals)):
            registry.observe(event.fields)
        return registry


def open_logs(paths: Sequence[Path], cann: str, host_zone: tzinfo, device_zone: tzinfo | None = None) -> Logs:
    """Find the log files under paths and compile what reads them.

    Args:
        paths: files and directories.
        cann: a version, whose formats alone are known then; ``auto`` and ``all`` know every format.
        host_zone: zone of lines written by hosts.
        device_zone: zone of lines written by devices; default: the hosts'.

    Raises:
        UserError: no such path, no log file, no such version.
    """
    version = None if cann.lower() in ("auto", "all") else Version.parse(cann)
    found = discover(paths)
    program = compile_program(load_definitions(), version)
    parser = Parser(program, host_zone=host_zone, device_zone=device_zone)
    return Logs(version, program, found.files, found.skipped, found.version_files, Reader(parser))


def literal_search(literals: Iterable[str]) -> BytesAhoCorasick:
    """Compile literals for a search in raw bytes."""
    texts = [text.encode() for text in dict.fromkeys(literals)]
    # Leftmost matches let a few literals be searched with vector instructions, ten times faster; which of
    # several literals at one place is found does not matter.
    return BytesAhoCorasick(texts, MatchKind.LeftmostFirst, Implementation.DFA)


def identified(events: Iterable[Event], registry: Registry) -> Iterable[Event]:
    """Add to each event of one file what the registry knows of its process."""
    return _identified(events, registry) if registry.processes else events


def _identified(events: Iterable[Event], registry: Registry) -> Iterator[Event]:
    known: dict[Any, dict[str, Any]] = {}
    for event in events:
        fields = event.fields
        key = (
            fields.get("process.pid"),
            fields.get("ascend.device.id"),
            fields.get("ascend.communicator.id"),
        )
        added = known.get(key)
        if added is None:
            added = known[key] = registry.identify(fields)
        for name, value in added.items():
            fields.setdefault(name, value)
        yield event
