"""How a build ends that did not succeed: another attempt, or ERROR with nothing left behind.

An operation whose VM, or a part of it, may still be there stays open (``unwinding``) until an
agent has seen it gone; only then allocation, VMID and addresses are given back.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from common import clock
from common.errors import StaleTransition
from common.failures import Verdict, blames_host, passes, verdict_of
from common.log import logger
from common.messages.reports import Category, Failure, Outcome
from common.states import OperationState, TaskState, VmState
from conductor.cloud import (
    Cloud,
    backoff,
    failure_of,
    not_again,
    placed,
    unwind_later,
)
from conductor.engine.stages import Task
from conductor.flows import replace_vmid
from conductor.plans import CreatePlan
from conductor.store import leases, networks, registry, server_groups, transitions
from conductor.store import operations as ledger
from conductor.store.operations import Operation
from conductor.store.servers import Server
from conductor.store.transactions import Transaction
from conductor.store.vmids import BandExhausted

LOG = logger(__name__)


class Unwinding:
    """The end of builds that failed, were given up or were overtaken."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    # --- an attempt failed

    def failed(self, operation: Operation, server: Server, outcome: Outcome) -> None:
        """The agent says that the build failed: again here, elsewhere, or the end."""
        failure = failure_of(outcome)
        verdict = verdict_of(failure)
        if blames_host(failure) and operation.plan.target.host:
            self._cloud.scheduler.note_failure(operation.ctxt, operation.plan.target.host)
        may_wait = passes(failure) and self.may_wait(operation)
        if may_wait and (verdict == Verdict.WAIT or not outcome.gone):
            # What is there already is gone on with.
            self._again_here(operation, failure)
        elif not outcome.gone:
            self.fail(operation, server, failure)
        elif not failure.refused and not self._may_go_on(operation, verdict):
            if may_wait:
                self._elsewhere(operation, server, failure, verdict, wait=True)
            else:
                self.fail(operation, server, failure, gone=True)
        elif verdict == Verdict.QUARANTINE:
            self._renumbered(operation, server, failure)
        else:
            self._elsewhere(operation, server, failure, verdict)

    def _may_go_on(self, operation: Operation, verdict: Verdict) -> bool:
        if verdict == Verdict.FATAL:
            return False
        if verdict == Verdict.OTHER_CLUSTER:
            # Where there is no other one, the failure itself says more than "no valid host".
            with self._cloud.store.read() as connection:
                if not registry.hosts_outside(connection, str(operation.plan.target.cluster)):
                    return False
        plan = operation.planned(CreatePlan)
        tried = operation.attempt - plan.waits - plan.refusals - plan.excused
        return tried < int(self._cloud.conf.conductor.max_attempts)

    def may_wait(self, operation: Operation) -> bool:
        """Whether it has not waited too often."""
        return operation.planned(CreatePlan).waits < int(self._cloud.conf.conductor.max_waits)

    def await_hosts(self, operation: Operation, why: str) -> None:
        """There is no other host: those that may be well again are tried anew after a pause."""
        plan = operation.planned(CreatePlan).anew(operation.attempt)

        def work(connection: Transaction) -> None:
            ledger.save(connection, operation.id, plan=plan, message=why)
            leases.postpone(connection, operation.id, backoff(plan.waits))

        self._cloud.store.run(work)
        LOG.info("The build waits for %s: %s", ", ".join(plan.awaited), why)

    def _again_here(self, operation: Operation, failure: Failure) -> None:
        waits = operation.planned(CreatePlan).waits + 1

        def work(connection: Transaction) -> None:
            ledger.record_failure(connection, operation, failure)
            following = leases.next_attempt(connection, operation)
            plan = dataclasses.replace(operation.planned(CreatePlan), waits=waits)
            ledger.save(connection, following.id, plan=plan)
            leases.postpone(connection, following.id, backoff(waits))

        self._cloud.store.run(work)

    def _renumbered(self, operation: Operation, server: Server, failure: Failure) -> None:
        """It is the VMID's fault, not the host's: another one, on the same host."""
        try:
            self._cloud.store.run(lambda c: replace_vmid.another(c, operation, server, failure))
        except BandExhausted as error:
            self._no_vmid(operation, server, replace_vmid.exhausted(failure, error))
            return
        self._cloud.wake()
        LOG.info("VMID %s is set aside: %s", operation.plan.target.vmid, failure.message)

    def _no_vmid(self, operation: Operation, server: Server, failure: Failure) -> None:
        """The cluster has no VMID left: another one may."""
        if self._may_go_on(operation, Verdict.OTHER_CLUSTER):
            self._elsewhere(operation, server, failure, Verdict.OTHER_CLUSTER)
        else:
            self.fail(operation, server, failure, gone=True)

    def _elsewhere(
        self,
        operation: Operation,
        server: Server,
        failure: Failure,
        verdict: Verdict,
        *,
        wait: bool = False,
    ) -> None:
        """Give this host's reservation back and schedule anew, without it; with ``wait`` later,
        and with all hosts that may be well again by then.

        Who resumes it gives the claim back, as there is no host in the plan: were it done here,
        an outcome that is told twice would take the next attempt's claim.
        """
        plan = operation.planned(CreatePlan)

        def work(connection: Transaction) -> None:
            failed = not_again(connection, plan.target, verdict)
            ledger.record_failure(connection, operation, failure)
            following = leases.next_attempt(connection, operation)
            server_groups.give_back(connection, server)
            replace_vmid.give_back(connection, plan.target, failure, operation.id)
            transitions.move(
                connection,
                server,
                operation_id=operation.id,
                vm_state=VmState.BUILDING,
                task_state=TaskState.SCHEDULING,
                host=None,
                node=None,
                cluster=None,
                vmid=None,
                availability_zone=None,
            )
            fresh = plan.elsewhere(failed, awaited=verdict == Verdict.AWAIT_HOST)
            if wait:
                fresh = fresh.anew(following.attempt)
            ledger.save(connection, following.id, plan=fresh, message=failure.message)
            leases.postpone(connection, following.id, backoff(fresh.waits) if wait else 0)

        self._cloud.store.run(work)
        self._cloud.wake()
        LOG.info("Build failed on %s (%s): scheduling anew.", plan.target.host, verdict)

    # --- the end

    def fail(
        self, operation: Operation, server: Server, failure: Failure, *, gone: bool = False
    ) -> None:
        """ERROR. With ``gone``, or before anything was asked of an agent, nothing is left.

        Nothing but the claim, that is: it is given back once the record says that nobody goes
        on, so that neither a dead placement nor one's own death keeps the server from its end.
        """
        nothing_made = gone or server.task_state != TaskState.SPAWNING

        def work(connection: Transaction) -> None:
            values: dict[str, Any] = {}
            if nothing_made:
                server_groups.give_back(connection, server)
                replace_vmid.give_back(connection, operation.plan.target, failure, operation.id)
                networks.delete_ports(connection, server.uuid)
                values = {"addresses": [], "vmid": None}
                plan = operation.planned(CreatePlan).with_vmid(None)
                ledger.save(connection, operation.id, plan=plan)
            else:
                leases.next_attempt(connection, operation)
            transitions.move(
                connection,
                server,
                operation_id=operation.id,
                vm_state=VmState.ERROR,
                task_state=None,
                **values,
            )
            ledger.record_failure(connection, operation, failure)
            unwind_later(connection, operation, failure.message)

        self._cloud.store.run(work)
        LOG.error("Server is in ERROR (%s): %s", failure.category, failure.message)
        if nothing_made:
            self._settle(dataclasses.replace(operation, message=failure.message))

    def _settle(self, operation: Operation) -> None:
        """There is no VM, but there may be a claim. Raises Unavailable: then again later."""
        self._cloud.placement.release(operation.server_uuid)
        self._close(operation)

    # --- what may be left is removed

    def resume(self, task: Task) -> None:
        """The operation lost its server, or failed with something left: see it gone, close it."""
        operation, server = task.operation, task.server
        where = placed(operation)
        if where is None:
            # Nothing was asked of an agent, or it is gone; but a claim may have been made.
            self._settle(operation)
            return
        mine = server.operation_id == operation.id
        if not mine and server.deleted_at is None:
            # Whoever took the server knows its VMID and removes, or keeps, what is there.
            self._close(operation)
            return
        seconds = self._cloud.conf.conductor.action_timeout_seconds
        self._cloud.destroy(operation, where, clock.after(seconds))

    def finished(self, task: Task, outcome: Outcome) -> None:
        """The agent's word on an operation that is unwinding or lost its server."""
        operation, server = task.operation, task.server
        if outcome.ok and not outcome.gone:
            self._came_through(operation, server)
            return
        if task.ended:
            return
        if not outcome.gone:
            self._not_gone(operation, outcome)
            return
        mine = server.operation_id == operation.id
        if mine or server.deleted_at is not None:
            self._cloud.placement.release(server.uuid)

        def work(connection: Transaction) -> None:
            if mine:
                server_groups.give_back(connection, server)
                target = operation.plan.target
                replace_vmid.give_back(
                    connection, target, outcome.failure or Failure(Category.UNKNOWN_OUTCOME, "")
                )
                networks.delete_ports(connection, server.uuid)
                transitions.move(
                    connection,
                    server,
                    operation_id=operation.id,
                    vm_state=VmState(server.vm_state),
                    task_state=None,
                    addresses=[],
                    vmid=None,
                )
            ledger.close(connection, operation.id, OperationState.FAILED, operation.message)

        self._cloud.store.run(work)

    def _came_through(self, operation: Operation, server: Server) -> None:
        """A build succeeded whose server has another operation now.

        That one knows the VM and what shall become of it, unless the server was deleted before
        the VM was made: then it must go again.
        """
        if server.deleted_at is None:
            self._close(operation)
            return

        def work(connection: Transaction) -> None:
            ledger.save(connection, operation.id, state=OperationState.UNWINDING)
            leases.postpone(connection, operation.id, 0)

        self._cloud.store.run(work)
        self._cloud.wake()

    def _not_gone(self, operation: Operation, outcome: Outcome) -> None:
        def work(connection: Transaction) -> None:
            if outcome.failure is not None:
                ledger.record_failure(connection, operation, outcome.failure)
            following = leases.next_attempt(connection, operation)
            ledger.save(connection, operation.id, state=OperationState.UNWINDING, params={})
            leases.postpone(connection, following.id, backoff(operation.attempt))

        try:
            self._cloud.store.run(work)
        except StaleTransition:
            LOG.debug("Operation %s was reported on twice.", operation.id)

    def _close(self, operation: Operation) -> None:
        self._cloud.store.run(
            lambda c: ledger.close(
                c, operation.id, OperationState.FAILED, operation.message or "Overtaken."
            )
        )
