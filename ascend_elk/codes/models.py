"""The schema of ``codes/*.yml``, and the entry that a look-up gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from ascend_elk.cann import Version, VersionRange

Layer = Literal[
    "application",
    "graph",
    "operator",
    "communication",
    "runtime",
    "device",
    "driver",
    "hardware",
    "framework",
    "tools",
]
Category = Literal[
    "argument",
    "unsupported",
    "state",
    "resource",
    "memory",
    "timeout",
    "network",
    "execution",
    "compile",
    "model",
    "file",
    "environment",
    "version",
    "device",
    "hardware",
    "performance",
    "internal",
]
Severity = Literal["info", "warning", "error", "critical"]
Signal = Literal[
    "timeout",
    "retry",
    "slow",
    "hang",
    "heartbeat",
    "link",
    "oom",
    "aicore",
    "aicpu",
    "ecc",
    "compile",
    "cqe",
    "sdma",
    "hardware",
    "disk-full",
    "device-lost",
    "signal",
]
# MindCluster's standing policy for a hardware event; time rules of a site may override it.
Action = Literal[
    "NotHandle",
    "RestartRequest",
    "RestartBusiness",
    "FreeRestartNPU",
    "RestartNPU",
    "PreSeparateNPU",
    "SeparateNPU",
    "SubHealth",
]
Assertion = Literal["raised", "recovered", "occurred"]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Normalise = Literal["text", "upper", "lower", "hex", "hex8", "errno", "decimal", "triple"]

SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error", "critical")


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Phrase(_Model):
    """One text in both languages."""

    en: Text
    zh: Text


class Remedy(Phrase):
    """What to do, shared by several codes."""

    generic: bool = False
    """It only says where to read on, because nothing better is known."""


class Composition(_Model):
    """How a family's texts are put together from parts: ``{part}`` stands for a phrase or a value."""

    meaning: Text
    meaning_zh: Text


class Knowledge(_Model):
    """What is known of a code or of a message, apart from its name."""

    layer: Layer | None = None
    category: Category | None = None
    severity: Severity = "error"
    meaning: Text | None = None
    meaning_zh: Text | None = None
    remediation: Text | None = None
    remediation_zh: Text | None = None
    remedy: Text | None = None
    source: Text | None = None
    signals: tuple[Signal, ...] = ()


class Row(Knowledge):
    """One code as it stands in a family's file."""

    code: Text
    symbol: Text | None = None
    since: Text | None = None
    """First version known to have this meaning."""
    since_exact: bool = True
    """False: it may be older, down to (not including) ``since_after``."""
    since_after: Text | None = None
    """Last version known not to have it."""
    last_seen: Text | None = None
    """Newest version that has it; later ones looked at do not: withdrawn."""
    hardware: Text | None = None
    """Only this generation of hardware has it."""
    emitter: Text | None = None
    """Who prints it, where two programs use one number."""
    parts: dict[str, str] = Field(default_factory=dict)
    values: dict[str, str] = Field(default_factory=dict)
    aliases: tuple[Text, ...] = ()
    """Other numbers for the same thing, normalised."""
    same_as: Text | None = None
    """Another code, for example ``ts:0x26``, whose texts and signals hold for this one too."""
    returned_as: Text | None = None
    """The code that the caller gets for it, for example ``acl:507015``."""
    action: Action | None = None
    assertion: Assertion | None = None
    catch_all: bool = False
    """It carries no cause: any specific code beats it."""
    wrapper: bool = False
    """It only passes on a failure of a layer below."""
    wraps: tuple[Text, ...] = ()
    """Families (``acl``) or codes (``acl:507015``) that hold what it passes on."""
    effect: bool = False
    """Usually the consequence of trouble elsewhere (another rank, an earlier fault)."""
    effects: tuple[Text, ...] = ()
    """Codes that this fault commonly brings about."""
    rank: float | None = None
    """Own place in the choice of the headline."""
    note: Text | None = None

    @field_validator("since", "since_after", "last_seen")
    @classmethod
    def _is_version(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                Version.parse(value)
            except Exception as error:
                raise ValueError(str(error)) from error
        return value

    @model_validator(mode="after")
    def _is_consistent(self) -> Row:
        if self.since_after is not None and self.since_exact:
            raise ValueError("since_after says that since is not exact; write since_exact: false")
        if self.remedy is not None and self.remediation is not None:
            raise ValueError("give either remedy or remediation")
        return self


class CodeFile(_Model):
    """``codes/<family>.yml``: all codes of one family."""

    family: Text
    sources: dict[str, Text]
    """Short name → where the fact comes from."""
    defaults: dict[str, Any] = Field(default_factory=dict)
    """Values for the rows that do not give their own."""
    compose: Composition | None = None
    parts: dict[str, dict[str, Phrase]] = Field(default_factory=dict)
    remedies: dict[str, Remedy] = Field(default_factory=dict)
    codes: tuple[Row, ...]


class Family(_Model):
    """How the codes of one family look, and their place among the others."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z-]*$")]
    table: Text
    """Name in the vendor's world."""
    title: Text
    title_zh: Text
    about: Text
    about_zh: Text
    forms: tuple[Text, ...]
    """Ways of writing a code: regexes with a group ``code``, for the whole text, any case."""
    normalise: Normalise
    pattern: Text
    """What a normalised code looks like (whole text)."""
    versions: Text | None = "CANN"
    """Whose version numbers since and last_seen are; a CANN version only decides where it is CANN."""
    rank: float
    """Place in the choice of the headline; the lowest wins."""
    quiet: bool = False
    """Its shape fits too much: a number that is not listed is not read by it, unless the family is named."""
    hardware_first: bool = False
    """Among codes of one place, hardware faults come first."""


class FamiliesFile(_Model):
    """``codes/families.yml``."""

    wrapper_rank: float
    unhandled_rank: float
    catch_all_rank: float
    families: tuple[Family, ...]


class SignatureRow(Knowledge):
    """A fault that has no code: known by its message."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+$")]
    literals: Annotated[
        tuple[tuple[Annotated[str, StringConstraints(min_length=2)], ...], ...], Field(min_length=1)
    ]
    """Alternatives; each a list of texts that must follow one another in the message."""
    exclude: tuple[Text, ...] = ()
    """Texts that switch it off."""
    ignore_case: bool = False
    min_level: int = 2
    """Lowest event.severity (INFO 1, WARNING 2, ERROR 3) that counts; events without one always count."""
    samples: Annotated[tuple[Text, ...], Field(min_length=1)]
    counter_samples: tuple[Text, ...] = ()


class SignaturesFile(_Model):
    """``codes/signatures.yml``."""

    sources: dict[str, Text]
    remedies: dict[str, Remedy] = Field(default_factory=dict)
    signatures: tuple[SignatureRow, ...]


class SharedRemedies(_Model):
    """``codes/remedies.yml``: remedies that several families share."""

    remedies: dict[str, Remedy]


class UserRow(Row):
    """A code in a user's own file: new, or changes to one that is known."""

    family: Text


class UserFile(_Model):
    """A user's own codes: added to the catalogue, or laid over it."""

    codes: tuple[UserRow, ...] = ()
    signatures: tuple[SignatureRow, ...] = ()
    mute: tuple[Annotated[str, StringConstraints(min_length=3)], ...] = ()
    """Texts of lines that are known to be harmless."""


@dataclass(frozen=True)
class Entry:
    """One meaning of one code, texts complete."""

    family: str
    code: str
    symbol: str | None
    since: str | None
    until: str | None
    layer: str
    category: str
    severity: Severity
    meaning: str
    remediation: str
    meaning_zh: str
    remediation_zh: str
    source: str
    generic: bool = False
    since_exact: bool = True
    since_after: str | None = None
    hardware: str | None = None
    emitter: str | None = None
    returned_as: str | None = None
    action: str | None = None
    assertion: str | None = None
    catch_all: bool = False
    wrapper: bool = False
    wraps: tuple[str, ...] = ()
    effect: bool = False
    effects: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()
    rank: float | None = None
    note: str | None = None
    aliases: tuple[str, ...] = field(default=())

    @property
    def key(self) -> str:
        """``family:code``."""
        return f"{self.family}:{self.code}"

    @property
    def reference(self) -> str:
        """Path of the code's page in the enrichment service."""
        return f"/v1/codes/{self.key}"

    @property
    def withdrawn(self) -> bool:
        """Newer versions no longer have it."""
        return self.until is not None

    @cached_property
    def _certain(self) -> VersionRange:
        return VersionRange.of(self.since, self.until)

    def covers(self, version: Version) -> bool:
        """Tell whether this version is known to have the code with this meaning."""
        return version in self._certain

    def may_cover(self, version: Version) -> bool:
        """Tell whether this version can have the code with this meaning."""
        if self.until is not None and version not in VersionRange.of(None, self.until):
            return False
        if self.since is None or version in VersionRange.of(self.since):
            return True
        if self.since_exact:
            return False
        return self.since_after is None or version not in VersionRange.of(None, self.since_after)

    def versions(self, language: str = "en") -> str:
        """The range as a person reads it, in ``en`` or ``zh``: ``since 5.1.RC2, last seen in 8.5.0``."""
        zh = language == "zh"
        parts = []
        if self.since is not None:
            loose = ""
            if not self.since_exact:
                loose = " 或更早" if zh else " or earlier"
                if self.since_after:
                    loose = f"（晚于 {self.since_after}）" if zh else f" (after {self.since_after})"
            parts.append(f"自 {self.since}{loose}起" if zh else f"since {self.since}{loose}")
        if self.until is not None:
            parts.append(f"最后见于 {self.until}" if zh else f"last seen in {self.until}")
        if self.hardware is not None:
            parts.append(f"仅 {self.hardware}" if zh else f"{self.hardware} only")
        return ("，" if zh else ", ").join(parts)

    def as_json(self) -> dict[str, Any]:
        """The stable JSON shape of ``ascend-elk codes --json`` and of the service."""
        return {name: getattr(self, name) for name in JSON_KEYS}


JSON_KEYS = (
    "family",
    "code",
    "symbol",
    "since",
    "until",
    "layer",
    "category",
    "severity",
    "meaning",
    "remediation",
    "meaning_zh",
    "remediation_zh",
    "source",
)
