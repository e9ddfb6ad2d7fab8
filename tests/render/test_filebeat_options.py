"""What is rendered for Filebeat 7.17, 8 and 9 uses options that the reference of that version documents."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from ascend_elk.render import RenderOptions, render
from ascend_elk.render.options import STACKS

TABLE = Path(__file__).with_name("filebeat-options.yml")
# Together they render every option.
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "no-tls": {"tls": False, "elasticsearch": ("http://localhost:9200",)},
    "two-logstash": {"logstash": ("a.example:5044", "b.example:5044")},
    "kafka": {"kafka": ("k.example:9093",)},
    "ingest": {"parser": "ingest", "original": False, "device_timezone": "UTC"},
    "basic": {"parser": "ingest", "authentication": "basic"},
    "all-choices": {
        "identity": "fingerprint",
        "timezone": "+08:00",
        "device_timezone": "UTC",
        "cluster": "east",
        "job": "j-7",
        "labels": (("team", "a"),),
        "muted": ("SLOG",),
        "level": "WARNING",
        "consoles": ("/job/*/train.log",),
    },
}
# Free in form: what a person names, or a list that has a section of its own
LEAVES = {"fields", "processors"}


def documented(stack: str) -> set[tuple[str, str]]:
    """Section and option of the table that a version has."""
    found = set()
    for section, pages in yaml.safe_load(TABLE.read_text()).items():
        for options in pages.values():
            for option in options:
                entry = {"name": option} if isinstance(option, str) else option
                if STACKS.index(stack) >= STACKS.index(entry.get("since", STACKS[0])):
                    found.add((section, entry["name"]))
    return found


def flat(section: str, node: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in node.items():
        name = f"{prefix}{key}"
        if key == "processors":
            yield section, name
            for processor in value:
                for kind, body in processor.items():
                    yield from flat(kind, body)
        elif isinstance(value, dict) and key not in LEAVES:
            yield from flat(section, value, f"{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for item in value:
                yield from flat(section, item, f"{name}.")
        else:
            yield section, name


@cache
def rendered(stack: str, variant: str) -> set[tuple[str, str]]:
    """Section and option of everything that is rendered."""
    found: set[tuple[str, str]] = set()
    for path, text in render(RenderOptions(stack=stack, **VARIANTS[variant])).items():
        if path == "filebeat/filebeat.yml":
            found |= set(flat("filebeat.yml", yaml.safe_load(text)))
        elif path.startswith("filebeat/inputs.d/"):
            for entry in yaml.safe_load(text):
                found |= set(flat(entry["type"], entry))
    return found


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_every_option_is_documented(stack: str, variant: str) -> None:
    found = rendered(stack, variant)
    assert len(found) > 50
    assert not found - documented(stack)


@pytest.mark.parametrize("stack", STACKS)
def test_the_table_holds_nothing_else(stack: str) -> None:
    found = set().union(*(rendered(stack, variant) for variant in VARIANTS))
    assert not documented(stack) - found


@pytest.mark.parametrize("stack", STACKS)
def test_no_version_is_left_to_its_own_defaults_where_they_differ(stack: str) -> None:
    """Identity, fingerprint and what is forgotten have other defaults in each version."""
    for path, text in render(RenderOptions(stack=stack)).items():
        if path.startswith("filebeat/inputs.d/"):
            for entry in yaml.safe_load(text):
                assert entry["file_identity.native"] is None
                assert entry["prospector.scanner.fingerprint.enabled"] is False
                assert entry["clean_removed"] is True
                assert entry.get("clean_inactive") == (None if stack == "7.17" else -1)
