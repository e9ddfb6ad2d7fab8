from __future__ import annotations

import pytest

from ascend_elk.cann import Version
from ascend_elk.doctor.versions import Installed, compatible, find_installed, load_compatibility

from .conftest import FakeHost

DRIVER = "Version={}\nInnerversion=V100R001C19SPC001B124\ncompatible_version_fw={}\npackage_version={}\n"


def installed(fw: str = "", drv: str = "") -> Installed:
    return Installed({"compatible_version_fw": fw}, {"compatible_version_drv": drv}, {}, {})


@pytest.mark.parametrize(
    ("driver", "firmware", "fw", "drv", "fits"),
    [
        ("25.2.0", "7.7.0.6.236", "[6.4.0,6.4.99],[7.0.0,7.7.99]", "", True),
        ("25.2.0", "7.8.0.1.231", "[6.4.0,6.4.99],[7.0.0,7.7.99]", "", False),
        # The firmware names the driver, though the driver is older than it.
        ("24.1.rc3", "7.8.0.1", "[7.0.0,7.5.99]", "[23.0.0,23.0.0.],[24.1,24.1.]", True),
        ("24.0.rc1", "7.8.0.1", "[7.0.0,7.5.99]", "[23.0.0,23.0.0.],[24.1,24.1.]", False),
        ("25.3.rc1", "6.3.9.1", "[6.0.0,8.9.9]", "[25.3,25.3.]", False),
        ("25.3.rc1", "8.5.0.1", "[6.4.0,6.4.99],[7.0.0,8.9.9]", "", True),
        ("25.3.rc1", "8.5.0.1", "", "", None),
        ("25.3.rc1", "8.5.0.1", "nonsense", "", False),
    ],
)
def test_driver_and_firmware_by_their_own_lists(
    driver: str, firmware: str, fw: str, drv: str, fits: bool | None
) -> None:
    assert compatible(driver, firmware, installed(fw, drv)) is fits


def test_what_is_installed_is_found(host: FakeHost) -> None:
    host.write("/etc/ascend_install.info", "Driver_Install_Path_Param=/opt/npu\nUserName=HwHiAiUser\n")
    host.write("/opt/npu/driver/version.info", DRIVER.format("24.1.rc3", "[7.0.0,7.5.99]", "24.1.rc3"))
    host.write("/usr/local/Ascend/firmware/version.info", "Version=7.8.0.1.129\n")
    host.write(
        "/usr/local/Ascend/ascend-toolkit/8.3.RC1/x86_64-linux/ascend_toolkit_install.info",
        "package_name=Ascend-cann-toolkit\nversion=8.3.RC1\n",
    )
    latest = host.root / "usr/local/Ascend/ascend-toolkit/latest"
    latest.symlink_to("8.3.RC1")
    host.write("/usr/local/lib/python3.11/site-packages/torch_npu-2.7.1.dist-info/METADATA", "")
    host.write("/root/miniconda3/envs/a/lib/python3.10/site-packages/torch_npu-2.6.0.dist-info/METADATA", "")
    host.write("/usr/lib/python3/dist-packages/torch_npu-9.9.9.dist-info/METADATA", "")
    found = find_installed(host.machine())
    assert found.driver["Version"] == "24.1.rc3"
    assert found.cann == {"/usr/local/Ascend/ascend-toolkit/latest": "8.3.RC1"}
    assert sorted(found.torch_npu.values()) == ["2.6.0", "2.7.1", "9.9.9"]
    by_severity = {item.severity: item for item in host.findings("fit")}
    assert "do not fit" in by_severity["error"].text
    assert by_severity["ok"].data == {"torch_npu": "2.7.1", "made_for": "8.3.RC1", "cann": "8.3.RC1"}
    assert "install CANN 8.2.RC1" in by_severity["warning"].remedy
    assert "undetermined" in by_severity["note"].text


def test_the_table_names_versions() -> None:
    table = load_compatibility().torch_npu
    assert len(table) > 50
    for made_for in table.values():
        Version.parse(made_for)
