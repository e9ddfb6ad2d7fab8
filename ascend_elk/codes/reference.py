"""Writes ``docs/codes/``, one page per family: ``python -m ascend_elk.codes.reference [DIR]``."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from ascend_elk.codes.catalogue import Catalogue
from ascend_elk.codes.models import Entry, Family
from ascend_elk.codes.signatures import Signatures

_NOTICE = "<!-- Written by python -m ascend_elk.codes.reference; change codes/ instead. -->"

_OWN_CODES = """\
## Your own codes

A YAML file given with `--codes FILE` changes codes, adds codes and messages, and mutes harmless lines. A
mistake in it is named with its line. The Chinese texts may be left out.

```yaml
codes:
  - family: cann            # change one: only what is written here is replaced
    code: EI0006
    remediation: Call the network team, then compare hccn_tool -i N -link -g.
  - family: cann            # add one: layer, category, meaning and remediation are needed
    code: EU0042
    layer: application
    category: state
    meaning: The feeder gave an empty batch.
    remediation: Look at the feeder's log.
signatures:
  - name: object-store-throttled
    literals: [[OBS, throttled]]      # alternatives, each a list of texts in this order
    layer: application
    category: resource
    meaning: The object store slows us down.
    remediation: Wait, or lower the number of loaders.
    signals: [slow]
    samples: ["OBS request throttled"]
mute: ["probe only"]        # lines with this text lose their alarm
```
"""


def pages(catalogue: Catalogue) -> dict[str, str]:
    """All pages: file name → Markdown."""
    families = list(catalogue.families.values())
    made = {
        f"{family.name}.md": _family_page(family, list(catalogue.entries(family.name))) for family in families
    }
    made["messages.md"] = _messages_page(catalogue.signatures)
    made["README.md"] = _index(
        families, {name: len(list(catalogue.entries(name))) for name in catalogue.families}
    )
    return made


def write(directory: Path, catalogue: Catalogue) -> None:
    """Write the pages; pages that no longer belong there are removed."""
    directory.mkdir(parents=True, exist_ok=True)
    made = pages(catalogue)
    for old in directory.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (directory / name).write_text(text, encoding="utf-8")


def _index(families: Iterable[Family], counts: dict[str, int]) -> str:
    lines = [
        _NOTICE,
        "",
        "# Error codes",
        "",
        "| family | name | codes | |",
        "|---|---|---:|---|",
        *(
            f"| [{family.name}]({family.name}.md) | {family.title} / {family.title_zh} "
            f"| {counts[family.name]} | {_cell(family.about)} |"
            for family in families
        ),
        "",
        "Faults that print no code: [messages](messages.md).",
        "",
        _OWN_CODES,
    ]
    return "\n".join(lines)


def _family_page(family: Family, entries: list[Entry]) -> str:
    lines = [
        _NOTICE,
        "",
        f"# {family.title} / {family.title_zh}",
        "",
        family.about,
        "",
        family.about_zh,
        "",
        "| code | meaning | what to do | |",
        "|---|---|---|---|",
    ]
    seen = set()
    for entry in entries:
        # The anchor leads to the first meaning of a number.
        anchor = "" if entry.code in seen else f'<a id="{entry.code.lower()}"></a>'
        seen.add(entry.code)
        facts = [entry.severity, f"{entry.layer} / {entry.category}", entry.versions(), entry.note or ""]
        facts += [f"returned as {entry.returned_as}" if entry.returned_as else ""]
        facts += [f"MindCluster: {entry.action}" if entry.action else ""]
        lines.append(
            f"| {anchor}`{entry.code}`{f'<br>{_cell(entry.symbol)}' if entry.symbol else ''} "
            f"| {_cell(entry.meaning)}<br>{_cell(entry.meaning_zh)} "
            f"| {_cell(entry.remediation)}<br>{_cell(entry.remediation_zh)} "
            f"| {_cell('<br>'.join(fact for fact in facts if fact))} |"
        )
    lines.append("")
    return "\n".join(lines)


def _messages_page(signatures: Signatures) -> str:
    lines = [
        _NOTICE,
        "",
        "# Faults known by their message / 无错误码、按消息识别的故障",
        "",
        "| name | texts | meaning | what to do | |",
        "|---|---|---|---|---|",
    ]
    for signature in signatures:
        texts = "<br>".join(" … ".join(f"`{text}`" for text in one) for one in signature.literals)
        lines.append(
            f'| <a id="{signature.name}"></a>{signature.name} | {_cell(texts)} '
            f"| {_cell(signature.meaning)}<br>{_cell(signature.meaning_zh)} "
            f"| {_cell(signature.remediation)}<br>{_cell(signature.remediation_zh)} "
            f"| {signature.severity}<br>{signature.layer} / {signature.category} |"
        )
    lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Text for a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", "<br>")


if __name__ == "__main__":
    root = Path(__file__).resolve().parents[2]
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else root / "docs" / "codes", Catalogue.load())
