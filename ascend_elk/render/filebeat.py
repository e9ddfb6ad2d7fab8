"""Filebeat: one input per source and layout, framed and tagged."""

from __future__ import annotations

import re
from typing import Any

from jinja2 import Environment

from ascend_elk.formats.definitions import Source
from ascend_elk.formats.program import Program
from ascend_elk.layout.roots import Root
from ascend_elk.render.options import RenderOptions


def render_filebeat(
    program: Program, roots: dict[str, Root], options: RenderOptions, templates: Environment
) -> dict[str, str]:
    """Return the files under ``filebeat/`` by path."""
    files = {
        "filebeat/filebeat.yml": templates.get_template("filebeat.yml.j2").render(options=options),
    }
    template = templates.get_template("input.yml.j2")
    for source in program.sources.values():
        inputs = list(_inputs(program, source, roots, options))
        if inputs:
            files[f"filebeat/inputs.d/{source.name}.yml"] = template.render(
                source=source, inputs=inputs, options=options
            )
    return files


def _inputs(
    program: Program, source: Source, roots: dict[str, Root], options: RenderOptions
) -> list[dict[str, Any]]:
    """One input per layout whose place on a host is known."""
    found: dict[str, dict[str, Any]] = {}
    for path in program.paths(source):
        root = roots[path.root]
        directories = [*root.directories, *(options.roots if path.root == "process-log" else ())]
        if not directories:
            continue
        entry = found.setdefault(
            path.layout,
            {"id": f"ascend-{source.name}-{path.layout}", "paths": [], "multiline": framing(program, source)},
        )
        for directory in directories:
            text = f"{directory.rstrip('/')}/{path.glob}"
            if text not in entry["paths"]:
                entry["paths"].append(text)
        entry["dissect"] = dissect_of(path.pattern)
    return list(found.values())


def framing(program: Program, source: Source) -> dict[str, Any]:
    """Return the multiline settings that frame records as the parser does."""
    grok = program.definitions.grok
    if source.framing == "continuation":
        patterns = [grok.to_python(pattern).regex for pattern in source.continuation]
        return {"pattern": _re2(patterns), "negate": False}
    heads = [item.pattern.removesuffix("%{REST:message}") for item in program.formats(source)]
    return {"pattern": _re2([grok.to_python(head).regex for head in heads]), "negate": True}


def _re2(regexes: list[str]) -> str:
    """Join translated patterns for Go's RE2, without capturing groups."""
    return "^(?:" + "|".join(_without_captures(regex) for regex in regexes) + ")"


# A class of characters, an escaped character, or the start of a capturing group
_PIECE = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|\((?!\?)", re.DOTALL)


def _without_captures(regex: str) -> str:
    return _PIECE.sub(lambda match: "(?:" if match.group() == "(" else match.group(), regex)


# The ids that a path gives, as Filebeat's dissect reads them: literal text around the captures of a pattern.
_PART = re.compile(r"%\{(\w+)(?::([\w.]+))?(?::(long|double))?\}|([^%]+)")


def dissect_of(pattern: str) -> str | None:
    """Turn the end of a path pattern into a tokenizer for ``dissect``; ``None`` where it gives no ids.

    Only captures between literal text can be dissected:
    ``/plog/plog-%{PROCESS_ID:process.pid:long}%{LOG_END}`` becomes
    ``%{}/plog/plog-%{process.pid|integer}_%{}``.
    """
    tokens: list[str] = []
    literal = ""
    for name, field, kind, text in _PART.findall(pattern):
        if text:
            # Up to the first sign of a regex it is literal.
            literal = re.split(r"[\\(\[{?*+|]", text, maxsplit=1)[0]
            if tokens:
                tokens.append(literal)
                if literal != text:
                    break
            elif literal != text:
                literal = ""
        elif field:
            if not tokens:
                if not literal:
                    return None
                tokens.append(f"%{{}}{literal}")
            tokens.append(f"%{{{field}{'|integer' if kind == 'long' else ''}}}")
        elif tokens:
            tokens.append("_" if name == "LOG_END" else "")
            break
        else:
            literal = ""
    return "".join(tokens) + "%{}" if len(tokens) > 1 and tokens[-1] else None
