"""Draws a Vega specification in headless Chromium, as a dashboard's panel would."""

from __future__ import annotations

import copy
import html
import json
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import vl_convert

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--virtual-time-budget=8000",
)
# Sizes of panels in pixels on a screen of 1,600: a column of the grid and a row.
_COLUMN, _ROW, _MARGIN = 32.6, 28, 24
_PAGE = """<!doctype html><meta charset="utf-8"><title>{title}</title>
<style>body {{ margin: 8px; font-family: Inter, "Helvetica Neue", Arial, sans-serif; background: white }}
h1 {{ font-size: 14px; margin: 0 0 8px }}</style>
<h1>{title}</h1><div id="view"></div><pre id="report" hidden></pre>
<script type="module">{bundle}
const said = [];
const note = (...words) => said.push(words.join(" "));
console.warn = console.error = note;
const report = document.getElementById("report");
try {{
  const spec = {spec};
  const options = {{mode: "vega", actions: false, renderer: "canvas", width: {width}, height: {height}}};
  const {{view}} = await vegaEmbed("#view", spec, options);
  // Rows keep the buckets that they were taken from: at 1,024 cards these alone are hundreds of megabytes.
  const plain = (row) => Object.fromEntries(Object.entries(row).filter(([, value]) => Object(value) !== value));
  const rows = Object.fromEntries(spec.data.map(({{name}}) => [name, view.data(name).map(plain)]));
  report.textContent = JSON.stringify({{said, rows, width: view.width(), height: view.height()}});
}} catch (error) {{
  report.textContent = JSON.stringify({{said: [...said, String(error)], rows: {{}}}});
}}
</script>"""


def chromium() -> str | None:
    """Path of the browser."""
    return shutil.which("chromium") or shutil.which("google-chrome")


def with_values(spec: dict[str, Any], answers: dict[str, Any]) -> dict[str, Any]:
    """The specification with the server's answers in the place of its requests, as Kibana puts them in."""
    filled = copy.deepcopy(spec)
    for data in filled["data"]:
        if "url" in data:
            answer = answers[data["name"]]
            for part in data.pop("format")["property"].split("."):
                answer = answer[part]
            del data["url"]
            data["values"] = answer
    return filled


def draw(
    spec: dict[str, Any], title: str, size: tuple[int, int], picture: Path | None = None
) -> dict[str, Any]:
    """Draw a filled specification.

    Args:
        spec: with values.
        title: heading of the panel.
        size: columns and rows of the panel on the dashboard's grid.
        picture: PNG to write.

    Returns:
        `said`: what Vega complained of; `rows`: its data by name.
    """
    width, height = int(size[0] * _COLUMN) - _MARGIN, size[1] * _ROW - _MARGIN - 30
    page = _PAGE.format(
        title=html.escape(title),
        bundle=_bundle(),
        spec=json.dumps(spec).replace("</", "<\\/"),
        width=width,
        height=height,
    )
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "page.html"
        file.write_text(page, encoding="utf-8")
        url = file.as_uri()
        dom = _run(directory, "--dump-dom", url)
        if picture is not None:
            picture.parent.mkdir(parents=True, exist_ok=True)
            window = f"--window-size={width + 40},{height + 60}"
            _run(directory, window, f"--screenshot={picture}", url)
    text = re.search(r'<pre id="report"[^>]*>(.*?)</pre>', dom, re.DOTALL)
    assert text is not None
    assert text[1], "the page did not finish"
    return dict(json.loads(html.unescape(text[1])))


def _run(directory: str, *arguments: str) -> str:
    browser = chromium()
    assert browser is not None
    command = [browser, *_FLAGS, f"--user-data-dir={directory}/profile", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout


@cache
def _bundle() -> str:
    return str(vl_convert.javascript_bundle())
