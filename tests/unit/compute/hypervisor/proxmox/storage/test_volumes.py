"""Where volumes of a VMID are looked for, and what is said where nobody could look."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from common.messages.reports import Category
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.api.errors import ApiError, api_error
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.cluster.stray_volumes import StrayVolumes
from compute.hypervisor.proxmox.cluster.vmid import Vm
from compute.hypervisor.proxmox.observe.snapshot import Node, Snapshot, Storage
from compute.hypervisor.proxmox.storage import volumes
from tests.unit.compute.fakes import FakeWork

VMID = 100


def storage(
    name: str, *, shared: bool = False, active: bool = True, content: str = "images"
) -> Storage:
    return Storage(name, "dir", shared, active, 1 << 40, 0, frozenset(content.split(",")))


def node(name: str, *storages: Storage, online: bool = True) -> Node:
    return Node(name, online, storages={one.name: one for one in storages})


class Listing(Client):
    """Lists volumes; fails for a storage that isn't active on a node, or was removed."""

    def __init__(
        self, nodes: tuple[Node, ...], images: dict[str, list[int]], removed: str = ""
    ) -> None:
        self._nodes, self._images = {one.name: one for one in nodes}, images
        self._removed = removed
        self.asked: list[str] = []

    def get(self, path: str, **params: Any) -> Any:
        _, name, _, storage_name, _ = path.split("/")
        place = f"{storage_name} on {name}"
        self.asked.append(place)
        if storage_name == self._removed:
            raise api_error(500, f"storage '{storage_name}' does not exist")
        if not self._nodes[name].storages[storage_name].active:
            raise ApiError(Category.NODE_UNHEALTHY, "it is not mounted")
        found = self._images.get(place, [])
        return [{"volid": f"{storage_name}:{one}/d", "vmid": one} for one in found]


def look(*nodes: Node, **images: list[int]) -> tuple[volumes.Seen, list[str]]:
    """From the first node."""
    client = Listing(nodes, {key.replace("_on_", " on "): value for key, value in images.items()})
    vm = vm_of(client, *nodes)
    return volumes.everywhere(vm), sorted(client.asked)


def vm_of(client: Listing, *nodes: Node) -> Vm:
    """On the first node."""
    shared: Any = SimpleNamespace(
        client=client,
        stray_volumes=StrayVolumes(client),
        snapshot=Snapshot(True, {one.name: one for one in nodes}, {}),
        settings=SimpleNamespace(vm_storage="local"),
    )
    shared.storage_key = lambda *place: Shared.storage_key(shared, *place)
    shared.node = lambda name: Shared.node(shared, name)
    return Vm(shared, FakeWork(), VMID, nodes[0].name, None)  # type: ignore[arg-type]


def test_every_storage_is_listed_once_wherever_it_is() -> None:
    nfs, far = storage("nfs", shared=True), storage("far", shared=True)
    seen, asked = look(
        node("a", storage("local"), nfs, storage("iso", content="iso")),
        node("b", storage("local"), nfs, far, storage("cts", content="rootdir")),
        node("c", storage("local"), storage("zfs"), nfs, far),
        local_on_b=[VMID, VMID + 1],
        zfs_on_c=[VMID],
    )
    assert asked == ["far on b", "local on a", "local on b", "local on c", "nfs on a", "zfs on c"]
    assert [(one.volid, one.node) for one in seen.volumes] == [
        (f"local:{VMID}/d", "b"),
        (f"zfs:{VMID}/d", "c"),
    ]
    assert seen.storages == {
        ("a", "local"),
        ("b", "local"),
        ("c", "local"),
        ("c", "zfs"),
        (None, "nfs"),
        (None, "far"),
    }
    assert seen.unseen == ()


def test_what_nobody_can_look_at_is_said() -> None:
    away = storage("nfs", shared=True, active=False)
    seen, asked = look(
        node("a", storage("local"), away, storage("usb", active=False)),
        node("b", storage("local", active=False), away),
        node("c", storage("local"), online=False),
    )
    assert asked == ["local on a", "nfs on a", "usb on a"]
    assert seen.unseen == ("nfs on a", "usb on a", "local on b", "c")
    assert seen.storages == {("a", "local")}


def test_a_shared_storage_that_one_node_misses_is_seen_by_another() -> None:
    away, there = (storage("nfs", shared=True, active=active) for active in (False, True))
    seen, asked = look(
        node("a", storage("local"), away), node("b", away), node("c", there), nfs_on_c=[VMID]
    )
    assert asked == ["local on a", "nfs on a", "nfs on c"]
    assert [one.node for one in seen.volumes] == ["c"]
    assert seen.unseen == ()


def test_a_volume_is_ours_only_where_none_was_before() -> None:
    seen, _ = look(node("a", storage("local"), storage("usb", active=False)))
    vm: Any = SimpleNamespace(
        shared=SimpleNamespace(storage_key=lambda node_name, name: (node_name, name))
    )
    found = [volumes.Volume(f"{name}:1/d", name, "a", None) for name in ("local", "usb")]
    assert [seen.had(vm, one) for one in found] == [True, False]


def test_a_storage_that_was_removed_since_the_snapshot_has_no_volumes() -> None:
    """It is the one for root disks, and was seen active."""
    here = node("a", storage("local"), storage("nfs"))
    vm = vm_of(Listing((here,), {"nfs on a": [VMID]}, removed="local"), here)
    assert [one.volid for one in volumes.of_vm(vm)] == [f"nfs:{VMID}/d"]
    seen = volumes.everywhere(vm)
    assert seen.storages == {("a", "nfs")}
    assert seen.unseen == ("local on a",)


def test_a_removed_storage_that_has_disks_of_the_vm_is_an_error() -> None:
    """By its configuration, which this destroy has removed: the disks aren't seen gone."""
    here = node("a", storage("local"))
    vm = vm_of(Listing((here,), {}, removed="local"), here)
    with pytest.raises(ApiError):
        volumes.of_vm(vm, [f"local:{VMID}/d"])
