"""Whole trees of real runs whose card at fault was settled by others; they lie beside the project."""

from __future__ import annotations

from datetime import timezone
from pathlib import Path

import pytest

from ascend_elk.diagnose import Verdict, diagnose
from ascend_elk.interest import load_signs
from ascend_elk.opening import literal_search, open_logs

CLUSTERS = Path(__file__).parents[2].parent / "shared" / "clusters"

pytestmark = pytest.mark.skipif(not CLUSTERS.is_dir(), reason=f"the labelled clusters are not at {CLUSTERS}")


def verdict_of(tree: str, prefilter: bool) -> Verdict:
    logs = open_logs([CLUSTERS / tree], "auto", timezone.utc)
    literals = literal_search(load_signs().literals()) if prefilter else None
    return diagnose(logs.reader.events(logs.files, literals))


@pytest.fixture(params=[False, True], ids=["every line", "prefiltered"])
def prefilter(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_link_time_outs_lead_to_the_card_that_never_reported(prefilter: bool) -> None:
    verdict = verdict_of("st_transport_timeout", prefilter)
    assert [(c.host, c.device, c.rank) for c in verdict.cards] == [("worker-1", 1, 9)]
    assert [(c.host, c.device) for c in verdict.chain] == [
        ("worker-0", 2),
        ("worker-1", 2),
        ("worker-1", 0),
        ("worker-1", 1),
    ]


def test_cycle_names_both_and_the_address_that_no_log_owns(prefilter: bool) -> None:
    verdict = verdict_of("st_event_timeout", prefilter)
    assert verdict.kind == "link"
    assert {(c.host, c.device) for c in verdict.cards} == {("worker-1", 0), ("worker-0", 0)}
    assert [(c.host, c.device) for c in verdict.chain] == [("worker-1", 0), ("worker-0", 0), ("worker-1", 0)]
    assert any("3.0.0.0" in text for text in verdict.missing)


def test_half_of_the_logs_names_the_waiting_card_and_the_missing_one(prefilter: bool) -> None:
    verdict = verdict_of("st_event_timeout/worker-1", prefilter)
    assert (verdict.cards[0].host, verdict.cards[0].device) == ("worker-1", 0)
    assert verdict.confidence <= 0.5
    assert any("124.0.0.21" in text for text in verdict.missing)


def test_completion_errors_without_the_peers_logs_are_undetermined(prefilter: bool) -> None:
    verdict = verdict_of("st_cqe", prefilter)
    assert verdict.kind == "undetermined"
    assert {s.card.address for s in verdict.suspects} == {"192.1.95.102", "192.2.108.0"}
    assert any("192.1.95.102" in text and "192.2.108.0" in text for text in verdict.missing)


def test_all_ranks_time_out_alike_is_undetermined(prefilter: bool) -> None:
    verdict = verdict_of("st_socket_2023", prefilter)
    assert verdict.kind == "undetermined"
    # Nothing connected on these; which of them is at fault the cut log does not say.
    assert {s.card.device for s in verdict.suspects} >= {0, 4, 5}
    assert any("socket time-outs" in text for text in verdict.missing)
