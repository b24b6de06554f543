"""What VMs use, from the list of a cluster's resources."""

from __future__ import annotations

from typing import Any

from compute.hypervisor.port import GuestUse
from compute.hypervisor.proxmox.observe import resources

#: as captured from 9.2
RUNNING: dict[str, Any] = {
    **{"name": "base", "mem": 1024, "node": "pve1", "status": "running", "maxdisk": 67108864},
    **{"disk": 0, "id": "qemu/100", "maxmem": 268435456, "netout": 7, "cpu": 0.25, "uptime": 5},
    **{"vmid": 100, "type": "qemu", "diskwrite": 9, "maxcpu": 2, "netin": 110},
    **{"diskread": 2560, "memhost": 0, "template": 0},
}


def test_vms_only_and_whatever_is_missing_is_nothing() -> None:
    unknown = {"type": "qemu", "vmid": 102, "status": "unknown", "node": "pve2"}
    listed = [
        RUNNING,
        {**RUNNING, "vmid": 101, "template": 1},
        {**RUNNING, "vmid": 103, "type": "lxc"},
        {"type": "node", "node": "pve1"},
        unknown,
    ]
    assert resources.guests(listed) == (
        GuestUse(100, True, 2, 0.5, 268435456, 1024, 110, 7, 2560, 9, 5),
        GuestUse(102, False, 0, 0.0, 0, 0, 0, 0, 0, 0, 0),
    )
