"""Plays a scenario and writes the logs that it leaves."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import orjson

from ascend_elk.cann import Version
from ascend_elk.errors import UserError
from ascend_elk.simulate.cluster import START, Job, Process, stamp
from ascend_elk.simulate.scenarios import SCENARIOS

_LEVELS = ("error", "info", "debug")


@dataclass(frozen=True)
class Truth:
    """What really happened, as ``truth.json`` holds it; cards are {host, device, rank, pid}."""

    scenario: str
    kind: str
    cards: list[dict[str, Any]]
    acceptable: list[list[dict[str, Any]]]
    seed: int
    hosts: int
    devices: int
    cann: str
    code: str | None
    signal: str | None
    injected_at: str | None
    skew: dict[str, float]
    lost: list[str]


def simulate(
    directory: Path,
    scenario: str,
    *,
    hosts: int,
    devices: int,
    cann: Version,
    seed: int,
    steps: int = 50,
    skew_seconds: float = 0.0,
    device_utc: bool = False,
    lost: float = 0.0,
    level: str = "error",
    start: datetime = START,
    progress: Callable[[int, int], None] | None = None,
) -> Truth:
    """Write the logs of a whole job with a known fault.

    Args:
        directory: where ``worker-N/`` and ``truth.json`` go; made if it does not exist.
        scenario: a name of ``SCENARIOS``.
        hosts: number of hosts.
        devices: devices per host.
        cann: version whose wording and layout are imitated.
        seed: equal arguments give equal bytes.
        steps: training steps.
        skew_seconds: largest offset of a host's clock.
        device_utc: device clocks run eight hours behind.
        lost: share of the files that are lost or cut, 0 to 1.
        level: what debug/ holds: error, info or debug.
        start: when the job begins, by a right clock, in the zone of the hosts.
        progress: called with files written and files in all.

    Raises:
        UserError: no such scenario, or a number that makes no sense.
    """
    if scenario not in SCENARIOS:
        close = get_close_matches(scenario, SCENARIOS, 3, 0.4)
        hint = f"did you mean {', '.join(close)}?" if close else "see: ascend-elk simulate --list"
        raise UserError(f"there is no scenario {scenario!r}; {hint}")
    if hosts < 1 or devices < 1 or hosts * devices < 2:
        raise UserError("a job needs at least two cards; give more --hosts or --devices")
    if not 0 <= lost < 1 or steps < 2 or level not in _LEVELS:
        raise UserError("lost must be from 0 to below 1, steps at least 2, level error, info or debug")
    rng = random.Random(f"{scenario} {hosts} {devices} {seed}")  # noqa: S311 - no secret
    job = Job.make(hosts, devices, cann, rng, steps, level, skew_seconds, device_utc)
    job.start = start
    fault = SCENARIOS[scenario].play(job)
    files = list(job.files())
    gone: list[str] = []
    for number, (path, lines) in enumerate(files, 1):
        text = "\n".join(lines) + "\n"
        fate = rng.random()
        if fate < lost:
            gone.append(str(path))
            if fate < lost / 2:
                continue
            text = text[: rng.randrange(len(text))]
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
        if progress is not None:
            progress(number, len(files))
    truth = Truth(
        scenario=scenario,
        kind=fault.kind,
        cards=[_card(job.processes[rank]) for rank in fault.cards],
        acceptable=[[_card(job.processes[rank]) for rank in ranks] for ranks in fault.acceptable],
        seed=seed,
        hosts=hosts,
        devices=devices,
        cann=str(cann),
        code=fault.code,
        signal=fault.signal,
        injected_at=None if fault.time is None else stamp(job.moment(job.processes[0].host, fault.time)),
        skew=job.skew,
        lost=gone,
    )
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "truth.json").write_bytes(orjson.dumps(asdict(truth), option=orjson.OPT_INDENT_2))
    return truth


def _card(process: Process) -> dict[str, Any]:
    return {"host": process.host, "device": process.device, "rank": process.rank, "pid": process.pid}
