"""Logstash: one branch per source, anchored grok with the definitions' own patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import orjson
from jinja2 import Environment

from ascend_elk.formats.definitions import BodyStyle, Extractor, LineFormat, Source
from ascend_elk.formats.program import Program
from ascend_elk.render.options import RenderOptions

_REFERENCE = re.compile(r"%\{(\w+)(?::([\w.]+))?(?::(long|double))?\}")
_TYPES = {"long": ":int", "double": ":float", "": ""}
_DATES = {
    "plog": ("yyyy-MM-dd-HH:mm:ss.SSSSSS",),
    "plog-seconds": ("yyyy-MM-dd-HH:mm:ss",),
    "iso": (
        "yyyy-MM-dd HH:mm:ss.SSSZ",
        "yyyy-MM-dd HH:mm:ss.SSSSSSZ",
        "yyyy-MM-dd HH:mm:ss.SSS",
        "yyyy-MM-dd HH:mm:ss.SSSSSS",
        "yyyy-MM-dd HH:mm:ss",
        "ISO8601",
    ),
    "slash": ("yyyy/MM/dd HH:mm:ss.SSSSSS", "yyyy/MM/dd HH:mm:ss"),
    "glog": ("yyyyMMdd HH:mm:ss.SSSSSS", "MMdd HH:mm:ss.SSSSSS", "MMdd HH:mm:ss.SSSSSSSSS"),
    "month-day": ("MM-dd HH:mm:ss",),
    "syslog": ("MMM  d HH:mm:ss", "MMM dd HH:mm:ss"),
}


def render_logstash(program: Program, options: RenderOptions, templates: Environment) -> dict[str, str]:
    """Return the files under ``logstash/`` by path."""
    files = {
        f"logstash/{name}": templates.get_template(f"{name}.j2").render(options=options)
        for name in ("pipelines.yml", "conf.d/10-input.conf", "conf.d/90-output.conf")
    }
    files["logstash/patterns/ascend"] = _pattern_file(program)
    source_template = templates.get_template("conf.d/30-source.conf.j2")
    for source in program.sources.values():
        files[f"logstash/conf.d/30-{source.name}.conf"] = source_template.render(
            source=source, **_source(program, source), options=options
        )
    facts = templates.get_template("conf.d/50-facts.conf.j2")
    files["logstash/conf.d/50-facts.conf"] = facts.render(
        extractors=[_extractor(number, item) for number, item in enumerate(program.extractors)],
        severity=program.definitions.levels.severity,
        layers=program.definitions.layers,
        options=options,
    )
    files["logstash/ruby/facts.json"] = _facts(program)
    files["logstash/ruby/facts.rb"] = templates.get_template("ruby/facts.rb").render()
    return files


def field_reference(name: str) -> str:
    """``log.level`` as Logstash refers to it: ``[log][level]``."""
    return "".join(f"[{part}]" for part in name.split("."))


def logstash_pattern(pattern: str, renamed: dict[str, str] | None = None) -> str:
    """Rewrite the field names and types of a grok pattern for Logstash; its regex stays as it is."""

    def replace(match: re.Match[str]) -> str:
        name, field, kind = match.groups(default="")
        if not field:
            return match.group(0)
        target = (renamed or {}).get(field, field)
        return f"%{{{name}:{field_reference(target)}{_TYPES[kind]}}}"

    return _REFERENCE.sub(replace, pattern)


def quoted(text: str) -> str:
    """A string of Logstash's configuration: quotes cannot be escaped in it, so the other kind is used."""
    if '"' not in text:
        return f'"{text}"'
    if "'" not in text:
        return f"'{text}'"
    # Both kinds: the double one as a class of its code point, which every engine knows.
    return '"' + text.replace('"', r"\x22") + '"'


def _pattern_file(program: Program) -> str:
    lines = ["# Generated from grok/patterns; the same text that every other backend uses.", ""]
    lines += [
        f"{name} {logstash_pattern(pattern)}"
        for name, pattern in sorted(program.definitions.grok.patterns.items())
    ]
    return "\n".join(lines) + "\n"


def _source(program: Program, source: Source) -> dict[str, Any]:
    renamed = {"process.pid": "ascend.device.pid"} if source.clock == "device" else {}
    formats = [_format(item, renamed) for item in program.formats(source)]
    groups = dict.fromkeys(item.bodies for item in program.formats(source) if item.bodies)
    return {
        "formats": formats,
        "groups": [
            {
                "formats": [item.name for item in program.formats(source) if item.bodies == group],
                "styles": _styles(program.definitions.bodies[group], program, renamed),
            }
            for group in groups
            if group
        ],
        "times": [
            {
                "kind": kind,
                "formats": [item.name for item in program.formats(source) if item.time == kind],
                "patterns": [quoted(text) for text in _DATES[kind]],
            }
            for kind in dict.fromkeys(item.time for item in program.formats(source) if item.time)
        ],
        "spellings": program.definitions.levels.spellings,
    }


def _format(item: LineFormat, renamed: dict[str, str]) -> dict[str, Any]:
    starts = "".join(re.escape(character) for character in item.starts)
    return {
        "name": item.name,
        "starts": f"^[{starts}]" if item.starts else "",
        "pattern": quoted(logstash_pattern(item.pattern, renamed)),
        "whole": item.whole,
        "level": item.level,
        "set": {field_reference(name): quoted(str(value)) for name, value in item.set.items()},
    }


def _styles(styles: Iterable[BodyStyle], program: Program, renamed: dict[str, str]) -> list[dict[str, Any]]:
    applying = [style for style in styles if program.version is None or program.version in style.versions]
    return [
        {
            "name": style.name,
            "modules": list(style.modules),
            "exclusive": style.exclusive,
            "pattern": quoted(logstash_pattern(style.pattern, renamed)),
        }
        for style in applying
    ]


def _extractor(number: int, item: Extractor) -> dict[str, Any]:
    """The guard and the pattern of an extractor; captures go to names of its own, merged by facts.rb."""
    names = {field: f"@metadata.facts.e{number}.{field.replace('.', '_')}" for field in _captured(item)}
    return {
        "number": number,
        "name": item.name,
        "contains": [quoted(text) for text in item.contains],
        "exclude": [quoted(text) for text in item.exclude],
        "modules": list(item.modules),
        "pattern": quoted(logstash_pattern(item.pattern, names)) if item.pattern else None,
    }


def _captured(item: Extractor) -> list[str]:
    return [field for _, field, _ in _REFERENCE.findall(item.pattern or "") if field]


def _facts(program: Program) -> str:
    """What facts.rb does with the captures: where they go, factors, constants, signals, codes, headline."""
    table = [
        {
            "fields": {
                field.replace(".", "_"): field_reference(field)
                for field in _captured(item)
                if field != "code"
            },
            "scale": {field_reference(field): factor for field, factor in item.scale.items()},
            "set": {field_reference(field): value for field, value in item.set.items()},
            "signal": list(item.signal),
            "family": item.code.family if item.code else None,
            "normalise": item.code.normalise if item.code else None,
            "all": _every_code(item, program) if item.all else None,
        }
        for item in program.extractors
    ]
    # A pattern names at most one code; grok gives the first match only, so facts.rb looks for the others.
    headline = [[rule.family, rule.pattern] for rule in program.definitions.headline]
    document = {"extractors": table, "headline": headline}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n"


def _every_code(item: Extractor, program: Program) -> dict[str, Any]:
    pattern = program.definitions.grok.to_python(item.pattern or "")
    return {"regex": pattern.regex, "group": [capture.field for capture in pattern.captures].index("code")}
