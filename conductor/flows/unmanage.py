"""A release: the reverse of an adoption. The record goes, the VM stays, without the mark."""

from __future__ import annotations

import sqlalchemy as sa

from common.log import logger
from common.messages.commands import Mark
from common.messages.reports import Outcome
from common.states import OperationState
from conductor.cloud import failure_of
from conductor.flows.finish_delete import let_go
from conductor.flows.server_flow import ShortFlow
from conductor.store import operations as ledger
from conductor.store.operations import Operation
from conductor.store.servers import Server

LOG = logger(__name__)


class Release(ShortFlow):
    """The flow of the action ``release``. What became of the mark, a fault says."""

    def resume(self, operation: Operation, *, fresh: bool) -> None:
        """Have the mark taken off, again if need be, until it is too late."""
        reached = self._reach(operation)
        if reached is None:
            return
        self._cloud.compute.mark(
            operation.ctxt,
            reached.worker,
            Mark(
                operation.id,
                operation.attempt,
                reached.server_uuid,
                reached.where,
                reached.deadline,
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
        else:
            self._failed(operation, server, failure_of(outcome))

    def _finish(self, operation: Operation, server: Server) -> None:
        """The mark was seen gone. Raises Unavailable while placement is away: then again."""
        self._cloud.placement.release(server.uuid)

        def work(connection: sa.Connection) -> None:
            let_go(connection, server, operation.id)
            ledger.close(connection, operation.id, OperationState.DONE)

        self._cloud.store.run(work)
        LOG.info("Server is released: VM %s stays on %s.", server.vmid, server.node)
