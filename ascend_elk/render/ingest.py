"""Elasticsearch's ingest pipelines: the same steps for clusters without Logstash."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ascend_elk.render.options import RenderOptions
from ascend_elk.render.steps import Bodies, ExtractorStep, Format, SourceSteps, Steps, literals, renamed

ENTRY = "ascend-elk"
Document = dict[str, Any]
# Extractors whose captures one pipeline looks for; it is left out where none of them has a literal in a text.
_PART = 10
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_INDEX = "_ingest._grok_match_index"
_NOW = {"set": {"field": "event.ingested", "copy_from": "_ingest.timestamp"}}
# Match where nothing else does, so that grok need not fail: at once behind anchored patterns, or at the end.
_NOTHING = r"\A"
_NOTHING_FOUND = r"\z"


def render_ingest(steps: Steps, options: RenderOptions, scripts: Path) -> dict[str, Document]:
    """Return the ingest pipelines by name.

    Args:
        steps: what to do.
        options: versions, for people.
        scripts: directory with the painless scripts.
    """
    return _Ingest(steps, options, scripts).pipelines()


class _Ingest:
    def __init__(self, steps: Steps, options: RenderOptions, scripts: Path) -> None:
        self._steps = steps
        self._options = options
        self._scripts = {path.stem: path.read_text("utf-8") for path in sorted(scripts.glob("*.painless"))}

    def pipelines(self) -> dict[str, Document]:
        """All pipelines."""
        sources = self._steps.sources
        found = {ENTRY: self._entry(sources)}
        for source in sources:
            found[f"{ENTRY}-source-{source.source.name}"] = self._source(source)
            if source.prefixes:
                found[f"{ENTRY}-headers-{source.source.name}"] = _pipeline(
                    f"Header of a line of {source.source.name} behind a prefix",
                    self._header_grok(source, "message"),
                )
        for name, group, renames in self._groups():
            found[name] = self._bodies(group, renames)
        found |= self._facts()
        return found

    # ------------------------------------------------------------ frame

    def _entry(self, sources: Iterable[SourceSteps]) -> Document:
        datasets = {item.source.name: item.source.dataset for item in sources}
        return {
            **_pipeline(
                f"Logs of Ascend, CANN {self._options.cann or 'of all versions'}",
                [
                    self._script("prepare", {"datasets": datasets}),
                    *(
                        _call(
                            f"{ENTRY}-source-{item.source.name}",
                            f"ctx.ascend.source == '{item.source.name}'",
                        )
                        for item in sources
                    ),
                    self._script(
                        "time",
                        {
                            "months": {name: number for number, name in enumerate(_MONTHS, 1)},
                        },
                        "ctx._ascend.time != null && ctx.ascend.clock?.written != null",
                    ),
                    _call(f"{ENTRY}-facts"),
                    _NOW,
                    self._script("finish", {}),
                ],
            ),
            # The line is kept whatever happens.
            "on_failure": [
                {"set": {"field": "event.kind", "value": "pipeline_error"}},
                {
                    "set": {
                        "field": "error.message",
                        "copy_from": "_ingest.on_failure_message",
                        "ignore_failure": True,
                    }
                },
                {"append": {"field": "tags", "value": "ascend_pipeline_error", "ignore_failure": True}},
                self._script("failed", {}),
                _NOW,
                self._script("finish", {}, ignore_failure=True),
            ],
        }

    def _script(
        self, name: str, params: dict[str, Any], condition: str | None = None, *, ignore_failure: bool = False
    ) -> Document:
        body: Document = {
            "description": name,
            "lang": "painless",
            "source": self._scripts[name],
            "params": params,
        }
        if condition:
            body["if"] = condition
        if ignore_failure:
            body["ignore_failure"] = True
        return {"script": body}

    # ------------------------------------------------------------ headers and bodies

    def _source(self, steps: SourceSteps) -> Document:
        name = steps.source.name
        processors = self._header_grok(steps, "_ascend.line")
        unmatched = f"ctx._ascend.match == '{len(steps.formats)}'"
        for prefix in steps.prefixes:
            pattern = renamed(prefix.pattern, _plain) + "%{REST:message}"
            # What a prefix captures is overwritten by the header behind it.
            processors.append(self._grok("_ascend.line", [pattern, _NOTHING], unmatched, trace=True))
            processors += _take_index("_ascend.prefix", unmatched)
            if ":process.name}" in prefix.pattern:
                named = f"{unmatched} && ctx.process?.name != null"
                processors.append(
                    {"set": {"field": "_ascend.name", "copy_from": "process.name", "if": named}}
                )
            processors.append(_call(f"{ENTRY}-headers-{name}", f"{unmatched} && ctx._ascend.prefix == '0'"))
            if prefix.needs_header:
                processors.append(
                    {
                        "set": {
                            "field": "message",
                            "copy_from": "_ascend.line",
                            "if": f"{unmatched} && ctx._ascend.prefix == '0'",
                        }
                    }
                )
            else:
                processors.append(
                    {
                        "set": {
                            "field": "_ascend.match",
                            "value": "-1",
                            "if": f"{unmatched} && ctx._ascend.prefix == '0'",
                        }
                    }
                )
        processors.append(
            self._script(
                "header",
                {
                    "formats": [_format(item) for item in steps.formats],
                    "layers": self._steps.layers(),
                    "severity": self._steps.severity(),
                    "groups": {group: self._own(group) for group in steps.groups},
                },
            )
        )
        processors += [
            _call(
                f"{ENTRY}-{self._steps.bodies_name(group, steps.renames)}",
                f"ctx._ascend.group == '{group}'",
            )
            for group in steps.groups
        ]
        return _pipeline(f"Lines of {name}", processors)

    def _header_grok(self, steps: SourceSteps, field: str) -> list[Document]:
        patterns = [_named(item.pattern, steps.renames) for item in steps.formats]
        return [
            self._grok(field, [*patterns, _NOTHING], trace=True),
            *_take_index("_ascend.match"),
        ]

    def _grok(
        self,
        field: str,
        patterns: list[str],
        condition: str | None = None,
        *,
        trace: bool = False,
        definitions: dict[str, str] | None = None,
    ) -> Document:
        used = self._steps.program.definitions.grok.used_by([*patterns, *(definitions or {}).values()])
        body: Document = {
            "field": field,
            "patterns": patterns,
            "pattern_definitions": {**used, **(definitions or {})},
        }
        if trace:
            body["trace_match"] = True
        if condition:
            body["if"] = condition
        return {"grok": body}

    def _own(self, group: str) -> dict[str, str]:
        """Module to the number of its set of own styles."""
        return {
            module: str(number)
            for number, bodies in enumerate(self._steps.bodies(group))
            for module in bodies.modules
        }

    def _groups(self) -> list[tuple[str, str, dict[str, str]]]:
        found = {
            f"{ENTRY}-{self._steps.bodies_name(group, item.renames)}": (group, item.renames)
            for item in self._steps.sources
            for group in item.groups
        }
        return [(name, group, renames) for name, (group, renames) in found.items()]

    def _bodies(self, group: str, renames: dict[str, str]) -> Document:
        sets = self._steps.bodies(group)
        own = [bodies for bodies in sets if bodies.modules]
        rest = next(bodies for bodies in sets if not bodies.modules)
        styles = {str(number): [style.name for style in bodies.styles] for number, bodies in enumerate(own)}
        styles["all"] = [style.name for style in rest.styles]
        processors: list[Document] = [
            self._grok(
                "message",
                self._style_patterns(bodies, renames),
                f"ctx._ascend.own == '{number}'",
                trace=True,
            )
            for number, bodies in enumerate(own)
        ]
        if own:
            processors += _take_index("_ascend.match", "ctx._ascend.own != null")
            processors.append(self._script("body", {"styles": styles}, "ctx._ascend.own != null"))
        processors.append(
            self._grok(
                "message", self._style_patterns(rest, renames), "ctx._ascend.group != null", trace=True
            )
        )
        processors += _take_index("_ascend.match", "ctx._ascend.group != null")
        processors.append(self._script("body", {"styles": styles}, "ctx._ascend.group != null"))
        return _pipeline(f"What follows the header: {group}", processors)

    def _style_patterns(self, bodies: Bodies, renames: dict[str, str]) -> list[str]:
        return [*(_named(style.pattern, renames) for style in bodies.styles), _NOTHING]

    # ------------------------------------------------------------ facts

    def _facts(self) -> dict[str, Document]:
        extractors = self._steps.extractors
        parts: dict[str, list[ExtractorStep]] = {}
        for step in extractors:
            parts.setdefault(f"p{step.number // _PART}", []).append(step)
        part_of = {step.key: part for part, items in parts.items() for step in items}
        found = {
            f"{ENTRY}-facts": _pipeline(
                "Facts out of messages: a literal guards every pattern",
                [
                    self._script(
                        "guards", {"extractors": [self._guard(step, part_of) for step in extractors]}
                    ),
                    *(
                        _call(f"{ENTRY}-facts-{part}", f"ctx._ascend.parts?.{part} == true")
                        for part, items in parts.items()
                        if any(step.item.pattern for step in items)
                    ),
                    self._script(
                        "merge",
                        {
                            "extractors": [
                                {"key": step.key, "pattern": step.item.pattern is not None, **step.table}
                                for step in extractors
                            ]
                        },
                        "ctx._ascend.hits != null",
                    ),
                    self._headline(),
                ],
            )
        }
        for part, items in parts.items():
            processors = [processor for step in items if step.item.pattern for processor in self._fact(step)]
            if processors:
                found[f"{ENTRY}-facts-{part}"] = _pipeline(
                    ", ".join(step.item.name for step in items if step.item.pattern), processors
                )
        return found

    def _guard(self, step: ExtractorStep, part_of: dict[str, str]) -> Document:
        item = step.item
        every = item.all and item.pattern is not None
        return {
            "key": step.key,
            "part": part_of[step.key],
            "contains": literals(item.contains),
            "exclude": list(item.exclude) or None,
            "modules": dict.fromkeys(item.modules, True) or None,
            "all": every,
            "before": step.lookback(self._steps.program.definitions.grok) if every else 1,
        }

    def _fact(self, step: ExtractorStep) -> list[Document]:
        """The first match; where every code counts, one more look at each place of a literal."""
        target = f"_ascend.facts.{step.key}"
        text = step.item.pattern or ""
        processors = [
            self._grok(
                "message",
                [f"%{{FACT:{target}.found}}", _NOTHING_FOUND],
                f"ctx._ascend.hits.containsKey('{step.key}')",
                definitions={"FACT": renamed(text, _slots(step, target))},
            )
        ]
        if step.item.all:
            each = self._grok(
                "_ingest._value.text",
                [renamed(text, _slots(step, "_ingest._value")), _NOTHING_FOUND],
            )
            processors.append(
                {
                    "foreach": {
                        "field": f"_ascend.all.{step.key}",
                        "if": f"ctx._ascend.facts.containsKey('{step.key}')",
                        "ignore_missing": True,
                        "processor": each,
                    }
                }
            )
        return processors

    def _headline(self) -> Document:
        """The first rule that one of the codes meets; without one the first code."""
        patterns, definitions = [], {}
        for number, (family, pattern) in enumerate(self._steps.headline()):
            definitions[f"HEADLINE{number}"] = rf"{pattern}[^\n]*"
            patterns.append(rf"\A(?:[^\n]*\n)*?{family}:%{{HEADLINE{number}:error.code}}")
        definitions["FIRST"] = r"[^\n]*"
        patterns.append(r"\A[^:\n]*:%{FIRST:error.code}")
        return self._grok("_ascend.codes", patterns, "ctx._ascend.codes != null", definitions=definitions)


def _pipeline(description: str, processors: list[Document]) -> Document:
    return {"description": description, "processors": processors, "_meta": {"managed_by": "ascend-elk"}}


def _call(name: str, condition: str | None = None) -> Document:
    body: Document = {"name": name}
    if condition:
        body["if"] = condition
    return {"pipeline": body}


def _take_index(target: str, condition: str | None = None) -> list[Document]:
    """Keep which pattern matched; grok cannot note the next one while the last one's note is there."""
    guard = {"if": condition} if condition else {}
    return [
        {"set": {"field": target, "copy_from": _INDEX, **guard}},
        {"remove": {"field": _INDEX, **guard}},
    ]


def _plain(name: str, kind: str) -> str:
    return f"{name}:{kind}" if kind else name


def _named(pattern: str, renames: dict[str, str]) -> str:
    return renamed(pattern, lambda name, kind: _plain(renames.get(name, name), kind))


def _slots(step: ExtractorStep, target: str) -> Any:
    return lambda name, kind: _plain(f"{target}.{step.slots[name]}", kind)


def _format(item: Format) -> Document:
    return {
        "name": item.name,
        "time": item.time,
        "level": item.level,
        "set": item.constants,
        "group": item.group,
    }
