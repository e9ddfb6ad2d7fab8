import logging
import os
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from ascend_elk.errors import UserError
from ascend_elk.service.catalogue import CatalogueHolder
from ascend_elk.service.metrics import Metrics

OWN = """\
codes:
  - family: cann
    code: EI0006
    remediation: {text}
"""
# The family is read only when it is needed: the row lacks what a new code must have.
INCOMPLETE = """\
codes:
  - family: cann
    code: EU0042
    meaning: The feeder gave an empty batch.
"""


def write(path: Path, text: str) -> None:
    """Write so that the change shows in the time stamp, however fast the test is."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(before + 1_000_000_000, before + 1_000_000_000))


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "own.yml"
    write(path, OWN.format(text="Call the network team."))
    return path


def remediation(holder: CatalogueHolder) -> str:
    return holder.current.lookup("EI0006")[0].remediation


def test_nothing_is_loaded_where_nothing_changed(own):
    holder = CatalogueHolder([own])
    before = holder.current
    assert not holder.reload_if_changed()
    assert holder.current is before


def test_a_changed_file_replaces_the_catalogue(own):
    metrics = Metrics(CollectorRegistry())
    holder = CatalogueHolder([own], metrics)
    first = holder.current.version
    write(own, OWN.format(text="Call the storage team."))
    assert holder.reload_if_changed()
    assert remediation(holder) == "Call the storage team."
    text = metrics.text().decode()
    assert 'ascend_elk_catalogue_reloads_total{result="loaded"} 1.0' in text
    assert f'ascend_elk_catalogue_info{{version="{holder.current.version}"}} 1.0' in text
    assert first not in text


def test_a_touched_file_replaces_nothing(own):
    holder = CatalogueHolder([own])
    write(own, own.read_text(encoding="utf-8"))
    assert not holder.reload_if_changed()


BROKEN = {
    "codes: [\n": "own.yml:2: not valid YAML",
    "codes:\n  - family: cann\n    code: EI0006\n    severity: bad\n": "own.yml:4: codes.0.severity",
    INCOMPLETE: "own.yml:2: EU0042 lacks layer",
    "\n\ncodez: []\n": "own.yml:3: codez",
}


def test_a_broken_file_is_refused_once_and_the_old_one_stays(own, caplog):
    metrics = Metrics(CollectorRegistry())
    holder = CatalogueHolder([own], metrics)
    before = holder.current
    for number, (text, says) in enumerate(BROKEN.items(), 1):
        caplog.clear()
        write(own, text)
        with caplog.at_level(logging.INFO):
            assert not holder.reload_if_changed()
            assert not holder.reload_if_changed()
        assert holder.current is before
        assert remediation(holder) == "Call the network team."
        assert len(caplog.records) == 1
        assert says in caplog.text
        refused = f'ascend_elk_catalogue_reloads_total{{result="refused"}} {number}.0'
        assert refused in metrics.text().decode()
    write(own, OWN.format(text="Mended."))
    assert holder.reload_if_changed()
    assert remediation(holder) == "Mended."


def test_a_file_that_goes_away_is_refused(own, caplog):
    holder = CatalogueHolder([own])
    own.unlink()
    assert not holder.reload_if_changed()
    assert "cannot read the catalogue file" in caplog.text
    assert remediation(holder) == "Call the network team."


def test_a_broken_file_at_the_start_is_a_persons_error(own):
    write(own, INCOMPLETE)
    with pytest.raises(UserError, match="EU0042"):
        CatalogueHolder([own])
