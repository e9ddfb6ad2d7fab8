"""The catalogue of error codes: look-up by code and CANN version, search, headline, message signatures."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ahocorasick_rs import AhoCorasick

from ascend_elk.cann import Version
from ascend_elk.codes import search as searching
from ascend_elk.codes import signatures as signing
from ascend_elk.codes.compose import Composer
from ascend_elk.codes.decode import Decoding, aicore_bits, facts_of
from ascend_elk.codes.loader import item_lines, read, read_text
from ascend_elk.codes.models import (
    CodeFile,
    Entry,
    FamiliesFile,
    Family,
    Remedy,
    Row,
    SharedRemedies,
    SignaturesFile,
    UserFile,
)
from ascend_elk.codes.normalise import MAX_LENGTH, Normaliser
from ascend_elk.codes.precedence import Precedence
from ascend_elk.content import content_dir
from ascend_elk.errors import UserError
from ascend_elk.interest import load_signs

# Look-ups remembered; a log can hold any number of different codes.
_MEMORY = 20_000


@dataclass(frozen=True)
class _Own:
    """A row of a user's file."""

    row: Row
    file: str
    place: str
    """File and line."""


class _Codes:
    """The entries of one family, by code."""

    def __init__(self, file: CodeFile, composer: Composer, overlay: Sequence[_Own]) -> None:
        self.phrases = file.parts
        by_code: dict[str, list[Row]] = {}
        for row in file.codes:
            by_code.setdefault(row.code, []).append(row)
        places: dict[str, str] = {}
        for own in overlay:
            row, places[own.row.code] = own.row, own.place
            changes = row.model_dump(exclude_unset=True, exclude={"family"})
            base = by_code.get(row.code)
            if base:
                # A text of the user's own beats parts and remedies of the base row.
                dropped = {"remedy": None} if "remediation" in changes else {}
                by_code[row.code] = [one.model_copy(update={**dropped, **changes}) for one in base]
            else:
                by_code[row.code] = [Row.model_validate({"source": own.file, **changes})]
        self.entries = {
            code: tuple(composer.entry(row, places.get(code)) for row in rows)
            for code, rows in by_code.items()
        }
        self.prefixes = [code for code in self.entries if code.endswith("*")]
        self.aliases = {
            alias: code for code, rows in by_code.items() for row in rows for alias in row.aliases
        }

    def get(self, code: str) -> tuple[Entry, ...]:
        found = self.entries.get(code)
        if found is None and code in self.aliases:
            found = self.entries.get(self.aliases[code])
        if found is None:
            prefix = next((prefix for prefix in self.prefixes if code.startswith(prefix[:-1])), None)
            found = tuple(replace(entry, code=code) for entry in self.entries[prefix]) if prefix else ()
        return found


class Catalogue:
    """All that is known of error codes and of faults that have none."""

    def __init__(self, directory: Path, extra: Sequence[Path] = ()) -> None:
        """Read the families and the users' files; the families' codes are read when first needed.

        Raises:
            UserError: a file has an error; says file, line and reason.
        """
        self._directory = directory
        self._texts = {path.stem: read_text(path) for path in sorted(directory.glob("*.yml"))}
        users = [(path, read_text(path)) for path in extra]
        digest = hashlib.sha256()
        for name, text in [
            *self._texts.items(),
            *((str(index), text) for index, (_, text) in enumerate(users)),
        ]:
            digest.update(f"{name}\0{len(text)}\0{text}".encode())
        self.version: str = digest.hexdigest()[:12]
        """Changes with every change of the content."""

        head = self._read("families", FamiliesFile)
        self.families: dict[str, Family] = {family.name: family for family in head.families}
        self._normaliser = Normaliser(head.families)
        self._precedence = Precedence(
            self.families, head.wrapper_rank, head.unhandled_rank, head.catch_all_rank
        )
        self._shared: dict[str, Remedy] = self._read("remedies", SharedRemedies).remedies
        self._loaded: dict[str, _Codes] = {}
        self._found: dict[tuple[str, str | None, str | None], tuple[Entry, ...]] = {}
        self._overlay: dict[str, list[_Own]] = {}
        self._user_signatures: list[signing.Signature] = []
        self._mute: list[str] = []
        for path, text in users:
            self._add(path, read(path, UserFile, text), text)
        self._muted: AhoCorasick | None = None
        self._signatures: signing.Signatures | None = None

    @classmethod
    def load(cls, extra: Sequence[Path] = ()) -> Catalogue:
        """Read the catalogue that comes with the package, and the users' own files over it.

        Raises:
            UserError: a file has an error; says file, line and reason.
        """
        return cls(content_dir("codes"), extra)

    def lookup(self, code: str, version: Version | None = None, family: str | None = None) -> list[Entry]:
        """Find what a code means.

        Args:
            code: as a person or a log writes it: ``ei0006``, ``0x715005e``, ``cann:EI0006``, ``507018`` …
            version: decides between the meanings of a number that was used again; without one, or where
                it decides nothing, all meanings are given, the newest first.
            family: short name; only this family.

        Returns:
            The entries; of several families where the text fits several; none if it is not known.

        Raises:
            UserError: there is no such family.
        """
        key = (code, None if version is None else version.text, family)
        found = self._found.get(key)
        if found is None:
            found = self._lookup(code, version, family)
            if len(self._found) < _MEMORY and len(code) <= MAX_LENGTH:
                self._found[key] = found
        return list(found)

    def decode(self, code: str, family: str | None = None) -> list[Decoding]:
        """Read a code by its shape alone, known or not: family, module, bits.

        Raises:
            UserError: there is no such family.
        """
        decodings = []
        named = family is not None or code.partition(":")[0].strip().lower() in self.families
        for name, normal in self._candidates(code, family):
            kind = self.families[name]
            codes = self._codes(name)
            facts = facts_of(name, normal, codes.phrases)
            known = bool(self._entries(name, normal, None))
            if kind.quiet and not known and not named:
                continue
            decodings.append(Decoding(name, normal, kind.title, kind.title_zh, known, facts))
        return decodings

    def normalise(self, code: str, family: str | None = None) -> list[str]:
        """The ``family:code`` texts that a text can mean by its look."""
        return [f"{name}:{normal}" for name, normal in self._candidates(code, family)]

    def headline(self, codes: Sequence[str], version: Version | None = None) -> str | None:
        """Choose the code that says most about the cause among ``family:code`` texts of one failure.

        Raised hardware events come first, then specific report codes, AI Core bits, runtime and scheduler
        codes, aclError, framework codes; wrappers and catch-alls never beat a specific code.
        """
        return self._precedence.headline(codes, lambda code: self.lookup(code, version))

    def unwrap(self, code: str, codes: Sequence[str], version: Version | None = None) -> str | None:
        """Of the codes printed together, the one that ``code`` passes on; ``None`` where none is there.

        Args:
            code: ``family:code`` of the wrapper or wrapper-like code.
            codes: all ``family:code`` texts of the same failure.
            version: as in ``lookup``.
        """
        wraps = {target for entry in self.lookup(code, version) for target in entry.wraps}
        inner = [
            other for other in codes if other != code and (other in wraps or other.partition(":")[0] in wraps)
        ]
        return self.headline(inner, version)

    def search(self, words: str, language: str = "en", limit: int = 50) -> list[Entry]:
        """Find codes by words of their texts, symbols and numbers; the best first."""
        return searching.search(self.entries(), words, language, limit)

    def entries(self, family: str | None = None) -> Iterable[Entry]:
        """All entries, or those of one family, in file order.

        Raises:
            UserError: there is no such family.
        """
        for name in self.families if family is None else (self._family(family).name,):
            for entries in self._codes(name).entries.values():
                yield from entries

    @property
    def signatures(self) -> signing.Signatures:
        """Faults known by their message; the users' own first."""
        if self._signatures is None:
            file = self._read("signatures", SignaturesFile)
            where = str(self._directory / "signatures.yml")
            own = signing.build(file.signatures, file.sources, {**self._shared, **file.remedies}, where)
            self._signatures = signing.Signatures([*self._user_signatures, *own])
        return self._signatures

    def is_muted(self, message: str) -> bool:
        """Tell whether a line says itself that it does not matter, or a user's file calls it harmless."""
        if self._muted is None:
            noise = [text for sign in load_signs().signs if sign.role == "noise" for text in sign.contains]
            self._muted = AhoCorasick([*noise, *self._mute])
        return bool(self._muted.find_matches_as_indexes(message))

    def _lookup(self, code: str, version: Version | None, family: str | None) -> tuple[Entry, ...]:
        return tuple(
            entry
            for name, normal in self._candidates(code, family)
            for entry in self._entries(name, normal, version)
        )

    def _candidates(self, code: str, family: str | None) -> list[tuple[str, str]]:
        if family is not None:
            family = self._family(family).name
        return self._normaliser.candidates(code, family)

    def _entries(self, family: str, code: str, version: Version | None) -> tuple[Entry, ...]:
        codes = self._codes(family)
        if family == "aicore" and code.startswith("("):
            bits = aicore_bits(code) or ["none"]
            return tuple(entry for bit in bits for entry in codes.get(bit))
        found = codes.get(code)
        if len(found) < 2 or version is None or self.families[family].versions != "CANN":
            return found
        sure = tuple(entry for entry in found if entry.covers(version))
        return sure or tuple(entry for entry in found if entry.may_cover(version)) or found

    def _family(self, name: str) -> Family:
        family = self.families.get(name.lower())
        if family is None:
            raise UserError(f"there is no code family {name!r}; the families are {', '.join(self.families)}")
        return family

    def _codes(self, family: str) -> _Codes:
        codes = self._loaded.get(family)
        if codes is None:
            path = self._directory / f"{family}.yml"
            file = self._read(family, CodeFile)
            overlay = self._overlay.get(family, ())
            # A user's row names its source in full, or is its own source.
            own = {text: text for one in overlay for text in (one.row.source, one.file) if text}
            composer = Composer(path, file, self._shared, own, self.lookup)
            codes = _Codes(file, composer, overlay)
            self._loaded[family] = codes
        return codes

    def _read(self, name: str, model: type[Any]) -> Any:
        return read(self._directory / f"{name}.yml", model, self._texts.get(name))

    def _add(self, path: Path, file: UserFile, text: str) -> None:
        source = str(path)
        for row, line in zip(file.codes, item_lines(text, "codes"), strict=True):
            place = f"{path}:{line}"
            family = self.families.get(row.family.lower())
            if family is None:
                raise UserError(
                    f"{place}: there is no code family {row.family!r}; the families are "
                    f"{', '.join(self.families)}"
                )
            normal = self._normaliser.candidates(row.code, family.name)
            if not normal:
                raise UserError(
                    f"{place}: {row.code!r} does not look like a code of the family {family.name}"
                )
            changes = {**row.model_dump(exclude_unset=True), "code": normal[0][1]}
            overlay = self._overlay.setdefault(family.name, [])
            overlay.append(_Own(Row.model_construct(set(changes), **changes), source, place))
        for signature, line in zip(file.signatures, item_lines(text, "signatures"), strict=True):
            origin = signature.source or source
            self._user_signatures += signing.build(
                [signature.model_copy(update={"source": origin})],
                {origin: origin},
                self._shared,
                f"{path}:{line}",
            )
        self._mute += file.mute
