"""Removes a cached template.

An agent removes it, if it is provably this cloud's and no clone depends on it; the VMID is free
once it was seen gone. What could not be removed is tried again.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from common.context import internal
from common.messages.commands import RetireTemplate
from common.messages.reports import Failure, Removed
from common.resources.states import InternalAction, ResourceType
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.command_end import End
from conductor.engine.removal import Removal
from conductor.engine.stages import Work
from conductor.plans import CommandPlan, Place
from conductor.store.images import templates
from conductor.store.images.templates import RETIRING, Known
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation
from conductor.store.servers import vm_states
from conductor.store.transactions import Transaction


@dataclass(frozen=True)
class Removing(Work):
    """A removal in progress, and the template by the record."""

    template: Known | None
    """None: there is no record, as for a template that the audit found."""


def begin(connection: Transaction, cloud: Cloud, where: Place, image_id: str) -> Operation | None:
    """Write a removal, due at once; None if one is in progress already."""
    resource_id = f"{where.cluster}/{where.vmid}"
    if ledger.open_of(connection, resource_id, ResourceType.TEMPLATE):
        return None
    plan = CommandPlan(where, RetireTemplate(image_id=image_id))
    resource = (ResourceType.TEMPLATE, resource_id)
    item = start.new(cloud, InternalAction.REMOVE_TEMPLATE, resource, "", plan)
    return start.begin_later(connection, internal(), item)


class RemoveTemplate(Removal[Removing]):
    """The flow of ``InternalAction.REMOVE_TEMPLATE``."""

    stage = "remove"
    sends = RetireTemplate
    unseen = "The template was not seen gone."
    quick = False
    wakes = False

    def load(self, connection: Transaction, operation: Operation) -> Removing:
        """Read the template."""
        target = operation.plan.target
        known = templates.get(connection, str(target.cluster), int(target.vmid or 0))
        return Removing(operation, known)

    def reach(self, task: Removing) -> tuple[str, Removing] | None:
        """Have it removed by the agent of its node, or of any node in the cluster that is up."""
        return self._cloud.store.run(lambda c: self._hand_over(c, task))

    def _hand_over(self, connection: Transaction, task: Removing) -> tuple[str, Removing] | None:
        operation = task.operation
        plan = operation.plan
        agent = agent_of(connection, self._cloud, str(plan.target.cluster), plan.target.node)
        if agent is None:
            return None
        host, worker = agent
        plan = dataclasses.replace(plan, target=dataclasses.replace(plan.target, host=host))
        leases.advance(connection, operation, plan, operation.stage, self._cloud.name)
        leases.hand_over(connection, operation, worker, self._cloud.lease_seconds)
        if task.template is not None:
            templates.mark(connection, task.template, RETIRING)
        operation = dataclasses.replace(operation, plan=plan)
        return worker, dataclasses.replace(task, operation=operation)

    def is_hopeless(self, task: Removing, failure: Failure) -> bool:
        """Return whether the audit found it, which will ask again."""
        return task.template is None

    def write_retry(self, connection: Transaction, task: Removing, failure: Failure) -> None:
        """Write why, which the list of VMIDs shows until the next try."""
        target = task.operation.plan.target
        why = templates.why(failure, str(target.host))
        templates.failed(connection, str(target.cluster), int(target.vmid or 0), why)

    def write_done(self, connection: Transaction, end: End[Removing, Removed]) -> None:
        """Free the template's VMID."""
        target = end.operation.plan.target
        templates.delete_absent(connection, str(target.cluster), int(target.vmid or 0))


def agent_of(
    connection: Transaction, cloud: Cloud, cluster: str, node: str | None
) -> tuple[str, str] | None:
    """Return host and worker of a node's agent, or else of any in its cluster that is up."""
    for host, _ in vm_states.nearest(connection, cluster, node):
        worker = cloud.worker_of(connection, host)
        if worker is not None:
            return host, worker
    return None
