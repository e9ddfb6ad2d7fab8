"""Clocks of hosts and devices are brought to one."""

from __future__ import annotations

from collections import defaultdict
from statistics import median, median_low

from ascend_elk.diagnose.collect import Trace
from ascend_elk.diagnose.members import BARRIERS, STARTS, Member
from ascend_elk.diagnose.model import Clock

_HALF_HOUR = 1800.0
_NOISE = 0.5
_HOSTS_TO_COMPARE = 4
_FIRST_ENTRIES = 64


def align(job: list[Member], system: list[Member]) -> tuple[list[Clock], dict[str | None, float]]:
    """Set every member's offsets; return those of hosts whose clock was off, and what may still be wrong."""
    hosts = sorted({member.card.host for member in job if member.card.host is not None})
    offsets, pairs, noise = _host_offsets(job, hosts)
    for member in [*job, *system]:
        host = member.card.host
        if host is not None:
            member.offset = offsets.get(host, 0.0)
    shift = _device_shift(job)
    for member in job:
        member.device_offset = shift.get(member.card.host, shift.get(None, 0.0))
    for member in system:
        member.offset += (
            shift.get(member.card.host, shift.get(None, 0.0)) if member.card.device is not None else 0
        )
    clocks = [
        Clock(host, round(offset, 3), pairs[host])
        for host, offset in sorted(offsets.items())
        if abs(offset) >= _NOISE
    ]
    return clocks, noise


def _host_offsets(
    job: list[Member], hosts: list[str]
) -> tuple[dict[str, float], dict[str, int], dict[str | None, float]]:
    """Estimate how far each host's clock runs ahead of the cluster's median.

    Leaving a communicator's set-up is a barrier: all ranks do it within milliseconds, so those lines are
    pairs. Entering one is not: a difference there is taken only where it is a whole half-hour, a time zone.
    """
    offsets = dict.fromkeys(hosts, 0.0)
    pairs = dict.fromkeys(hosts, 0)
    noise: dict[str | None, float] = dict.fromkeys(hosts, float("inf"))
    if len(hosts) < 2:
        return offsets, pairs, noise
    spread = max(_spread_on_hosts(job, BARRIERS), 0.002)
    exact = _differences(job, BARRIERS)
    rough = _differences(job, STARTS)
    entries = _entry_differences(job)
    early, certainty = _early_starts(rough, entries, _spread_on_hosts(job, STARTS))
    for host in hosts:
        if exact.get(host):
            offsets[host] = median(exact[host])
            pairs[host] = len(exact[host])
            noise[host] = spread
        elif entries.get(host):
            offsets[host] = median(entries[host]) - early.get(host, 0.0)
            pairs[host] = len(entries[host])
            noise[host] = certainty
        elif rough.get(host):
            difference = median(rough[host])
            zone = round(difference / _HALF_HOUR) * _HALF_HOUR
            if zone and abs(difference - zone) <= 300:
                offsets[host] = zone
                pairs[host] = len(rough[host])
    return offsets, pairs, noise


def _early_starts(
    rough: dict[str, list[float]], entries: dict[str, list[float]], spread: float
) -> tuple[dict[str, float], float]:
    """Tell hosts that come late to every collective from clocks that run ahead.

    Both show alike in the entries. But a clock that runs ahead stamps the start of the job ahead as well,
    and a slow host does not: a host whose entries lag behind its starts, by far more than hosts usually
    differ in that, is slow.

    Returns:
        Host → seconds of its entries' lag that are no clock's; and how far hosts usually differ.
    """
    gaps = {host: median(entries[host]) - median(rough[host]) for host in entries if rough.get(host)}
    if len(gaps) < _HOSTS_TO_COMPARE:
        return {}, float("inf")
    middle = median(gaps.values())
    # Of few hosts the differences may agree by chance: not better than the starts on one host do.
    usual = max(median(abs(gap - middle) for gap in gaps.values()) * 1.4826, spread / 2)
    return {host: gap - middle for host, gap in gaps.items() if gap - middle > 4 * usual}, usual


def _spread_on_hosts(job: list[Member], signs: tuple[str, ...]) -> float:
    """How far apart the ranks of one host, on one clock, write lines that belong together."""
    moments: dict[tuple[str, str | None], list[float]] = defaultdict(list)
    for member in job:
        for group in member.signed(*signs):
            if group.first is not None:
                moments[group.sign, member.card.host].append(group.first)
    spreads = [
        median(abs(time - median(times)) for time in times) * 1.4826
        for times in moments.values()
        if len(times) > 2
    ]
    return median(spreads) if spreads else float("inf")


def _differences(job: list[Member], signs: tuple[str, ...]) -> dict[str, list[float]]:
    """Host → its differences to the median host, one for each communicator and sign."""
    moments: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for member in job:
        if member.card.host is None:
            continue
        for group in member.signed(*signs):
            for record in group.examples:
                comm = record.facts.get("comm") or "hccl_world_group"
                if record.time is not None:
                    moments[group.sign, comm][member.card.host].append(record.time)
                    break
    result: dict[str, list[float]] = defaultdict(list)
    for by_host in moments.values():
        if len(by_host) < 2:
            continue
        centres = {host: median(times) for host, times in by_host.items()}
        middle = median(centres.values())
        for host, centre in centres.items():
            result[host].append(centre - middle)
    return result


def _entry_differences(job: list[Member]) -> dict[str, list[float]]:
    """Host → differences of its first entries of each communicator to the median host's."""
    result: dict[str, list[float]] = defaultdict(list)
    by_comm: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for member in job:
        for comm, entries in member.trace.entries.items():
            # The k-th entry of all ranks is the same operation only while none has lost lines.
            if member.card.host is not None and entries.total == len(entries.times):
                by_comm[comm][member.card.host].append(sorted(entries.times)[:_FIRST_ENTRIES])
    for by_host in by_comm.values():
        if len(by_host) < 2:
            continue
        for k in range(_FIRST_ENTRIES):
            centres = {
                host: median(known)
                for host, lists in by_host.items()
                if (known := [times[k] for times in lists if len(times) > k])
            }
            if len(centres) < 2:
                break
            middle = median(centres.values())
            for host, centre in centres.items():
                result[host].append(centre - middle)
    steady = {}
    for host, differences in result.items():
        centre = median(differences)
        # Where lines are lost the differences jump by whole steps.
        if median(abs(difference - centre) for difference in differences) < 1.0:
            steady[host] = differences
    return steady


def _device_shift(job: list[Member]) -> dict[str | None, float]:
    """Host → whole half-hours by which its devices' clocks differ from its own; ``None`` → the usual."""
    votes: dict[str | None, list[float]] = defaultdict(list)
    for member in job:
        trace = member.trace
        if (
            trace.first is None
            or trace.last is None
            or trace.device_first is None
            or trace.device_last is None
        ):
            continue

        def outside(shift: float, trace: Trace = trace) -> float:
            """Seconds by which the device side, shifted back, sticks out of its host process's life."""
            first, last = (trace.device_first or 0.0) - shift, (trace.device_last or 0.0) - shift
            return max(0.0, (trace.first or 0.0) - first) + max(0.0, last - (trace.last or 0.0))

        # No shift at all, else whole hours, else half ones.
        shifts = sorted(
            (half * _HALF_HOUR for half in range(-30, 31)), key=lambda s: (s != 0, s % 3600 != 0, abs(s))
        )
        least = min(outside(shift) for shift in shifts)
        if outside(0.0) <= 600:
            votes[member.card.host].append(0.0)
        elif least <= 600:
            votes[member.card.host].append(next(shift for shift in shifts if outside(shift) <= least + 60))
    found: dict[str | None, float] = {host: median_low(values) for host, values in votes.items()}
    if found:
        found[None] = median_low(found.values())
    return found
