"""An adoption: an existing VM becomes a server. Nothing is restarted, only the mark is set.

What can be refused is refused before anything is written. Then: record, VMID, ports and quota in
one transaction, the claim, the mark; where one of these can't be had, the record goes again, the
mark is off, and the ledger tells why.
"""

from __future__ import annotations

import sqlalchemy as sa

from common import clock
from common.log import logger
from common.messages.commands import Mark
from common.messages.reports import Category, Failure, Outcome
from common.states import OperationState, PowerState, VmState
from conductor.cloud import backoff, failure_of, placed
from conductor.flows.finish_delete import let_go
from conductor.flows.server_flow import ServerFlow
from conductor.plans import AdoptParams
from conductor.store import operations as ledger
from conductor.store import transitions
from conductor.store.operations import Operation
from conductor.store.servers import Server
from conductor.sync import allocations

LOG = logger(__name__)


class Adopt(ServerFlow):
    """The flow of the action ``adopt``."""

    def resume(self, operation: Operation, *, fresh: bool) -> None:
        """Claim, then have the mark set; or, unwinding, see the mark gone."""
        server = self._mine(operation)
        if server is None:
            return
        failing = operation.state == OperationState.UNWINDING
        if not failing and operation.deadline is not None and operation.deadline < clock.utcnow():
            self._unwind(operation, Failure(Category.TASK_TIMEOUT, "It did not end in time."))
            return
        if not failing and not self._claimed(operation, server):
            return
        self._send(operation, server, on=not failing)

    def finished(self, operation: Operation, outcome: Outcome) -> None:
        """The agent's word on the mark."""
        server = self._mine(operation)
        if server is None:
            return
        if operation.state == OperationState.UNWINDING:
            self._taken_back(operation, server, outcome)
        elif outcome.ok:
            self._done(operation, server, outcome)
        else:
            self._unwind(operation, failure_of(outcome))

    def _claimed(self, operation: Operation, server: Server) -> bool:
        """Whether the host has room by what is promised. Raises Unavailable."""
        amounts = allocations.wanted(server)
        provider = str(operation.plan.target.uuid)
        placement = self._cloud.placement
        if placement.claim(server.uuid, provider, amounts, server.project_id, server.user_id):
            return True
        asked = ", ".join(f"{amount} {name}" for name, amount in amounts.items())
        text = f"Host {server.host} has no room for {asked} by what it has promised already."
        self._gone(operation, server, Failure(Category.NO_VALID_HOST, text, host=server.host))
        return False

    def _send(self, operation: Operation, server: Server, *, on: bool) -> None:
        where, deadline = placed(operation), operation.deadline
        worker = self._cloud.take_to(operation, str(server.host))
        if worker is None or where is None or deadline is None:
            self._cloud.wait(operation, backoff(operation.attempt))
            return
        seconds = self._cloud.conf.conductor.action_timeout_seconds
        command = Mark(
            operation.id,
            operation.attempt,
            server.uuid,
            where,
            deadline if on else clock.after(seconds),
            on=on,
            smbios_uuid=operation.asked(AdoptParams).smbios_uuid,
        )
        self._cloud.compute.mark(operation.ctxt, worker, command)

    def _done(self, operation: Operation, server: Server, outcome: Outcome) -> None:
        running = outcome.power_state == PowerState.RUNNING

        def work(connection: sa.Connection) -> None:
            transitions.move(
                connection,
                server,
                operation_id=operation.id,
                vm_state=VmState.ACTIVE if running else VmState.STOPPED,
                task_state=None,
                power_state=outcome.power_state,
                launched_at=clock.utcnow(),
            )
            ledger.close(connection, operation.id, OperationState.DONE)

        self._cloud.store.run(work)
        LOG.info("VM %s is server %s now.", server.vmid, server.uuid)

    # --- it did not come to pass

    def _unwind(self, operation: Operation, failure: Failure) -> None:
        """The mark may be set: it is seen gone before the record goes."""

        def work(connection: sa.Connection) -> None:
            ledger.save(
                connection,
                operation.id,
                state=OperationState.UNWINDING,
                message=failure.message,
            )

        self._again(operation, failure, work, seconds=0)
        self._cloud.wake()
        LOG.warning("An adoption failed (%s): %s", failure.category, failure.message)

    def _taken_back(self, operation: Operation, server: Server, outcome: Outcome) -> None:
        if outcome.gone:
            self._gone(operation, server, None)
        else:
            self._again(operation, outcome.failure)

    def _gone(self, operation: Operation, server: Server, failure: Failure | None) -> None:
        """The VM is as it was: record, VMID, ports and claim go. Raises Unavailable."""
        self._cloud.placement.release(server.uuid)

        def work(connection: sa.Connection) -> None:
            message = operation.message
            if failure is not None:
                ledger.record_failure(connection, operation, failure)
                message = failure.message
            let_go(connection, server, operation.id)
            ledger.close(connection, operation.id, OperationState.FAILED, message)

        self._cloud.store.run(work)
