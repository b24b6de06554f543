"""Options whose text has a form are checked when the configuration is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.errors import ConfigurationError
from launcher import configuration

GOOD = """
[networks]
tenant_vlans = vmbr0:100-200,vmbr1:7
tenant_vnets = *:tenants:10000-19999
subnets = vmbr0=10.20.0.0/16;gateway=10.20.0.1
vlans = vmbr0:7
[seed]
flavors = m1.tiny:1:512:1,7:m1.small:1:2048:20
"""


def load(tmp_path: Path, text: str) -> object:
    file = tmp_path / "micronova.conf"
    file.write_text(text)
    return configuration.load([str(file)])


def test_good_values_are_taken(tmp_path: Path) -> None:
    load(tmp_path, GOOD)


@pytest.mark.parametrize(
    ("group", "option", "value", "reason"),
    [
        ("networks", "tenant_vlans", "vmbr0:100:200", "a bridge, a colon and tags"),
        ("networks", "tenant_vlans", "vmbr0:200-100", "the lower one first"),
        ("networks", "tenant_vlans", "vmbr0:0-9", "from 1 to 4094"),
        ("networks", "tenant_vlans", "vmbr0:1-4095", "from 1 to 4094"),
        ("networks", "tenant_vlans", "vmbr0", "invalid literal"),
        ("networks", "tenant_vlans", "vmbr 0:1-2", "a bridge, a colon"),
        ("networks", "tenant_vlans", "vmbr0:1-2,vmbr1:x", "invalid literal"),
        ("networks", "tenant_vnets", "tenants:10000-19999", "a cluster or *"),
        ("networks", "tenant_vnets", "a:b:tenants:10000-19999", "a cluster or *"),
        ("networks", "tenant_vnets", "*:tenants:1:2", "a zone and VNIs"),
        ("networks", "tenant_vnets", "*:tenants:x-9", "invalid literal"),
        ("networks", "subnets", "vmbr0:10.0.0.0/24", "does not appear to be"),
        ("networks", "subnets", "vmbr0=10.0.0.0/24;gateway=10.1.0.1", "every address must be in"),
        ("networks", "subnets", "vmbr0=10.0.0.0/24;gate=10.0.0.1", "gate"),
        ("networks", "subnets", "vmbr0=10.0.0.0/24;dns=x", "does not appear to be"),
        ("networks", "vlans", "vmbr0:4095", "4094"),
        ("networks", "auto_cidr", "10.0.0.1/24", "host bits"),
        ("seed", "flavors", "m1.tiny:1:512", "not [ID:]NAME"),
        ("seed", "flavors", "m1.tiny:1:512:x", "x is not a number"),
        ("quota", "ports", "many", "invalid literal"),
        ("conductor", "workers", "0", "greater than or equal to 1"),
        ("DEFAULT", "log_rotate_interval", "x", "invalid literal"),
    ],
)
def test_what_cannot_be_right_ends_the_start(
    tmp_path: Path, group: str, option: str, value: str, reason: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, f"[{group}]\n{option} = {value}\n")
    text = refused.value.message
    assert text.startswith(f"[{group}] {option}: "), text
    assert reason in text
    assert "\n" not in text
