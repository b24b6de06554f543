"""CDs on a node's own storage: ejected before a move, and inserted again where the VM then is.

The call that ejects a CD also notes it in the VM's description, and the call that inserts it
removes the note: a move that is interrupted in between is finished from the note.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from common.messages.reports import Category
from compute.hypervisor.port import Detail, HypervisorError
from compute.hypervisor.proxmox.api import paths
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster.vmid import Config, Vm
from compute.hypervisor.proxmox.storage import one_volume
from compute.hypervisor.proxmox.vmconfig import ejected


def also_on(
    vm: Vm, node: str, listed: Collection[Mapping[str, Any]], drive: str | None
) -> frozenset[str]:
    """Return which of the CDs among local disks another node has, too: by name and size.

    ``drive``: the config drive's volume, which is none of them.
    """
    found = {str(one["volid"]) for one in listed if ejected.is_cd(one)} - {drive}
    return frozenset(volid for volid in found if _is_on(vm, node, volid))


def take_out(vm: Vm, volids: Collection[str]) -> list[str]:
    """Eject CDs and note them, also while the VM runs; return all that are noted."""

    def values(config: Config) -> dict[str, str]:
        return ejected.taken_out(config, volids)

    _change(vm, values, "eject its CDs")
    return sorted(ejected.noted(_current(vm)).values())


def put_in(vm: Vm) -> Detail:
    """Insert the noted CDs, and remove the note.

    A file that the node doesn't have is left out; a drive with another CD by now is left alone.
    """
    noted = ejected.noted(_current(vm))
    if not noted:
        return {}
    there = {name: value for name, value in noted.items() if _has(vm, value)}

    def values(config: Config) -> dict[str, str]:
        return ejected.put_in(config, there)

    _change(vm, values, "take its CDs back")
    return {"cds": sorted(there.values())}


def _change(vm: Vm, values: Callable[[Config], Mapping[str, str]], what: str) -> None:
    def call() -> Any:
        config = vm.fence()
        return vm.shared.client.post(
            f"{vm.path}/config", digest=config["digest"], **values(config)
        )

    vm.converge(lambda: not values(_current(vm)), call)
    if values(_current(vm)):
        raise HypervisorError(Category.UNKNOWN_OUTCOME, f"{vm} did not {what}.")


def _current(vm: Vm) -> Config:
    """Return its configuration as it is now, without pending changes."""
    found: Config = vm.shared.client.get(f"{vm.path}/config", current=1)
    return found


def _has(vm: Vm, value: str) -> bool:
    volid = value.split(",", 1)[0]
    return one_volume.exists(vm, vm.node, volid.partition(":")[0], volid)


def _is_on(vm: Vm, node: str, volid: str) -> bool:
    """Return whether another node has a file of the same name and size."""
    if volid.partition(":")[0] not in vm.shared.node(node).storages:
        return False
    here, there = _size(vm, vm.node, volid), _size(vm, node, volid)
    return here is not None and here == there


def _size(vm: Vm, node: str, volid: str) -> int | None:
    """Return a file's bytes; None: it is not there."""
    try:
        return int(vm.shared.client.get(paths.volume(node, volid)).get("size") or 0)
    except ApiError as error:
        if error.no_volume:
            return None
        raise
