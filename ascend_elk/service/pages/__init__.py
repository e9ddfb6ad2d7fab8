"""The pages that people read: a code, a search, the start page, the API; both languages, no scripts."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from ascend_elk.codes import Catalogue

LANGUAGES = ("en", "zh")
# Characters that fit into one line of a phone.
_SHORT = 30
_HERE = Path(__file__).parent
_COMMAND = re.compile(r"`([^`]+)`")
# Placeholders of the commands: whole words in capitals.
_PLACEHOLDER = re.compile(r"(?<![\w$:-])[A-Z]+(?![\w-])")
_REPORT_CODE = re.compile(r"(?<![\w:])(?:[EW][0-9A-Z]\d{4}|[a-z]{2,10}:(?:0x[0-9a-f]+|\d+))(?!\w)")


@dataclass(frozen=True)
class View:
    """How a page is shown.

    Attributes:
        language: ``en`` or ``zh``.
        root: relative path to the service's root, with a slash at the end; so that a proxy may add a prefix.
        path: path of this page below the root, percent-encoded.
        query: this page's query, without the language.
        cann: the CANN version asked for.
    """

    language: str
    root: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    cann: str | None = None

    def word(self, name: str) -> str:
        """A word of the page in its language."""
        return _words()[name][LANGUAGES.index(self.language)]

    def pick(self, thing: Any, name: str) -> str:
        """An attribute in the page's language: ``meaning`` or ``meaning_zh``."""
        return str(getattr(thing, f"{name}_zh" if self.language == "zh" else name))

    def link(self, path: str, **query: str | None) -> str:
        """A relative link to another page, which keeps language and version."""
        kept = {"lang": self.language, "cann": self.cann, **query}
        given = urlencode({name: value for name, value in kept.items() if value is not None})
        return f"{self.root}{path}?{given}"

    def code_link(self, code: str) -> str:
        """A link to the page of a code."""
        return self.link(f"v1/codes/{quote(code, safe='')}")

    def here(self, **query: str | None) -> str:
        """A link to this page with some of its query changed."""
        kept: dict[str, str | None] = {**dict(self.query), "lang": self.language, **query}
        given = urlencode({name: value for name, value in kept.items() if value is not None})
        return f"{self.root}{self.path}?{given}"

    @property
    def other(self) -> str:
        """The other language."""
        return LANGUAGES[1 - LANGUAGES.index(self.language)]


def render(template: str, view: View, catalogue: Catalogue, **values: Any) -> str:
    """Fill a template; it needs no network and no other file."""
    return (
        _environment()
        .get_template(template)
        .render(view=view, _=view.word, catalogue=catalogue, prose=_prose(view, catalogue), **values)
    )


@lru_cache(maxsize=1)
def content_security_policy() -> str:
    """The policy of the pages: their one style sheet, forms to themselves, and nothing else."""
    digest = b64encode(sha256(_style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    )


def commands(text: str) -> list[str]:
    """The commands that a text names, worth to be copied: those with an argument."""
    return list(dict.fromkeys(command for command in _COMMAND.findall(text) if " " in command))


def placeholders(lines: list[str]) -> list[str]:
    """The placeholders in commands that the pages can explain."""
    found = dict.fromkeys(word for line in lines for word in _PLACEHOLDER.findall(line))
    return [word for word in found if f"holds_{word}" in _words()]


def _code(text: str) -> Markup:
    """A command within a sentence; a short one is not broken over two lines."""
    kind = Markup(' class="short"') if len(text) <= _SHORT else ""
    return Markup("<code{}>{}</code>").format(kind, text)


def _prose(view: View, catalogue: Catalogue) -> Any:
    def linked(text: str) -> Markup:
        """Plain text with the codes it names as links."""
        parts, end = [], 0
        for match in _REPORT_CODE.finditer(text):
            if catalogue.lookup(match.group()):
                link = Markup('<a href="{}">{}</a>').format(view.code_link(match.group()), match.group())
                parts += [escape(text[end : match.start()]), link]
                end = match.end()
        return Markup("").join([*parts, escape(text[end:])])

    def marked(text: str) -> Markup:
        parts = [
            _code(part) if number % 2 else linked(part) for number, part in enumerate(_COMMAND.split(text))
        ]
        return Markup("").join(parts)

    return marked


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(style=Markup(_style()), commands=commands, placeholders=placeholders)  # noqa: S704 - our own file
    return environment


@lru_cache(maxsize=1)
def _style() -> str:
    return (_HERE / "page.css").read_text("utf-8")


@lru_cache(maxsize=1)
def _words() -> dict[str, tuple[str, str]]:
    words: dict[str, tuple[str, str]] = yaml.safe_load((_HERE / "words.yml").read_text("utf-8"))
    return words
