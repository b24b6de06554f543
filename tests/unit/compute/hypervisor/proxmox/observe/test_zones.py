"""SDN zones as nodes broadcast them, and the vnets that nodes then haven't."""

from __future__ import annotations

import pytest

from compute.hypervisor.proxmox.observe import zones


def test_both_ways_in_which_zones_are_listed() -> None:
    resources = [
        {"type": "sdn", "node": "pve1", "sdn": "z1", "status": "available"},
        {
            "type": "network",
            "network-type": "zone",
            "node": "pve2",
            "network": "z1",
            "status": "x",
        },
        {
            "type": "network",
            "network-type": "fabric",
            "node": "pve2",
            "network": "f",
            "status": "y",
        },
        {"type": "qemu", "node": "pve1", "vmid": 100, "status": "running"},
    ]
    assert zones.statuses(resources) == {"pve1": {"z1": "available"}, "pve2": {"z1": "x"}}


@pytest.mark.parametrize(
    ("listed", "statuses", "broken", "unready"),
    [
        (("vmbr0", "blue"), {"z1": "available"}, {}, {}),
        # Nothing is said of the zone: the list is believed.
        (("vmbr0", "blue"), {}, {}, {}),
        (("vmbr0",), {}, {}, {"blue": "zone z1: not for this node"}),
        (("vmbr0",), {"z1": "available"}, {}, {"blue": "zone z1: not listed by the node"}),
        (("vmbr0", "blue"), {"z1": "pending"}, {}, {"blue": "zone z1: pending"}),
        (("vmbr0", "blue"), {"z1": "error"}, {}, {"blue": "zone z1: error"}),
        (("vmbr0", "blue"), {"z1": "error"}, {"z1": {"red": "error"}}, {}),
        (
            ("vmbr0", "blue"),
            {"z1": "error"},
            {"z1": {"blue": "error, missing blue"}},
            {"blue": "zone z1: error, missing blue"},
        ),
    ],
)
def test_vnets_that_are_not_there(
    listed: tuple[str, ...],
    statuses: dict[str, str],
    broken: dict[str, dict[str, str]],
    unready: dict[str, str],
) -> None:
    assert zones.unready({"blue": "z1"}, listed, statuses, broken) == unready


def test_what_is_wrong_in_a_zone() -> None:
    content = [
        {"vnet": "blue", "status": "error", "statusmsg": "missing blue"},
        {"vnet": "red", "status": "available"},
        {"vnet": "green", "status": "pending"},
    ]
    assert zones.broken(content) == {"blue": "error, missing blue", "green": "pending"}
