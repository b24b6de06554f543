"""Finds the user of a volume: Proxmox VE deletes volumes even if a configuration names them."""

from __future__ import annotations

from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster.vmid import Vm


def user(
    vm: Vm, storage: str, volid: str, node: str | None = None, but: int | None = None
) -> str | None:
    """Return a VM with access to its storage whose configuration names the volume, or None.

    ``but``: the VMID of one that may.

    One call per VM: only for leftovers, which are rare. Raises ApiError if one can't be read,
    since then it isn't known.
    """
    where = node or vm.node
    shared = vm.shared.storage_key(where, storage)[0] is None
    for one in vm.shared.client.get("cluster/resources", type="vm"):
        if int(one["vmid"]) == but or (not shared and one["node"] != where):
            continue
        kind = "lxc" if one.get("type") == "lxc" else "qemu"
        try:
            config = vm.shared.client.get(f"nodes/{one['node']}/{kind}/{one['vmid']}/config")
        except ApiError as error:
            if error.no_config:
                continue  # it went meanwhile, or moved; then its disks did, too
            raise
        if any(_names(str(value), volid) for value in config.values()):
            return f"VM {one['vmid']} on {one['node']}"
    return None


def _names(value: str, volid: str) -> bool:
    """Return whether an option's value is that volume: ``local:1/vm-1-disk-0.raw,size=1G``."""
    return volid in value.split(",") or f"file={volid}" in value.split(",")
