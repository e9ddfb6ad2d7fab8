"""From events to the card at fault."""

from ascend_elk.diagnose.collect import Collector
from ascend_elk.diagnose.engine import conclude, diagnose
from ascend_elk.diagnose.model import Card, Evidence, Verdict

__all__ = ["Card", "Collector", "Evidence", "Verdict", "conclude", "diagnose"]
