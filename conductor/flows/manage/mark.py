"""Writes the owner mark of a server's VM again, after somebody edited it, for an operator.

Other proofs are checked twice: the record and the journal here, the SMBIOS UUID and the VM's
maker by the agent right before it writes. Nothing else of the VM changes, and no server changes
its state; operations that waited for the mark continue at once.
"""

from __future__ import annotations

from common import clock
from common.context import RequestContext
from common.errors import Conflict
from common.log import logger
from common.messages.commands import Mark
from common.messages.reports import Category, Failure, Outcome
from common.states import InternalAction, OperationState
from conductor.cloud import Cloud, placed
from conductor.engine import begins, ends
from conductor.engine.stages import Stage, Table, Task
from conductor.flows import build_command
from conductor.plans import PLANS, FollowPlan, Place, Plan
from conductor.store import leases, servers, vmids
from conductor.store import operations as ledger
from conductor.store.operations import Operation
from conductor.store.servers import Server
from conductor.store.transactions import Transaction
from conductor.sync.drift import Saw

LOG = logger(__name__)


def begin(cloud: Cloud, ctxt: RequestContext, server_uuid: str) -> Operation:
    """See ``ConductorRpc.mark_server``."""

    def work(connection: Transaction) -> Operation:
        server = servers.alive(connection, server_uuid, None)
        if server.cluster is None or server.vmid is None or server.host is None:
            raise Conflict("The record names no VM of the server.")
        if not vmids.was_of(connection, server.cluster, server.vmid, server.uuid):
            raise Conflict(f"The journal never gave VMID {server.vmid} to the server.")
        return _insert(connection, cloud, ctxt, server, InternalAction.MARK)

    return cloud.store.run(work)


def _insert(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    server: Server,
    action: InternalAction,
) -> Operation:
    plan = PLANS.get(action, Plan)(
        Place(host=server.host, cluster=server.cluster, node=server.node, vmid=server.vmid)
    )
    return begins.begin(connection, cloud, ctxt, server, action, plan)


class Remark:
    """The flow of ``InternalAction.MARK``: tried once, without taking the server."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[Task]:
        """Return the one stage: the mark is written."""
        return Table((Stage("mark", self._mark, self._heard),), None, self._late, owns=False)

    def _late(self, task: Task) -> None:
        self._fail(task, Failure(Category.TASK_TIMEOUT, "It did not end in time."))

    def _mark(self, task: Task) -> None:
        """Have the agent of the server's host prove and write."""
        operation, where = task.operation, placed(task.operation)
        if where is None:
            return
        worker = self._cloud.take_to(operation, where.host)
        if worker is None:
            text = f"The agent of host {where.host} does not answer."
            self._fail(task, Failure(Category.NODE_UNHEALTHY, text, host=where.host))
            return
        with self._cloud.store.read() as connection:
            owner = build_command.owner(connection, task.server)
        self._cloud.compute.execute(
            operation.ctxt,
            worker,
            Mark(
                operation.id,
                operation.attempt,
                operation.server_uuid,
                where,
                operation.deadline or clock.utcnow(),
                again=True,
                **owner,
            ),
        )

    def _heard(self, task: Task, outcome: Outcome) -> None:
        """Store that the mark is there, or why it isn't."""
        if not outcome.ok:
            unknown = Failure(Category.UNKNOWN_OUTCOME, "The mark was not seen there.")
            self._fail(task, outcome.failure or unknown)
            return
        self._cloud.store.run(lambda c: self._done(c, task.operation))
        self._cloud.wake()
        LOG.info("The mark of server %s is written again.", task.server.uuid)

    def _done(self, connection: Transaction, operation: Operation) -> None:
        """Continue what waited for the mark; search for a VM that was taken for lost."""
        ledger.close(connection, operation.id, OperationState.DONE)
        server = servers.get(connection, operation.server_uuid, lock=True)
        waiting = ledger.open_of(connection, server.uuid)
        for number in waiting:
            leases.hurry(connection, number)
        last = ledger.get(connection, server.operation_id or 0)
        found = last.plan if last is not None else None
        lost = isinstance(found, FollowPlan) and found.saw == Saw.FOREIGN
        if lost and not waiting and server.deleted_at is None and server.task_state is None:
            ctxt = operation.ctxt
            search = _insert(connection, self._cloud, ctxt, server, InternalAction.FOLLOW)
            leases.postpone(connection, search.id, 0)

    def _fail(self, task: Task, failure: Failure) -> None:
        ends.failed(self._cloud, task, failure, None)
        LOG.warning("The mark was not written (%s): %s", failure.category, failure.message)
