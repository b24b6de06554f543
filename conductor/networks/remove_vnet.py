"""Removes the SDN vnets of deleted networks. It is repeated until they were seen gone."""

from __future__ import annotations

from common import clock
from common.context import internal
from common.log import logger
from common.messages.commands import Placed, RemoveVnet
from common.messages.reports import Category, Failure, Outcome
from common.states import InternalAction, OperationState, ResourceType
from conductor.cloud import Cloud, backoff
from conductor.engine import begins, ends
from conductor.engine.stages import Stage, Table, Work
from conductor.networks import vnet_places
from conductor.plans import VnetPlan
from conductor.store import operations as ledger
from conductor.store import vnets
from conductor.store.operations import Operation
from conductor.store.transactions import Transaction
from conductor.store.vnets import State, Vnet

LOG = logger(__name__)


def begin(connection: Transaction, cloud: Cloud, vnet: Vnet) -> Operation:
    """Write a removal, due at once."""
    where = vnet_places.of_vnet(connection, cloud, vnet)
    item = begins.new(
        cloud,
        InternalAction.REMOVE_VNET,
        vnet.network_id,
        "",
        resource_type=ResourceType.NETWORK,
        plan=VnetPlan(where, vnet.vnet, vnet.zone, vnet.vni),
    )
    return begins.begin_later(connection, internal(), item)


def begin_all(connection: Transaction, cloud: Cloud, network_id: str) -> None:
    """Write the removals of a network that is deleted in this transaction.

    One that is still being made is removed when the operation that makes it ends.
    """
    for vnet in vnets.of_network(connection, network_id):
        made = (State.ACTIVE, State.ERROR)
        if vnets.set_state(connection, network_id, vnet.cluster, State.REMOVING, *made):
            begin(connection, cloud, vnet)
        else:
            vnets.set_state(connection, network_id, vnet.cluster, State.REMOVING, State.MAKING)


def load(_: Transaction, operation: Operation) -> Work:
    """Return the operation alone: its plan has all that is needed."""
    return Work(operation)


class RemoveVnetFlow:
    """The flow of ``InternalAction.REMOVE_VNET``: past the point of no return, so repeated."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[Work]:
        """Return the one stage: an agent removes the vnet and applies that."""
        stage = Stage("remove", self._send, self._heard, final=True)
        return Table((stage,), lost=None, owns=False, load=load)

    def _send(self, task: Work) -> None:
        operation = task.operation
        plan = operation.planned(VnetPlan)
        vnet = _vnet(operation)
        taken = vnet_places.take(self._cloud, operation, vnet)
        if taken is None:
            self._cloud.wait(operation, backoff(operation.attempt))
            return
        worker, where = taken
        command = RemoveVnet(
            operation.id,
            operation.attempt,
            operation.resource_id,
            Placed(str(where.host), vnet.cluster, str(where.node), 0),
            clock.after(self._cloud.conf.conductor.action_timeout_seconds),
            vnet=plan.vnet,
            zone=plan.zone,
        )
        self._cloud.compute.execute(operation.ctxt, worker, command)

    def _heard(self, task: Work, outcome: Outcome) -> None:
        operation = task.operation
        vnet = _vnet(operation)
        if outcome.gone:
            self._cloud.store.run(lambda c: self._gone(c, operation))
            LOG.info("Vnet %s of cluster %s is removed.", vnet.vnet, vnet.cluster)
            return
        unknown = Failure(Category.UNKNOWN_OUTCOME, "The vnet was not seen gone.")
        failure = outcome.failure or unknown
        LOG.warning("Vnet %s could not be removed: %s", vnet.vnet, failure.message)
        if failure.category is Category.PROTECTED:
            # What has the name now isn't the network's.
            self._cloud.store.run(lambda c: self._not_ours(c, operation, failure))
            return
        ends.again(self._cloud, operation, failure)

    def _gone(self, connection: Transaction, operation: Operation) -> None:
        vnet = _vnet(operation)
        vnets.delete(connection, vnet.network_id, vnet.cluster)
        ledger.close(connection, operation.id, OperationState.DONE)

    def _not_ours(self, connection: Transaction, operation: Operation, failure: Failure) -> None:
        vnet = _vnet(operation)
        vnets.delete(connection, vnet.network_id, vnet.cluster)
        ends.close_failed(connection, operation, failure)


def _vnet(operation: Operation) -> Vnet:
    plan = operation.planned(VnetPlan)
    where = str(plan.target.cluster)
    return Vnet(where, operation.resource_id, plan.vnet, plan.zone, plan.vni, State.REMOVING)
