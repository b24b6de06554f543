"""Templates whose disk is gone, as the doctor finds them."""

from __future__ import annotations

from typing import Any

import pytest

from compute.doctor.gather import Scope, gather
from compute.hypervisor.proxmox.api.errors import api_error
from compute.hypervisor.proxmox.observe.snapshot import ListedVm, Node, Snapshot, Storage
from compute.hypervisor.proxmox.vmconfig.hardware import template_name
from tests.unit.compute.doctor.test_checks import facts

VMID = 100
VOLID = "tank:base-100-disk-0"


class Client:
    """Has a template's configuration, and an answer about its disk."""

    def __init__(self, answer: str) -> None:
        self.settings = facts().settings.__class__(
            **{**vars(facts().settings), "endpoints": (), "vmid_low": 1, "vmid_high": 1000}
        )
        self._answer = answer

    def get(self, path: str) -> Any:
        if path.endswith(f"/content/{VOLID}"):
            raise api_error(500, self._answer)
        return {"scsi0": f"{VOLID},size=1G"} if path.endswith("/config") else None


def lost(answer: str) -> str:
    storage = Storage("tank", "zfspool", False, True, 1, 0, frozenset({"images"}))
    node = Node("pve1", True, storages={"tank": storage})
    vm = ListedVm(VMID, "qemu", "pve1", template_name("cirros"), False, True, "stopped")
    snapshot = Snapshot(True, {"pve1": node}, {VMID: vm})
    [template] = gather(Client(answer), snapshot, Scope()).templates  # type: ignore[arg-type]
    return template.lost


@pytest.mark.parametrize(
    "answer",
    [
        "failed to stat '/mnt/tank/images/100/base-100-disk-0.qcow2'",
        "volume_size_info on 'tank:base-100-disk-0' failed - no format",
        "zfs error: cannot open 'tank/base-100-disk-0': dataset does not exist",
        "rbd error: rbd: error opening image base-100-disk-0: (2) No such file or directory",
        "can't get size of '/dev/tank/base-100-disk-0':   Failed to find logical volume "
        '"tank/base-100-disk-0"',
    ],
)
def test_each_type_of_storage_says_otherwise_that_a_disk_is_gone(answer: str) -> None:
    assert lost(answer) == VOLID


@pytest.mark.parametrize(
    "answer",
    ["zfs error: cannot open 'tank': no such pool", "storage 'tank' does not exist"],
)
def test_a_disk_whose_storage_can_not_be_looked_at_is_not_said_to_be_gone(answer: str) -> None:
    """`qm destroy` would be the remedy, and the pool may be back."""
    assert lost(answer) == ""
