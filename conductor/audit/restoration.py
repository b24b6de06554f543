"""What an operator decides about after a restore: what is newer than the record, what is lost.

Pure. Only what all marks prove to be this cloud's is adopted; the rest is named.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from common import digits
from common.messages.inventory import ClusterInventory, SeenVm
from common.resources.states import ResourceType
from conductor.audit.facts import Facts, ServerFacts


class Verdict(enum.StrEnum):
    """What becomes of something."""

    ADOPT = "adopt"  #: it becomes the record's again
    LEAVE = "leave"  #: it is left as it is, and its addresses, MACs and VMID are given to nobody
    LOST = "lost"  #: in the record, and not in the clusters


@dataclass(frozen=True)
class Item:
    """One thing, and what becomes of it."""

    verdict: Verdict
    resource_type: ResourceType
    resource_id: str
    where: str
    text: str
    """Why, in a sentence."""
    cluster: str = ""
    vm: SeenVm | None = None


def items(facts: Facts) -> list[Item]:
    """Return all of them: servers before the volumes that they have."""
    found: list[Item] = []
    known = {(one.cluster, one.vmid) for one in facts.volumes}
    known |= {(one.cluster, one.vmid) for one in facts.templates}
    for inventory in facts.inventories.values():
        found += _networks(facts, inventory)
        found += _files(facts, inventory)
        for vm in inventory.vms:
            recorded = (inventory.cluster, vm.vmid) in known
            if vm.read and facts.cloud and vm.cloud == facts.cloud:
                found += _of_vm(facts, inventory, vm, recorded=recorded)
    found += _lost_servers(facts)
    found += _lost_volumes(facts)
    order = list(ResourceType)
    return sorted(found, key=lambda one: (order.index(one.resource_type), one.where))


def _of_vm(
    facts: Facts, inventory: ClusterInventory, vm: SeenVm, *, recorded: bool
) -> Iterator[Item]:
    """Yield what a VM is. ``recorded``: by the record it is a volume's holder or a template."""
    if vm.server_uuid is not None:
        yield from _server(facts, inventory, vm, vm.server_uuid)
    elif recorded:
        return
    elif vm.volume_id is not None:
        yield from _volume(facts, inventory, vm, vm.volume_id)
    elif vm.image_id is not None:
        yield _template(inventory, vm, vm.image_id)


def _server(facts: Facts, inventory: ClusterInventory, vm: SeenVm, uuid: str) -> Iterator[Item]:
    known = facts.servers.get(uuid)
    if known is not None and known.place == (inventory.cluster, vm.vmid):
        return

    def item(verdict: Verdict, text: str) -> Item:
        return _item(verdict, ResourceType.SERVER, uuid, inventory, vm, text)

    refused = _refusal(vm)
    if refused is not None:
        yield item(Verdict.LEAVE, refused)
    elif known is None:
        yield item(Verdict.ADOPT, f"Server {uuid} of project {vm.project_id} was made since.")
    elif known.deleted_at is not None:
        yield item(Verdict.LEAVE, f"By the record server {uuid} was deleted before.")
    elif uuid in facts.busy:
        yield item(Verdict.LEAVE, "An operation works on the server: run it again later.")
    elif known.place is not None and _is_there(facts, known, _by_place(facts)):
        text = f"Server {uuid} has VM {known.vmid} of cluster {known.cluster} as well."
        yield item(Verdict.LEAVE, text)
    else:
        yield item(Verdict.ADOPT, f"It is the VM of server {uuid}, which the record lacks.")


def _volume(
    facts: Facts, inventory: ClusterInventory, vm: SeenVm, volume_id: str
) -> Iterator[Item]:
    known = any(one.id == volume_id for one in facts.volumes)
    refused = _refusal(vm)
    if refused is None and known:
        refused = f"By the record volume {volume_id} is elsewhere."
    if refused is None and volume_id in facts.busy_volumes:
        refused = "An operation works on the volume: run it again later."
    if refused is None and vm.held is None:
        refused = "It has no disk."
    verdict = Verdict.ADOPT if refused is None else Verdict.LEAVE
    text = refused or f"Volume {volume_id} of project {vm.project_id} was made since."
    yield _item(verdict, ResourceType.VOLUME, volume_id, inventory, vm, text)


def _template(inventory: ClusterInventory, vm: SeenVm, image_id: str) -> Item:
    text = "A cached template of the image was made since."
    whole = vm.proven and vm.template and vm.drives
    verdict = Verdict.ADOPT if whole else Verdict.LEAVE
    return _item(verdict, ResourceType.TEMPLATE, image_id, inventory, vm, text)


def _refusal(vm: SeenVm) -> str | None:
    """Return why nothing is adopted of a VM with a mark of this cloud; None: all agrees."""
    if not vm.proven:
        return "Its marks don't agree: it may be a person's copy."
    if vm.template:
        return "It is a template by now."
    if not vm.project_id:
        return "Its description names no project."
    return None


def user_of(inventory: ClusterInventory, disk: str) -> tuple[str, int] | None:
    """Return the server that uses a volume's disk, and the SCSI slot; None: none does."""
    for vm in inventory.vms:
        for one in vm.references or ():
            slot = one.option.removeprefix("scsi")
            if one.volid == disk and vm.server_uuid and vm.proven and digits.is_digits(slot):
                return vm.server_uuid, int(slot)
    return None


def _networks(facts: Facts, inventory: ClusterInventory) -> Iterator[Item]:
    for one in inventory.vnets or ():
        if one.cloud == facts.cloud and one.network_id not in facts.networks:
            yield Item(
                Verdict.LEAVE,
                ResourceType.NETWORK,
                one.network_id,
                f"vnet {one.vnet} of zone {one.zone} in cluster {inventory.cluster}",
                "Its subnets are lost, which no cluster names. Its VNI is given to nobody.",
                inventory.cluster,
            )


def _files(facts: Facts, inventory: ClusterInventory) -> Iterator[Item]:
    for file in inventory.image_files or ():
        if file.cloud == facts.cloud and file.image_id not in facts.uploads:
            text = "An upload made since. Its name and owner are lost; its data is there."
            where = f"{file.volid} in cluster {inventory.cluster}"
            image = ResourceType.IMAGE, file.image_id
            yield Item(Verdict.LEAVE, *image, where, text, inventory.cluster)
    known = {one.id for one in facts.backups}
    for saved in inventory.backups or ():
        if saved.cloud == facts.cloud and saved.backup_id not in known:
            text = "A backup of a volume made since. Its archive is left, to be restored by hand."
            where = f"{saved.volid} in cluster {inventory.cluster}"
            backup = ResourceType.BACKUP, saved.backup_id
            yield Item(Verdict.LEAVE, *backup, where, text, inventory.cluster)


def _lost_servers(facts: Facts) -> Iterator[Item]:
    vms = _by_place(facts)
    for server in facts.servers.values():
        if server.place is None or server.uuid in facts.busy or _is_there(facts, server, vms):
            continue
        yield Item(
            Verdict.LOST,
            ResourceType.SERVER,
            server.uuid,
            f"VM {server.vmid} of cluster {server.cluster}",
            "It was deleted since, or lost. It becomes ERROR; delete it if nobody misses it.",
            str(server.cluster),
        )


def _lost_volumes(facts: Facts) -> Iterator[Item]:
    there = {(name, one.volid) for name, each in facts.inventories.items() for one in each.volumes}
    for volume in facts.volumes:
        inventory = facts.inventories.get(str(volume.cluster))
        if volume.volid is None or inventory is None or inventory.short or inventory.unseen:
            continue
        if volume.id in facts.busy_volumes:
            continue
        if (str(volume.cluster), volume.volid) not in there:
            where = f"{volume.volid} in cluster {volume.cluster}"
            text = "It was deleted since, or lost."
            yield Item(Verdict.LOST, ResourceType.VOLUME, volume.id, where, text)


def _by_place(facts: Facts) -> dict[tuple[str, int], SeenVm]:
    """Return the VMs that were seen, by (cluster, VMID)."""
    return {(name, vm.vmid): vm for name, each in facts.inventories.items() for vm in each.vms}


def _is_there(facts: Facts, server: ServerFacts, vms: Mapping[tuple[str, int], SeenVm]) -> bool:
    """Return whether the server's VM is, or may be, where the record says."""
    inventory = facts.inventories.get(str(server.cluster))
    if inventory is None or inventory.short:
        return True
    vm = vms.get((str(server.cluster), server.vmid or 0))
    if vm is None:
        return server.node in inventory.unseen_nodes
    return not vm.read or vm.server_uuid == server.uuid


def _item(
    verdict: Verdict,
    kind: ResourceType,
    resource_id: str,
    inventory: ClusterInventory,
    vm: SeenVm,
    text: str,
) -> Item:
    where = f"VM {vm.vmid} of cluster {inventory.cluster}"
    return Item(verdict, kind, resource_id, where, text, inventory.cluster, vm)
