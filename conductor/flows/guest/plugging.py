"""What attaching and detaching have in common, of interfaces and of volumes."""

from __future__ import annotations

import abc

from common import locks
from common.context import RequestContext
from common.errors import Conflict
from common.failures import Verdict, verdict_of
from common.log import logger
from common.messages.commands import Placed
from common.messages.reports import Category, Failure, Outcome
from common.states import OperationState
from conductor.cloud import Cloud, failure_of
from conductor.engine import begins, ends, unwinding
from conductor.engine.begins import HandedOver
from conductor.engine.stages import Stage, Table, Task, Undo
from conductor.flows.accept import check_state, scope
from conductor.flows.move import move_command
from conductor.plans import Place, Plan
from conductor.store import operations as ledger
from conductor.store import servers
from conductor.store.operations import Operation
from conductor.store.servers import Server
from conductor.store.transactions import Transaction

LOG = logger(__name__)

#: after these nobody knows what the host did
_UNKNOWN = frozenset({Verdict.AWAIT_HOST, Verdict.PROBE})

#: seconds until it is looked again what became of a delete
_DELETE_SECONDS = 5.0

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


def placed(server: Server) -> Placed | None:
    """Return the server's VM as commands name it; None: it has none.

    Not the plan's: it may have been evacuated since, as another VM.
    """
    return None if server.vmid is None else move_command.placed(place(server))


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


def is_unknown(failure: Failure) -> bool:
    """Return whether after this failure nobody knows if the VM names the device."""
    return failure.category is Category.NODE_UNHEALTHY or verdict_of(failure) in _UNKNOWN


class Plugging(abc.ABC):
    """The parts of such flows that don't depend on the device."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    @abc.abstractmethod
    def _send(self, task: Task, *, on: bool) -> bool:
        """Send the command; return whether there was an agent to send it."""

    def _unplug_again(self, task: Task) -> bool:
        """Have it unplugged, wherever the server is by now; return whether there is no VM."""
        server = task.server
        if server.deleted_at is not None or server.vmid is None:
            return True
        # While it is being moved nobody knows which VM will be its; a delete may be refused.
        sent = server.task_state is None and self._send(task, on=False)
        return ends.later_unless(self._cloud, task, sent)

    def _lost(self, task: Task) -> None:
        """End it if its server is gone, and wait while a delete has that, which may be refused.

        Else another conductor goes on with it.
        """
        if task.server.deleted_at is not None:
            ends.overtaken(self._cloud, task)
        elif task.going:
            self._cloud.wait(task.operation, _DELETE_SECONDS)

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


class Unplugging(Plugging):
    """The detaching ones.

    A device that the guest keeps stays the server's. Where nobody knows whether the VM still
    names it, as its node fell silent in the middle, it is unplugged again until an agent has seen
    it: the record never says what may be wrong.
    """

    _stage: str

    def table(self) -> Table[Task]:
        """Return its one stage, and what follows where its end is unknown."""
        again = Undo(f"{self._stage}_again", self._unplug_again, self._seen, self._settled)
        return Table(
            (Stage(self._stage, self._unplug, self._unplugged, undo=again),),
            lost=self._lost,
            late=lambda task: self._end_failed(task, self._too_late(task)),
            undone=self._undone,
            owns=False,
            taken=lambda task: task.going,
        )

    @abc.abstractmethod
    def _release(self, connection: Transaction, task: Task) -> None:
        """Have the server, whose row is locked, lose the device."""

    @abc.abstractmethod
    def _keep(self, connection: Transaction, task: Task, failure: Failure) -> None:
        """Have the server, whose row is locked, keep it."""

    @abc.abstractmethod
    def _has(self, connection: Transaction, task: Task) -> bool:
        """Return whether the server has it, by the record."""

    def _unplug(self, task: Task) -> None:
        if not self._send(task, on=False):
            self._failed(task, self._silent(task))

    def _unplugged(self, task: Task, outcome: Outcome) -> None:
        if not outcome.ok:
            self._failed(task, failure_of(outcome))
            return

        def work(connection: Transaction) -> None:
            if _is_open(connection, task):
                self._release(connection, task)
                ledger.close(connection, task.operation.id, OperationState.DONE)

        self._cloud.store.run(work)
        LOG.info("Operation %s, %s, is done.", task.operation.id, task.operation.action)

    def _failed(self, task: Task, failure: Failure) -> None:
        if not ends.waits(self._cloud, task.operation, failure):
            self._end_failed(task, failure)

    def _end_failed(self, task: Task, failure: Failure) -> None:
        if is_unknown(failure):
            unwinding.begin(self._cloud, self.table(), task, failure)
            return

        def work(connection: Transaction) -> None:
            if _is_open(connection, task):
                self._keep(connection, task, failure)
                ends.close_failed(connection, task.operation, failure)

        self._cloud.store.run(work)
        action = task.operation.action
        LOG.warning("%s failed (%s): %s", action, failure.category, failure.message)

    def _seen(self, task: Task, outcome: Outcome) -> bool:
        if outcome.ok or not is_unknown(failure_of(outcome)):
            return True
        ends.again(self._cloud, task.operation, outcome.failure)
        return False

    def _settled(self, connection: Transaction, task: Task, failure: Failure | None) -> Task:
        servers.get(connection, task.server.uuid, lock=True)
        if failure is None:
            self._release(connection, task)
        else:
            self._keep(connection, task, failure)
        return task

    def _undone(self, connection: Transaction, task: Task) -> None:
        kept = self._has(connection, task)
        state = OperationState.FAILED if kept else OperationState.DONE
        ledger.close(connection, task.operation.id, state, task.operation.message)


def _is_open(connection: Transaction, task: Task) -> bool:
    """Lock the server; return whether no other word of an agent has ended the operation."""
    servers.get(connection, task.server.uuid, lock=True)
    return not ends.has_ended(connection, task.operation)
