"""Filebeat: one input per source and layout, framed as the parser does, tagged by the path."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from jinja2 import Environment

from ascend_elk.errors import UserError
from ascend_elk.formats.definitions import Source, SourcePath
from ascend_elk.formats.program import Program
from ascend_elk.layout.roots import Root
from ascend_elk.render.options import RenderOptions

# What lies in a home directory, by the kind of root
_IN_HOME = {"process-log": "ascend/log", "trace": "ascend/atrace", "mindie-log": "mindie/log"}
# From where on a repeat of a class or a group counts as long
_LONG, _LONG_GROUP = 16, 4
_REPEAT = re.compile(r"([\])\w.])\{([0-9]+),([0-9]+)\}")
_NEGATED = re.compile(r"(?<!\\)\[\^")
_KELVIN = r"\x{212A}"
# A class of characters, an escaped character, or the start of a capturing group
_PIECE = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|\((?!\?)", re.DOTALL)


def render_filebeat(
    program: Program, roots: dict[str, Root], options: RenderOptions, templates: Environment
) -> dict[str, str]:
    """Return the files under ``filebeat/`` by path.

    Raises:
        UserError: a module to mute has another name.
    """
    for name in options.muted:
        if name not in program.definitions.layers and name.upper() in program.definitions.layers:
            raise UserError(f"no module is called {name!r}; write {name.upper()}")
    files = {"filebeat/filebeat.yml": templates.get_template("filebeat.yml.j2").render(options=options)}
    template = templates.get_template("input.yml.j2")
    for source in program.sources.values():
        inputs = list(_inputs(program, source, roots, options))
        if inputs:
            files[f"filebeat/inputs.d/{source.name}.yml"] = template.render(
                source=source,
                inputs=inputs,
                framing=framing(program, source),
                excluded=excluded_lines(program, source, options),
                options=options,
            )
    return files


def _inputs(
    program: Program, source: Source, roots: dict[str, Root], options: RenderOptions
) -> Iterable[dict[str, Any]]:
    """One input per layout whose place on a host is known."""
    found: dict[str, dict[str, Any]] = {}
    paths = program.paths(source)
    for path in paths:
        places = directories(roots[path.root], options)
        # A file that is renamed behind its process, to .log.1 for example, is still the same.
        glob = f"{path.glob}*" if path.glob.endswith(".log") else path.glob
        texts = [f"{directory.rstrip('/')}/{glob}" for directory in places]
        if not texts:
            continue
        entry = found.setdefault(
            path.layout,
            {
                "id": f"ascend-{source.name}-{path.layout}",
                "paths": [],
                "included": included_files(program, paths),
                "excluded": [],
                "dissects": _dissects(path, places),
            },
        )
        entry["excluded"] += [
            text for text in excluded_files(program, source, path) if text not in entry["excluded"]
        ]
        entry["paths"] += [text for text in texts if text not in entry["paths"]]
    if source.name == "console" and options.consoles:
        found["files"] = {
            "id": "ascend-console-files",
            "paths": list(options.consoles),
            "included": None,
            "excluded": [],
            "dissects": [],
        }
    return found.values()


def directories(root: Root, options: RenderOptions) -> list[str]:
    """Return the directories of a kind of root on a host; globs too."""
    homes = [f"{home.rstrip('/')}/{_IN_HOME[root.name]}" for home in options.homes if root.name in _IN_HOME]
    found = [*root.directories, *homes, *(options.roots if root.name == "process-log" else ())]
    return list(dict.fromkeys(found))


def _dissects(path: SourcePath, directories: Iterable[str]) -> list[str]:
    found = [path.dissect] if path.dissect else []
    if "RANK_DIRECTORY" in path.pattern and any("/rank_" in f"{directory}/" for directory in directories):
        found.append("%{}/rank_%{ascend.rank.id|integer}/%{}")
    return found


def included_files(program: Program, paths: Iterable[SourcePath]) -> str:
    """Return the patterns of a source's paths as one regex: a glob alone takes other sources' files too."""
    grok = program.definitions.grok
    patterns = dict.fromkeys(go_regex(grok.to_python(path.pattern).regex) for path in paths)
    return "|".join(patterns)


def excluded_files(program: Program, source: Source, path: SourcePath) -> list[str]:
    """Return the patterns of other sources' files that this path would take too, by their samples."""
    grok = program.definitions.grok
    ours = grok.to_python(path.pattern).compiled
    return [
        go_regex(grok.to_python(other.pattern).regex)
        for name, rival in program.sources.items()
        for other in rival.paths
        if name != source.name and other.root == path.root
        if any(ours.search(sample["path"]) for sample in other.samples)
    ]


def framing(program: Program, source: Source) -> dict[str, Any]:
    """Return the multiline settings that frame records as the parser does."""
    grok = program.definitions.grok
    if source.framing == "continuation":
        # An empty line still has its carriage return, if there was one.
        patterns = [pattern.replace("$", r"\r?$") for pattern in source.continuation]
        return {"pattern": _re2([grok.to_python(pattern).regex for pattern in patterns]), "negate": False}
    heads = [item.pattern.removesuffix("%{REST:message}") for item in program.formats(source)]
    return {"pattern": _re2([grok.to_python(head).regex for head in heads]), "negate": True}


def excluded_lines(program: Program, source: Source, options: RenderOptions) -> list[str]:
    """Return the patterns of lines that are not shipped: muted modules, levels below the least one."""
    grok = program.definitions.grok
    severity = program.definitions.levels.severity
    found: list[str] = []
    for item in program.formats(source):
        if options.muted:
            found += _up_to(item.pattern, "ascend.module", list(options.muted), grok.to_python)
        if options.level is not None:
            low = [name for name, number in severity.items() if number < severity[options.level]]
            spellings = program.definitions.levels.spellings.get(item.level or "", {})
            low += [short for short, name in spellings.items() if name in low]
            found += _up_to(item.pattern, "log.level", low, grok.to_python)
    return list(dict.fromkeys(found))


def _up_to(pattern: str, field: str, values: list[str], translate: Any) -> list[str]:
    """A header as far as a field, with only some values of it."""
    before, reference, _ = (
        re.split(rf"(%\{{\w+:{re.escape(field)}\}})", pattern, maxsplit=1)
        if (re.search(rf"%\{{\w+:{re.escape(field)}\}}", pattern))
        else ("", "", "")
    )
    if not reference or not values or before.count("(?:") != before.count(")"):
        return []
    end = r"(?:[^0-9A-Za-z_]|$)"
    regex = translate(before).regex
    return [_re2([f"{regex}(?:{'|'.join(sorted(values))}){end}"])]


def _re2(regexes: list[str]) -> str:
    """Join translated patterns for Go's RE2, anchored."""
    return "^(?:" + "|".join(go_regex(regex) for regex in regexes) + ")"


def go_regex(regex: str) -> str:
    """Write a translated pattern so that Filebeat compiles it quickly and matches it fast.

    Groups do not capture. Long bounded repeats, which Go unrolls, lose their upper bound: such a name or path
    would be longer than any that is known. Filebeat prints every pattern back, for which Go walks through all
    of Unicode at each class that holds both cases of every letter (22 s of a core for plog alone);
    a class without the Kelvin sign, the third case of k, is found out after ten letters.
    """
    without_captures = _PIECE.sub(lambda match: "(?:" if match.group() == "(" else match.group(), regex)
    unbounded = _REPEAT.sub(_without_upper_bound, without_captures)
    return _NEGATED.sub(lambda match: f"[^{_KELVIN}", unbounded)


def _without_upper_bound(match: re.Match[str]) -> str:
    before, least, most = match.group(1), int(match.group(2)), int(match.group(3))
    if most < (_LONG_GROUP if before == ")" else _LONG):
        return match.group()
    return before + {0: "*", 1: "+"}.get(least, f"{{{least},}}")
