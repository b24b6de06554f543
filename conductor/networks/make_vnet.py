"""Gives clusters the SDN vnets of networks: one operation for each network and cluster.

The network can be used as soon as one cluster has its vnet. A failure is tried again until it
succeeds or the network is deleted: pending changes of others in the cluster's SDN configuration
are never applied by us, and may be pending for long.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from common.context import RequestContext
from common.failures import Verdict
from common.messages.commands import MakeVnet
from common.messages.reports import Category, VnetMade
from common.resources.states import InternalAction, ResourceType
from common.resources.vnets import parse_all
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.command_end import End
from conductor.engine.one_command import OneCommand
from conductor.engine.stages import Work
from conductor.networks import remove_vnet, vnet_places
from conductor.plans import VnetPlan
from conductor.store.networks import project_networks, vnets
from conductor.store.networks.segments import Segments
from conductor.store.networks.vnets import State, Vnet
from conductor.store.records import Operation
from conductor.store.transactions import Transaction


@dataclass(frozen=True)
class Making(Work):
    """An operation of this flow, and what it makes; None: the audit forgot it."""

    vnet: Vnet | None

    @property
    def wanted(self) -> bool:
        """Return whether the network is still there."""
        return self.vnet is not None and self.vnet.state is State.MAKING


def begin_all(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    network_ids: Iterable[str],
    fixed: Collection[str] = (),
) -> None:
    """Write the operations of new networks, in the transaction that makes them.

    ``fixed``: the networks whose VNIs were asked for.
    """
    for network_id in network_ids:
        for vnet in vnets.of_network(connection, network_id):
            begin(connection, cloud, ctxt, vnet, fixed=network_id in fixed)


def begin(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    vnet: Vnet,
    *,
    fixed: bool = False,
    refused: tuple[int, ...] = (),
) -> Operation:
    """Write the operation that makes a vnet, due at once; see ``VnetPlan``."""
    where = vnet_places.of_vnet(connection, cloud, vnet.cluster, vnet.zone)
    owner = project_networks.owner(connection, vnet.network_id)
    command = MakeVnet(vnet=vnet.vnet, zone=vnet.zone, vni=vnet.vni, project_id=owner)
    plan = VnetPlan(where, command, fixed, refused)
    resource = (ResourceType.NETWORK, vnet.network_id)
    item = start.new(cloud, InternalAction.MAKE_VNET, resource, ctxt.project_id or "", plan)
    return start.begin_later(connection, ctxt, item)


class MakeVnetFlow(OneCommand[Making, VnetMade]):
    """The flow of ``InternalAction.MAKE_VNET``: repeated until the cluster has the vnet."""

    stage = "make"
    sends = MakeVnet
    unseen = "The vnet was not seen there."
    hopeless = frozenset({Category.PROTECTED})

    def load(self, connection: Transaction, operation: Operation) -> Making:
        """Read whether the vnet is wanted."""
        return Making(operation, vnets.get(connection, operation.resource_id, _cluster(operation)))

    def unwanted(self, task: Making) -> str | None:
        """Return that the network is deleted."""
        return None if task.wanted else "The network was deleted."

    def reach(self, task: Making) -> tuple[str, Making] | None:
        """Let an agent of the zone do it."""
        return vnet_places.reach(self._cloud, task, task.operation.ordered(MakeVnet).zone)

    def lock(self, connection: Transaction, task: Making) -> bool:
        """Lock the network, and return whether it is there."""
        return project_networks.is_there(connection, task.operation.resource_id)

    def write_done(self, connection: Transaction, end: End[Making, VnetMade]) -> None:
        """Record that the vnet is active, or begin to remove it if the network is deleted."""
        network_id, cluster = end.operation.resource_id, _cluster(end.operation)
        if not vnets.set_state(connection, network_id, cluster, State.ACTIVE, State.MAKING):
            self._remove(connection, end.operation)
        elif end.row:
            project_networks.has_vnet(connection, network_id, end.outcome.mtu)
            vnets.settle(connection, network_id)

    def write_failed(self, connection: Transaction, end: End[Making, VnetMade]) -> None:
        """Set the vnet to ERROR, or begin to remove it if the network is deleted."""
        network_id, cluster = end.operation.resource_id, _cluster(end.operation)
        if not vnets.set_state(connection, network_id, cluster, State.ERROR, State.MAKING):
            self._remove(connection, end.operation)
        elif end.row:
            if end.failure.verdict == Verdict.OTHER_VNI:
                self._replace_vni(connection, end.operation)
            vnets.settle(connection, network_id)

    def _replace_vni(self, connection: Transaction, operation: Operation) -> None:
        """Give the network another VNI, unless it was asked for, or one of its vnets is made.

        All clusters use the same VNI for a network, so the last vnet that fails replaces it.
        """
        plan, refused = operation.planned(VnetPlan), operation.ordered(MakeVnet)
        mine = vnets.of_network(connection, operation.resource_id)
        if plan.fixed or any(one.state is not State.ERROR for one in mine):
            return
        ranges = parse_all(self._cloud.conf.networks.tenant_vnets)
        all_refused = (*plan.refused, refused.vni)
        clusters = [one.cluster for one in mine]
        vni = Segments(connection, (), ranges).another_vni(refused.zone, clusters, all_refused)
        if vni is not None:
            for one in vnets.make_with(connection, operation.resource_id, vni):
                begin(connection, self._cloud, operation.ctxt, one, refused=all_refused)

    def _remove(self, connection: Transaction, operation: Operation) -> None:
        vnet = vnets.get(connection, operation.resource_id, _cluster(operation))
        if vnet is not None and vnet.state is State.REMOVING:
            remove_vnet.begin(connection, self._cloud, vnet)


def _cluster(operation: Operation) -> str:
    return str(operation.plan.target.cluster)
