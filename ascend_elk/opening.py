"""From paths to a reader: what there is to read, of which CANN version, by which program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path

from ascend_elk.cann import Version
from ascend_elk.formats import Program, compile_program, load_definitions
from ascend_elk.identity import IDENTITY_LITERALS, Registry
from ascend_elk.layout import LogFile, Skipped, discover
from ascend_elk.parse import Parser
from ascend_elk.reading import Reader


@dataclass
class Logs:
    """Log files, ready to be read."""

    files: list[LogFile]
    skipped: list[Skipped]
    program: Program
    reader: Reader
