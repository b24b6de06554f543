"""Decides what a restored record and its clusters differ in: adopts, names, and releases.

Without ``apply`` nothing is changed. All networks are adopted in one transaction, each other thing
in one of its own that looks at the record again, so all may run twice; what could not be adopted
is left, and named.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any

from common import clock, context
from common.errors import Conflict, MicronovaError
from common.log import logger
from common.messages.inventory import SeenVm
from common.resources.states import (
    InternalAction,
    OperationState,
    PowerState,
    ResourceType,
    VmState,
)
from conductor.audit import proof
from conductor.audit.facts import Facts
from conductor.audit.gather import Gatherer
from conductor.audit.restored import marked
from conductor.audit.restoring import comparison, written
from conductor.audit.restoring.items import Item, Known, Verdict, is_build_of_before, is_held
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.runner import Runner
from conductor.plans import FollowPlan, Place
from conductor.rpc.servers.manage import Adoption
from conductor.servers import guest_data
from conductor.servers.manage.begin_adopt import Acceptance
from conductor.store import restored
from conductor.store.images import adopted_images
from conductor.store.ledger import operations as ledger
from conductor.store.ledger import transitions
from conductor.store.networks import adopted_networks, adopted_ports, networks, unknown_vms
from conductor.store.records import Server
from conductor.store.servers import servers, vmids
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments

LOG = logger(__name__)


class Restorer:
    """Compares everything, and applies what was found."""

    def __init__(self, cloud: Cloud, gatherer: Gatherer, runner: Runner) -> None:
        self._cloud, self._gatherer, self._runner = cloud, gatherer, runner
        self._acceptance = Acceptance(cloud)

    def run(self, *, apply: bool) -> dict[str, Any]:
        """Return the report; with ``apply`` all is done that it says, and the hold released.

        The hold remains while something could not be looked at, or is being built still. Nothing
        is done where the clusters are another cloud's.
        """
        with self._cloud.store.read() as connection:
            every = vmids.every(connection)
            record = restored.read(connection)
            last = 0 if record.held_at is None else record.compare_operation
            known = Known(
                adopted_networks.cidrs(connection), adopted_images.with_data(connection), last
            )
        facts = self._gatherer.look(every)
        wrong = comparison.another_clouds(facts)
        if wrong is not None:
            facts, apply = dataclasses.replace(facts, unseen=(*facts.unseen, wrong)), False
        found = self._with_networks(comparison.items(facts, known), apply=apply)
        done = [self._apply(facts, one, last) for one in found] if apply else found
        released = apply and not facts.unseen and not any(one.ends for one in done)
        if released:
            seen = [one for each in facts.inventories.values() for one in marked(each)]
            mine = [one.mark.epoch for one in seen if one.mark.cloud == facts.cloud]
            highest = max(restored.newest_mark(record), *mine, 0)
            released = self._cloud.store.run(lambda c: restored.release(c, highest))
        if released:
            self._cloud.guard.expire()
            self._cloud.wake()
            LOG.warning("The restored record was compared and released: %d items.", len(done))
        return {
            "held": facts.restored,
            "released": released,
            "unseen": list(facts.unseen),
            "items": [_shown(one) for one in done],
        }

    # --- networks first: whether a server can be adopted depends on them

    def _with_networks(self, found: list[Item], *, apply: bool) -> list[Item]:
        """Adopt the networks; return all items, those that can't be adopted to be left.

        Without ``apply`` the networks are written, compared with the servers, and not committed.
        """
        if apply:
            return self._cloud.store.run(lambda c: self._checked_all(c, found))
        seen: list[Item] = []

        def look(connection: Transaction) -> None:
            seen[:] = self._checked_all(connection, found)
            raise _NotApplied

        with contextlib.suppress(_NotApplied):
            self._cloud.store.run(look)
        return seen

    def _checked_all(self, connection: Transaction, found: Sequence[Item]) -> list[Item]:
        done = [
            written.network(connection, one)
            if one.resource_type is ResourceType.NETWORK and one.verdict is Verdict.ADOPT
            else one
            for one in found
        ]
        return [self._checked(connection, one) for one in done]

    @staticmethod
    def _checked(connection: Transaction, item: Item) -> Item:
        """Return the item; to be left, if the record has no network for an interface, or another
        port with an address of it."""
        if item.verdict is not Verdict.ADOPT or item.resource_type is not ResourceType.SERVER:
            return item
        vm = item.vm
        if vm is None:
            return item
        mine = str(vm.project_id), vm.nics or ()
        lacking = adopted_ports.lacking(connection, *mine)
        taken = adopted_ports.taken(connection, *mine)
        text = item.text
        if lacking:
            text += f" No network of the record has its {', '.join(lacking)}: make the "
            text += "network and its subnet again, and run this once more."
        elif taken:
            text += f" {' '.join(taken)} Delete that one first, and run this once more."
        else:
            return item
        return dataclasses.replace(item, verdict=Verdict.LEAVE, text=text)

    # --- adopting

    def _apply(self, facts: Facts, item: Item, last: int) -> Item:
        if item.verdict is not Verdict.ADOPT:
            return item
        try:
            if item.resource_type is not ResourceType.SERVER:
                self._write(facts, item)
            elif item.vm is not None and item.resource_id in facts.servers:
                self._known(facts, item, last)
            elif item.vm is not None:
                self._adopt(item, item.vm)
        except MicronovaError as error:
            text = f"{item.text} It was not adopted: {error.message}"
            return dataclasses.replace(item, verdict=Verdict.LEAVE, text=text)
        return dataclasses.replace(item, text=f"{item.text} It is adopted.")

    def _write(self, facts: Facts, item: Item) -> None:
        """Write the record of what is no server; networks are written already."""
        write = written.BY_TYPE.get(item.resource_type)
        if write is not None:
            inventory = facts.inventories.get(item.cluster)
            self._cloud.store.run(lambda c: write(c, item, inventory))

    def _known(self, facts: Facts, item: Item, last: int) -> None:
        """Complete a server of the record: with its VM, or with interfaces of that."""
        place = facts.servers[item.resource_id].place
        here = item.vm is not None and place == (item.cluster, item.vm.vmid)
        self._cloud.store.run(
            lambda c: self._add_ports(c, item, last) if here else self._relink(c, item, last)
        )

    def _adopt(self, item: Item, vm: SeenVm) -> None:
        """Begin an adoption as an administrator would."""
        owner = str(vm.project_id), str(vm.user_id or "")
        asked = Adoption(item.cluster, vm.vmid, *owner, name=vm.name or None)
        ctxt = context.internal()
        ctxt.about(ResourceType.SERVER, item.resource_id)
        _, operation = self._acceptance.adopt(ctxt, asked)
        self._runner.submit(operation)

    def _relink(self, connection: Transaction, item: Item, last: int) -> None:
        """Give a server of the record the VM that its marks prove to be its own.

        Its build, if that is open still, is done.
        """
        vm = item.vm
        server = servers.get(connection, item.resource_id, lock=True)
        opened = [ledger.get(connection, one) for one in ledger.open_of(connection, server.uuid)]
        builds = [one for one in opened if one and is_build_of_before(one, last)]
        if vm is None or len(builds) < len(opened) or server.deleted_at is not None:
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
            launched_at=server.launched_at or clock.utcnow(),
            addresses=[*server.addresses, *added],
        )
        if builds:
            attachments.built(connection, [server.uuid])
        for one in (*builds, operation):
            ledger.close(connection, one.id, OperationState.DONE)

    def _add_ports(self, connection: Transaction, item: Item, last: int) -> None:
        """Write the ports that a server of the record has got since."""
        server = servers.get(connection, item.resource_id, lock=True)
        vm = item.vm
        opened = [ledger.get(connection, one) for one in ledger.open_of(connection, server.uuid)]
        works = [one for one in opened if one and not is_held(one, last)]
        if vm is None or works or server.deleted_at is not None:
            raise Conflict("The record has changed since it was compared.")
        unknown_vms.forget(connection, item.cluster, [vm.vmid])
        added = self._ports(connection, server, vm)
        servers.change(connection, server, {"addresses": [*server.addresses, *added]})

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


class _NotApplied(Exception):
    """What was written is not to be committed."""


def _shown(item: Item) -> dict[str, str]:
    return {
        "verdict": item.verdict,
        "resource": f"{item.resource_type} {item.resource_id}",
        "where": item.where,
        "why": item.text,
    }
