"""The list of fields is complete, and the documentation is made from it."""

from __future__ import annotations

from pathlib import Path

from ascend_elk.formats import load_definitions
from ascend_elk.formats.fields import fields_table, load_fields

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "fields.md"
DEFINITIONS = load_definitions()


def test_documentation_is_what_the_list_gives() -> None:
    text = DOCUMENTATION.read_text("utf-8")
    table = text[text.index("| field | type |") :]
    table = table[: table.index("\n\n") + 1]
    assert table == fields_table(), "put in what `python -m ascend_elk.formats.fields` prints"


def test_names_are_unique_and_none_lies_below_another() -> None:
    names = [item.name for item in load_fields()]
    assert len(names) == len(set(names))
    assert not [(name, other) for name in names for other in names if other.startswith(f"{name}.")]


def test_every_field_that_content_gives_is_listed_with_its_type() -> None:
    grok = DEFINITIONS.grok
    patterns = [item.pattern for item in DEFINITIONS.formats.values()]
    patterns += [style.pattern for styles in DEFINITIONS.bodies.values() for style in styles]
    patterns += [prefix.pattern for prefix in DEFINITIONS.prefixes]
    patterns += [item.pattern for item in DEFINITIONS.extractors if item.pattern]
    patterns += [path.pattern for source in DEFINITIONS.sources.values() for path in source.paths]
    captured = {capture for pattern in patterns for capture in grok.to_python(pattern).captures}
    known = {item.name: item.type for item in load_fields()}
    texts = {"keyword", "match_only_text", "stored"}
    for capture in captured:
        # A code goes to ascend.error.codes.
        if capture.field == "code":
            continue
        assert capture.field in known, capture
        numeric = {"long": {"long", "double"}, "double": {"double"}, "string": texts}[capture.type]
        assert known[capture.field] in numeric, (capture, known[capture.field])
    constants = [*DEFINITIONS.formats.values(), *DEFINITIONS.extractors]
    assert {name for item in constants for name in item.set} <= set(known)
