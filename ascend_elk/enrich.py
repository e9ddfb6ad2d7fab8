"""What the catalogue adds to one event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from ascend_elk.cann import Version
from ascend_elk.codes import Catalogue, Decoding, Entry, Signature
from ascend_elk.codes.models import SEVERITIES
from ascend_elk.errors import UserError

_PREFIX = "ascend.error."

READ_FIELDS = {
    "ascend.error.codes": "texts",
    "message": "text",
    "event.severity": "number",
    "ascend.cann.version": "text",
    "ascend.event.assertion": "text",
    "ascend.signal": "texts",
}
"""The fields that ``enrich`` reads, and of which kind they are: text, texts (a list), number."""
_SHOWN = 80


def enrich(fields: Mapping[str, Any], catalogue: Catalogue, version: Version | None = None) -> dict[str, Any]:
    """Look up an event's codes and its message.

    Args:
        fields: the event's flat fields (``docs/fields.md``); they are not changed.
        catalogue: what is known.
        version: the CANN version that wrote the event; decides where a number was used twice. The event's
            own ``ascend.cann.version`` counts where this is ``None``.

    Returns:
        The fields to set on the event: ``error.code``, ``ascend.error.category``, ``.layer``, ``.severity``,
        ``.meaning``, ``.remediation``, both in Chinese, ``.reference``, ``.catalogue`` and, where there are
        new ones, ``ascend.signal`` (with those that the event has). Empty where there is nothing to say.
    """
    codes = fields.get("ascend.error.codes")
    message = fields.get("message") or ""
    level = fields.get("event.severity")
    signatures = [
        signature
        for signature in catalogue.signatures.match(message)
        if level is None or level >= signature.min_level
    ]
    if not codes and not signatures:
        return {}
    if catalogue.is_muted(message):
        return {f"{_PREFIX}catalogue": catalogue.version, f"{_PREFIX}severity": "info"}
    if version is None and "ascend.cann.version" in fields:
        version = _version(str(fields["ascend.cann.version"]))
    if isinstance(codes, str):
        codes = [codes]
    added: dict[str, Any] = {}
    signals: list[str] = []
    if codes:
        known, signals_of_codes = _of_codes(catalogue, tuple(codes), version)
        added.update(known)
        signals += signals_of_codes
    else:
        added.update(_of_signature(max(signatures, key=lambda one: SEVERITIES.index(one.severity))))
    if fields.get("ascend.event.assertion") == "recovered":
        _mark_recovery(added)
    added[f"{_PREFIX}catalogue"] = catalogue.version
    signals += (signal for signature in signatures for signal in signature.signals)
    present = fields.get("ascend.signal") or []
    merged = list(dict.fromkeys([*present, *signals]))
    if len(merged) > len(present):
        added["ascend.signal"] = merged
    return added


@lru_cache(maxsize=256)
def _version(text: str) -> Version | None:
    """The version that an event carries; one that cannot be read decides nothing."""
    try:
        return Version.parse(text)
    except UserError:
        return None


# One failure repeats its codes on many lines; bounded, because a log can hold any number of codes.
@lru_cache(maxsize=4_096)
def _of_codes(
    catalogue: Catalogue, codes: tuple[str, ...], version: Version | None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The fields that the headline of some codes gives, and the signals of all of them."""
    headline = catalogue.headline(codes, version) or codes[0]
    entries = catalogue.lookup(headline, version)
    known = {"error.code": headline.partition(":")[2]}
    known.update(_of_entries(entries) if entries else _of_unknown(headline, catalogue.decode(headline)))
    signals = [
        signal for code in codes for entry in catalogue.lookup(code, version) for signal in entry.signals
    ]
    return known, tuple(dict.fromkeys(signals))


def _of_entries(entries: list[Entry]) -> dict[str, Any]:
    """The first entry's facts; the texts of all, where a number has several meanings."""
    first = entries[0]
    return {
        f"{_PREFIX}category": first.category,
        f"{_PREFIX}layer": first.layer,
        f"{_PREFIX}severity": max((entry.severity for entry in entries), key=SEVERITIES.index),
        f"{_PREFIX}meaning": _joined((entry.emitter or entry.versions(), entry.meaning) for entry in entries),
        f"{_PREFIX}remediation": _joined(
            (entry.emitter or entry.versions(), entry.remediation) for entry in entries
        ),
        f"{_PREFIX}meaning_zh": _joined(
            (entry.emitter or entry.versions("zh"), entry.meaning_zh) for entry in entries
        ),
        f"{_PREFIX}remediation_zh": _joined(
            (entry.emitter or entry.versions("zh"), entry.remediation_zh) for entry in entries
        ),
        f"{_PREFIX}reference": first.reference,
    }


def _joined(texts: Iterable[tuple[str, str]]) -> str:
    """One text as it is; several with the versions that they hold for."""
    different = {text: versions for versions, text in reversed(list(texts))}
    if len(different) == 1:
        return next(iter(different))
    return "\n".join(
        f"[{versions}] {text}" if versions else text for text, versions in reversed(different.items())
    )


def _of_unknown(code: str, decodings: list[Decoding]) -> dict[str, Any]:
    # What looks like no code at all is shown by its head.
    shape = decodings[0].sentence() if decodings else code[:_SHOWN]
    shape_zh = decodings[0].sentence("zh") if decodings else code[:_SHOWN]
    return {
        f"{_PREFIX}meaning": f"This code is not in the catalogue. By its shape: {shape}.",
        f"{_PREFIX}meaning_zh": f"错误码库中没有该编码。按编码规则：{shape_zh}。",
    }


def _of_signature(signature: Signature) -> dict[str, Any]:
    return {
        f"{_PREFIX}category": signature.category,
        f"{_PREFIX}layer": signature.layer,
        f"{_PREFIX}severity": signature.severity,
        f"{_PREFIX}meaning": signature.meaning,
        f"{_PREFIX}remediation": signature.remediation,
        f"{_PREFIX}meaning_zh": signature.meaning_zh,
        f"{_PREFIX}remediation_zh": signature.remediation_zh,
        f"{_PREFIX}reference": signature.reference,
    }


def _mark_recovery(added: dict[str, Any]) -> None:
    """A recovery carries the id of its fault, and is none."""
    added[f"{_PREFIX}severity"] = "info"
    added[f"{_PREFIX}remediation"] = "Nothing to do: the fault is over."
    added[f"{_PREFIX}remediation_zh"] = "无需处理：故障已恢复。"
    if f"{_PREFIX}meaning" in added:
        added[f"{_PREFIX}meaning"] = f"Recovered: {added[f'{_PREFIX}meaning']}"
        added[f"{_PREFIX}meaning_zh"] = f"已恢复：{added[f'{_PREFIX}meaning_zh']}"
