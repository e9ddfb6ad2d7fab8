"""The generations of Kibana that content is built for.

An object carries the version whose shape it has, and Kibana migrates it upwards from there; it refuses an
object that is newer than itself. So each target gets the oldest shape that it takes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ascend_elk.errors import UserError

TargetName = Literal["7.17", "8.x", "9.x"]


@dataclass(frozen=True)
class Target:
    """One generation.

    Attributes:
        name: as ``--kibana-version`` takes it.
        core_version: ``coreMigrationVersion`` of every object.
        type_versions: shape of each type, in ``migrationVersion`` (7.17) or ``typeMigrationVersion``.
        panel_version: shape of what dashboards hold by value.
        modern: the shapes of 8.9 and later, else those of 7.17.
    """

    name: TargetName
    core_version: str
    panel_version: str
    modern: bool
    type_versions: Mapping[str, str] = field(default_factory=dict)

    def stamp(self, kind: str) -> dict[str, object]:
        """The version keys of an object of a type."""
        keys: dict[str, object] = {"coreMigrationVersion": self.core_version}
        version = self.type_versions.get(kind)
        if version is not None:
            if self.modern:
                keys["typeMigrationVersion"] = version
            else:
                keys["migrationVersion"] = {kind: version}
        return keys


_MODERN = {"index-pattern": "8.0.0", "search": "8.0.0", "tag": "8.0.0", "dashboard": "8.9.0"}

TARGETS: Mapping[TargetName, Target] = {
    "7.17": Target(
        "7.17",
        core_version="7.17.0",
        panel_version="7.17.0",
        modern=False,
        type_versions={"index-pattern": "7.11.0", "search": "7.9.3", "dashboard": "7.16.0"},
    ),
    "8.x": Target("8.x", core_version="8.8.0", panel_version="8.9.0", modern=True, type_versions=_MODERN),
    "9.x": Target("9.x", core_version="8.8.0", panel_version="8.9.0", modern=True, type_versions=_MODERN),
}


def target_for(version: str) -> Target:
    """Return the target whose objects a Kibana of a version takes.

    Kibana 8.0 to 8.8 take the objects of 7.17, since they migrate upwards.

    Args:
        version: ``7.17.28``, ``9.1.0-SNAPSHOT``.

    Raises:
        UserError: Kibana is too old, or it is no version.
    """
    match = re.match(r"(\d+)\.(\d+)", version)
    if match is None:
        raise UserError(f"{version!r} is not a version of Kibana; write for example 7.17, 8.19 or 9.x")
    number = (int(match[1]), int(match[2]))
    if number < (7, 17):
        raise UserError(
            f"Kibana {version} is too old; version 7.17 is the oldest that the content is built for"
        )
    if number < (8, 9):
        return TARGETS["7.17"]
    return TARGETS["8.x" if number < (9, 0) else "9.x"]
