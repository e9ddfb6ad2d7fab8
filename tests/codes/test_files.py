"""The files of the catalogue: a mistake is named with file, line and reason; users' files lie over them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ascend_elk.codes import Catalogue
from ascend_elk.codes.loader import read
from ascend_elk.codes.models import CodeFile, FamiliesFile, SharedRemedies, SignaturesFile
from ascend_elk.content import content_dir
from ascend_elk.errors import UserError

CODES = content_dir("codes")
SPECIAL = {"families": FamiliesFile, "remedies": SharedRemedies, "signatures": SignaturesFile}


@pytest.mark.parametrize("path", sorted(CODES.glob("*.yml")), ids=lambda path: path.stem)
def test_every_file_keeps_the_schema(path: Path) -> None:
    file = read(path, SPECIAL.get(path.stem, CodeFile))
    if isinstance(file, CodeFile):
        assert file.family == path.stem


def test_every_family_has_a_file_and_every_file_a_family() -> None:
    names = {path.stem for path in CODES.glob("*.yml")} - set(SPECIAL)
    assert names == set(Catalogue.load().families)


MISTAKES = {
    "misspelt key": ("codes:\n- family: cann\n  code: EI0006\n  meanning: x\n", 4, "meanning: Extra inputs"),
    "layer": ("codes:\n- family: cann\n  code: EI0006\n  layer: moon\n", 4, "layer: Input should be"),
    "severity": (
        "codes:\n- {family: cann, code: EI0006}\n- family: cann\n  code: EI0007\n  severity: bad\n",
        5,
        "severity",
    ),
    "signal": ("codes:\n- family: cann\n  code: EI0006\n  signals: [timeout, doom]\n", 4, "signals.1"),
    "version": ("codes:\n- family: cann\n  code: EI0006\n  since: soon\n", 4, "'soon' is not a CANN version"),
    "no code": ("codes:\n- family: cann\n  meaning: x\n", 2, "code: Field required"),
    "yaml": ("codes:\n- family: [cann\n", 3, "not valid YAML"),
    "tab": ("codes:\n\t- x\n", 2, "not valid YAML"),
    "list": ("- a\n", 1, "a mapping is expected"),
    "empty": ("", 1, "a mapping is expected"),
    "since_after": (
        "codes:\n- family: cann\n  code: EI0006\n  since: '8.0'\n  since_after: '7.0'\n",
        2,
        "since_exact: false",
    ),
    "short mute": ("mute: [ab]\n", 1, "mute.0"),
    "no sample": (
        "signatures:\n- name: x\n  literals: [[abc]]\n  layer: runtime\n  category: state\n  meaning: x\n  remediation: y\n",
        2,
        "samples: Field required",
    ),
}


@pytest.mark.parametrize(("text", "line", "reason"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, line: int, reason: str) -> None:
    path = tmp_path / "own.yml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        Catalogue.load([path])
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: ")
    assert reason in message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("codes: [{family: hcll, code: x}]", r"own\.yml:1: there is no code family 'hcll'"),
        (
            "mute: [abc]\ncodes: [{family: cann, code: X1}]",
            r"own\.yml:2: 'X1' does not look like a code of the family cann",
        ),
    ],
)
def test_a_wrong_family_or_code_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "own.yml"
    path.write_text(text)
    with pytest.raises(UserError, match=reason):
        Catalogue.load([path])


def test_a_new_code_needs_its_texts(tmp_path: Path) -> None:
    path = tmp_path / "own.yml"
    path.write_text("codes: [{family: cann, code: EU0042, layer: application, category: state}]")
    with pytest.raises(UserError, match=r"own\.yml:1: EU0042 lacks meaning, remedy or remediation"):
        Catalogue.load([path]).lookup("EU0042")


def test_a_file_that_cannot_be_read_is_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read the catalogue file"):
        Catalogue.load([tmp_path / "none.yml"])
    bad = tmp_path / "bad.yml"
    bad.write_bytes(b"codes: \xff\n")
    with pytest.raises(UserError, match="not UTF-8 at byte 7"):
        Catalogue.load([bad])


def test_a_mistake_in_the_catalogues_own_file_is_named(tmp_path: Path) -> None:
    directory = tmp_path / "codes"
    shutil.copytree(CODES, directory)
    path = directory / "cqe.yml"
    path.write_text(
        path.read_text()
        + "- code: '6'\n  remedy: no-such\n  layer: runtime\n  category: state\n  meaning: x\n"
    )
    with pytest.raises(UserError, match=r"cqe\.yml: 6: there is no remedy named 'no-such'"):
        Catalogue(directory).lookup("6", family="cqe")


def test_users_change_add_and_mute(tmp_path: Path) -> None:
    path = tmp_path / "own.yml"
    path.write_text(
        """
codes:
- {family: cann, code: ei0009, severity: info, remediation: Call the network team.}
- {family: cann, code: EU0042, layer: application, category: state, meaning: Our own fault., remediation: Ask us.}
signatures:
- name: our-storage
  literals: [["OBS", "throttled"]]
  layer: application
  category: resource
  meaning: The object store is slow.
  remediation: Wait.
  signals: [slow]
  samples: ["OBS request throttled"]
mute: ["known and harmless"]
"""
    )
    plain, own = Catalogue.load(), Catalogue.load([path])
    (changed,) = own.lookup("EI0009")
    (base,) = plain.lookup("EI0009")
    assert (changed.severity, changed.remediation, changed.meaning) == (
        "info",
        "Call the network team.",
        base.meaning,
    )
    assert changed.source == base.source
    (added,) = own.lookup("EU0042")
    assert (added.meaning_zh, added.source) == ("Our own fault.", str(path))
    assert [one.name for one in own.signatures.match("OBS request throttled")] == ["our-storage"]
    assert own.is_muted("this is known and harmless")
    assert not plain.is_muted("this is known and harmless")


def test_a_user_file_can_replace_a_shared_remedy_and_composed_texts(tmp_path: Path) -> None:
    path = tmp_path / "own.yml"
    path.write_text("codes: [{family: dms, code: '81078603', meaning: Port down., remediation: Call us.}]")
    (entry,) = Catalogue.load([path]).lookup("0x81078603")
    assert (entry.meaning, entry.remediation, entry.action) == ("Port down.", "Call us.", "NotHandle")
