"""From the rows of a file to entries with complete texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ascend_elk.codes.decode import parts_of
from ascend_elk.codes.models import CodeFile, Entry, Knowledge, Remedy, Row
from ascend_elk.errors import UserError

_SLOT = re.compile(r"\{([a-z_]+)\}")
_WORD = re.compile(r"[a-z]+(?:[ ,:-]|$)")


class Composer:
    """Completes the texts of one family's rows."""

    def __init__(
        self,
        path: Path,
        file: CodeFile,
        shared: Mapping[str, Remedy],
        own_sources: Mapping[str, str],
        lookup: Callable[[str], Sequence[Entry]],
    ) -> None:
        """Take the file, the shared remedies, the sources of users' rows, and a look-up for ``same_as``."""
        self._lookup = lookup
        self._path = path
        self._file = file
        self._sources = {**own_sources, **file.sources}
        self._remedies = {**shared, **file.remedies}

    def entry(self, row: Row, place: str | None = None) -> Entry:
        """Complete one row.

        Args:
            row: as it stands in a file.
            place: file and line, where that is not the family's own file.

        Raises:
            UserError: a text, a part or a source is missing.
        """
        where = f"{place or self._path}: {row.code}"
        compose = self._file.compose
        meaning, meaning_zh = row.meaning, row.meaning_zh
        model = self._model(row, where)
        if meaning is None and model is not None:
            meaning, meaning_zh = model.meaning, model.meaning_zh
        parts = {**parts_of(self._file.family, row.code), **row.parts}
        if meaning is None and compose is not None:
            meaning = self._fill(compose.meaning, row, parts, "en")
            meaning_zh = meaning_zh or self._fill(compose.meaning_zh, row, parts, "zh")
        remediation, remediation_zh, generic = remediation_of(row, self._remedies, where)
        if remediation is None and model is not None:
            remediation, remediation_zh, generic = model.remediation, model.remediation_zh, model.generic
        missing = [
            name
            for name, value in (
                ("layer", row.layer),
                ("category", row.category),
                ("meaning", meaning),
                ("remedy or remediation", remediation),
                ("source", row.source),
            )
            if value is None
        ]
        if missing:
            raise UserError(f"{where} lacks {', '.join(missing)}")
        return Entry(
            family=self._file.family,
            code=row.code,
            symbol=row.symbol,
            since=row.since,
            until=row.last_seen,
            layer=str(row.layer),
            category=str(row.category),
            severity=row.severity,
            meaning=str(meaning),
            meaning_zh=meaning_zh or str(meaning),
            remediation=str(remediation),
            remediation_zh=remediation_zh or str(remediation),
            source=source_of(row, self._sources, where),
            generic=generic,
            since_exact=row.since_exact,
            since_after=row.since_after,
            hardware=row.hardware,
            emitter=row.emitter,
            returned_as=row.returned_as,
            action=row.action,
            assertion=row.assertion,
            catch_all=row.catch_all,
            wrapper=row.wrapper,
            wraps=row.wraps,
            effect=row.effect,
            effects=row.effects,
            signals=row.signals or (model.signals if model is not None else ()),
            rank=row.rank,
            note=row.note,
            aliases=row.aliases,
        )

    def _model(self, row: Row, where: str) -> Entry | None:
        """The entry whose texts a row takes over."""
        if row.same_as is None:
            return None
        found = self._lookup(row.same_as)
        if not found:
            raise UserError(f"{where}: there is no code {row.same_as}")
        return found[0]

    def _fill(self, template: str, row: Row, parts: Mapping[str, str], language: str) -> str:
        def value(match: re.Match[str]) -> str:
            slot = match.group(1)
            if slot in row.values:
                return row.values[slot]
            name = parts.get(slot)
            if name is not None and slot not in self._file.parts:
                return name
            phrase = self._file.parts.get(slot, {}).get(name) if name is not None else None
            if phrase is None:
                raise UserError(f"{self._path}: {row.code}: there is no {slot} named {name!r}")
            # A phrase may hold slots itself.
            return _SLOT.sub(value, phrase.en if language == "en" else phrase.zh)

        text = _SLOT.sub(value, template)
        # A sentence starts with a capital, a name such as torch_npu stays.
        return text[:1].upper() + text[1:] if _WORD.match(text) else text


def remediation_of(
    row: Knowledge, remedies: Mapping[str, Remedy], where: str
) -> tuple[str | None, str | None, bool]:
    """The remediation of a row in both languages, and whether it is only a generic one."""
    if row.remedy is None:
        return row.remediation, row.remediation_zh, False
    remedy = remedies.get(row.remedy)
    if remedy is None:
        raise UserError(f"{where}: there is no remedy named {row.remedy!r}")
    return remedy.en, remedy.zh, remedy.generic


def source_of(row: Knowledge, sources: Mapping[str, str], where: str) -> str:
    """The full text of a row's source."""
    source = sources.get(str(row.source))
    if source is None:
        raise UserError(f"{where}: there is no source named {row.source!r}")
    return source
