"""From events to the card at fault."""

from ascend_elk.diagnose.model import Card, Evidence, Verdict

__all__ = ["Card", "Evidence", "Verdict"]
