"""Removes the SDN vnets of deleted networks. It is repeated until they were seen gone."""

from __future__ import annotations

from common.context import internal
from common.messages.commands import RemoveVnet
from common.messages.reports import Category, Removed
from common.resources.states import InternalAction, ResourceType
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.command_end import End
from conductor.engine.one_command import OneCommand
from conductor.engine.stages import Work
from conductor.networks import vnet_places
from conductor.plans import CommandPlan
from conductor.store.networks import vnets
from conductor.store.networks.vnets import State, Vnet
from conductor.store.records import Operation
from conductor.store.transactions import Transaction


def begin(connection: Transaction, cloud: Cloud, vnet: Vnet) -> Operation:
    """Write a removal, due at once."""
    where = vnet_places.of_vnet(connection, cloud, vnet.cluster, vnet.zone)
    plan = CommandPlan(where, RemoveVnet(vnet=vnet.vnet, zone=vnet.zone))
    resource = (ResourceType.NETWORK, vnet.network_id)
    item = start.new(cloud, InternalAction.REMOVE_VNET, resource, "", plan)
    return start.begin_later(connection, internal(), item)


def begin_all(connection: Transaction, cloud: Cloud, network_id: str) -> None:
    """Write the removals of a network that is deleted in this transaction.

    A vnet that is still being made is removed when the operation that makes it ends.
    """
    for vnet in vnets.of_network(connection, network_id):
        made = (State.ACTIVE, State.ERROR)
        if vnets.set_state(connection, network_id, vnet.cluster, State.REMOVING, *made):
            begin(connection, cloud, vnet)
        else:
            vnets.set_state(connection, network_id, vnet.cluster, State.REMOVING, State.MAKING)


class RemoveVnetFlow(OneCommand[Work, Removed]):
    """The flow of ``InternalAction.REMOVE_VNET``: past the point of no return, so repeated."""

    stage = "remove"
    sends = RemoveVnet
    unseen = "The vnet was not seen gone."
    hopeless = frozenset({Category.PROTECTED})
    wakes = False

    def load(self, connection: Transaction, operation: Operation) -> Work:
        """Return the operation alone: its plan has all that is needed."""
        return Work(operation)

    def reach(self, task: Work) -> tuple[str, Work] | None:
        """Let an agent of the zone do it."""
        return vnet_places.reach(self._cloud, task, task.operation.ordered(RemoveVnet).zone)

    def succeeded(self, task: Work, outcome: Removed) -> bool:
        """Return whether it was seen gone."""
        return outcome.gone

    def write_done(self, connection: Transaction, end: End[Work, Removed]) -> None:
        """Forget the vnet."""
        cluster = str(end.operation.plan.target.cluster)
        vnets.delete(connection, end.operation.resource_id, cluster)

    def write_failed(self, connection: Transaction, end: End[Work, Removed]) -> None:
        """Forget the vnet: what has its name now isn't the network's."""
        self.write_done(connection, end)
