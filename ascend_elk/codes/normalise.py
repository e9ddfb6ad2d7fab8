"""One spelling per code: from the ways a person or a log writes it to the catalogue's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from ascend_elk.codes.models import Family, Normalise

# Nothing that names a code is longer; longer input is refused before any regex sees it.
MAX_LENGTH = 200


def _hex(width: int) -> Callable[[str], str]:
    def convert(text: str) -> str:
        return f"0x{int(text, 16):0{width}x}"

    return convert


def _errno(text: str) -> str:
    """HCCL's 64-bit number; some lines leave out its module byte, 5."""
    number = int(text, 16)
    return f"0x{number if number >> 24 else number | 5 << 24:016x}"


def _triple(text: str) -> str:
    """``(0, 0x01000000, 0)`` → ``(0x0,0x1000000,0x0)``; the name of one bit stays."""
    if not text.startswith("("):
        return text.lower()
    words = [word.strip() for word in text.strip("()").split(",")]
    return "(" + ",".join(f"0x{int(word, 0):x}" for word in words) + ")"


def _decimal(text: str) -> str:
    """Decimal or 0x-hex; -1 is the unsigned 32-bit number that it stands for."""
    number = int(text, 16) if text.lower().startswith("0x") else int(text)
    return str(number if number >= 0 else number + (1 << 32))


NORMALISERS: dict[Normalise, Callable[[str], str]] = {
    "text": str,
    "upper": str.upper,
    "lower": str.lower,
    "hex": _hex(1),
    "hex8": _hex(8),
    "errno": _errno,
    "decimal": _decimal,
    "triple": _triple,
}

# What stands around a code in a log line or a question: labels and brackets.
_WRAPPING = re.compile(
    r"(?i)\s*(?:(?:err(?:or)?[ _]?(?:code|no)?(?: is)?|(?:drv ?)?ret(?:code|val)?|runtime result|status|code"
    r"|event_id)\s*(?:=|:|is)?\s*)?(.*?)[\s.,:;!]*"
)


class Normaliser:
    """Finds which codes a text can name."""

    def __init__(self, families: Iterable[Family]) -> None:
        """Compile the families' forms."""
        self._forms = [
            (
                family.name,
                [re.compile(form, re.IGNORECASE) for form in family.forms],
                NORMALISERS[family.normalise],
                re.compile(family.pattern),
            )
            for family in families
        ]

    def candidates(self, text: str, family: str | None = None) -> list[tuple[str, str]]:
        """List the (family, normalised code) pairs that a text can mean, by the look of it alone.

        Args:
            text: ``ei0006``, ``0x715005e``, ``cann:EI0006``, ``errNo[0x0000000005000009]``, ``507018`` …
            family: only this family.
        """
        text = text.strip()
        if len(text) > MAX_LENGTH:
            return []
        prefix, colon, rest = text.partition(":")
        names = {name for name, *_ in self._forms}
        if colon and prefix.lower() in names:
            if family is not None and family != prefix.lower():
                return []
            family, text = prefix.lower(), rest
        found = self._match(text, family)
        if not found:
            match = _WRAPPING.fullmatch(text)
            bare = match.group(1) if match else text
            found = self._match(bare, family) or self._match(bare.strip("[]()'\" "), family)
        return found

    def _match(self, text: str, family: str | None) -> list[tuple[str, str]]:
        found = []
        for name, forms, normalise, pattern in self._forms:
            if family is not None and name != family:
                continue
            if family is not None and pattern.fullmatch(text):
                # With its family named, the catalogue's own spelling needs no more around it.
                found.append((name, text))
                continue
            for form in forms:
                match = form.fullmatch(text)
                if match is None:
                    continue
                code = normalise(match.group("code"))
                if pattern.fullmatch(code):
                    found.append((name, code))
                break
        return found
