"""Whole clusters' logs with a known fault: demo data, and the yardstick of the diagnosis."""
