"""Delete: destroy the VM, see it gone, then release everything.

It may begin in any state and takes the server over from any operation. A delete that can't be
finished in time is shown as ERROR with its fault, and continues in the background.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

from common import clock
from common.errors import Unavailable
from common.failures import Verdict, verdict_of
from common.log import logger
from common.messages.commands import Destroy, Placed
from common.messages.reports import Category, Failure, Removed
from common.resources.states import OperationState, TaskState, VmState
from conductor.cloud import Cloud, backoff, failure_of, silence
from conductor.engine import batch_close, close, unwinding
from conductor.engine.batch_close import Ended, Ending
from conductor.engine.stages import Stage, Table, Task, answer
from conductor.plans import DeletePlan
from conductor.servers.remove.finish_delete import delete_record_only, deleted_columns
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.networks import networks
from conductor.store.servers import server_groups, vmids
from conductor.store.transactions import Transaction
from conductor.volumes import release

LOG = logger(__name__)

#: the flow's one stage
STAGE = "destroy"

#: of a server that no VM was ever asked for
NO_VM = Removed(True, gone=True)


class Delete:
    """The flow of the action ``delete``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[Task]:
        """Return the one stage, past the point of no return: tried until the VM is seen gone."""
        stage = Stage(
            STAGE,
            self._destroy,
            answer(Destroy, self._on_outcome),
            shown=TaskState.DELETING,
            final=True,
        )
        return Table((stage,), on_superseded=functools.partial(close.overtaken, self._cloud))

    def ending(self) -> Ending[Removed]:
        """Return how deletes end whose VMs were seen gone."""
        return Ending(Destroy, _is_gone, self._write_deleted, self._release)

    def _destroy(self, task: Task) -> None:
        """Send the command, or finish at once if no agent ever got a VM to build."""
        operation, server = task.operation, task.server
        self._cloud.guard.require(operation)
        if server.host is None or server.vmid is None:
            self._finish(task, NO_VM)
            return
        # It may have the lease since the delete was accepted.
        worker = leases.worker_with(operation.lease_owner) if task.fresh else None
        worker = worker or self._cloud.take_to(operation, server.host)
        if worker is None:
            self._failed(task, Failure(Category.NODE_UNHEALTHY, silence(server.host)))
            return
        timeout = self._cloud.conf.conductor.action_timeout_seconds
        where = Placed(server.host, server.cluster or "", server.node or "", server.vmid)
        self._cloud.compute.execute(
            operation.ctxt,
            worker,
            Destroy(*operation.about(where, clock.after(timeout))),
        )

    def _on_outcome(self, task: Task, outcome: Removed) -> None:
        """Finish, as the agent has seen it gone, or try again."""
        if outcome.gone:
            self._finish(task, outcome)
            return
        failure = failure_of(outcome)
        if failure.refused:
            # There is no VM of the server: its VMID has another's.
            self._finish(task, outcome)
        elif verdict_of(failure) == Verdict.FATAL:
            self._refused(task, failure)
        else:
            self._failed(task, failure)

    def _release(self, deleted: Sequence[Ended[Removed]]) -> None:
        consumers = [(one.task.server.uuid, *_holders(one.task)) for one in deleted]
        self._cloud.placement.release_all(list(itertools.chain.from_iterable(consumers)))

    def _finish(self, task: Task, outcome: Removed) -> None:
        ended = [Ended(task, outcome)]
        try:
            self._release(ended)
        except Unavailable as error:
            if not task.late:
                raise
            text = f"The VM is gone; its allocation is not: {error.message}"
            self._failed(task, Failure(Category.UNKNOWN_OUTCOME, text))
            return

        if outcome.gone:
            self._cloud.store.run(lambda connection: self._write_deleted(connection, ended))
            LOG.info("Server %s deleted; its VM is confirmed absent.", task.server.uuid)
            return
        self._cloud.store.run(lambda connection: self._write_replaced(connection, task, outcome))
        LOG.warning("Server %s deleted; its VMID has another VM.", task.server.uuid)

    def _write_deleted(self, connection: Transaction, deleted: Sequence[Ended[Removed]]) -> None:
        """Give back what each had, and delete the records."""
        now = clock.utcnow()
        gone_servers = [one.task.server for one in deleted]
        # In one order, so that two conductors don't wait for each other.
        for one in sorted(deleted, key=lambda one: one.task.server.server_group_uuid or ""):
            server_groups.give_back(connection, one.task.server, *_holders(one.task))
        vmids.free_all(
            connection,
            [
                (server.cluster, server.vmid)
                for server in gone_servers
                if server.cluster is not None and server.vmid is not None
            ],
        )
        networks.delete_ports(connection, *(server.uuid for server in gone_servers))
        batch_close.done(
            connection,
            [batch_close.move(one, VmState.DELETED, **deleted_columns(now)) for one in deleted],
        )
        # After the servers, in the order in which all lock them.
        if release.free_of_deleted(connection, self._cloud, [one.uuid for one in gone_servers]):
            self._cloud.wake()

    def _write_replaced(self, connection: Transaction, task: Task, outcome: Removed) -> None:
        """Delete the record, and leave the VM: it is another's by its marks."""
        operation = task.operation
        ledger.record_failure(connection, operation, failure_of(outcome))
        delete_record_only(connection, task.server, operation.id, *_holders(task))
        ledger.close(connection, operation.id, OperationState.DONE)

    def _refused(self, task: Task, failure: Failure) -> None:
        """End a delete that no retry would help: the server gets its state back."""
        was = VmState(task.server.vm_state)
        # The build that it took over from is over.
        close.failed(self._cloud, task, failure, VmState.ERROR if was == VmState.BUILDING else was)
        category, why = failure.category, failure.message
        LOG.warning("The delete of server %s is refused (%s): %s", task.server.uuid, category, why)

    def _failed(self, task: Task, failure: Failure) -> None:
        """Try again later; after the time limit, show ERROR."""
        operation, server = task.operation, task.server

        if task.late and server.task_state == TaskState.DELETING:
            self._cloud.store.run(lambda c: self._show_error(c, task, failure))
        else:
            close.again(self._cloud, operation, failure)
        category, why = failure.category, failure.message
        LOG.warning("The delete of server %s is tried again (%s): %s", server.uuid, category, why)

    def _show_error(self, connection: Transaction, task: Task, failure: Failure) -> None:
        """Show ERROR; the delete continues, past its point of no return."""
        close.settle(connection, task, VmState.ERROR)
        pause = backoff(task.operation.attempt)
        owner = self._cloud.name
        unwinding.write(connection, self.table(), task, failure, owner=owner, seconds=pause)


def _is_gone(ended: Ended[Removed]) -> bool:
    task = ended.task
    return ended.outcome.gone and (task.unwinding or task.shown == TaskState.DELETING)


def _holders(task: Task) -> tuple[str, ...]:
    """Return the migrations that may hold something beside the server."""
    plan = task.operation.plan
    return plan.holders if isinstance(plan, DeletePlan) else ()
