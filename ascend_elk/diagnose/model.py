"""What a diagnosis says: the cards at fault, why, and what a report needs to show it.

Everything here is bounded: a cluster of 1,024 cards with millions of lines gives a verdict of a few megabytes
at most, because repeats are counted in episodes and a lane holds at most ``MAX_MARKS`` marks.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

MAX_MARKS = 32
"""Marks that a lane of the timeline holds at most; the rest is counted in ``Lane.hidden``."""

MAX_TEXT = 400
"""Characters of a log line that are shown; the rest is cut."""

Kind = Literal["first-failure", "straggler", "link", "undetermined", "healthy"]
MarkKind = Literal["timeout", "error", "hardware", "retry", "late", "heartbeat", "start", "end"]


@dataclass(frozen=True)
class Card:
    """One NPU as the job used it; a part that no log names is ``None``.

    Attributes:
        host: name of the host, as the path or the agent gives it.
        device: logical device id (physical where only that is known).
        rank: rank in the job's largest communicator.
        pid: host process that drove it.
        address: network address, where that is all that is known of it.
    """

    host: str | None = None
    device: int | None = None
    rank: int | None = None
    pid: int | None = None
    address: str | None = None

    def label(self) -> str:
        """For people: ``worker-1 device 3 (rank 11)``, as far as it is known."""
        where = " ".join(
            part for part in (self.host, None if self.device is None else f"device {self.device}") if part
        )
        if not where:
            if self.address is not None:
                return f"the card at {self.address}"
            if self.rank is not None:
                return f"rank {self.rank}"
            return f"process {self.pid}" if self.pid is not None else "an unknown card"
        if self.rank is not None:
            return f"{where} (rank {self.rank})"
        return f"{where} (process {self.pid})" if self.device is None and self.pid is not None else where


@dataclass(frozen=True)
class Evidence:
    """One line that carries the verdict.

    Attributes:
        file: path of the log; empty where the event came without one.
        line: number of the line from 1; ``None`` where only the offset is known (Elasticsearch).
        text: the line, cut to ``MAX_TEXT`` characters.
        time: ISO 8601, UTC, as the log has it (before the clocks are aligned).
        why: what the line proves, in a few words.
        card: the card that wrote it, or that it is about.
        offset: bytes from the start of the file.
        count: how often it, or its like, was written by this process.
    """

    file: str
    line: int | None
    text: str
    time: str | None = None
    why: str = ""
    card: Card | None = None
    offset: int | None = None
    count: int = 1


@dataclass(frozen=True)
class Suspect:
    """A card under suspicion, with the strength of it.

    Attributes:
        card: the card.
        score: 0 to 1, comparable within one verdict.
        rule: name of the rule that accuses it.
        why: the reason in one sentence.
    """

    card: Card
    score: float
    rule: str
    why: str


@dataclass(frozen=True)
class Episode:
    """One kind of line, its repeats counted.

    Attributes:
        kind: sign it was recognised as (``socket-timeout``, ``cqe`` …) or ``error``.
        text: an example.
        count: times it was written.
        cards: how many cards wrote it.
        first, last: ISO 8601, UTC, clocks aligned.
        codes: error codes in it, ``family:code``.
        card: the first card that wrote it.
        file, line: where the example stands.
    """

    kind: str
    text: str
    count: int
    cards: int
    first: str | None
    last: str | None
    codes: tuple[str, ...] = ()
    card: Card | None = None
    file: str = ""
    line: int | None = None


@dataclass(frozen=True)
class Mark:
    """Something on a lane of the timeline.

    Attributes:
        kind: what it is.
        start, end: seconds from ``Timeline.start``, clocks aligned; equal for a moment.
        count: lines it stands for.
        text: the example line, or a sentence for a late arrival.
        code: headline error code, ``None`` without one.
        file, line: where the example stands.
    """

    kind: MarkKind
    start: float
    end: float
    count: int
    text: str
    code: str | None = None
    file: str = ""
    line: int | None = None


@dataclass(frozen=True)
class Lane:
    """One card on the timeline.

    Attributes:
        card: the card.
        first, last: seconds from ``Timeline.start`` of its first and last line seen.
        marks: at most ``MAX_MARKS``, by start.
        suspect: the verdict names it.
        hidden: lines that the marks left out.
    """

    card: Card
    first: float
    last: float
    marks: tuple[Mark, ...] = ()
    suspect: bool = False
    hidden: int = 0


@dataclass(frozen=True)
class Timeline:
    """Lanes of all cards of the job, clocks aligned.

    Attributes:
        start, end: ISO 8601, UTC; ``None`` where no line has a time.
        seconds: length.
        lanes: by rank, else by host and device.
        links: index pairs of lanes, who waits for whom.
    """

    start: str | None = None
    end: str | None = None
    seconds: float = 0.0
    lanes: tuple[Lane, ...] = ()
    links: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Clock:
    """What was removed from one host's clock.

    Attributes:
        host: the host.
        offset: seconds its clock ran ahead of the cluster's median.
        pairs: paired records that the estimate rests on.
    """

    host: str
    offset: float
    pairs: int


@dataclass(frozen=True)
class Verdict:
    """The answer to "which card?".

    Attributes:
        kind: what happened.
        cards: cards at fault, most suspect first; both ends of a broken link; empty where undetermined.
        confidence: 0 to 1; on the simulator verdicts of a confidence were right at least that often.
        sentence, sentence_zh: the verdict for people.
        rule: name of the rule that decided, see docs/diagnosis.md; empty where none did.
        chain: who waits for whom, from the first victim to the cause.
        suspects: ranked, those at fault first.
        evidence: the lines it rests on, strongest first.
        episodes: kinds of trouble lines, by first time.
        missing: what to collect next, one sentence each.
        notes: what was set aside or contradicts: other jobs, restarts, duplicates, clocks.
        codes: headline codes of the cause, ``family:code``.
        remediation, remediation_zh: what to do.
        clocks: hosts whose clock was off by more than the estimate's noise.
        timeline: lanes for the report.
        ranks: size of the job as its communicator says, ``None`` where unknown.
        seen: how many cards left logs.
    """

    kind: Kind
    cards: tuple[Card, ...] = ()
    confidence: float = 0.0
    sentence: str = ""
    sentence_zh: str = ""
    rule: str = ""
    chain: tuple[Card, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    episodes: tuple[Episode, ...] = ()
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    remediation: str = ""
    remediation_zh: str = ""
    clocks: tuple[Clock, ...] = ()
    timeline: Timeline = field(default_factory=Timeline)
    ranks: int | None = None
    seen: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the stable JSON form: every key always there, tuples as lists, see docs/diagnosis.md."""
        document: dict[str, Any] = _listed(asdict(self))
        return document


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_listed(item) for item in value]
    return value
