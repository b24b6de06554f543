"""The volumes of a VMID on all storages, and who made them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from shlex import quote
from typing import Any

from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.cluster.storage_queue import Key
from compute.hypervisor.proxmox.cluster.stray_volumes import Place
from compute.hypervisor.proxmox.cluster.vmid import Vm
from compute.hypervisor.proxmox.storage import one_volume
from compute.hypervisor.proxmox.vmconfig import disks

#: tolerance: clocks differ, and a copied file's time may be that of its end
SLACK_SECONDS = 2


@dataclass(frozen=True)
class Volume:
    """One volume of a VMID."""

    volid: str
    storage: str
    node: str
    """The node that saw it."""
    created: int | None
    """Seconds since the epoch, if the storage records it."""


@dataclass
class Seen:
    """A search for volumes of a VMID."""

    volumes: list[Volume] = field(default_factory=list)
    storages: set[Key] = field(default_factory=set)
    """The places that were listed."""
    missed: dict[Key, str] = field(default_factory=dict)
    """Storages, and nodes without one, that could not be listed, in words."""

    @property
    def unseen(self) -> tuple[str, ...]:
        """The places that no node could list: another node may have listed a shared storage."""
        return tuple(text for key, text in self.missed.items() if key not in self.storages)

    def had(self, vm: Vm, volume: Volume) -> bool:
        """Return whether the volume's storage was listed."""
        return vm.shared.storage_key(volume.node, volume.storage) in self.storages


def of_vm(vm: Vm, known: Collection[str] = ()) -> list[Volume]:
    """Return every volume of the VMID on every storage with images of its node.

    Raises ApiError when a storage can't be listed that may hold one, or that has one of the
    volumes ``known`` to be the VM's: then absence isn't proven. A storage that was taken out of
    the configuration since the last snapshot holds none, as after the next one.
    """
    return _here(vm, known).volumes


def everywhere(vm: Vm) -> Seen:
    """Search every storage with images on every node; on the VM's own node as ``of_vm`` does.

    What can't be listed on other nodes is unseen, and no error. A storage that doesn't take images
    any more lists none, even if it has some.
    """
    found = _here(vm)
    places = list(_other_places(vm, found))
    listed = vm.shared.stray_volumes.listed(vm.work, vm.vmid, places)
    for node, storage in places:
        if (node, storage) in listed:
            found.storages.add(vm.shared.storage_key(node, storage))
            found.volumes += [_volume(one, storage, node) for one in listed[node, storage]]
        else:
            _miss(vm, found, node, storage)
    return found


def _miss(vm: Vm, found: Seen, node: str, storage: str) -> None:
    found.missed.setdefault(vm.shared.storage_key(node, storage), f"{storage} on {node}")


def _here(vm: Vm, known: Collection[str] = ()) -> Seen:
    holding = storages_of(known)
    found = Seen()
    for storage in vm.shared.node(vm.node).storages.values():
        if "images" in storage.content:
            try:
                found.volumes += _listed(vm, storage.name)
                found.storages.add(vm.shared.storage_key(vm.node, storage.name))
            except ApiError as error:
                may_hold = storage.active or _may_hold_disks(vm, storage.name)
                if storage.name in holding or (may_hold and not error.no_storage):
                    raise
                _miss(vm, found, vm.node, storage.name)
    return found


def _other_places(vm: Vm, found: Seen) -> Iterator[Place]:
    """Yield the places to list on other nodes: a shared storage once, unless listed already."""
    looked_at = set(found.storages)
    for node in sorted(vm.shared.snapshot.nodes.values(), key=lambda one: one.name):
        if node.name != vm.node and not node.online:
            found.missed[node.name, ""] = node.name
        elif node.name != vm.node:
            for name, storage in sorted(node.storages.items()):
                key = vm.shared.storage_key(node.name, name)
                if "images" in storage.content and key not in looked_at:
                    if storage.active:
                        looked_at.add(key)
                        yield node.name, name
                    else:
                        _miss(vm, found, node.name, name)


def storages_of(volids: Iterable[str]) -> frozenset[str]:
    """Return the storages that these volumes are on."""
    return frozenset(volid.split(":", 1)[0] for volid in volids)


def require_reach(vm: Vm, volids: Iterable[str]) -> None:
    """Raise ApiError unless the storages of these volumes can be listed now.

    A destroy removes the configuration, which names the disks, even if it can't free them.
    """
    for storage in sorted(storages_of(volids)):
        _listed(vm, storage)


def _listed(vm: Vm, storage: str) -> list[Volume]:
    return listed_on(vm, vm.node, storage)


def listed_on(vm: Vm, node: str, storage: str) -> list[Volume]:
    """Return the volumes of the VMID on one storage of a node. Raises ApiError."""
    path = f"nodes/{node}/storage/{storage}/content"
    listed = vm.shared.client.get(path, content="images", vmid=vm.vmid)
    return [_volume(one, storage, node) for one in listed if int(one.get("vmid") or 0) == vm.vmid]


def _volume(listed: Mapping[str, Any], storage: str, node: str) -> Volume:
    created = listed.get("ctime")
    return Volume(str(listed["volid"]), storage, node, int(created) if created else None)


def strays(vm: Vm, found: Seen) -> HypervisorError | None:
    """Return the error for a VMID that has volumes but no VM; None if it has none."""
    if not found.volumes:
        return None
    names = [
        one.volid if one.node == vm.node else f"{one.volid} on {one.node}" for one in found.volumes
    ]
    return HypervisorError(
        Category.STORAGE_CONFLICT,
        f"VMID {vm.vmid} has no VM, but volumes: {', '.join(names)}. They were not touched.",
        left=tuple(f"volume {name}" for name in names),
        remedy=freeing((one.node, one.volid) for one in found.volumes),
    )


def free_line(volid: str) -> str:
    """Return the command that removes a volume, whatever it is named."""
    return f"pvesm free {quote(volid)}"


def freeing(found: Iterable[tuple[str, str]]) -> str:
    """Return the commands that remove volumes (node and volid), node by node."""
    by_node: dict[str, list[str]] = {}
    for node, volid in found:
        by_node.setdefault(node, []).append(free_line(volid))
    return "; ".join(f"as root on {node}: {' && '.join(on)}" for node, on in by_node.items())


def linked_to(vm: Vm) -> list[str]:
    """Return the volumes that depend on a template's disks, as far as its node sees them.

    Raises ApiError when a storage can't be listed: then it isn't known.
    """
    base = f"base-{vm.vmid}-"
    found = []
    for storage in vm.shared.snapshot.storages(vm.node, "images"):
        path = f"nodes/{vm.node}/storage/{storage.name}/content"
        for one in vm.shared.client.get(path, content="images"):
            hangs = base in str(one.get("parent") or "") or base in str(one["volid"])
            if hangs and int(one.get("vmid") or 0) != vm.vmid:
                found.append(str(one["volid"]))
    return found


def _may_hold_disks(vm: Vm, storage: str) -> bool:
    """Return whether root disks may go there: anywhere, unless one storage is configured."""
    configured = vm.shared.settings.vm_storage
    return configured is None or configured == storage


def made_by_us(vm: Vm, volumes: Iterable[Volume]) -> list[Volume]:
    """Return those created while a task of our token that makes disks worked on this VMID."""
    return made_on(vm.shared, vm.node, vm.vmid, volumes)


def made_on(shared: Shared, node: str, vmid: int, volumes: Iterable[Volume]) -> list[Volume]:
    """Return those created while such a task worked on the VMID on this node."""
    listed = list(volumes)
    if not listed:
        return []
    ours: list[Volume] = []
    for kind in ("qmcreate", "qmconfig", "qmmove", "qmrestore"):
        if len(ours) < len(listed):
            rest = [one for one in listed if one not in ours]
            ours += made_by(shared, node, vmid, rest, kind)
    if len(ours) < len(listed):
        spans = shared.tasks.clone_spans(node, vmid, shared.settings.token.id)
        ours += [one for one in listed if one not in ours and _within(one, spans)]
    return ours


def made_by(
    shared: Shared, node: str, vmid: int, volumes: Iterable[Volume], kind: str
) -> list[Volume]:
    """Return those created while a task of this kind worked on the VMID for our token."""
    spans = shared.tasks.spans(node, vmid, kind, shared.settings.token.id)
    return [one for one in volumes if _within(one, spans)]


def _within(volume: Volume, spans: Iterable[tuple[int, int]]) -> bool:
    return volume.created is not None and any(
        start - SLACK_SECONDS <= volume.created <= end + SLACK_SECONDS for start, end in spans
    )


def require_no_vm(vm: Vm, found: Iterable[Volume]) -> None:
    """Raise HypervisorError if the VMID has a VM by now: then these volumes may be its."""
    if vm.locate() is not None:
        raise HypervisorError(
            Category.STORAGE_CONFLICT,
            f"Somebody made {vm} while its predecessor's volumes were being removed.",
            left=tuple(f"volume {volume.volid}" for volume in found),
        )


def free(vm: Vm, volume: Volume) -> None:
    """Delete one volume of a VMID that has no VM, and wait.

    Proxmox VE refuses nothing, so the owner must be known before. A VM created since then may
    have a volume of the same name: each call is preceded by a look for a VM.
    """
    one_volume.delete(
        vm, volume.node, volume.storage, volume.volid, fence=lambda: require_no_vm(vm, (volume,))
    )


def grow_root(vm: Vm, storage: str, gib: int) -> None:
    """Grow the root disk, bound to the configuration that was proven ours."""
    grow(vm, disks.root_slot(vm.look() or {}), storage, gib << 10)


def grow(vm: Vm, slot: str, storage: str, mib: int) -> None:
    """Grow a disk, bound to the configuration that was proven ours."""
    size = f"{mib >> 10}G" if mib % 1024 == 0 else f"{mib}M"
    with vm.shared.storage_queue.slot(vm.work, vm.shared.storage_key(vm.node, storage), "resize"):
        vm.converge(
            lambda: disks.size_bytes(str((vm.look() or {}).get(slot, ""))) >= mib << 20,
            lambda: vm.shared.client.put(
                f"{vm.path}/resize",
                disk=slot,
                size=size,
                digest=vm.fence()["digest"],
            ),
            look_first=False,
        )
