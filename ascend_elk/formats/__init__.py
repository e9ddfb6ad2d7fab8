"""Line formats as data: loading of ``grok/`` and compilation for a CANN version."""

from ascend_elk.formats.definitions import Definitions, load_definitions
from ascend_elk.formats.program import Program, compile_program

__all__ = ["Definitions", "Program", "compile_program", "load_definitions"]
