"""Removes a cached template.

An agent removes it, if it is provably this cloud's and no clone depends on it; the VMID is free
once it was seen gone. What could not be removed is tried again.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from common import clock
from common.context import internal
from common.log import logger
from common.messages.commands import Placed, RetireTemplate
from common.messages.reports import Category, Failure, Outcome
from common.states import InternalAction, OperationState, ResourceType
from conductor.cloud import Cloud, backoff
from conductor.engine import begins, ends
from conductor.engine.stages import Stage, Table, Work
from conductor.plans import Place, RemoveTemplatePlan
from conductor.store import leases, templates, vm_states
from conductor.store import operations as ledger
from conductor.store.operations import Operation
from conductor.store.templates import RETIRING, Known
from conductor.store.transactions import Transaction

LOG = logger(__name__)

#: seconds between two tries
AGAIN_SECONDS = 600.0


@dataclass(frozen=True)
class Removal(Work):
    """A removal in progress, and the template by the record."""

    template: Known | None
    """None: the record has none, as for one that the audit found."""


def load(connection: Transaction, operation: Operation) -> Removal:
    """Read the template that an operation is about."""
    target = operation.plan.target
    known = templates.get(connection, str(target.cluster), int(target.vmid or 0))
    return Removal(operation, known)


def begin(connection: Transaction, cloud: Cloud, where: Place, image_id: str) -> Operation | None:
    """Write a removal, due at once; None if one is in progress already."""
    resource_id = f"{where.cluster}/{where.vmid}"
    if ledger.open_of(connection, resource_id, ResourceType.TEMPLATE):
        return None
    item = begins.new(
        cloud,
        InternalAction.REMOVE_TEMPLATE,
        resource_id,
        "",
        resource_type=ResourceType.TEMPLATE,
        plan=RemoveTemplatePlan(where, image_id),
    )
    return begins.begin_later(connection, internal(), item)


class RemoveTemplate:
    """The flow of ``InternalAction.REMOVE_TEMPLATE``: past the point of no return, so repeated."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[Removal]:
        """Return the one stage: an agent removes the template."""
        stage = Stage("remove", self._send, self._heard, final=True)
        return Table((stage,), lost=None, owns=False, load=load)

    def _send(self, task: Removal) -> None:
        """Have it removed by the agent of its node, or of any node in the cluster that is up."""
        operation = task.operation
        found = self._cloud.store.run(lambda c: self._hand_over(c, task))
        if found is None:
            self._cloud.wait(operation, backoff(operation.attempt))
            return
        plan, worker = found
        target = plan.target
        where = Placed(
            str(target.host), str(target.cluster), str(target.node), int(target.vmid or 0)
        )
        LOG.info("Template %d of cluster %s is being removed.", where.vmid, where.cluster)
        command = RetireTemplate(
            operation.id,
            operation.attempt,
            operation.resource_id,
            where,
            clock.after(self._cloud.conf.conductor.action_timeout_seconds),
            image_id=plan.image_id,
        )
        self._cloud.compute.execute(operation.ctxt, worker, command)

    def _hand_over(
        self, connection: Transaction, task: Removal
    ) -> tuple[RemoveTemplatePlan, str] | None:
        operation = task.operation
        plan = operation.planned(RemoveTemplatePlan)
        agent = agent_of(connection, self._cloud, str(plan.target.cluster), plan.target.node)
        if agent is None:
            return None
        host, worker = agent
        plan = dataclasses.replace(plan, target=dataclasses.replace(plan.target, host=host))
        leases.advance(connection, operation, plan, operation.stage, self._cloud.name)
        leases.hand_over(connection, operation, worker, self._cloud.lease_seconds)
        if task.template is not None:
            templates.mark(connection, task.template, RETIRING)
        return plan, worker

    def _heard(self, task: Removal, outcome: Outcome) -> None:
        """Store that it is gone; or why not, which the list of VMIDs shows until the next try."""
        if outcome.gone:
            self._cloud.store.run(lambda c: self._gone(c, task.operation))
            LOG.info("Template %s is removed.", task.operation.resource_id)
            return
        unknown = Failure(Category.UNKNOWN_OUTCOME, "The template was not seen gone.")
        failure = outcome.failure or unknown
        LOG.warning(
            "Template %s could not be removed: %s", task.operation.resource_id, failure.message
        )
        if task.template is None:
            # The audit, which found it, will ask again.
            self._cloud.store.run(lambda c: ends.close_failed(c, task.operation, failure))
            return
        ends.again(
            self._cloud,
            task.operation,
            failure,
            lambda c: self._say(c, task.operation, failure),
            AGAIN_SECONDS,
        )

    @staticmethod
    def _gone(connection: Transaction, operation: Operation) -> None:
        target = operation.plan.target
        templates.gone(connection, str(target.cluster), int(target.vmid or 0))
        ledger.close(connection, operation.id, OperationState.DONE)

    def _say(self, connection: Transaction, operation: Operation, failure: Failure) -> None:
        target, seconds = operation.plan.target, self._cloud.conf.conductor.action_timeout_seconds
        why = templates.why(failure, str(target.host))
        templates.failed(connection, str(target.cluster), int(target.vmid or 0), why)
        ledger.save(connection, operation.id, deadline=clock.after(AGAIN_SECONDS + seconds))


def agent_of(
    connection: Transaction, cloud: Cloud, cluster: str, node: str | None
) -> tuple[str, str] | None:
    """Return host and worker of a node's agent, or else of any in its cluster that is up."""
    for host, _ in vm_states.nearest(connection, cluster, node):
        worker = cloud.worker_of(connection, host)
        if worker is not None:
            return host, worker
    return None
