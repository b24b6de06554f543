"""Evacuation: the HA manager recovers the VM of a lost node on another one, and is waited for.

Nothing is fenced, started or moved from here. The manager chooses the node; the record follows to
where the VM was seen, by its marks, and the claim before it. A server that asks to wait for room
(``micronova:wait``) is waited for so long while the manager finds no node.
"""

from __future__ import annotations

import dataclasses
import datetime

from common import clock
from common.errors import GenerationConflict, Unavailable
from common.log import logger
from common.messages.facts import HaService, HostFacts
from common.messages.reports import Category, Failure, Step
from common.resources.migrations import MigrationStatus
from common.resources.states import OperationState, PowerState, TaskState, VmState, found_well
from conductor.cloud import Cloud
from conductor.engine import close
from conductor.engine.stages import Stage, Table, Task
from conductor.plans import EvacuationPlan, Place
from conductor.servers.waiting.waits import asked_seconds, waited
from conductor.store.hosts import registry
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.servers import migrations
from conductor.store.transactions import Transaction
from conductor.sync import allocations, whereabouts

LOG = logger(__name__)

STEP = "conductor_await_recovery"
#: the manager's state of a guest that it has fenced, and for which it finds no node
_NO_NODE = "recovery"
_SHOWN = TaskState.REBUILDING


class EvacuationFlow:
    """The flow of the action ``evacuate``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[Task]:
        """Return its stages; nothing is made, so nothing is undone."""
        return Table(
            (
                Stage("recover", self._recover, shown=_SHOWN),
                Stage("settle", self._settle, shown=_SHOWN, final=True),
            ),
            on_superseded=self._on_superseded,
            on_deadline=self._on_deadline,
        )

    # --- the stages

    def _recover(self, task: Task) -> Task | None:
        """Look what the manager does; wait, or commit where it has brought the VM."""
        service = whereabouts.ha_service(self._cloud, task.operation.ctxt, task.server)
        if service is None:
            self._failed(task, "It is no longer an HA resource.")
        elif service.node != _plan(task).source.node:
            return self._arrived(task, service)
        elif not service.is_recovered:
            self._failed(task, f"The HA manager reports it in state {_state(service)}.")
        elif service.online:
            text = f"Its node {service.node} is back, and the HA manager left it there."
            self._failed(task, text, VmState(task.server.vm_state))
        elif service.state == _NO_NODE and _is_over(_plan(task)):
            self._on_deadline(task)
        else:
            self._wait(task, service)
        return None

    def _arrived(self, task: Task, service: HaService) -> Task | None:
        """Go on once it is seen on the other node as the manager is to have it."""
        facts = whereabouts.host_of(self._cloud, str(task.server.cluster), service.node)
        if facts is None:
            self._failed(task, f"Its VM is on node {service.node}, which no agent has reported.")
            return None
        found = whereabouts.inspect(self._cloud, task.operation.ctxt, task.server, service.node)
        seen = found.failure is None and found.exists and found.node == service.node
        if seen and not found.ours:
            self._failed(
                task, f"The VM on {service.node} is not the server's. It was not touched."
            )
        elif seen and (service.wanted != "started" or found.power_state == PowerState.RUNNING):
            return self._go_on(task, facts, service, found.power_state)
        elif not service.is_recovered:
            where = f"on {service.node}, in state {_state(service)}"
            self._failed(task, f"The HA manager reports it {where}, and did not start it.")
        else:
            self._wait(task, service)
        return None

    def _go_on(self, task: Task, facts: HostFacts, service: HaService, power_state: int) -> Task:
        there = Place(facts.host, facts.uuid, facts.cluster, facts.node, task.server.vmid)
        plan = dataclasses.replace(_plan(task), target=there, power_state=power_state)

        def work(connection: Transaction) -> Task:
            self._note(connection, task, service, "Success")
            leases.advance(connection, task.operation, plan, "settle", self._cloud.name)
            migrations.set_status(
                connection,
                plan.migration_id,
                MigrationStatus.POST_MIGRATING,
                task.operation,
                dest_host=facts.host,
                dest_node=facts.node,
                dest_address=facts.host_ip or None,
            )
            operation = dataclasses.replace(task.operation, plan=plan, stage="settle")
            return dataclasses.replace(task, operation=operation)

        return self._cloud.store.run(work)

    def _wait(self, task: Task, service: HaService) -> None:
        """Have any conductor look again; what the manager does is written down when it changes."""
        operation, before = task.operation, _plan(task)
        plan = dataclasses.replace(before, seen=f"{service.node}: {_state(service)}")
        if service.state == _NO_NODE:
            plan = self._waits_for_room(task, plan)

        def work(connection: Transaction) -> None:
            if plan != before:
                self._note(connection, task, service, None)
                leases.advance(connection, operation, plan, "recover", self._cloud.name)
                status = MigrationStatus.RUNNING
                migrations.set_status(connection, plan.migration_id, status, operation)
            if plan.waits_until is not None and before.waits_until is None:
                deadline = plan.waits_until + self._patience
                message = "It waits for room: the HA manager finds no node for its VM."
                ledger.save(connection, operation.id, deadline=deadline, message=message)
            leases.postpone(
                connection, operation.id, float(self._cloud.conf.conductor.scan_seconds)
            )

        self._cloud.store.run(work)

    def _waits_for_room(self, task: Task, plan: EvacuationPlan) -> EvacuationPlan:
        """Return the plan with how long it waits, where its server asks to, from now on."""
        seconds = asked_seconds(self._cloud, task.server)
        if plan.waits_until is not None or not seconds:
            return plan
        now = clock.utcnow()
        until = now + datetime.timedelta(seconds=seconds)
        return dataclasses.replace(plan, waits_since=now, waits_until=until)

    @property
    def _patience(self) -> datetime.timedelta:
        """How long the manager may take once it has found a node."""
        return datetime.timedelta(seconds=int(self._cloud.conf.conductor.move_timeout_seconds))

    @staticmethod
    def _note(connection: Transaction, task: Task, service: HaService, result: str | None) -> None:
        operation = task.operation
        ended = None if result is None else clock.utcnow()
        detail = {"node": service.node, "ha_state": _state(service)}
        step = Step(STEP, 0, operation.started_at, ended, result, detail=detail)
        ledger.upsert_events(connection, [ledger.conductor_event(operation, step)])

    def _settle(self, task: Task) -> None:
        """Move the claim, then the record. Raises Unavailable to be repeated later."""
        plan, server, operation = _plan(task), task.server, task.operation
        try:
            room = allocations.follow(self._cloud.placement, server, str(plan.target.uuid))
        except GenerationConflict as error:
            raise Unavailable(error.message) from error
        if not room:
            # The VM is there all the same; the audit reports what placement says.
            LOG.error("Placement has no room for server %s on %s.", server.uuid, plan.target.host)

        def work(connection: Transaction) -> None:
            facts, _ = registry.host(connection, str(plan.target.host))
            vm_state = found_well(server.vm_state, plan.power_state)
            whereabouts.arrive(connection, server, facts, operation.id, vm_state, plan.power_state)
            status = MigrationStatus.COMPLETED
            migrations.set_status(connection, plan.migration_id, status, operation)
            ledger.close(connection, operation.id, OperationState.DONE)

        self._cloud.store.run(work)
        LOG.info("Server %s was recovered on host %s.", server.uuid, plan.target.host)

    # --- failure

    def _failed(self, task: Task, text: str, vm_state: VmState = VmState.ERROR) -> None:
        """End with nothing changed: the search for VMs follows what becomes of it later."""
        operation = task.operation
        text = f"VM {task.server.vmid} was not recovered. {text}"
        failure = Failure(Category.NODE_UNHEALTHY, text, STEP, _plan(task).source.host)

        def work(connection: Transaction) -> None:
            close.settle(connection, task, vm_state)
            number = _plan(task).migration_id
            migrations.set_status(connection, number, MigrationStatus.ERROR, operation)
            close.close_failed(connection, operation, failure)

        self._cloud.store.run(work)
        LOG.warning("Server %s: %s", task.server.uuid, text)

    def _on_deadline(self, task: Task) -> None:
        plan = _plan(task)
        last = f" It was last seen on {plan.seen}." if plan.seen else ""
        late = f"The HA manager did not recover it in time.{last}{waited(plan.waits_since)}"
        self._failed(task, late)

    def _on_superseded(self, task: Task) -> None:
        """End it: another operation has the server."""
        if task.ended:
            return  # another conductor has seen that, too
        operation, number = task.operation, _plan(task).migration_id

        def work(connection: Transaction) -> None:
            migrations.set_status(connection, number, MigrationStatus.ERROR, operation)
            ledger.close(connection, operation.id, OperationState.FAILED, "Overtaken.")

        self._cloud.store.run(work)


def _state(service: HaService) -> str:
    """Return what the manager does, or, where it acts no more, what it is asked to."""
    return service.state if service.wanted in ("started", "stopped") else service.wanted


def _is_over(plan: EvacuationPlan) -> bool:
    return plan.waits_until is not None and plan.waits_until <= clock.utcnow()


def _plan(task: Task) -> EvacuationPlan:
    return task.operation.planned(EvacuationPlan)
