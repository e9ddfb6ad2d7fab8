"""facts.rb merges captures as the parser does: every extractor's samples, in a real Ruby."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ascend_elk.formats import compile_program, load_definitions
from ascend_elk.parse.extraction import Extraction
from ascend_elk.render import RenderOptions, render

DEFINITIONS = load_definitions()
PROGRAM = compile_program(DEFINITIONS)
DRIVER = """
require "json"
class Event
  def initialize(data) = @data = data
  def path(reference) = reference.scan(/\\[([^\\]]+)\\]/).flatten.then { |parts| parts.empty? ? [reference] : parts }
  def get(reference) = path(reference).reduce(@data) { |node, part| node.is_a?(Hash) ? node[part] : nil }
  def set(reference, value)
    *parents, leaf = path(reference)
    node = parents.reduce(@data) { |inner, part| inner[part] ||= {} }
    node[leaf] = value
  end
  attr_reader :data
end
load ARGV[0]
register("table" => ARGV[1])
STDIN.each_line { |line| event = Event.new(JSON.parse(line)); filter(event); puts JSON.generate(event.data) }
"""


def captured(message: str, module: str | None) -> dict[str, Any]:
    """What the guarded grok filters leave in @metadata."""
    found: dict[str, str] = {}
    facts: dict[str, dict[str, Any]] = {}
    convert = {"string": str, "long": int, "double": float}
    for number, item in enumerate(PROGRAM.extractors):
        if not any(literal in message for literal in item.contains):
            continue
        if (item.modules and module not in item.modules) or any(
            literal in message for literal in item.exclude
        ):
            continue
        if item.pattern:
            pattern = DEFINITIONS.grok.to_python(item.pattern)
            match = pattern.compiled.search(message)
            if match is None:
                continue
            facts[f"e{number}"] = {
                capture.field.replace(".", "_"): convert[capture.type](text)
                for capture, text in zip(pattern.captures, match.groups(), strict=True)
                if text is not None
            }
        found[f"e{number}"] = "true"
    return {"found": found, "facts": facts}


def flat(node: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in node.items():
        if isinstance(value, dict):
            result |= flat(value, f"{prefix}{name}.")
        else:
            result[f"{prefix}{name}"] = value
    return result


def test_facts_are_merged_as_the_parser_merges_them(tmp_path: Path) -> None:
    ruby = shutil.which("ruby")
    if ruby is None:
        pytest.skip("no ruby on this machine")
    files = render(RenderOptions())
    for name in ("facts.rb", "facts.json"):
        (tmp_path / name).write_text(files[f"logstash/ruby/{name}"])
    (tmp_path / "driver.rb").write_text(DRIVER)
    cases = [
        (sample.message.replace("\\n", "\n"), sample.module or (item.modules[0] if item.modules else None))
        for item in PROGRAM.extractors
        for sample in item.samples
        if sample.message
    ]
    lines = [
        json.dumps({"message": message, "ascend": {"module": module}, "@metadata": captured(message, module)})
        for message, module in cases
    ]
    answer = subprocess.run(
        [ruby, str(tmp_path / "driver.rb"), str(tmp_path / "facts.rb"), str(tmp_path / "facts.json")],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
    )
    extraction = Extraction(PROGRAM.extractors, DEFINITIONS.headline, DEFINITIONS.grok)
    merged = [json.loads(line) for line in answer.stdout.splitlines()]
    assert len(merged) == len(cases) > 90
    for (message, module), document in zip(cases, merged, strict=True):
        expected: dict[str, Any] = {"ascend.module": module}
        extraction.apply(message, expected)
        del document["@metadata"], document["message"]
        assert flat(document) == expected, message
