"""A release: the reverse of an adoption. The record goes, the VM stays, without the mark."""

from __future__ import annotations

import sqlalchemy as sa

from common import clock
from common.failures import Verdict, verdict_of
from common.log import logger
from common.messages.commands import Mark, Placed
from common.messages.reports import Category, Failure, Outcome
from common.states import OperationState, VmState
from conductor import leases, lifecycle
from conductor.adopt import let_go
from conductor.cloud import Cloud, backoff, failure_of, next_attempt
from conductor.store import operations as ledger
from conductor.store import servers
from conductor.store.operations import Operation
from conductor.store.servers import Server
from conductor.unwind import Unwinding

LOG = logger(__name__)


class Release:
    """The flow of the action ``release``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._unwinding = Unwinding(cloud)

    def resume(self, operation: Operation, *, fresh: bool) -> None:
        """Have the mark taken off, again if need be, until it is too late."""
        server = self._mine(operation)
        if server is None:
            return
        if operation.deadline is None or operation.deadline < clock.utcnow():
            text = "The release did not end in time."
            self._fail(operation, server, Failure(Category.TASK_TIMEOUT, text, host=server.host))
            return
        host = str(server.host)
        worker = self._unwinding.take_to(operation, host)
        if worker is None:
            text = f"The agent of host {host} does not answer."
            self._fail(operation, server, Failure(Category.NODE_UNHEALTHY, text, host=host))
            return
        where = Placed(host, server.cluster or "", server.node or "", server.vmid or 0)
        self._cloud.compute.mark(
            operation.ctxt,
            worker,
            Mark(
                operation.id,
                operation.attempt,
                server.uuid,
                where,
                operation.deadline,
                on=False,
            ),
        )

    def finished(self, operation: Operation, outcome: Outcome) -> None:
        """The agent's word on the mark."""
        server = self._mine(operation)
        if server is None:
            return
        if outcome.gone:
            self._finish(operation, server)
            return
        failure = failure_of(outcome)
        waits = verdict_of(failure) == Verdict.WAIT
        if waits and operation.attempt <= self._cloud.conf.conductor.max_waits:
            self._later(operation, failure)
        else:
            self._fail(operation, server, failure)

    def overtaken(self, operation: Operation) -> None:
        """A delete has the server now."""
        with self._cloud.store.read() as connection:
            server = servers.get(connection, operation.server_uuid)
        if server.operation_id != operation.id:
            self._close(operation)

    def _mine(self, operation: Operation) -> Server | None:
        if operation.state in {OperationState.DONE, OperationState.FAILED}:
            return None
        with self._cloud.store.read() as connection:
            server = servers.get(connection, operation.server_uuid)
        if server.operation_id != operation.id or server.deleted_at is not None:
            self._close(operation)
            return None
        return server

    def _close(self, operation: Operation) -> None:
        self._cloud.store.run(
            lambda c: ledger.close(c, operation.id, OperationState.FAILED, "Overtaken.")
        )

    def _finish(self, operation: Operation, server: Server) -> None:
        """The mark was seen gone. Raises Unavailable while placement is away: then again."""
        self._cloud.placement.release(server.uuid)

        def work(connection: sa.Connection) -> None:
            let_go(connection, server, operation.id)
            ledger.close(connection, operation.id, OperationState.DONE)

        self._cloud.store.run(work)
        LOG.info("Server is released: VM %s stays on %s.", server.vmid, server.node)

    def _later(self, operation: Operation, failure: Failure) -> None:
        def work(connection: sa.Connection) -> None:
            ledger.record_failure(connection, operation, failure)
            following = next_attempt(connection, operation)
            leases.postpone(connection, following.id, backoff(operation.attempt))

        self._cloud.store.run(work)

    def _fail(self, operation: Operation, server: Server, failure: Failure) -> None:
        """As before; what became of the mark, the fault says."""

        def work(connection: sa.Connection) -> None:
            lifecycle.move(
                connection,
                server,
                operation_id=operation.id,
                vm_state=VmState(server.vm_state),
                task_state=None,
            )
            ledger.record_failure(connection, operation, failure)
            ledger.close(connection, operation.id, OperationState.FAILED, failure.message)

        self._cloud.store.run(work)
        LOG.warning("A release failed (%s): %s", failure.category, failure.message)
