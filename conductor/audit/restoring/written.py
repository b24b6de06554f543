"""Writes the records of what is no server: each from what its clusters show, in one transaction.

What the record has got since then is never written over: then Conflict is raised.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from common import clock
from common.errors import Conflict, MicronovaError
from common.messages.inventory import ClusterInventory, SeenVm
from common.messages.scheduling import ImageHome
from common.resources.states import ResourceType
from common.resources.volumes import AttachStatus, VolumeStatus
from conductor.audit.restoring import comparison
from conductor.audit.restoring.items import Item, Verdict
from conductor.store.images import adopted_images, templates
from conductor.store.networks import adopted_networks, unknown_vms
from conductor.store.servers import servers, vmids
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments, backends, backups, snapshots, volumes
from conductor.store.volumes.backends import Backend

_GIB = 1 << 30
_CHANGED = "The record has changed since it was compared."

Writes = Callable[[Transaction, Item, ClusterInventory | None], None]


def network(connection: Transaction, item: Item) -> Item:
    """Write a network, or what it lacks; return the item as it is then."""
    try:
        with connection.begin_nested():
            _network(connection, item)
    except MicronovaError as error:
        text = f"{item.text} It was not adopted: {error.message}"
        return dataclasses.replace(item, verdict=Verdict.LEAVE, text=text)
    return item


def _network(connection: Transaction, item: Item) -> None:
    lost = item.found
    if not lost.recorded:
        made = [
            adopted_networks.vnet(cluster, lost.id, lost.bridge, zone, int(lost.vni or 0))
            for cluster, zone in lost.vnets
        ]
        where = (lost.id, lost.owner, lost.bridge, lost.vlan)
        adopted_networks.insert(connection, *where, made)
    adopted_networks.add_subnets(
        connection,
        lost.id,
        (
            {
                "cidr": one.cidr,
                "ip_version": 6 if ":" in one.cidr else 4,
                "gateway_ip": one.gateway,
                "dns_nameservers": list(one.dns),
            }
            for _, one in sorted(lost.subnets.items())
        ),
    )
    adopted_networks.share(connection, lost.id, lost.projects)


def image(connection: Transaction, item: Item, inventory: ClusterInventory | None) -> None:
    """Write an image: of its files, or of the template that is its only copy."""
    vm = item.vm
    if vm is None:
        file, locations = item.found.first, item.found.locations
        form = file.volid.rpartition(".")[2]
        about = (item.resource_id, file.project_id, file.digest, file.size_bytes, form)
        adopted_images.upload(connection, *about, locations)
        return
    if not vm.drives or inventory is None:
        raise Conflict(_CHANGED)
    disk = vm.drives[0].volid
    place = _place(connection, item.cluster, vm, disk)
    home = ImageHome(item.cluster, place.storage.name, vm.node, place.storage.shared)
    size = _size(inventory, disk)
    owner = (item.resource_id, str(vm.project_id))
    adopted_images.copy(connection, *owner, home, disk, size)
    template(connection, item, inventory)


def template(connection: Transaction, item: Item, _: ClusterInventory | None) -> None:
    """Write an image's template; the next build of the image uses it."""
    vm = item.vm
    if vm is None or not vm.drives:
        raise Conflict(_CHANGED)
    storage = vm.drives[0].volid.partition(":")[0]
    _claim(connection, item, vm)
    where = (item.cluster, vm.node, storage)
    templates.insert_found(connection, *where, item.resource_id, vm.vmid)


def volume(connection: Transaction, item: Item, inventory: ClusterInventory | None) -> None:
    """Write a volume as its holder, and the VM that uses it, show it."""
    vm = item.vm
    if vm is None:
        _attachment(connection, item.resource_id, item.found)
        return
    if vm.held is None or inventory is None:
        raise Conflict(_CHANGED)
    if volumes.get(connection, item.resource_id) is not None:
        raise Conflict(_CHANGED)
    user = comparison.users(inventory).get(vm.held)
    _claim(connection, item, vm)
    volumes.insert_found(
        connection,
        id=item.resource_id,
        project_id=str(vm.project_id),
        user_id=str(vm.user_id or ""),
        name=vm.name,
        status=VolumeStatus.AVAILABLE,
        size_gib=max(1, -(-_size(inventory, vm.held) // _GIB)),
        availability_zone=_place(connection, item.cluster, vm, vm.held).zone,
        launched_at=clock.utcnow(),
        **_held(connection, item.cluster, vm, vm.held),
    )
    if user is not None:
        _attachment(connection, item.resource_id, comparison.Attached(user))


def _attachment(connection: Transaction, volume_id: str, found: comparison.Attached) -> None:
    """Write that a server has a volume, and its former server has not."""
    uuid, slot = found.user
    server = servers.get(connection, uuid, lock=True)
    row, there = volumes.held(connection, volume_id), attachments.of_volume(connection, volume_id)
    if row is None or (there.server_uuid if there else None) != found.former:
        raise Conflict(_CHANGED)
    if server.deleted_at is not None:
        raise Conflict(f"By the record server {server.uuid} was deleted before.")
    if found.former is not None:
        attachments.delete(connection, volume_id, found.former)
    attachments.make_room(connection, server.uuid, slot)
    its = (server.uuid, server.project_id, slot)
    attachments.insert(connection, volume_id, *its, status=AttachStatus.ATTACHED)
    volumes.change(connection, volume_id, status=VolumeStatus.IN_USE)


def snapshot(connection: Transaction, item: Item, _: ClusterInventory | None) -> None:
    """Write a snapshot: of its volume's holder, or the copy that has a holder of its own."""
    vm = item.vm
    if vm is None:
        raise Conflict(_CHANGED)
    of_holder = item.found is not None
    volume_id = str(vm.volume_id if of_holder else vm.snapshot_of)
    row = volumes.held(connection, volume_id)
    if row is None:
        raise Conflict(f"The record has no volume {volume_id}.")
    if snapshots.held(connection, item.resource_id) is not None:
        raise Conflict(_CHANGED)
    if of_holder:
        values: Mapping[str, Any] = {
            "snapname": item.found.name,
            "user_id": item.found.user_id,
            "created_at": item.found.taken_at or clock.utcnow(),
        }
    else:
        values = {
            "user_id": str(vm.user_id or ""),
            **_held(connection, item.cluster, vm, str(vm.held)),
        }
        _claim(connection, item, vm)
    snapshots.insert_found(connection, row, id=item.resource_id, **values)


def backup(connection: Transaction, item: Item, inventory: ClusterInventory | None) -> None:
    """Write a backup whose archive says whose it is."""
    if inventory is None or backups.held(connection, item.resource_id) is not None:
        raise Conflict(_CHANGED)
    found = item.found
    host = next(
        (
            one.host
            for one in backends.read(connection, "backup")
            if (one.cluster, one.node, one.storage.name)
            == (inventory.cluster, found.node, found.storage)
        ),
        None,
    )
    if host is None:
        raise Conflict(f"No host has storage {found.storage} and node {found.node}.")
    made = found.created_at or clock.utcnow()
    backups.insert_found(
        connection,
        id=found.backup_id,
        volume_id=found.volume_id,
        project_id=found.project_id,
        user_id=found.user_id,
        size_gib=found.size_gib,
        host=host,
        cluster=inventory.cluster,
        node=found.node,
        storage=found.storage,
        shared=found.shared,
        vmid=found.vmid,
        archive=found.volid,
        size_bytes=found.size_bytes,
        data_timestamp=made,
        created_at=made,
    )


#: networks are written before all others: see ``network``
BY_TYPE: Mapping[ResourceType, Writes] = {
    ResourceType.IMAGE: image,
    ResourceType.TEMPLATE: template,
    ResourceType.VOLUME: volume,
    ResourceType.SNAPSHOT: snapshot,
    ResourceType.BACKUP: backup,
}


def _claim(connection: Transaction, item: Item, vm: SeenVm) -> None:
    """Reserve the VMID of what is no server."""
    vmids.claim(connection, item.cluster, vm.vmid, None, None)
    unknown_vms.forget(connection, item.cluster, [vm.vmid])


def _held(connection: Transaction, cluster: str, vm: SeenVm, volid: str) -> dict[str, Any]:
    """Return the columns of what has a holder."""
    place = _place(connection, cluster, vm, volid)
    return {
        "host": place.host,
        "cluster": cluster,
        "node": vm.node,
        "storage": place.storage.name,
        "shared": place.storage.shared,
        "vmid": vm.vmid,
        "volid": volid,
    }


def _place(connection: Transaction, cluster: str, vm: SeenVm, volid: str) -> Backend:
    """Return the storage of a disk on its VM's node. Raises Conflict."""
    wanted = (cluster, vm.node, volid.partition(":")[0])
    for one in backends.read(connection):
        if (one.cluster, one.node, one.storage.name) == wanted:
            return one
    raise Conflict(f"No host has storage {wanted[2]} and node {vm.node}.")


def _size(inventory: ClusterInventory, volid: str) -> int:
    return next((one.size_bytes for one in inventory.volumes if one.volid == volid), 0)
