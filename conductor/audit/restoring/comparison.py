"""Compares a restored record with the clusters: what is newer than the record, what is lost. Pure.

Only what all marks prove to be this cloud's is adopted; the rest is named.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from common import digits
from common.messages.inventory import ClusterInventory, SeenVm
from common.resources.states import ResourceType
from conductor.audit.facts import Facts, OpenOperation, Place, ServerFacts
from conductor.audit.restoring import lost_data, lost_networks
from conductor.audit.restoring.items import (
    ORDER,
    Item,
    Known,
    Verdict,
    is_build_of_before,
    is_held,
    of_vm,
)

#: a server and the SCSI slot of its VM
User = tuple[str, int]


@dataclass(frozen=True)
class Attached:
    """The server whose VM has a volume, and the server that has the volume by the record."""

    user: User
    former: str | None = None


def items(facts: Facts, known: Known) -> list[Item]:
    """Return all of them, in the order in which they are adopted."""
    found = [
        *lost_networks.networks(facts, known),
        *lost_data.images(facts, known),
        *lost_data.snapshots(facts),
        *lost_data.backups(facts),
        *Comparison(facts, known).items(),
    ]
    return sorted(found, key=lambda one: (ORDER.index(one.resource_type), one.where))


def another_clouds(facts: Facts) -> str | None:
    """Return why the clusters seem to be another cloud's, in a sentence; None: they don't.

    A backup was put back beside the wrong clusters: all servers would be lost by it.
    """
    found = facts.inventories.values()
    clouds = {vm.cloud for each in found for vm in each.vms if vm.read and vm.cloud}
    if not clouds or facts.cloud in clouds or not any(one.place for one in facts.servers.values()):
        return None
    return (
        f"The clusters have VMs of cloud {', '.join(sorted(clouds))}, and none of this cloud, "
        f"{facts.cloud}: nothing is decided. If they are this cloud's nevertheless, make a server."
    )


def users(inventory: ClusterInventory) -> dict[str, User]:
    """Return the server that uses each disk of another VM, by the disk."""
    found: dict[str, User] = {}
    for vm in inventory.vms:
        for one in vm.references or ():
            slot = one.option.removeprefix("scsi")
            if vm.server_uuid and vm.proven and digits.is_digits(slot):
                found[one.volid] = vm.server_uuid, int(slot)
    return found


class Comparison:
    """Servers, the holders of volumes and of copies, and templates."""

    def __init__(self, facts: Facts, known: Known) -> None:
        self._facts, self._known = facts, known

    def items(self) -> Iterator[Item]:
        """Yield what the record lacks, then what the clusters lack."""
        lacks = list(self._lacking())
        yield from lacks
        yield from self._attached()
        found = {one.resource_id for one in lacks if one.verdict is Verdict.ADOPT}
        yield from (one for one in self._lost_servers() if one.resource_id not in found)
        yield from self._lost_volumes()

    # --- what is looked up

    @cached_property
    def _holders(self) -> set[tuple[str | None, int | None]]:
        """Places of the record that are holders or templates."""
        found = {(one.cluster, one.vmid) for one in self._facts.volumes}
        return found | {(one.cluster, one.vmid) for one in self._facts.templates}

    @cached_property
    def _volumes(self) -> frozenset[str]:
        return frozenset(one.id for one in self._facts.volumes)

    @cached_property
    def _vms(self) -> dict[Place, SeenVm]:
        found = self._facts.inventories.items()
        return {(name, vm.vmid): vm for name, each in found for vm in each.vms}

    @cached_property
    def _macs(self) -> dict[str, set[str]]:
        found: defaultdict[str, set[str]] = defaultdict(set)
        for port in self._facts.ports:
            found[port.server_uuid].add(port.mac.lower())
        return found

    # --- what the record lacks

    def _lacking(self) -> Iterator[Item]:
        """Yield what the VMs with a mark of this cloud show."""
        cloud = self._facts.cloud
        for inventory in self._facts.inventories.values():
            for vm in inventory.vms:
                if vm.read and cloud and vm.cloud == cloud:
                    yield from self._of_vm(inventory, vm)

    def _of_vm(self, inventory: ClusterInventory, vm: SeenVm) -> Iterator[Item]:
        if vm.server_uuid is not None:
            yield from self._server(inventory, vm, vm.server_uuid)
        elif (inventory.cluster, vm.vmid) in self._holders:
            return
        elif vm.volume_id is not None:
            yield self._holder(inventory, vm, vm.volume_id)
        elif vm.image_id is not None:
            yield lost_data.template(self._known, inventory, vm, vm.image_id)

    def _server(self, inventory: ClusterInventory, vm: SeenVm, uuid: str) -> Iterator[Item]:
        known = self._facts.servers.get(uuid)

        def item(verdict: Verdict, text: str) -> Item:
            return of_vm(verdict, ResourceType.SERVER, uuid, inventory, vm, text)

        refused = _refusal(vm)
        if known is not None and known.place == (inventory.cluster, vm.vmid):
            added = self._added_ports(vm, uuid)
            text = f"It got the interfaces {', '.join(added)} since."
            if added and uuid not in self._facts.busy - self._held:
                yield item(Verdict.ADOPT, text)
            elif added and self._known.last:
                # Released, their addresses would be free before anybody looks again.
                left = item(Verdict.LEAVE, f"{text} An operation works on it: run it again later.")
                yield dataclasses.replace(left, ends=True)
        elif refused is not None:
            yield item(Verdict.LEAVE, refused)
        elif known is None:
            made = f"Server {uuid} of project {vm.project_id} was made since."
            made += " Its build has yet to start it." if vm.unstarted else ""
            yield item(Verdict.ADOPT, made)
        elif known.deleted_at is not None:
            yield item(Verdict.LEAVE, f"By the record server {uuid} was deleted before.")
        elif uuid in self._facts.busy and uuid not in self._builds:
            yield item(Verdict.LEAVE, "An operation works on the server: run it again later.")
        elif uuid in self._builds and vm.status != "running":
            left = item(Verdict.LEAVE, "An agent may build it still: run it again later.")
            yield dataclasses.replace(left, ends=True)
        elif known.place is not None and self._is_there(known):
            text = f"Server {uuid} has VM {known.vmid} of cluster {known.cluster} as well."
            yield item(Verdict.LEAVE, text)
        else:
            yield item(Verdict.ADOPT, f"It is the VM of server {uuid}, which the record lacks.")

    @cached_property
    def _builds(self) -> frozenset[str]:
        """Servers whose only open operation is a build that waits."""
        return self._with_only(is_build_of_before)

    @cached_property
    def _held(self) -> frozenset[str]:
        """Servers all of whose open operations wait for the decision."""
        return self._with_only(is_held)

    def _with_only(self, is_one: Callable[[OpenOperation, int], bool]) -> frozenset[str]:
        does = {one: is_one(one, self._known.last) for one in self._facts.operations}
        others = {one.server_uuid for one in does if not does[one]}
        return frozenset(
            one.server_uuid for one in does if one.server_uuid and one.server_uuid not in others
        )

    def _added_ports(self, vm: SeenVm, uuid: str) -> list[str]:
        """Return the MAC addresses of a server's marked ports that the record lacks."""
        if not vm.proven:
            return []
        known = self._macs.get(uuid, set())
        return [one.mac for one in vm.nics or () if one.port is not None and one.mac not in known]

    def _holder(self, inventory: ClusterInventory, vm: SeenVm, volume_id: str) -> Item:
        """Return a volume, or the copy that a snapshot is, by its holder."""
        kind = ResourceType.SNAPSHOT if vm.snapshot_of else ResourceType.VOLUME
        refused = _refusal(vm)
        if refused is None and volume_id in self._volumes:
            refused = f"By the record {kind} {volume_id} is elsewhere."
        if refused is None and {volume_id, vm.snapshot_of} & self._facts.busy_volumes:
            refused = "An operation works on the volume: run it again later."
        if refused is None and vm.held is None:
            refused = "It has no disk."
        verdict = Verdict.ADOPT if refused is None else Verdict.LEAVE
        made = f"{kind.capitalize()} {volume_id} of project {vm.project_id} was made since."
        return of_vm(verdict, kind, volume_id, inventory, vm, refused or made)

    def _attached(self) -> Iterator[Item]:
        """Yield the volumes of the record that servers, or other servers, have got since."""
        attached = {one.volume_id: one.server_uuid for one in self._facts.attachments}
        named = {name: users(one) for name, one in self._facts.inventories.items()}
        for volume in self._facts.volumes:
            cluster, disk = str(volume.cluster), volume.volid or ""
            user = named.get(cluster, {}).get(disk)
            former = attached.get(volume.id)
            if user is None or user[0] == former or volume.id in self._facts.busy_volumes:
                continue
            verdict, text = Verdict.ADOPT, f"Server {user[0]} got it since."
            if former is not None and self._may_have(former, disk):
                verdict = Verdict.LEAVE
                text = f"Server {user[0]} uses it, and so may server {former}, as the record says."
            elif former is not None:
                text = f"Server {user[0]} got it since from server {former}."
            where = f"{volume.volid} in cluster {cluster}"
            about = (ResourceType.VOLUME, volume.id, where, text, cluster)
            yield Item(verdict, *about, found=Attached(user, former))

    def _may_have(self, server_uuid: str, disk: str) -> bool:
        """Return whether the VM of a server of the record may name a disk."""
        server = self._facts.servers.get(server_uuid)
        if server is None or server.place is None or server_uuid in self._facts.busy:
            return server_uuid in self._facts.busy
        vm = self._vms.get(server.place)
        if vm is None or (vm.read and vm.server_uuid != server_uuid):
            return self._is_there(server)
        return vm.references is None or disk in {one.volid for one in vm.references}

    # --- what the clusters lack

    def _lost_servers(self) -> Iterator[Item]:
        text = "It was deleted since, or lost. It becomes ERROR; delete it if nobody misses it."
        for server in self._facts.servers.values():
            if server.place is None or server.uuid in self._facts.busy or self._is_there(server):
                continue
            where = f"VM {server.vmid} of cluster {server.cluster}"
            about = (ResourceType.SERVER, server.uuid, where, text, str(server.cluster))
            yield Item(Verdict.LOST, *about)

    def _lost_volumes(self) -> Iterator[Item]:
        found = self._facts.inventories.items()
        there = {(name, one.volid) for name, each in found for one in each.volumes}
        for volume in self._facts.volumes:
            inventory = self._facts.inventories.get(str(volume.cluster))
            if volume.volid is None or inventory is None or inventory.short or inventory.unseen:
                continue
            if volume.id in self._facts.busy_volumes:
                continue
            if (str(volume.cluster), volume.volid) not in there:
                where = f"{volume.volid} in cluster {volume.cluster}"
                text = "It was deleted since, or lost."
                yield Item(Verdict.LOST, ResourceType.VOLUME, volume.id, where, text)

    def _is_there(self, server: ServerFacts) -> bool:
        """Return whether the server's VM is, or may be, where the record says."""
        inventory = self._facts.inventories.get(str(server.cluster))
        if inventory is None or inventory.short:
            return True
        vm = self._vms.get((str(server.cluster), server.vmid or 0))
        if vm is None:
            return server.node in inventory.unseen_nodes
        return not vm.read or vm.server_uuid == server.uuid


def _refusal(vm: SeenVm) -> str | None:
    """Return why nothing is adopted of a VM with a mark of this cloud; None: all agrees."""
    if not vm.proven:
        return "Its marks don't agree: it may be a person's copy."
    if vm.template:
        return "It is a template by now."
    if not vm.project_id:
        return "Its description names no project."
    return None
