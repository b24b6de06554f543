"""Gives clusters the SDN vnets of networks: one operation for each network and cluster.

The network can be used as soon as one cluster has it. What fails is tried again until it works or
the network is deleted: others' changes that wait in the cluster's SDN configuration are never
applied, and may wait for long.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from common import clock
from common.context import RequestContext
from common.log import logger
from common.messages.commands import MakeVnet, Placed
from common.messages.reports import Category, Failure, Outcome
from common.states import InternalAction, OperationState, ResourceType
from conductor.cloud import Cloud, backoff
from conductor.engine import begins, ends
from conductor.engine.stages import Stage, Table, Work
from conductor.networks import remove_vnet, vnet_places
from conductor.plans import VnetPlan
from conductor.store import operations as ledger
from conductor.store import project_networks, vnets
from conductor.store.operations import Operation
from conductor.store.transactions import Transaction
from conductor.store.vnets import State, Vnet

LOG = logger(__name__)


@dataclass(frozen=True)
class Making(Work):
    """An operation of this flow, and what it makes; None: the audit forgot it."""

    vnet: Vnet | None

    @property
    def wanted(self) -> bool:
        """Return whether the network is still there."""
        return self.vnet is not None and self.vnet.state is State.MAKING


def load(connection: Transaction, operation: Operation) -> Making:
    """Read whether the vnet is wanted."""
    cluster = str(operation.planned(VnetPlan).target.cluster)
    return Making(operation, vnets.get(connection, operation.resource_id, cluster))


def begin_all(
    connection: Transaction, cloud: Cloud, ctxt: RequestContext, network_ids: Iterable[str]
) -> None:
    """Write the operations of new networks, in the transaction that makes them."""
    for network_id in network_ids:
        for vnet in vnets.of_network(connection, network_id):
            begin(connection, cloud, ctxt, vnet)


def begin(connection: Transaction, cloud: Cloud, ctxt: RequestContext, vnet: Vnet) -> Operation:
    """Write the operation that makes a vnet, due at once."""
    where = vnet_places.of_vnet(connection, cloud, vnet)
    item = begins.new(
        cloud,
        InternalAction.MAKE_VNET,
        vnet.network_id,
        ctxt.project_id or "",
        resource_type=ResourceType.NETWORK,
        plan=VnetPlan(where, vnet.vnet, vnet.zone, vnet.vni),
    )
    return begins.begin_later(connection, ctxt, item)


class MakeVnetFlow:
    """The flow of ``InternalAction.MAKE_VNET``: repeated until the cluster has the vnet."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[Making]:
        """Return the one stage: an agent makes the vnet and applies it."""
        stage = Stage("make", self._send, self._heard, final=True)
        return Table((stage,), lost=None, owns=False, load=load)

    def _send(self, task: Making) -> None:
        operation = task.operation
        if not task.wanted or task.vnet is None:
            self._cloud.store.run(lambda c: self._unwanted(c, operation))
            self._cloud.wake()
            return
        vnet = task.vnet
        taken = vnet_places.take(self._cloud, operation, vnet)
        if taken is None:
            self._cloud.wait(operation, backoff(operation.attempt))
            return
        worker, where = taken
        command = MakeVnet(
            operation.id,
            operation.attempt,
            vnet.network_id,
            Placed(str(where.host), vnet.cluster, str(where.node), 0),
            clock.after(self._cloud.conf.conductor.action_timeout_seconds),
            vnet=vnet.vnet,
            zone=vnet.zone,
            vni=vnet.vni,
        )
        self._cloud.compute.execute(operation.ctxt, worker, command)

    def _heard(self, task: Making, outcome: Outcome) -> None:
        """Store that the cluster has it; or why not, and try again."""
        operation = task.operation
        if outcome.ok:
            self._cloud.store.run(lambda c: self._made(c, operation, outcome.mtu))
            self._cloud.wake()
            return
        unknown = Failure(Category.UNKNOWN_OUTCOME, "The vnet was not seen there.")
        failure = outcome.failure or unknown
        LOG.warning("Network %s: %s", operation.resource_id, failure.message)
        if failure.category is Category.PROTECTED or not task.wanted:
            self._cloud.store.run(lambda c: self._give_up(c, operation, failure))
            self._cloud.wake()
            return
        ends.again(self._cloud, operation, failure)

    def _made(self, connection: Transaction, operation: Operation, mtu: int | None) -> None:
        network_id, cluster = operation.resource_id, _cluster(operation)
        there = project_networks.is_there(connection, network_id)
        if ends.has_ended(connection, operation):
            return
        if vnets.set_state(connection, network_id, cluster, State.ACTIVE, State.MAKING):
            LOG.info("Network %s has its vnet in cluster %s.", network_id, cluster)
            if there:
                project_networks.has_vnet(connection, network_id, mtu)
                vnets.settle(connection, network_id)
        else:
            self._remove(connection, operation)
        ledger.close(connection, operation.id, OperationState.DONE)

    def _unwanted(self, connection: Transaction, operation: Operation) -> None:
        """End one whose network is deleted, and remove what an attempt may have made."""
        project_networks.is_there(connection, operation.resource_id)
        if not ends.has_ended(connection, operation):
            self._remove(connection, operation)
            message = "The network was deleted."
            ledger.close(connection, operation.id, OperationState.FAILED, message)

    def _give_up(self, connection: Transaction, operation: Operation, failure: Failure) -> None:
        network_id, cluster = operation.resource_id, _cluster(operation)
        there = project_networks.is_there(connection, network_id)
        if ends.has_ended(connection, operation):
            return
        if not vnets.set_state(connection, network_id, cluster, State.ERROR, State.MAKING):
            self._remove(connection, operation)
        elif there:
            vnets.settle(connection, network_id)
        ends.close_failed(connection, operation, failure)

    def _remove(self, connection: Transaction, operation: Operation) -> None:
        vnet = vnets.get(connection, operation.resource_id, _cluster(operation))
        if vnet is not None and vnet.state is State.REMOVING:
            remove_vnet.begin(connection, self._cloud, vnet)


def _cluster(operation: Operation) -> str:
    return str(operation.planned(VnetPlan).target.cluster)
