"""The rules that accuse cards of a failure; each yields candidates and knows nothing of the others.

Where a rule comes from stands in docs/diagnosis.md. Scores order the candidates; they are no probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ascend_elk.diagnose.case import Candidate, Case
from ascend_elk.diagnose.rules.errors import first_error, host_event, unknown_error
from ascend_elk.diagnose.rules.pointers import cqe, detected_link, heartbeat
from ascend_elk.diagnose.rules.setup import conflict_minority, missing_at_init, tls_minority, unconnected
from ascend_elk.diagnose.rules.waiting import behind, lagging_reports, last_to_fail, silent_rank, wait_chain

Rule = Callable[[Case], Iterator[Candidate]]

FAILURE_RULES: tuple[Rule, ...] = (
    first_error,
    host_event,
    missing_at_init,
    tls_minority,
    conflict_minority,
    detected_link,
    heartbeat,
    cqe,
    wait_chain,
    silent_rank,
    unconnected,
    behind,
    last_to_fail,
    lagging_reports,
    unknown_error,
)

__all__ = ["FAILURE_RULES", "Rule"]
