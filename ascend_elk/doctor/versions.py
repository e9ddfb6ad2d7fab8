"""Versions of driver, firmware, CANN and torch_npu on a host, and whether their makers say that they fit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from ascend_elk.content import content_dir
from ascend_elk.detect import load_version_hints, read_version_file
from ascend_elk.doctor.findings import Finding
from ascend_elk.doctor.machine import Machine
from ascend_elk.formats.definitions import read_yaml

_LIMIT = 64 * 1024
_PAIR = re.compile(r"\[([^\[\],]+),([^\[\],]+)\]")
_DIST_INFO = re.compile(r"torch_npu-([0-9][0-9A-Za-z.+]*)\.dist-info")
_INSTALLED = "/etc/ascend_install.info"
_DEFAULT_DIRECTORY = "/usr/local/Ascend"
# Where CANN is installed, newest way first: of 8.5 and later, of the toolkit, of the engines for inference.
_CANN = (
    "/usr/local/Ascend/cann",
    "/usr/local/Ascend/ascend-toolkit/latest",
    "/usr/local/Ascend/nnae/latest",
    "/usr/local/Ascend/nnrt/latest",
)
_CANN_FILES = ("version.cfg", "*/ascend_*_install.info", "*/version.info", "version.info")
_PYTHONS = ("/usr", "/usr/local", "/usr/local/python3*", "/opt/*", "/root/*conda3", "/home/*/*conda3")
_ENVIRONMENTS = ("/root/*conda3/envs/*", "/home/*/*conda3/envs/*")
# DCMI takes no firmware from before 6.4 for compatible, whatever the lists say.
_FIRST_FIRMWARE = "6.4."
_INSTALL_PAGE = "take driver and firmware of one Ascend HDK release, and restart the host"


class Compatibility(BaseModel):
    """``grok/compatibility.yml``: torch_npu's release → the CANN it was made for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    torch_npu: dict[str, str]


@lru_cache(maxsize=1)
def load_compatibility() -> Compatibility:
    """Read ``grok/compatibility.yml``."""
    return Compatibility.model_validate(read_yaml(content_dir("grok") / "compatibility.yml"))


@dataclass(frozen=True)
class Installed:
    """What is installed, with where it says so.

    Attributes:
        driver: pairs of its ``version.info``; empty where there is none.
        firmware: the same of the firmware.
        cann: CANN's versions by place.
        torch_npu: its versions by place.
    """

    driver: Mapping[str, str]
    firmware: Mapping[str, str]
    cann: Mapping[str, str]
    torch_npu: Mapping[str, str]


def find_installed(machine: Machine) -> Installed:
    """Look in the places where the installers put things."""
    where = _pairs(machine.path(_INSTALLED))
    base = {
        part: where.get(f"{part}_Install_Path_Param", _DEFAULT_DIRECTORY) for part in ("Driver", "Firmware")
    }
    home = machine.environment.get("ASCEND_HOME_PATH") or machine.environment.get("ASCEND_TOOLKIT_HOME")
    places = [home] if home else []
    places += [
        value
        for process in machine.processes[0]
        if not process.contained and (value := process.environment.get("ASCEND_HOME_PATH"))
    ]
    cann: dict[str, str] = {}
    seen: set[Path] = set()
    for place in dict.fromkeys([*places, *_CANN]):
        path = machine.path(place)
        if not path.is_dir() or path.resolve() in seen:
            continue
        seen.add(path.resolve())
        version = _cann_version(path)
        if version is not None:
            cann[place] = version
    return Installed(
        _pairs(machine.path(f"{base['Driver']}/driver/version.info")),
        _pairs(machine.path(f"{base['Firmware']}/firmware/version.info")),
        cann,
        {
            machine.shown(path.parent): found[1]
            for prefix in (*_PYTHONS, *_ENVIRONMENTS)
            for path in machine.glob(f"{prefix}/lib*/python3*/*-packages/torch_npu-*.dist-info")
            if (found := _DIST_INFO.fullmatch(path.name))
        },
    )


def _cann_version(directory: Path) -> str | None:
    internal = load_version_hints().internal
    translated = None
    for pattern in _CANN_FILES:
        for path in sorted(directory.glob(pattern)):
            for stated in read_version_file(path, internal):
                if not stated.translated:
                    return str(stated.version)
                translated = translated or str(stated.version)
    return translated


def _pairs(path: Path) -> dict[str, str]:
    try:
        with path.open("rb") as stream:
            text = stream.read(_LIMIT).decode("utf-8", "replace").replace("\0", "\n")
    except OSError:
        return {}
    lines = (line.partition("=") for line in text.splitlines())
    return {name.strip(): value.strip() for name, separator, value in lines if separator}


def check_versions(machine: Machine) -> Iterator[Finding]:
    """What is installed, and whether it fits together."""
    found = find_installed(machine)
    for name, pairs in (("driver", found.driver), ("firmware", found.firmware)):
        version = pairs.get("Version")
        if version:
            yield Finding("versions", "ok", name, f"{name} {version}", data={"version": version})
        else:
            yield Finding(
                "versions",
                "note",
                name,
                f"no version of the {name} was found",
                "in a container, mount the host's /usr/local/Ascend/driver and /etc/ascend_install.info",
            )
    for place, version in found.cann.items():
        yield Finding("versions", "ok", place, f"CANN {version}", data={"version": version})
    if not found.cann:
        text = "no CANN was found on the host; it may live in containers only"
        yield Finding("versions", "note", "CANN", text, "run doctor in a container of the job, too")
    for place, version in found.torch_npu.items():
        yield Finding("versions", "ok", place, f"torch_npu {version}", data={"version": version})
    yield from _driver_and_firmware(found)
    yield from _torch_npu_and_cann(found)


def _driver_and_firmware(found: Installed) -> Iterator[Finding]:
    driver, firmware = found.driver.get("Version"), found.firmware.get("Version")
    if not driver or not firmware:
        return
    both = f"driver {driver}, firmware {firmware}"
    fits = compatible(driver, firmware, found)
    if fits is None:
        yield Finding("fit", "note", both, "neither states what it is compatible with: undetermined")
    elif fits:
        yield Finding("fit", "ok", both, "they state to be compatible with each other")
    else:
        yield Finding("fit", "error", both, "by their own lists they do not fit each other", _INSTALL_PAGE)


def compatible(driver: str, firmware: str, found: Installed) -> bool | None:
    """Judge as the driver's own library does (``dcmi_get_device_compatibility``); ``None`` without lists.

    Either list suffices. A version is cut to the length of the bounds, and compared as text.
    """
    of_driver = found.driver.get("compatible_version_fw", "")
    of_firmware = found.firmware.get("compatible_version_drv", "")
    if not of_driver and not of_firmware:
        return None
    if firmware < _FIRST_FIRMWARE:
        return False
    return _within(firmware, of_driver) or _within(driver, of_firmware)


def _within(version: str, ranges: str) -> bool:
    return any(
        first <= version[: max(len(first), len(last))] <= last for first, last in _PAIR.findall(ranges)
    )


def _torch_npu_and_cann(found: Installed) -> Iterator[Finding]:
    table = load_compatibility().torch_npu
    for place, version in found.torch_npu.items():
        made_for = table.get(version.partition("+")[0])
        if made_for is None:
            text = f"torch_npu {version} is not in the table of Ascend/pytorch: undetermined"
            yield Finding("fit", "note", place, text)
            continue
        if not found.cann:
            text = f"torch_npu {version} was made for CANN {made_for}; no CANN was found to compare with"
            yield Finding("fit", "note", place, text)
        for where, cann in found.cann.items():
            fits = cann.lower() == made_for.lower()
            yield Finding(
                "fit",
                "ok" if fits else "warning",
                f"{place}, {where}",
                f"torch_npu {version} was made for CANN {made_for}"
                + ("" if fits else f", and {cann} is installed"),
                "" if fits else f"install CANN {made_for}, or the torch_npu that the table names for {cann}",
                {"torch_npu": version, "made_for": made_for, "cann": cann},
            )
