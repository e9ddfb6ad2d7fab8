"""``/``, ``/v1/codes`` and ``/v1/codes/{code}``: the catalogue for people and for programs."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from ascend_elk.codes import Catalogue, Entry, Signature
from ascend_elk.codes.search import search
from ascend_elk.errors import UserError
from ascend_elk.service.answers import Answer, Link, answer, entry_json, signature_json
from ascend_elk.service.catalogue import CatalogueHolder
from ascend_elk.service.negotiation import fresh, language_of, page, version_of, view_of, wants_page
from ascend_elk.service.pages import render

# The family under which faults without a code are listed.
MESSAGES = "messages"
_MAX_WORDS = 200
_MAX_HITS = 50


class CodePages:
    """The endpoints; open to all, because browsers that follow a link send no token."""

    def __init__(self, holder: CatalogueHolder) -> None:
        """Take the catalogue in force."""
        self._holder = holder

    async def start(self, request: Request) -> Response:
        """``GET /``."""
        return page(self._start(request))

    async def code(self, request: Request) -> Response:
        """``GET /v1/codes/{code}``."""
        # The look-up of an unknown code compares it with all others: not on the event loop.
        return await run_in_threadpool(self._code, request)

    async def codes(self, request: Request) -> Response:
        """``GET /v1/codes?q=…&family=…``."""
        return await run_in_threadpool(self._codes, request)

    def _start(self, request: Request) -> str:
        catalogue = self._holder.current
        families = [
            (family, len({entry.code for entry in catalogue.entries(family.name)}))
            for family in catalogue.families.values()
        ]
        return render("start.html.j2", view_of(request), catalogue, families=families)

    def _code(self, request: Request) -> Response:
        catalogue = self._holder.current
        version = version_of(request)
        found = answer(catalogue, _named(request.path_params["code"]), version)
        status = 200 if found.known else 404
        if not wants_page(request):
            return JSONResponse(found.as_json(), status, headers=fresh())
        groups = _grouped(found)
        text = render(
            "code.html.j2",
            view_of(request, version),
            catalogue,
            answer=found,
            groups=groups,
            families=len({entry.family for entry in found.entries}),
            emitters=any(len({entry.emitter for entry in group}) > 1 for group in groups),
            decodings={group[0].key: next(iter(catalogue.decode(group[0].key)), None) for group in groups},
        )
        return page(text, status)

    def _codes(self, request: Request) -> Response:
        catalogue = self._holder.current
        words = request.query_params.get("q", "").strip()
        family = request.query_params.get("family", "").strip()
        as_page = wants_page(request)
        if not words and not family:
            if as_page:
                return page(self._start(request))
            raise UserError("give words after ?q=, or a family after ?family=")
        if len(words) > _MAX_WORDS:
            raise UserError(f"the words are longer than {_MAX_WORDS} characters; use fewer")
        if as_page and words and not family and _is_code(catalogue, words):
            target = view_of(request).code_link(words)
            return RedirectResponse(target, 303)
        entries, signatures, more = _find(catalogue, words, family, language_of(request))
        if not as_page:
            document = {
                "results": [entry_json(entry) for entry in entries],
                "messages": [signature_json(signature) for signature in signatures],
                "more": more,
            }
            return JSONResponse(document, headers=fresh())
        if words and not entries and not signatures and not family and catalogue.decode(words):
            return RedirectResponse(view_of(request).code_link(words), 303)
        return self._hits(request, catalogue, words, family, [*_links(entries, signatures)], more)

    def _hits(
        self,
        request: Request,
        catalogue: Catalogue,
        words: str,
        family: str,
        links: list[Link],
        more: bool,
    ) -> Response:
        view = view_of(request)
        kind = catalogue.families.get(family.lower())
        heading, about = f"{view.word('hits')}: {words}", ""
        if kind is not None and not words:
            heading, about = view.pick(kind, "title"), view.pick(kind, "about")
        elif not words:
            heading = view.word(MESSAGES)
        text = render(
            "search.html.j2",
            view,
            catalogue,
            heading=heading,
            about=about,
            words=words,
            links=links,
            more=more,
        )
        return page(text)


def _named(path: str) -> str:
    """The code of a path; Kibana fills in ``ascend.error.reference`` whole (``/v1/codes/disk-full``)."""
    _, found, code = path.partition("v1/codes/")
    return code if found else path


def _grouped(found: Answer) -> list[list[Entry]]:
    """The meanings by code; the newest meaning of each comes first."""
    groups: dict[str, list[Entry]] = {}
    for entry in found.entries:
        groups.setdefault(entry.key, []).append(entry)
    return list(groups.values())


def _is_code(catalogue: Catalogue, text: str) -> bool:
    return bool(catalogue.lookup(text)) or catalogue.signatures.get(text) is not None


def _find(
    catalogue: Catalogue, words: str, family: str, language: str
) -> tuple[list[Entry], list[Signature], bool]:
    """What has the words, in one family or in all; and whether there is more of it."""
    signatures = [] if family and family != MESSAGES else list(catalogue.signatures)
    if not words:
        return ([] if family == MESSAGES else list(catalogue.entries(family))), signatures, False
    entries: list[Entry] = []
    if family != MESSAGES:
        exact = catalogue.lookup(words, family=family or None)
        hits = search(catalogue.entries(family or None), words, language, _MAX_HITS + 1)
        entries = list(dict.fromkeys([*exact, *hits]))
    wanted = words.lower().split()
    signatures = [one for one in signatures if all(word in _text(one) for word in wanted)]
    return entries[:_MAX_HITS], signatures[:_MAX_HITS], len(entries) > _MAX_HITS


def _text(signature: Signature) -> str:
    parts = (signature.name, signature.meaning, signature.meaning_zh, *sum(signature.literals, ()))
    return " ".join(parts).lower()


def _links(entries: Iterable[Entry], signatures: Iterable[Signature]) -> Iterable[Link]:
    """Rows of a list; a number with several meanings has one row for each."""
    for signature in signatures:
        yield Link(signature.name, signature.meaning, signature.meaning_zh)
    for entry in entries:
        yield Link(entry.key, entry.meaning, entry.meaning_zh)
