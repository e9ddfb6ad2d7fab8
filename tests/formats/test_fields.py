"""One list of fields: what content captures and sets is in it, and docs/fields.md is made from it."""

from __future__ import annotations

from pathlib import Path

from ascend_elk.formats import load_definitions
from ascend_elk.formats.fields import fields_table, load_fields
from ascend_elk.render.steps import captures

DEFINITIONS = load_definitions()
FIELDS = {item.name: item for item in load_fields()}
DOCUMENTATION = Path(__file__).parents[2] / "docs" / "fields.md"
TYPES = {"string": ("keyword", "match_only_text"), "long": ("long",), "double": ("double",)}


def patterns() -> list[str]:
    found = [item.pattern for item in DEFINITIONS.formats.values()]
    found += [style.pattern for styles in DEFINITIONS.bodies.values() for style in styles]
    found += [item.pattern for item in DEFINITIONS.prefixes]
    found += [item.pattern for item in DEFINITIONS.extractors if item.pattern]
    found += [path.pattern for source in DEFINITIONS.sources.values() for path in source.paths]
    return found


def test_names_are_there_once() -> None:
    assert len(FIELDS) == len(load_fields()) > 70


def test_every_capture_is_a_field_of_its_type() -> None:
    library = dict(DEFINITIONS.grok.patterns)
    found = {item for pattern in patterns() for item in captures(pattern, library) if item.field != "code"}
    assert len(found) > 40
    for item in found:
        assert item.field in FIELDS, item
        assert FIELDS[item.field].type in TYPES[item.type], item


def test_every_constant_is_a_field() -> None:
    constants = {name for item in DEFINITIONS.formats.values() for name in item.set}
    constants |= {name for item in DEFINITIONS.extractors for name in item.set}
    assert constants <= FIELDS.keys()


def test_documentation_is_made_from_the_list() -> None:
    assert fields_table() in DOCUMENTATION.read_text("utf-8")
