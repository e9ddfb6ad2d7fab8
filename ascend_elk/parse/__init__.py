"""Runs a program in-process: the bytes of a file become events."""

from ascend_elk.parse.event import Event, nested
from ascend_elk.parse.parser import Parser

__all__ = ["Event", "Parser", "nested"]
