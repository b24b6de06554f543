"""Removes what a build left on a host whose agent fell silent, however long that takes.

The build continues at another host, with another VMID and another claim. The former VMID,
and the claim, are this operation's until the agent has seen VM, disks and config drive gone.
"""

from __future__ import annotations

from common.messages.commands import Destroy
from common.messages.reports import Failure, Removed
from common.resources.states import OPEN_STATES, InternalAction
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.command_end import End
from conductor.engine.stages import Task
from conductor.plans import CreatePlan, LeftPlan
from conductor.servers.remove.reap import RemovalAt
from conductor.store.hosts import registry
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation, Server
from conductor.store.servers import vmids
from conductor.store.transactions import Transaction

#: seconds until it is looked again whether the build has passed on its claim
PASSED_ON_SECONDS = 5.0


def begin(
    connection: Transaction, cloud: Cloud, operation: Operation, server: Server, holder: str
) -> Operation:
    """Begin to remove what this attempt of a build may have made; the VMID is taken over.

    ``holder`` gets its claim. It is of the build's request, and due at once.
    """
    target = operation.plan.target
    command = Destroy(build=operation.id, build_attempt=operation.attempt)
    plan = LeftPlan(target, command, holder=holder, build=operation.id)
    action = InternalAction.REMOVE_LEFT
    begun = start.begin(connection, cloud, operation.ctxt, server, action, plan)
    vmids.hold(connection, str(target.cluster), int(target.vmid or 0), server.uuid, begun.id)
    leases.postpone(connection, begun.id, 0)
    return begun


class RemoveLeft(RemovalAt):
    """The flow of ``InternalAction.REMOVE_LEFT``."""

    late = None
    hopeless = frozenset()

    def do(self, task: Task) -> None:
        """Send the command, once the build has passed on its claim."""
        if self._is_held_by_build(task.operation):
            self._cloud.wait(task.operation, PASSED_ON_SECONDS)
        else:
            super().do(task)

    def _is_held_by_build(self, operation: Operation) -> bool:
        plan = operation.planned(LeftPlan)
        with self._cloud.store.read() as connection:
            build = ledger.get(connection, plan.build)
        if build is None or build.state not in OPEN_STATES:
            return False
        return build.planned(CreatePlan).left == plan.holder

    def unwanted(self, task: Task) -> str | None:
        """Return that an administrator has deleted the host: it is not waited for any more."""
        host = self.host(task)
        with self._cloud.store.read() as connection:
            if registry.exists(connection, host):
                return None
        return f"Compute host {host} was deleted: see micronova audit for what was left there."

    def fail(self, task: Task, failure: Failure, outcome: Removed | None = None) -> None:
        """Release the claim, then give up. Raises Unavailable to be repeated later."""
        self._cloud.placement.release(task.operation.planned(LeftPlan).holder)
        super().fail(task, failure, outcome)

    def write_failed(self, connection: Transaction, end: End[Task, Removed]) -> None:
        """Quarantine the VMID."""
        target = end.operation.plan.target
        why = end.failure.message
        vmids.quarantine(connection, str(target.cluster), int(target.vmid or 0), why)

    def on_success(self, task: Task, outcome: Removed) -> None:
        """Release the claim, then the VMID. Raises Unavailable to be repeated later."""
        self._cloud.placement.release(task.operation.planned(LeftPlan).holder)
        super().on_success(task, outcome)
