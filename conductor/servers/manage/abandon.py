"""Abandon: delete the record of a server whose VM isn't ours, or whose cluster is gone for good.

The VM is not touched. The ledger still has the history; the VMID is quarantined.
"""

from __future__ import annotations

from typing import Any

from common import clock
from common.context import RequestContext
from common.errors import Conflict, Invalid, Unavailable
from common.log import logger
from common.messages.commands import Destroy, Placed
from common.messages.facts import Inspection
from common.messages.questions import Agent, Inspect
from common.messages.reports import Category, Failure, Removed, Step
from common.resources.states import InternalAction, OperationState
from conductor.cloud import Cloud, placed
from conductor.engine import start
from conductor.engine.stages import Stage, Table, Task, answer
from conductor.plans import Place, Plan
from conductor.servers.remove.finish_delete import delete_record
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation, Server
from conductor.store.servers import server_groups, servers, vmids
from conductor.store.servers import vm_states as store
from conductor.store.transactions import Transaction

LOG = logger(__name__)


class Abandoning:
    """Checks the ownership fence, and deletes the record."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def begin(
        self, ctxt: RequestContext, server_uuid: str, reason: str | None, *, force: bool
    ) -> Operation:
        """See ``ConductorRpc.abandon``."""
        if force and not reason:
            raise Invalid("force requires a reason, which is recorded in the server's history.")
        with self._cloud.store.read() as connection:
            server = servers.alive(connection, server_uuid, None, lock=False)
        found = self._inspect(ctxt, server)
        verdict = judged(server, found, force=force)
        return self._cloud.store.run(
            lambda c: self._write(c, ctxt, server, found, f"{verdict} {reason or ''}".strip())
        )

    def _inspect(self, ctxt: RequestContext, server: Server) -> Inspection | None:
        """Return a close look at the VM now; None if the record has no VM."""
        if server.cluster is None or server.vmid is None:
            return None
        with self._cloud.store.read() as connection:
            down = self._cloud.down(connection)
            worker = store.worker_in(connection, server.cluster, server.node, down)
        text = f"No agent of cluster {server.cluster} answers."
        try:
            if worker is not None:
                return self._cloud.compute.ask(
                    ctxt,
                    Agent(worker, server.cluster),
                    Inspect(server.vmid, server.node, server.uuid),
                )
        except Unavailable as error:
            text = error.message
        return Inspection(server.vmid, failure=Failure(Category.NODE_UNHEALTHY, text))

    def _write(
        self,
        connection: Transaction,
        ctxt: RequestContext,
        known: Server,
        found: Inspection | None,
        verdict: str,
    ) -> Operation:
        server_groups.give_back(connection, known)
        server = servers.alive(connection, known.uuid, None)
        if (server.cluster, server.vmid) != (known.cluster, known.vmid):
            raise Conflict("The server's VM changed since it was inspected: try again.")
        pending = ledger.open_of(connection, server.uuid)
        action, plan = InternalAction.FORGET, _drive(server, found)
        operation = start.begin(connection, self._cloud, ctxt, server, action, plan)
        for number in pending:
            ledger.close(connection, number, OperationState.FAILED, f"Forgotten: {verdict}")
        self._give_up(connection, server, operation, found, verdict)
        return operation

    @staticmethod
    def _give_up(
        connection: Transaction,
        server: Server,
        operation: Operation,
        found: Inspection | None,
        verdict: str,
    ) -> None:
        if server.cluster is not None and server.vmid is not None:
            reason = f"Server {server.uuid} was forgotten: {verdict}"
            vmids.quarantine(connection, server.cluster, server.vmid, reason)
        delete_record(connection, server, operation.id, takes_over=True, held=False)
        step = Step(
            "conductor_forget_server",
            0,
            operation.started_at,
            clock.utcnow(),
            "Success",
            detail=_evidence(server, found, verdict),
        )
        ledger.upsert_events(connection, [ledger.conductor_event(operation, step)])


class Abandon:
    """The flow of ``InternalAction.FORGET``: the record is deleted; claim and drive follow."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[Task]:
        """Return the stages: the record is deleted already, so there is no return."""
        return Table(
            (
                Stage("release_allocation", self._release, final=True),
                Stage(
                    "remove_drive",
                    self._remove_drive,
                    answer(Destroy, self._on_outcome),
                    final=True,
                ),
            ),
            on_superseded=None,
            owns=False,
        )

    def _release(self, task: Task) -> Task:
        """Release the allocation. Raises Unavailable to be repeated later."""
        self._cloud.placement.release(task.server.uuid)
        return task

    def _remove_drive(self, task: Task) -> None:
        operation, where = task.operation, placed(task.operation)
        if where is None or task.late or not self._journalled(operation.server_uuid, where):
            self._close(operation, None)
            return
        deadline = operation.deadline or clock.utcnow()
        self._cloud.destroy(operation, where, deadline, drive_only=True)

    def _on_outcome(self, task: Task, outcome: Removed) -> None:
        """End the operation: the config drive is gone, or the audit reports it."""
        self._close(task.operation, outcome.failure)

    def _journalled(self, server_uuid: str, where: Placed) -> bool:
        """Return whether the VMID was ever this server's, half of the proof for its drive."""
        with self._cloud.store.read() as connection:
            return vmids.was_of(connection, where.cluster, where.vmid, server_uuid)

    def _close(self, operation: Operation, failure: Failure | None) -> None:
        def work(connection: Transaction) -> None:
            if failure is not None:
                ledger.record_failure(connection, operation, failure)
            ledger.close(connection, operation.id, OperationState.DONE)

        self._cloud.store.run(work)
        LOG.warning("Server %s was abandoned.", operation.server_uuid)


def _drive(server: Server, found: Inspection | None) -> Plan:
    """Return where to look for its config drive; nowhere if nobody can look there."""
    if found is None or found.failure is not None or server.vmid is None or not server.host:
        return Plan()
    node = found.node or server.node
    return Plan(Place(server.host, None, server.cluster, node, server.vmid))


def judged(server: Server, found: Inspection | None, *, force: bool) -> str:
    """Return the fence's result in a sentence. Raises Conflict if the record must stay. Pure."""
    if found is None:
        return "The record names no VM."
    what = f"VM {found.vmid} of cluster {server.cluster}"
    if found.failure is not None:
        if force:
            return f"{what} can't be looked at ({found.failure.message}); forced."
        raise Conflict(
            f"{what} can't be looked at now: {found.failure.message} Only where its cluster is "
            "gone for good, force it, with a reason."
        )
    if found.ours:
        raise Conflict(
            f"{what} is this server's by all its marks: delete the server, or release it."
        )
    if not found.exists:
        return f"{what} is not there."
    return f"{what} is not this server's: it was not touched."


def _evidence(server: Server, found: Inspection | None, verdict: str) -> dict[str, Any]:
    detail: dict[str, Any] = {
        "verdict": verdict,
        "host": server.host,
        "cluster": server.cluster,
        "vmid": server.vmid,
        "vm_state": server.vm_state,
        "task_state": server.task_state,
    }
    if found is not None and found.exists:
        detail |= {"found_on": found.node, "found_name": found.name, "marked_by": found.marked_by}
    return detail
