"""The stage of a build that makes its server's volumes, and waits for them without a lease."""

from __future__ import annotations

import dataclasses

from common import clock
from common.errors import MicronovaError, StaleTransition
from common.failures import Verdict
from common.log import logger
from common.messages.reports import Built, Category, Failure, Step
from conductor.cloud import Cloud
from conductor.engine.stages import Task
from conductor.engine.transition_draft import require_building
from conductor.plans import CreatePlan
from conductor.servers.create.unwind import Unwinding
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.servers import servers
from conductor.store.transactions import Transaction
from conductor.volumes import build_volumes
from conductor.volumes.build_volumes import NoPlaceError

LOG = logger(__name__)

STEP = "conductor_make_volumes"


class MakeVolumes:
    """Begins to make the volumes of a server on its host, and sees them made."""

    def __init__(self, cloud: Cloud, unwinding: Unwinding) -> None:
        self._cloud, self._unwinding = cloud, unwinding

    def are_made(self, task: Task) -> bool:
        """Return whether all are made; else the build waits, moves to another host, or has failed.

        Raises StaleTransition if another operation has the server, or another process the lease.
        """
        operation, server = task.operation, task.server
        host = str(operation.plan.target.host)
        try:
            made = self._cloud.store.run(lambda connection: self._go_on(connection, task, host))
        except NoPlaceError as error:
            made = Failure(
                Category.STORAGE_FULL, f"{error}", STEP, host, verdict=Verdict.OTHER_HOST.value
            )
        except StaleTransition:
            raise
        except MicronovaError as error:
            # Its image was deleted since.
            made = Failure(Category.IMAGE_NOT_FOUND, error.message, STEP, host)
        if isinstance(made, Failure):
            LOG.warning("A volume of server %s was not made: %s", server.uuid, made.message)
            self._unwinding.failed(operation, server, Built(False, made, gone=True))
            return False
        if not made:
            self._cloud.wake()
            LOG.info("The build of server %s waits for its volumes.", server.uuid)
        return made

    def _go_on(self, connection: Transaction, task: Task, host: str) -> bool | Failure:
        """Return whether they are made, or why they can't be; begin those that are not begun."""
        operation = task.operation
        server = servers.get(connection, task.server.uuid, lock=True)
        if server.operation_id != operation.id:
            raise StaleTransition(server_uuid=server.uuid, operation_id=operation.id)
        require_building(operation, server)
        found = build_volumes.progress(connection, server.uuid)
        if found.failure is not None:
            _record(connection, task, "Error", error=found.failure.message)
            return found.failure
        if not found.unbegun and not found.making:
            _record(connection, task, "Success")
            return True
        build_volumes.begin(connection, self._cloud, operation.ctxt, found.unbegun, host)
        self._wait(connection, task)
        return False

    def _wait(self, connection: Transaction, task: Task) -> None:
        """Release the lease until a volume is made, or the deadline passes."""
        operation, plan = task.operation, task.operation.planned(CreatePlan)
        plan = dataclasses.replace(plan, making_since=plan.making_since or clock.utcnow())
        waiting = dataclasses.replace(operation, plan=plan)
        leases.advance(connection, operation, plan, operation.stage, self._cloud.name)
        _record(connection, dataclasses.replace(task, operation=waiting))
        ledger.save(connection, operation.id, message="its volumes are being made")
        late = (operation.deadline or clock.utcnow()) - clock.utcnow()
        leases.postpone(connection, operation.id, max(0.0, late.total_seconds()))


def _record(connection: Transaction, task: Task, result: str | None = None, **detail: str) -> None:
    """Record how the step is; ``result``: how it has ended. Nothing was made: there is none."""
    since = task.operation.planned(CreatePlan).making_since
    if since is not None:
        ended = None if result is None else clock.utcnow()
        step = Step(STEP, 2, since, ended, result, detail=detail)
        ledger.upsert_events(connection, [ledger.conductor_event(task.operation, step)])
