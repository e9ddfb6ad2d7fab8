"""All files of a configuration, and writing them."""

from __future__ import annotations

import shutil
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ascend_elk.content import content_dir
from ascend_elk.errors import UserError
from ascend_elk.formats import compile_program, load_definitions
from ascend_elk.layout.roots import load_roots
from ascend_elk.render.filebeat import render_filebeat
from ascend_elk.render.logstash import render_logstash
from ascend_elk.render.options import RenderOptions

# Says that a directory was rendered, and so may be replaced.
MARKER = "RENDERED-BY-ASCEND-ELK"


def render(options: RenderOptions) -> dict[str, str]:
    """Return every file of the configuration by its path; the same options give the same bytes."""
    program = compile_program(load_definitions(), options.cann)
    version = str(options.cann) if options.cann else "all versions"
    files = {MARKER: f"Configuration for CANN {version}. Change the options and render again.\n"}
    files |= render_filebeat(program, load_roots(), options, _templates("filebeat"))
    files |= render_logstash(program, options, _templates("logstash"))
    return dict(sorted(files.items()))


def write(files: dict[str, str], directory: Path, force: bool) -> None:
    """Write a configuration into a directory: new, empty, or one rendered before.

    Raises:
        UserError: it holds something else, or cannot be written.
    """
    try:
        if directory.is_dir() and any(directory.iterdir()):
            if not (directory / MARKER).is_file() and not force:
                raise UserError(f"{directory} holds something else; name another directory, or use --force")
            for name in ("filebeat", "logstash"):
                shutil.rmtree(directory / name, ignore_errors=True)
        for name, text in files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    except OSError as error:
        raise UserError(
            f"{directory} cannot be written ({error.strerror}); name another directory"
        ) from error


def _templates(name: str) -> Environment:
    return Environment(
        loader=FileSystemLoader(content_dir(name)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - configuration, not HTML
    )
