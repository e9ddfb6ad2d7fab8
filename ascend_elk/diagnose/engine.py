"""The way from events to a verdict: collect, align, identify, accuse, judge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from ascend_elk.cann import Version
from ascend_elk.diagnose.advice import remediation, sentence_zh
from ascend_elk.diagnose.arrivals import Measured, latenesses, marks
from ascend_elk.diagnose.case import Candidate, Case, Trouble, incident
from ascend_elk.diagnose.cluster import build
from ascend_elk.diagnose.collect import Collector, EventLike
from ascend_elk.diagnose.model import MAX_TEXT, Card, Episode, Evidence, Kind, Suspect, Verdict
from ascend_elk.diagnose.rules import FAILURE_RULES
from ascend_elk.diagnose.rules.lateness import late_arrivals, never_entered, odd_entry
from ascend_elk.diagnose.rules.outliers import issue_cost, retries, throttled
from ascend_elk.diagnose.timeline import build_timeline, iso
from ascend_elk.diagnose.waits import follow

MAX_EPISODES = 200
MAX_EVIDENCE = 12
MAX_SUSPECTS = 16
_ENOUGH = 0.38
"""Score below which the evidence names no card."""


class Codes(Protocol):
    """What the diagnosis asks of the catalogue."""

    def lookup(self, code: str, version: Version | None = None, family: str | None = None) -> Any:
        """Return the entries of a code."""

    def headline(self, codes: Sequence[str], version: Version | None = None) -> str | None:
        """Return the code that says most about the cause."""


def diagnose(
    events: Iterable[EventLike], *, catalogue: Codes | None = None, version: Version | None = None
) -> Verdict:
    """Find the card at fault.

    Args:
        events: of all files, those of one file in its order; a prefiltered stream is enough, see
            ``ascend_elk.interest``.
        catalogue: gives the remedy of an error code.
        version: CANN version of the cluster, for codes that changed their meaning.
    """
    return conclude(Collector().feed(events), catalogue=catalogue, version=version)


def conclude(
    collector: Collector, *, catalogue: Codes | None = None, version: Version | None = None
) -> Verdict:
    """Judge what one or several readers collected."""
    cluster = build(collector)
    case = incident(cluster)
    case.chain = follow(case)
    measured = latenesses(cluster)
    candidates = [candidate for rule in FAILURE_RULES for candidate in rule(case)]
    candidates += [*never_entered(case), *odd_entry(case)]
    candidates += late_arrivals(case, measured)
    candidates += [*retries(case), *throttled(case), *issue_cost(case)]
    if case.timeouts:
        for candidate in candidates:
            # Something broke: that a card was slow before is rarely the reason.
            candidate.score *= 0.7 if candidate.straggler else 1.0
    candidates.sort(key=lambda candidate: -candidate.score)
    return _verdict(case, candidates, measured, catalogue, version)


def _verdict(
    case: Case,
    candidates: list[Candidate],
    measured: dict[str, list[Measured]],
    catalogue: Codes | None,
    version: Version | None,
) -> Verdict:
    cluster = case.cluster
    best = candidates[0] if candidates and candidates[0].score >= _ENOUGH else None
    troubled = bool(
        case.timeouts or case.pointers or any(trouble.time is not None for trouble in case.causes)
    )
    suspects = _suspects(candidates)
    notes = list(cluster.notes)
    if case.set_aside:
        notes.append(f"{case.set_aside} kinds of trouble lines of other times were set aside")
    episodes = _episodes(case)
    missing = _missing(case, candidates, best)
    common: dict[str, Any] = {
        "suspects": suspects,
        "episodes": episodes,
        "clocks": tuple(cluster.clocks),
        "ranks": cluster.size,
        "seen": len(cluster.members),
    }
    if best is None:
        kind: Kind = "undetermined" if troubled or not cluster.members else "healthy"
        return Verdict(
            kind=kind,
            confidence=0.0 if kind == "undetermined" else 0.7 if case.errors else 0.9,
            sentence=_no_card(case, kind),
            sentence_zh="证据不足以确定故障卡。" if kind == "undetermined" else "未发现故障或慢卡。",
            evidence=_evidence([(trouble, "trouble") for trouble in case.troubles[:MAX_EVIDENCE]]),
            missing=tuple(missing),
            notes=tuple(notes),
            timeline=build_timeline(cluster, (), [], {}),
            **common,
        )
    kind = "straggler" if best.straggler else "link" if best.link else "first-failure"
    proof = list(best.proof)
    for other in candidates[1:]:
        if other.cards[:1] == best.cards[:1]:
            proof.extend(item for item in other.proof if item not in proof)
    culprit = best.cards[0]
    codes = tuple(
        dict.fromkeys(
            code
            for trouble, _ in proof
            if trouble.member.card == culprit and trouble.group.role != "timeout"
            for code in trouble.group.codes
        )
    )
    advice, advice_zh = remediation(best.rule)
    text, text_zh = _code_advice(codes, catalogue, version)
    return Verdict(
        kind=kind,
        cards=tuple(best.cards),
        confidence=round(_confidence(best, candidates), 2),
        sentence=best.why[:1].upper() + best.why[1:] + ".",
        sentence_zh=sentence_zh(best.rule, best.cards),
        rule=best.rule,
        chain=tuple(best.chain),
        evidence=_evidence(proof),
        missing=tuple(missing),
        notes=tuple(notes),
        codes=codes,
        remediation=" ".join(part for part in (advice, text) if part),
        remediation_zh="".join(part for part in (advice_zh, text_zh) if part),
        timeline=build_timeline(cluster, best.cards, best.chain, marks(measured, set(best.cards))),
        **common,
    )


def _confidence(best: Candidate, candidates: list[Candidate]) -> float:
    """Start from the rule's score; agreement of independent rules adds, a rival takes away."""
    confidence = best.score
    agreeing = {c.rule for c in candidates if c.cards[:1] == best.cards[:1]} - {best.rule}
    confidence += (1 - confidence) * (1 - 0.6 ** len(agreeing))
    rivals = [c.score for c in candidates if not set(c.cards) & set(best.cards) and c.score >= _ENOUGH]
    if rivals:
        confidence *= 1 - 0.4 * max(rivals) / max(best.score, 1e-9)
    return min(0.99, confidence)


def _suspects(candidates: list[Candidate]) -> tuple[Suspect, ...]:
    found: dict[Card, Suspect] = {}
    for candidate in candidates:
        for place, card in enumerate(candidate.cards):
            score = round(candidate.score - 0.001 * place, 4)
            if card not in found or found[card].score < score:
                found[card] = Suspect(card, score, candidate.rule, candidate.why)
    return tuple(sorted(found.values(), key=lambda suspect: -suspect.score)[:MAX_SUSPECTS])


def _evidence(proof: list[tuple[Trouble, str]]) -> tuple[Evidence, ...]:
    evidence: dict[tuple[str, int | None, str], Evidence] = {}
    for trouble, why in proof:
        record = trouble.record
        key = (record.file, record.line if record.line is not None else record.offset, record.text)
        evidence.setdefault(
            key,
            Evidence(
                record.file,
                record.line,
                record.text[:MAX_TEXT],
                iso(record.time),
                why,
                trouble.member.card,
                record.offset,
                trouble.group.count,
            ),
        )
    return tuple(evidence.values())[:MAX_EVIDENCE]


def _episodes(case: Case) -> tuple[Episode, ...]:
    by_kind: dict[tuple[str, tuple[str, ...]], list[Trouble]] = defaultdict(list)
    for trouble in case.troubles:
        by_kind[trouble.group.sign, trouble.group.codes[:1]].append(trouble)
    episodes = []
    for (sign, _), troubles in by_kind.items():
        first = troubles[0]
        lasts = [last for t in troubles if (last := t.member.last(t.group)) is not None]
        episodes.append(
            Episode(
                kind=sign if first.group.known else "error",
                text=first.record.text[:MAX_TEXT],
                count=sum(trouble.group.count for trouble in troubles),
                cards=len({id(trouble.member) for trouble in troubles}),
                first=iso(first.time),
                last=iso(max(lasts) if lasts else None),
                codes=first.group.codes,
                card=first.member.card,
                file=first.record.file,
                line=first.record.line,
            )
        )
    episodes.sort(key=lambda episode: episode.first or "9")
    return tuple(episodes[:MAX_EPISODES])


def _missing(case: Case, candidates: list[Candidate], best: Candidate | None) -> list[str]:
    cluster = case.cluster
    asking = [best] if best else [c for c in candidates[:4] if c.score >= _ENOUGH * 0.75]
    missing = list(dict.fromkeys(text for candidate in asking for text in candidate.missing))
    if not cluster.members:
        return ["host logs of the job: the debug and run directories under ~/ascend/log of every node"]
    sure = best is not None and best.score >= 0.8
    if cluster.size is not None and not sure:
        seen = {member.world for member in cluster.members if member.world is not None}
        absent = sorted(set(range(min(cluster.size, 65536))) - seen)
        if absent and not any("the logs of" in text for text in missing):
            missing.append(
                f"the logs of {_ranges(absent)} of {cluster.size} ranks: only {len(seen)} left any"
            )
    if not any(member.ranks for member in cluster.members):
        missing.append("the run logs (log/run/plog) of all nodes: they say which card and rank a process has")
    blind = [
        member.world for member in cluster.members if not member.trace.entries and member.world is not None
    ]
    if not sure and blind and len(blind) < len(cluster.members):
        missing.append(
            f"the run logs of {_ranges(sorted(blind))} with their entries of collectives: "
            "whether they come late nobody can see"
        )
    if not sure and not any(member.trace.entries for member in cluster.members):
        missing.append("when each rank entered its collectives: export HCCL_ENTRY_LOG_ENABLE=1 and run again")
    if best is None and (case.timeouts or case.errors):
        if not any(member.trace.levels.get("INFO") for member in cluster.members):
            missing.append("lines of level INFO: export ASCEND_GLOBAL_LOG_LEVEL=1 and run again")
        if not cluster.system:
            missing.append("the device logs of all nodes (msnpureport -f) and the kernel log of the hosts")
    return missing


def _ranges(ranks: list[int]) -> str:
    parts: list[str] = []
    start = previous = ranks[0]
    for rank in [*ranks[1:], -1]:
        if rank != previous + 1:
            parts.append(f"{start}" if start == previous else f"{start}-{previous}")
            start = rank
        previous = rank
    text = ", ".join(parts[:12]) + (" …" if len(parts) > 12 else "")
    return f"rank {text}" if len(ranks) == 1 else f"ranks {text}"


def _no_card(case: Case, kind: Kind) -> str:
    if kind == "healthy":
        return (
            f"No failure in the logs of {len(case.cluster.members)} cards, and none stands out as slow."
            if any(member.trace.entries for member in case.cluster.members)
            else f"No failure in the logs of {len(case.cluster.members)} cards; "
            "they do not say when collectives were entered, so a slow card would not show."
        )
    if not case.cluster.members:
        return "The logs hold no process that drives a card."
    return "The evidence singles out no card."


def _code_advice(codes: tuple[str, ...], catalogue: Codes | None, version: Version | None) -> tuple[str, str]:
    if catalogue is None:
        return "", ""
    headline = catalogue.headline(codes, version)
    if headline is None:
        return "", ""
    family, _, code = headline.partition(":")
    for entry in catalogue.lookup(code, version, family):
        if not entry.catch_all:
            return f"{code}: {entry.remediation}", f"{code}：{entry.remediation_zh}"
    return "", ""
