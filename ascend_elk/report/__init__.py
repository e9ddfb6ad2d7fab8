"""A verdict for people: in the terminal and as a self-contained page."""

from ascend_elk.report.page import page
from ascend_elk.report.terminal import show

__all__ = ["page", "show"]
