"""What the flows of one server's actions have in common: whose it is, once more, the end."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common import clock
from common.failures import passes
from common.log import logger
from common.messages.commands import Placed
from common.messages.reports import Category, Failure
from common.states import ACTIONS, OperationState, PowerState, VmState, found_well
from conductor.cloud import Cloud, backoff, next_attempt
from conductor.store import leases, servers, transitions
from conductor.store import operations as ledger
from conductor.store.operations import Operation
from conductor.store.servers import Server

LOG = logger(__name__)

#: how an action that failed is asked for again once its cause is gone
_AGAIN = {
    "start": "openstack server start {}",
    "stop": "openstack server stop {}",
    "reboot": "openstack server reboot --hard {}",
    "reboot-hard": "openstack server reboot --hard {}",
}


class ServerFlow:
    """A flow that has its server while the record names its operation."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def overtaken(self, operation: Operation) -> None:
        """Another operation has the server now."""
        with self._cloud.store.read() as connection:
            server = servers.get(connection, operation.server_uuid)
        if server.operation_id != operation.id:
            self._close(operation)

    def _mine(self, operation: Operation) -> Server | None:
        """The server, unless this operation is over or another one has it.

        The operation may have been read before it ended: an idle server says so.
        """
        if operation.state in {OperationState.DONE, OperationState.FAILED}:
            return None
        with self._cloud.store.read() as connection:
            server = servers.get(connection, operation.server_uuid)
        if server.operation_id != operation.id or server.deleted_at is not None:
            self._close(operation)
            return None
        if server.task_state is None and operation.state != OperationState.UNWINDING:
            return None
        return server

    def _close(self, operation: Operation) -> None:
        self._cloud.store.run(
            lambda c: ledger.close(c, operation.id, OperationState.FAILED, "Overtaken.")
        )

    def _again(
        self,
        operation: Operation,
        failure: Failure | None,
        also: Callable[[sa.Connection], None] = lambda _: None,
        seconds: float | None = None,
    ) -> None:
        """A new attempt, after these seconds or the back-off; ``also`` is written along."""
        pause = backoff(operation.attempt) if seconds is None else seconds

        def work(connection: sa.Connection) -> None:
            if failure is not None:
                ledger.record_failure(connection, operation, failure)
            following = next_attempt(connection, operation)
            also(connection)
            leases.postpone(connection, following.id, pause)

        self._cloud.store.run(work)


@dataclass(frozen=True)
class Reached:
    """Where a server's VM is, who commands it there, and until when."""

    server_uuid: str
    worker: str
    where: Placed
    deadline: datetime.datetime


class ShortFlow(ServerFlow):
    """A flow of one command to the server's agent, that leaves the VM there.

    Where it fails the server is what the table of actions says, or what was seen of its VM, else
    what it was. The fault is the operation's.
    """

    def _reach(self, operation: Operation) -> Reached | None:
        """Whom to command; None where the server isn't ours, or its agent can't be had: failed."""
        server = self._mine(operation)
        if server is None:
            return None
        host = str(server.host)
        if operation.deadline is None or operation.deadline < clock.utcnow():
            text = f"The {operation.action} did not end in time."
            if operation.message:
                text += f" It waited: {operation.message}"
            self._fail(operation, server, Failure(Category.TASK_TIMEOUT, text, host=host))
            return None
        worker = self._cloud.take_to(operation, host)
        if worker is None:
            text = f"The agent of host {host} does not answer."
            self._fail(operation, server, Failure(Category.NODE_UNHEALTHY, text, host=host))
            return None
        where = Placed(host, server.cluster or "", server.node or "", server.vmid or 0)
        return Reached(server.uuid, worker, where, operation.deadline)

    def _failed(
        self,
        operation: Operation,
        server: Server,
        failure: Failure,
        seen: int = PowerState.NOSTATE,
    ) -> None:
        """Once more later, where waiting may help; ``seen`` is how its VM was seen."""
        if passes(failure) and operation.attempt <= self._cloud.conf.conductor.max_waits:
            self._wait(operation, failure)
        else:
            self._fail(operation, server, failure, seen)

    def _wait(self, operation: Operation, failure: Failure) -> None:
        """A new attempt after the back-off, or at the deadline, which then ends it."""
        pause = backoff(operation.attempt)
        if operation.deadline is not None:
            pause = min(pause, max(0.0, (operation.deadline - clock.utcnow()).total_seconds()))

        def work(connection: sa.Connection) -> None:
            ledger.save(connection, operation.id, message=failure.message)

        self._again(operation, failure, work, seconds=pause)
        LOG.info("%s waits %.0f s: %s", operation.action, pause, failure.message)

    def _fail(
        self,
        operation: Operation,
        server: Server,
        failure: Failure,
        seen: int = PowerState.NOSTATE,
    ) -> None:
        after = ACTIONS[operation.action].failed or VmState(server.vm_state)
        values: dict[str, Any] = {}
        if seen != PowerState.NOSTATE:
            after, values = found_well(after, seen), {"power_state": seen}
        again = _AGAIN.get(operation.action)
        if again is not None and failure.remedy is None:
            failure = dataclasses.replace(failure, remedy=again.format(server.uuid))

        def work(connection: sa.Connection) -> None:
            transitions.move(
                connection,
                server,
                operation_id=operation.id,
                vm_state=after,
                task_state=None,
                **values,
            )
            ledger.record_failure(connection, operation, failure)
            ledger.close(connection, operation.id, OperationState.FAILED, failure.message)

        self._cloud.store.run(work)
        LOG.warning("%s failed (%s): %s", operation.action, failure.category, failure.message)
