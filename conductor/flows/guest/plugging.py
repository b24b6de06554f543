"""What attaching and detaching have in common, of interfaces and of volumes."""

from __future__ import annotations

from common import locks
from common.context import RequestContext
from common.errors import Conflict
from common.messages.reports import Category, Failure
from conductor.cloud import Cloud
from conductor.engine import begins, ends
from conductor.engine.begins import HandedOver
from conductor.engine.stages import Task
from conductor.flows.accept import check_state, scope
from conductor.plans import Place, Plan
from conductor.store import servers
from conductor.store.operations import Operation
from conductor.store.servers import Server
from conductor.store.transactions import Transaction

_AGENT_DOWN = "Service is unavailable at this time."


def free(connection: Transaction, ctxt: RequestContext, uuid: str, action: str) -> Server:
    """Return the server, on which the action may begin; its row is locked."""
    server = servers.alive(connection, uuid, scope(ctxt))
    require_free(ctxt, server, action)
    return server


def require_free(ctxt: RequestContext, server: Server, action: str) -> None:
    """Raise ServerLocked or ServerStateConflict if the action may not begin on a server."""
    locks.check(server.uuid, server.locked_by, is_admin=bool(ctxt.is_admin))
    check_state(server, action)


def place(server: Server) -> Place:
    """Return where the server's VM is."""
    return Place(server.host, None, server.cluster, server.node, server.vmid)


def begin(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    server: Server,
    action: str,
    stage: str,
    plan: Plan,
) -> Operation:
    """Write the operation, handed over to the agent. Raises Conflict while that is down."""
    worker = cloud.worker_of(connection, str(server.host))
    if worker is None:
        raise Conflict(_AGENT_DOWN)
    handed_over = HandedOver(worker, stage)
    return begins.begin(connection, cloud, ctxt, server, action, plan, handed_over=handed_over)


class Plugging:
    """The parts of such flows that don't depend on the device."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def _lost(self, task: Task) -> None:
        """End it if its server goes; else another conductor goes on with it."""
        if task.going:
            ends.overtaken(self._cloud, task)

    def _silent(self, task: Task) -> Failure:
        host = task.operation.plan.target.host
        text = f"The agent of host {host} does not answer."
        return Failure(Category.NODE_UNHEALTHY, text, host=host)

    def _too_late(self, task: Task) -> Failure:
        operation = task.operation
        text = f"{operation.action} did not end in time."
        if operation.message:
            text += f" It waited: {operation.message}"
        return Failure(Category.TASK_TIMEOUT, text, host=operation.plan.target.host)
