"""Writes the owner mark of a server's VM again, after somebody edited it, for an operator.

Other proofs are checked twice: the record and the journal here, the SMBIOS UUID and the VM's
maker by the agent right before it writes. Nothing else of the VM changes, and no server changes
its state; operations that waited for the mark continue at once.
"""

from __future__ import annotations

from common.context import RequestContext
from common.errors import Conflict
from common.messages.commands import Mark
from common.messages.reports import Category, Marked
from common.resources.states import InternalAction
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.command_end import End
from conductor.engine.stages import Task
from conductor.plans import PLANS, FollowPlan, Place, Plan
from conductor.servers import build_command
from conductor.servers.server_command import OfServer
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation, Server
from conductor.store.servers import servers, vmids
from conductor.store.transactions import Transaction
from conductor.sync.drift import Saw


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
    return start.begin(connection, cloud, ctxt, server, action, plan)


class Remark(OfServer[Marked]):
    """The flow of ``InternalAction.MARK``: tried once, without taking the server."""

    stage = "mark"
    unseen = "The mark was not seen there."
    late = "It did not end in time."
    hopeless = frozenset(Category)

    def command(self, task: Task) -> Mark:
        """Return what proves and writes."""
        with self._cloud.store.read() as connection:
            owner = build_command.owner(connection, task.server)
        return Mark(*self.about(task), again=True, **owner)

    def write_done(self, connection: Transaction, end: End[Task, Marked]) -> None:
        """Continue what waited for the mark; search for a VM that was taken for lost."""
        operation = end.operation
        server = servers.get(connection, operation.server_uuid, lock=True)
        waiting = ledger.open_of(connection, server.uuid)
        for number in waiting:
            leases.make_due(connection, number)
        last = ledger.get(connection, server.operation_id or 0)
        found = last.plan if last is not None else None
        lost = isinstance(found, FollowPlan) and found.saw == Saw.FOREIGN
        if lost and not waiting and server.deleted_at is None and server.task_state is None:
            ctxt = operation.ctxt
            search = _insert(connection, self._cloud, ctxt, server, InternalAction.FOLLOW)
            leases.postpone(connection, search.id, 0)
