"""Decides what a restored record and its clusters differ in: adopts, names, and releases.

Without ``apply`` nothing is changed. Each adoption is a transaction of its own that looks at the
record again, so all may run twice; what could not be adopted is left, and named.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from common import clock, context
from common.errors import Conflict, MicronovaError
from common.log import logger
from common.messages.inventory import ClusterInventory, SeenVm
from common.resources.states import (
    InternalAction,
    OperationState,
    PowerState,
    ResourceType,
    VmState,
)
from common.resources.volumes import AttachStatus, VolumeStatus
from conductor.audit import proof, restoration
from conductor.audit.facts import Facts
from conductor.audit.gather import Gatherer
from conductor.audit.restoration import Item, Verdict
from conductor.audit.restored import marked
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.runner import Runner
from conductor.plans import FollowPlan, Place
from conductor.rpc.servers.manage import Adoption
from conductor.servers import guest_data
from conductor.servers.manage.begin_adopt import Acceptance
from conductor.store import restored
from conductor.store.images import templates
from conductor.store.ledger import operations as ledger
from conductor.store.ledger import transitions
from conductor.store.networks import adopted_ports, networks, unknown_vms
from conductor.store.records import Server
from conductor.store.servers import servers, vmids
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments, backends, volumes

LOG = logger(__name__)

_GIB = 1 << 30


class Restorer:
    """Compares everything, and applies what was found."""

    def __init__(self, cloud: Cloud, gatherer: Gatherer, runner: Runner) -> None:
        self._cloud, self._gatherer, self._runner = cloud, gatherer, runner
        self._acceptance = Acceptance(cloud)

    def run(self, *, apply: bool) -> dict[str, Any]:
        """Return the report; with ``apply`` all is done that it says, and the hold released.

        The hold remains while something could not be looked at.
        """
        with self._cloud.store.read() as connection:
            every = vmids.every(connection)
        facts = self._gatherer.look(every)
        found = restoration.items(facts)
        found = [self._checked(facts, one) for one in found]
        done = [self._apply(facts, one) for one in found] if apply else found
        released = apply and not facts.unseen
        if released:
            seen = [one for each in facts.inventories.values() for one in marked(each)]
            mine = [one.mark.epoch for one in seen if one.mark.cloud == facts.cloud]
            self._cloud.store.run(lambda c: restored.release(c, max(mine, default=0)))
            self._cloud.guard.expire()
            self._cloud.wake()
            LOG.warning("The restored record was compared and released: %d items.", len(done))
        return {
            "held": facts.restored,
            "released": released,
            "unseen": list(facts.unseen),
            "items": [_shown(one) for one in done],
        }

    # --- whether all of it can be adopted

    def _checked(self, facts: Facts, item: Item) -> Item:
        """Return the item; to be left, if the record has no network for an interface."""
        if item.verdict is not Verdict.ADOPT or item.resource_type is not ResourceType.SERVER:
            return item
        vm = item.vm
        if vm is None:
            return item
        its = str(vm.project_id), vm.nics or ()
        # It locks the networks.
        lacking = self._cloud.store.run(lambda c: adopted_ports.lacking(c, *its))
        if not lacking:
            return item
        text = f"{item.text} No network of the record has its {', '.join(lacking)}: make the "
        text += "network and its subnet again, and run this once more."
        return dataclasses.replace(item, verdict=Verdict.LEAVE, text=text)

    # --- adopting

    def _apply(self, facts: Facts, item: Item) -> Item:
        if item.verdict is not Verdict.ADOPT or item.vm is None:
            return item
        inventory = facts.inventories[item.cluster]
        try:
            if item.resource_type is ResourceType.VOLUME:
                self._cloud.store.run(lambda c: self._volume(c, item, inventory))
            elif item.resource_type is ResourceType.TEMPLATE:
                self._cloud.store.run(lambda c: self._template(c, item))
            elif item.resource_id in facts.servers:
                self._cloud.store.run(lambda c: self._relink(c, item))
            else:
                self._adopt(item, item.vm)
        except MicronovaError as error:
            text = f"{item.text} It was not adopted: {error.message}"
            return dataclasses.replace(item, verdict=Verdict.LEAVE, text=text)
        return dataclasses.replace(item, text=f"{item.text} It is adopted.")

    def _adopt(self, item: Item, vm: SeenVm) -> None:
        """Begin an adoption as an administrator would."""
        owner = str(vm.project_id), str(vm.user_id or "")
        asked = Adoption(item.cluster, vm.vmid, *owner, name=vm.name or None)
        ctxt = context.internal()
        ctxt.about(ResourceType.SERVER, item.resource_id)
        _, operation = self._acceptance.adopt(ctxt, asked)
        self._runner.submit(operation)

    def _relink(self, connection: Transaction, item: Item) -> None:
        """Give a server of the record the VM that its marks prove to be its own."""
        vm = item.vm
        server = servers.get(connection, item.resource_id, lock=True)
        if vm is None or ledger.open_of(connection, server.uuid) or server.deleted_at is not None:
            raise Conflict("The record has changed since it was compared.")
        host, node = proof.host(connection, item.cluster, vm.node)
        if node != vm.node:
            raise Conflict(f"No agent has reported node {vm.node}.")
        was = Place(server.host, None, server.cluster, server.node, server.vmid)
        target = Place(host, None, item.cluster, vm.node, vm.vmid)
        ctxt, follow = context.internal(), InternalAction.FOLLOW
        plan = FollowPlan(target, was)
        operation = start.begin(connection, self._cloud, ctxt, server, follow, plan)
        if server.cluster is not None and server.vmid is not None:
            vmids.quarantine(
                connection, server.cluster, server.vmid, f"It was server {server.uuid}'s."
            )
        vmids.claim(connection, item.cluster, vm.vmid, server.uuid, operation.id)
        unknown_vms.forget(connection, item.cluster, [vm.vmid])
        added = self._ports(connection, server, vm)
        running = vm.status == "running"
        transitions.move(
            connection,
            server,
            operation_id=operation.id,
            vm_state=VmState.ACTIVE if running else VmState.STOPPED,
            task_state=None,
            takes_over=True,
            power_state=PowerState.RUNNING if running else PowerState.SHUTDOWN,
            host=host,
            node=vm.node,
            cluster=item.cluster,
            vmid=vm.vmid,
            addresses=[*server.addresses, *added],
        )
        ledger.close(connection, operation.id, OperationState.DONE)

    def _ports(self, connection: Transaction, server: Server, vm: SeenVm) -> list[Any]:
        """Write the ports that the record lacks; return their addresses."""
        known = {one.mac for one in networks.ports_of(connection, server.uuid)}
        usable = networks.usable(connection, server.project_id)
        wires = {(one.bridge, one.vlan): one for one in usable}
        made = []
        for position, nic in enumerate(vm.nics or ()):
            network = wires.get((nic.bridge, nic.vlan))
            if nic.mac not in known and network is not None:
                its = (server.uuid, server.project_id, len(known) + position)
                made.append(adopted_ports.port(connection, *its, nic, network))
        return guest_data.addresses(made)

    @staticmethod
    def _template(connection: Transaction, item: Item) -> None:
        """Write the record of an image's template; the next build of the image uses it."""
        vm = item.vm
        if vm is None or not vm.drives:
            raise Conflict("The record has changed since it was compared.")
        storage = vm.drives[0].volid.partition(":")[0]
        vmids.claim(connection, item.cluster, vm.vmid, None, None)
        unknown_vms.forget(connection, item.cluster, [vm.vmid])
        where = (item.cluster, vm.node, storage)
        templates.insert_found(connection, *where, item.resource_id, vm.vmid)

    def _volume(self, connection: Transaction, item: Item, inventory: ClusterInventory) -> None:
        """Write the record of a volume as its holder, and the VM that uses it, show it."""
        vm = item.vm
        known = volumes.get(connection, item.resource_id) is not None
        if vm is None or vm.held is None or known:
            raise Conflict("The record has changed since it was compared.")
        volid, user = vm.held, restoration.user_of(inventory, vm.held)
        storage = volid.partition(":")[0]
        there = [
            one
            for one in backends.read(connection)
            if (one.cluster, one.node, one.storage.name) == (item.cluster, vm.node, storage)
        ]
        if not there:
            raise Conflict(f"No host has storage {storage} and node {vm.node}.")
        place = there[0]
        size = next((one.size_bytes for one in inventory.volumes if one.volid == volid), 0)
        vmids.claim(connection, item.cluster, vm.vmid, None, None)
        unknown_vms.forget(connection, item.cluster, [vm.vmid])
        volumes.insert_found(
            connection,
            id=item.resource_id,
            project_id=str(vm.project_id),
            user_id=str(vm.user_id or ""),
            name=vm.name,
            status=VolumeStatus.IN_USE if user else VolumeStatus.AVAILABLE,
            size_gib=max(1, -(-size // _GIB)),
            host=place.host,
            cluster=item.cluster,
            node=vm.node,
            storage=storage,
            shared=place.storage.shared,
            availability_zone=place.zone,
            vmid=vm.vmid,
            volid=volid,
            launched_at=clock.utcnow(),
        )
        if user is not None:
            server, attached = servers.get(connection, user[0]), AttachStatus.ATTACHED
            its = (server.uuid, server.project_id, user[1])
            attachments.insert(connection, item.resource_id, *its, status=attached)


def _shown(item: Item) -> dict[str, str]:
    return {
        "verdict": item.verdict,
        "resource": f"{item.resource_type} {item.resource_id}",
        "where": item.where,
        "why": item.text,
    }
