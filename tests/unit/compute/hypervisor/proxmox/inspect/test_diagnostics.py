"""How a VM does, from what Proxmox VE says."""

from __future__ import annotations

from typing import Any

from common.messages.guests import Diagnostics, DiskUse, NicUse
from common.resources.states import PowerState
from compute.hypervisor.proxmox.inspect.diagnostics import diagnostics

CONFIG: dict[str, Any] = {
    "ide2": "local:iso/drive.iso,media=cdrom",
    "memory": "256",
    "net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0",
}


def test_a_running_vm() -> None:
    status = {
        "status": "running",
        "qmpstatus": "running",
        "uptime": 12,
        "cpus": 1,
        "cpu": 0.254,
        "maxmem": 256 << 20,
        "mem": 100 << 20,
        "blockstat": {
            "ide2": {"rd_bytes": 7},
            "scsi0": {"rd_bytes": 1, "rd_operations": 2, "failed_rd_operations": 3},
        },
        "nics": {"tap100i0": {"netin": 220, "netout": 656}, "tap100i1": {"netin": 0}},
    }
    assert diagnostics(CONFIG, status) == Diagnostics(
        PowerState.RUNNING,
        12,
        vcpus=1,
        cpu_percent=25,
        memory_mib=256,
        memory_used_mib=100,
        config_drive=True,
        disks=(DiskUse("scsi0", 1, 2, errors=3),),
        nics=(NicUse("tap100i0", "bc:24:11:00:00:01", 220, 656), NicUse("tap100i1", None, 0)),
    )


def test_what_is_not_said_is_not_known() -> None:
    found = diagnostics({"memory": "256"}, {"status": "stopped"})
    assert found == Diagnostics(PowerState.SHUTDOWN, 0, memory_mib=256)
