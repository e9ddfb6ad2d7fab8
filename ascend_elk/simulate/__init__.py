"""Whole clusters' logs with a known fault: demo data, and the yardstick of the diagnosis."""

from ascend_elk.simulate.generate import Truth, simulate
from ascend_elk.simulate.scenarios import SCENARIOS, Scenario

__all__ = ["SCENARIOS", "Scenario", "Truth", "simulate"]
