"""Logstash: a branch per source with the definitions' own patterns; scripts do what grok cannot."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
from jinja2 import Environment

from ascend_elk.formats.definitions import BodyStyle
from ascend_elk.render.options import RenderOptions
from ascend_elk.render.steps import (
    MANY_LITERALS,
    ExtractorStep,
    Format,
    SourceSteps,
    Steps,
    captures,
    renamed,
)

_TYPES = {"long": ":int", "double": ":float", "": "", "string": ""}
_REST = "@metadata.rest"
# Fewer formats are simply tried: looking at the first character would cost as much.
_MANY_FORMATS = 4
_FILES = (
    "pipelines.yml",
    "conf.d/10-input.conf",
    "conf.d/40-complete.conf",
    "conf.d/90-output.conf",
    "dead-letter/dead-letter.conf",
)


def render_logstash(
    steps: Steps, options: RenderOptions, templates: Environment, scripts: Path
) -> dict[str, str]:
    """Return the files under ``logstash/`` by path.

    Args:
        steps: what to do.
        options: addresses, credentials and so on.
        templates: of ``logstash/``.
        scripts: directory of the Ruby scripts.
    """
    files = {
        f"logstash/{name}": templates.get_template(f"{name}.j2").render(options=options) for name in _FILES
    }
    files["logstash/patterns/ascend"] = _pattern_file(steps)
    source_template = templates.get_template("conf.d/30-source.conf.j2")
    for source in steps.sources:
        name = source.source.name
        files[f"logstash/conf.d/30-{name}.conf"] = source_template.render(
            name=name, **_source(steps, source), options=options
        )
    bodies_template = templates.get_template("conf.d/35-bodies.conf.j2")
    for name, bodies in _bodies(steps):
        files[f"logstash/conf.d/35-{name}.conf"] = bodies_template.render(**bodies, options=options)
    files["logstash/conf.d/50-facts.conf"] = templates.get_template("conf.d/50-facts.conf.j2").render(
        extractors=[_extractor(step) for step in steps.extractors], options=options
    )
    files["logstash/ruby/tables.json"] = _tables(steps)
    for script in sorted(scripts.glob("*.rb")):
        files[f"logstash/ruby/{script.name}"] = script.read_text("utf-8")
    return files


def field_reference(name: str) -> str:
    """``log.level`` as Logstash refers to it: ``[log][level]``."""
    return "".join(f"[{part}]" for part in name.split("."))


def logstash_pattern(pattern: str, renames: dict[str, str] | None = None) -> str:
    """Rewrite the field names and types of a grok pattern for Logstash; its regex stays as it is."""

    def rename(name: str, kind: str) -> str:
        return f"{field_reference((renames or {}).get(name, name))}{_TYPES[kind]}"

    return renamed(pattern, rename)


def quoted(text: str) -> str:
    """A string of Logstash's configuration: quotes cannot be escaped in it, so the other kind is used."""
    if '"' not in text:
        return f'"{text}"'
    if "'" not in text:
        return f"'{text}'"
    # Both kinds: the double one by its code point, which every engine knows.
    return '"' + text.replace('"', r"\x22") + '"'


def any_of(texts: Iterable[str]) -> str:
    """A regex for any of many literals that shares their beginnings; they are letters and digits."""
    tree: dict[str, Any] = {}
    for text in texts:
        node = tree
        for character in text:
            node = node.setdefault(character, {})
        node[""] = {}
    return _branch(tree)


def _branch(tree: dict[str, Any]) -> str:
    if "" in tree:
        # Its being here is enough, whatever follows.
        return ""
    by_rest: dict[str, list[str]] = {}
    for character, below in tree.items():
        by_rest.setdefault(_branch(below), []).append(character)
    parts = []
    for rest, characters in by_rest.items():
        first = characters[0] if len(characters) == 1 else f"[{''.join(sorted(characters))}]"
        parts.append(first + rest)
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"


def _pattern_file(steps: Steps) -> str:
    lines = ["# Generated from grok/patterns; the same text that every other backend uses.", ""]
    lines += [f"{name} {logstash_pattern(pattern)}" for name, pattern in sorted(steps.library.items())]
    return "\n".join(lines) + "\n"


def _source(steps: Steps, source: SourceSteps) -> dict[str, Any]:
    return {
        "formats": [_format(steps, item, source) for item in source.formats],
        "prefixes": [
            {
                "name": prefix.name,
                "pattern": quoted(logstash_pattern(f"{prefix.pattern}%{{REST:@metadata.behind}}")),
                "captured": _captured(steps, prefix.pattern, {}, "@metadata.behind"),
            }
            for prefix in source.prefixes
        ],
        "needing_header": [quoted(prefix.name) for prefix in source.prefixes if prefix.needs_header],
    }


def _captured(steps: Steps, pattern: str, renames: dict[str, str], *more: str) -> list[str]:
    """Fields that a pattern captures: what the path or a prefix had said of them is overwritten."""
    fields = [renames.get(item.field, item.field) for item in captures(pattern, steps.library)]
    return [quoted(field_reference(name)) for name in dict.fromkeys([*fields, *more])]


def _format(steps: Steps, item: Format, source: SourceSteps) -> dict[str, Any]:
    renames = {**source.renames, "message": _REST}
    starts = item.starts if len(source.formats) > _MANY_FORMATS else ""
    return {
        "name": item.name,
        "starts": [quoted(character) for character in starts],
        "pattern": quoted(logstash_pattern(item.pattern, renames)),
        "captured": _captured(steps, item.pattern, renames),
    }


def _bodies(steps: Steps) -> Iterable[tuple[str, dict[str, Any]]]:
    """Body styles by the name of their file: a group has two where sources name its captures differently."""
    seen: dict[str, dict[str, Any]] = {}
    for source in steps.sources:
        for group in source.groups:
            name = steps.bodies_name(group, source.renames)
            entry = seen.setdefault(
                name,
                {
                    "name": name,
                    "group": group,
                    "formats": [],
                    "sources": [],
                    "styles": list(_styles(steps, group, source.renames)),
                },
            )
            entry["sources"].append(quoted(source.source.name))
            formats = [quoted(item.name) for item in source.formats if item.group == group]
            entry["formats"] += [text for text in formats if text not in entry["formats"]]
    return seen.items()


def _styles(steps: Steps, group: str, renames: dict[str, str]) -> Iterable[dict[str, Any]]:
    styles = steps.styles(group)
    own = [(style, True) for style in styles if style.modules]
    others = [(style, False) for style in styles if not style.exclusive]
    for style, is_own in [*own, *others]:
        yield {
            "name": style.name,
            "own": is_own,
            "modules": [quoted(name) for name in style.modules],
            **_style(steps, style, renames),
        }


def _style(steps: Steps, style: BodyStyle, renames: dict[str, str]) -> dict[str, Any]:
    return {
        "pattern": quoted(logstash_pattern(style.pattern, renames)),
        "captured": _captured(steps, style.pattern, renames),
    }


def _extractor(step: ExtractorStep) -> dict[str, Any]:
    """The guard and the pattern of an extractor."""
    item = step.item
    renames = {name: f"@metadata.facts.{step.key}.{slot}" for name, slot in step.slots.items()}
    if len(item.contains) < MANY_LITERALS or not all(text.isalnum() for text in item.contains):
        guard = "(" + " or ".join(f"{quoted(text)} in [message]" for text in item.contains) + ")"
    else:
        guard = f"[message] =~ /{any_of(item.contains)}/"
    return {
        "key": step.key,
        "name": item.name,
        "guard": guard,
        "exclude": [quoted(text) for text in item.exclude],
        "modules": [quoted(name) for name in item.modules],
        "pattern": quoted(logstash_pattern(item.pattern, renames)) if item.pattern else None,
    }


def _tables(steps: Steps) -> str:
    """What the scripts look up: the same tables that the ingest pipelines get."""
    document = {
        "datasets": {item.source.name: item.source.dataset for item in steps.sources},
        "formats": {
            item.name: {
                "name": item.name,
                "whole": item.whole,
                "time": item.time,
                "level": item.level,
                "set": item.constants,
            }
            for source in steps.sources
            for item in source.formats
        },
        "layers": steps.layers(),
        "severity": steps.severity(),
        "extractors": [
            {"key": step.key, **step.table, "every": _every(steps, step) if step.item.all else None}
            for step in steps.extractors
        ],
        "headline": [[family, pattern or None] for family, pattern in steps.headline()],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n"


def _every(steps: Steps, step: ExtractorStep) -> dict[str, Any]:
    """The pattern once more, for the other codes of a message: grok gives the first match only."""
    pattern = steps.program.definitions.grok.to_python(step.item.pattern or "")
    return {
        "regex": pattern.regex,
        "group": [capture.field for capture in pattern.captures].index("code"),
    }
