"""Traces before they become cards: copies, consoles, earlier runs and forked children."""

from __future__ import annotations

import copy
from collections import defaultdict

from ascend_elk.diagnose.collect import Group, Trace
from ascend_elk.diagnose.members import TROUBLE_ROLES, Member


def with_consoles(traces: list[Trace]) -> list[Trace]:
    """Join what a process printed on a console, anywhere on the host, to its own logs."""
    own: dict[tuple[str | None, int], list[int]] = defaultdict(list)
    for index, trace in enumerate(traces):
        if trace.key is not None and not _is_console(trace):
            own[trace.host, trace.key.pid].append(index)
    joined = list(traces)
    consoles = set()
    for index, trace in enumerate(traces):
        if trace.key is not None and _is_console(trace):
            owners = own.get((trace.host, trace.key.pid), [])
            if len(owners) == 1:
                consoles.add(index)
                if joined[owners[0]] is traces[owners[0]]:
                    joined[owners[0]] = copy.deepcopy(traces[owners[0]])
                joined[owners[0]].merge(trace)
    return [trace for index, trace in enumerate(joined) if index not in consoles]


def _is_console(trace: Trace) -> bool:
    return trace.sources <= {"console", ""}


def without_copies(traces: list[Trace], notes: list[str]) -> list[Trace]:
    """Drop traces whose files are a copy of another's: the same names, the same lines."""
    seen: dict[tuple[str, int], Trace] = {}
    kept: list[Trace] = []
    copies = 0
    for trace in sorted(traces, key=lambda t: (-len(t.files), str(t.host), str(t.key))):
        marks = [(path.rpartition("/")[2].removesuffix(".gz"), check) for path, check in trace.files.items()]
        pid = trace.key.pid if trace.key else None
        owners = {id(seen[mark]): seen[mark] for mark in marks if mark in seen}
        same = [owner for owner in owners.values() if (owner.key.pid if owner.key else None) == pid]
        if marks and all(check and mark in seen for mark in marks for check in (mark[1],)) and same:
            copies += 1
            continue
        for mark in marks:
            seen.setdefault(mark, trace)
        kept.append(trace)
    if copies:
        notes.append(f"the logs of {copies} processes or devices are copies of others and were counted once")
    return kept


def current(trace: Trace) -> list[Group]:
    """Return the groups since the last start that anything followed."""
    groups = list(trace.groups.values())
    for start in reversed(trace.starts):
        later = [group for group in groups if group.last is not None and group.last > start]
        if any(group.role in TROUBLE_ROLES for group in later):
            return [group for group in groups if group.last is None or group.last >= start]
    return groups


def adopt(members: list[Member], orphans: list[Trace]) -> None:
    """Give lines of forked children that drive no card of their own to the process they forked from."""
    by_key = {member.trace.key: member for member in members}
    for trace in orphans:
        if trace.key is None:
            continue
        for member in by_key.values():
            parent = member.process
            if parent is not None and parent.key.host == trace.host and parent.key.root == trace.key.root:
                names = {path.rpartition("/")[2] for path in trace.files}
                if any(f"-{parent.key.pid}_" in name for name in names):
                    member.groups.extend(trace.groups.values())
                    break
