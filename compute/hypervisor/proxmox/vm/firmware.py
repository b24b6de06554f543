"""The small disks for firmware and TPM of a clone, which its template doesn't have.

They are made while the VM is still marked as being built: an interrupted write may apply a part of
the configuration, so marks and new disks are never in the same write.
"""

from __future__ import annotations

from collections.abc import Mapping

from compute.hypervisor.proxmox.cluster.vmid import Vm
from compute.hypervisor.proxmox.observe.snapshot import Storage


def ensure(vm: Vm, wanted: Mapping[str, str], storage: Storage) -> bool:
    """Ensure these disks, {option: value}; return whether the configuration was changed."""
    if not _lacking(vm, wanted):
        return False
    key = vm.shared.storage_key(vm.node, storage.name)
    with vm.shared.storage_queue.slot(vm.work, key, "firmware"):
        vm.converge(
            lambda: not _lacking(vm, wanted),
            lambda: vm.shared.client.post(
                f"{vm.path}/config", digest=vm.fence()["digest"], **_lacking(vm, wanted)
            ),
            look_first=False,
        )
    return True


def _lacking(vm: Vm, wanted: Mapping[str, str]) -> dict[str, str]:
    there = (vm.look() or {}) if wanted else {}
    return {name: value for name, value in wanted.items() if name not in there}
