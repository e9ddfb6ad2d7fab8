"""Runs the rendered Logstash filters without Logstash: lscl parses the configuration, Ruby runs it.

The model (``logstash.rb``) knows only the plugins and options that are rendered, as their documentation
describes them, and fails on any other. The Ruby scripts of the configuration run as they are.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

MODEL = Path(__file__).with_name("logstash.rb")


def filters(directory: Path) -> list[dict[str, Any]]:
    """The filters of all configuration files in their order, as JSON."""
    language = pytest.importorskip("lscl.lang")
    parse = pytest.importorskip("lscl.parser").parse_lscl

    def steps(content: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for item in content:
            if isinstance(item, language.LsclConditions):
                branches = [{"if": condition(test), "then": steps(body)} for test, body in item.conditions]
                if item.default is not None:
                    branches.append({"if": None, "then": steps(item.default)})
                found.append({"branches": branches})
            else:
                options = {attribute.name: attribute.content for attribute in item.content}
                found.append({"plugin": item.name, "options": options})
        return found

    def value(node: Any) -> Any:
        return {"field": node.names} if isinstance(node, language.LsclSelector) else node

    def condition(node: Any) -> Any:
        kind = type(node).__name__
        if kind in ("LsclAnd", "LsclOr"):
            return [kind[4:].lower(), [condition(item) for item in node.conditions]]
        if kind == "LsclNot":
            return ["not", condition(node.condition)]
        if kind in ("LsclIn", "LsclNotIn"):
            return ["in" if kind == "LsclIn" else "not in", value(node.needle), value(node.haystack)]
        if kind == "LsclEqualTo":
            return ["==", value(node.first), value(node.second)]
        if kind == "LsclMatch":
            return ["=~", value(node.value), node.pattern.pattern]
        return ["value", value(node)]

    return [
        step
        for path in sorted((directory / "conf.d").glob("*.conf"))
        for section in parse(path.read_text("utf-8"))
        if section.name == "filter"
        for step in steps(section.content)
    ]


def run(directory: Path, events: Iterable[dict[str, Any]], work: Path) -> list[dict[str, Any]]:
    """Run events through the filters of a rendered ``logstash/`` directory."""
    ruby = shutil.which("ruby")
    if ruby is None:
        missing = "no Ruby here: install the package ruby"
        pytest.fail(missing, pytrace=False) if os.environ.get("CI") == "true" else pytest.skip(missing)
    configuration = work / "filters.json"
    configuration.write_text(json.dumps(filters(directory)))
    answer = subprocess.run(
        [ruby, "-W0", str(MODEL), str(configuration), str(directory)],
        input="\n".join(json.dumps(event) for event in events),
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert answer.returncode == 0, answer.stderr[-3000:]
    return [json.loads(line) for line in answer.stdout.splitlines()]
