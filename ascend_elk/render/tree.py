"""All files of a configuration, and writing them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import orjson
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ascend_elk.content import content_dir
from ascend_elk.errors import UserError
from ascend_elk.formats import Program, compile_program, load_definitions
from ascend_elk.layout.roots import load_roots
from ascend_elk.render.filebeat import render_filebeat
from ascend_elk.render.ingest import render_ingest
from ascend_elk.render.logstash import render_logstash
from ascend_elk.render.options import RenderOptions
from ascend_elk.render.steps import Steps
from ascend_elk.render.targets import TARGETS, TargetOptions, render_targets, with_container_roots
from ascend_elk.render.templates import Templates, render_templates

# Says that a directory was rendered, and so may be replaced.
MARKER = "RENDERED-BY-ASCEND-ELK"
_PARTS = ("filebeat", "logstash", "elasticsearch", *TARGETS)


def render(options: RenderOptions, targets: TargetOptions | None = None) -> dict[str, str]:
    """Return every file of the configuration by its path; the same options give the same bytes."""
    chosen = targets or TargetOptions()
    options = with_container_roots(options, chosen)
    program = program_of(options)
    files = {MARKER: f"Configuration for CANN {options.versions}. Change the options and render again.\n"}
    files |= render_filebeat(program, load_roots(), options, _templates("filebeat"))
    templates = render_templates(options)
    files |= _json("component-templates", templates.components)
    files |= _json("index-templates", templates.indices)
    files |= _json("lifecycles", templates.lifecycles)
    steps = Steps(program)
    if options.parser == "ingest":
        files |= _json("pipelines", pipelines(steps, options))
    else:
        directory = content_dir("logstash")
        files |= render_logstash(steps, options, _templates("logstash"), directory / "ruby")
    role = content_dir("ansible") if "ansible" in chosen.targets else Path()
    templates_of = _templates("filebeat")
    files |= render_targets(program, load_roots(), files, options, chosen, templates_of, role)
    return dict(sorted(files.items()))


def program_of(options: RenderOptions) -> Program:
    """Compile the program of the versions that were chosen."""
    return compile_program(load_definitions(), *options.cann)


def pipelines(steps: Steps, options: RenderOptions) -> dict[str, dict[str, Any]]:
    """The ingest pipelines by name; those that others call come first."""
    return render_ingest(steps, options, content_dir("elasticsearch") / "scripts")


def documents(options: RenderOptions) -> tuple[Templates, dict[str, dict[str, Any]]]:
    """What belongs into Elasticsearch: templates with lifecycle, and the pipelines of ``--parser ingest``."""
    if options.parser != "ingest":
        return render_templates(options), {}
    return render_templates(options), pipelines(Steps(program_of(options)), options)


def write(files: dict[str, str], directory: Path, force: bool) -> None:
    """Write a configuration into a directory: new, empty, or one rendered before.

    Raises:
        UserError: it holds something else, or cannot be written.
    """
    try:
        if directory.is_dir() and any(directory.iterdir()):
            if not (directory / MARKER).is_file() and not force:
                raise UserError(f"{directory} holds something else; name another directory, or use --force")
            for name in _PARTS:
                shutil.rmtree(directory / name, ignore_errors=True)
        for name, text in files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            if path.parent.name in ("filebeat", "inputs.d"):
                # Filebeat refuses files that others may write.
                path.chmod(0o600)
    except OSError as error:
        raise UserError(
            f"{directory} cannot be written ({error.strerror}); name another directory"
        ) from error


def _json(kind: str, documents: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {
        f"elasticsearch/{kind}/{name}.json": orjson.dumps(body, option=orjson.OPT_INDENT_2).decode() + "\n"
        for name, body in documents.items()
    }


def _templates(name: str) -> Environment:
    return Environment(
        loader=FileSystemLoader(content_dir(name)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - configuration, not HTML
    )
