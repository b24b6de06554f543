"""Stop, start and reboot."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from common import clock
from common.failures import Verdict, verdict_of
from common.log import logger
from common.messages.commands import Placed, Power, PowerAction
from common.messages.reports import Category, Failure, Outcome
from common.states import ACTIONS, OperationState, VmState
from conductor import leases, lifecycle
from conductor.cloud import Cloud, backoff, failure_of, next_attempt
from conductor.store import operations as ledger
from conductor.store import servers
from conductor.store.operations import Operation
from conductor.store.servers import Server
from conductor.unwind import Unwinding

LOG = logger(__name__)

COMMANDS: Mapping[str, PowerAction] = {
    "stop": PowerAction.STOP,
    "start": PowerAction.START,
    "reboot": PowerAction.REBOOT_SOFT,
    "reboot-hard": PowerAction.REBOOT_HARD,
}


class PowerFlow:
    """The flow of the actions that only change power."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._unwinding = Unwinding(cloud)

    def resume(self, operation: Operation, *, fresh: bool) -> None:
        """Send the command, again if need be, until it is too late."""
        server = self._mine(operation)
        if server is None:
            return
        if operation.deadline is None or operation.deadline < clock.utcnow():
            text = f"The {operation.action} did not end in time."
            self._fail(operation, server, Failure(Category.TASK_TIMEOUT, text, host=server.host))
            return
        host = str(server.host)
        worker = self._unwinding.take_to(operation, host)
        if worker is None:
            text = f"The agent of host {host} does not answer."
            self._fail(operation, server, Failure(Category.NODE_UNHEALTHY, text, host=host))
            return
        where = Placed(host, server.cluster or "", server.node or "", server.vmid or 0)
        self._cloud.compute.power(
            operation.ctxt,
            worker,
            Power(
                operation.id,
                operation.attempt,
                server.uuid,
                where,
                operation.deadline,
                COMMANDS[operation.action],
            ),
        )

    def finished(self, operation: Operation, outcome: Outcome) -> None:
        """The agent's word on it."""
        server = self._mine(operation)
        if server is None:
            return
        if outcome.ok:
            self._done(operation, server, outcome)
            return
        failure = failure_of(outcome)
        waits = verdict_of(failure) == Verdict.WAIT
        if waits and operation.attempt <= self._cloud.conf.conductor.max_waits:
            self._later(operation, failure)
        else:
            self._fail(operation, server, failure)

    def overtaken(self, operation: Operation) -> None:
        """A delete, or a harder reboot, has the server now."""
        with self._cloud.store.read() as connection:
            server = servers.get(connection, operation.server_uuid)
        if server.operation_id != operation.id:
            self._close(operation)

    def _close(self, operation: Operation) -> None:
        self._cloud.store.run(
            lambda c: ledger.close(c, operation.id, OperationState.FAILED, "Overtaken.")
        )

    def _mine(self, operation: Operation) -> Server | None:
        if operation.state in {OperationState.DONE, OperationState.FAILED}:
            return None
        with self._cloud.store.read() as connection:
            server = servers.get(connection, operation.server_uuid)
        if server.operation_id != operation.id:
            self._close(operation)
            return None
        return server

    def _done(self, operation: Operation, server: Server, outcome: Outcome) -> None:
        def work(connection: sa.Connection) -> None:
            lifecycle.move(
                connection,
                server,
                operation_id=operation.id,
                vm_state=ACTIONS[operation.action].done,
                task_state=None,
                power_state=outcome.power_state,
            )
            ledger.close(connection, operation.id, OperationState.DONE)

        self._cloud.store.run(work)
        LOG.info("Operation %d, %s, is done.", operation.id, operation.action)

    def _later(self, operation: Operation, failure: Failure) -> None:
        def work(connection: sa.Connection) -> None:
            ledger.record_failure(connection, operation, failure)
            following = next_attempt(connection, operation)
            leases.postpone(connection, following.id, backoff(operation.attempt))

        self._cloud.store.run(work)

    def _fail(self, operation: Operation, server: Server, failure: Failure) -> None:
        after = ACTIONS[operation.action].failed or VmState(server.vm_state)

        def work(connection: sa.Connection) -> None:
            lifecycle.move(
                connection,
                server,
                operation_id=operation.id,
                vm_state=after,
                task_state=None,
            )
            ledger.record_failure(connection, operation, failure)
            ledger.close(connection, operation.id, OperationState.FAILED, failure.message)

        self._cloud.store.run(work)
        LOG.warning("%s failed (%s): %s", operation.action, failure.category, failure.message)
