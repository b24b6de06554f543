"""The end of builds that failed: another attempt, or ERROR with nothing left behind.

An operation whose VM, or a part of it, may still exist remains open (``unwinding``) until an agent
has confirmed it absent; only then VMID and addresses are released, and then the allocation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from common import clock, ids
from common.errors import StaleTransition
from common.failures import Verdict, blames_host, passes, verdict_of
from common.log import logger
from common.messages.commands import Destroy
from common.messages.reports import Built, Category, Failure, Outcome, Removed
from common.resources.states import OPEN_STATES, OperationState, TaskState, VmState
from conductor.cloud import Cloud, backoff, failure_of, not_again, placed, silence, silent
from conductor.engine import unwinding
from conductor.engine.stages import Table, Task, Undo, answer
from conductor.engine.undoing import Undoing
from conductor.plans import CreatePlan
from conductor.servers.create import replace_vmid
from conductor.servers.remove import remove_left
from conductor.store.hosts import registry
from conductor.store.ledger import leases, transitions
from conductor.store.ledger import operations as ledger
from conductor.store.networks import networks
from conductor.store.records import Operation, Server
from conductor.store.servers import server_groups, servers
from conductor.store.servers.vmids import BandExhausted
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments
from conductor.volumes import build_volumes, release

LOG = logger(__name__)

#: seconds until it is looked again whether a silent agent answers
SILENCE_SECONDS = 15.0


class Unwinding:
    """The end of builds that failed, were given up or were overtaken."""

    def __init__(self, cloud: Cloud, table: Callable[[], Table[Task]]) -> None:
        """``table`` is that of the builds."""
        self._cloud, self._table = cloud, table
        self._vm = Undo("remove_vm", self._remove_vm, answer(Destroy, self._vm_removed))
        self._reserved = Undo("give_back", write=self._give_back)
        self._claim = Undo("release_claim", self._release_claim)
        self._undoing = Undoing(cloud.store, self.undone)

    @property
    def undos(self) -> tuple[Undo[Task], Undo[Task], Undo[Task]]:
        """Return the undos of a build, in order: the VM, what is reserved, the claim."""
        return self._vm, self._reserved, self._claim

    # --- an attempt failed

    def failed(self, operation: Operation, server: Server, outcome: Built) -> None:
        """Handle the agent's failure: try again here, on another host, or end."""
        failure = failure_of(outcome)
        verdict = verdict_of(failure)
        if blames_host(failure) and operation.plan.target.host:
            self._cloud.scheduler.note_failure(operation.ctxt, operation.plan.target.host)
        may_wait = passes(failure) and self.may_wait(operation)
        if may_wait and (verdict == Verdict.WAIT or not outcome.gone):
            # The next attempt continues with the VM and disks made so far.
            self._again_here(operation, failure)
        elif not outcome.gone:
            self.fail(operation, server, failure)
        elif not failure.refused and not self._may_go_on(operation, verdict):
            if may_wait:
                self._reschedule(operation, server, failure, verdict, wait=True)
            else:
                self.fail(operation, server, failure, gone=True)
        elif verdict == Verdict.QUARANTINE:
            self._replace_vmid(operation, server, failure)
        else:
            self._reschedule(operation, server, failure, verdict)

    def on_silence(self, operation: Operation, server: Server) -> None:
        """Go on at another host, as the agent of this one is silent.

        What it may have made is removed there once it answers. If it was allowed to start the VM
        that may run, and a second one must not: then it is waited for until the deadline.
        """
        host = str(operation.plan.target.host)
        if operation.may_run == operation.attempt:
            self._await_agent(operation, f"{silence(host)} The VM may run there already.")
            return
        self._cloud.scheduler.note_failure(operation.ctxt, host)
        failure = dataclasses.replace(
            silent(host),
            step="conductor_leave_host",
            clean=False,
            left=(f"VM {operation.plan.target.vmid} on {host}, if it was made",),
            verdict=Verdict.AWAIT_HOST.value,
        )
        self._reschedule(operation, server, failure, Verdict.AWAIT_HOST, leave=True)

    def _await_agent(self, operation: Operation, why: str) -> None:
        def work(connection: Transaction) -> None:
            ledger.save(connection, operation.id, message=why)
            leases.postpone(connection, operation.id, SILENCE_SECONDS)

        self._cloud.store.run(work)
        LOG.warning("The build of server %s waits: %s", operation.server_uuid, why)

    def _may_go_on(self, operation: Operation, verdict: Verdict) -> bool:
        if verdict == Verdict.FATAL:
            return False
        if verdict == Verdict.OTHER_CLUSTER:
            # Without another host, the failure itself says more than "no valid host".
            with self._cloud.store.read() as connection:
                if not registry.hosts_outside(connection, str(operation.plan.target.cluster)):
                    return False
        plan = operation.planned(CreatePlan)
        tried = operation.attempt - plan.waits - plan.refusals - plan.excused
        return tried < int(self._cloud.conf.conductor.max_attempts)

    def may_wait(self, operation: Operation) -> bool:
        """Return whether it has not waited too often."""
        return operation.planned(CreatePlan).waits < int(self._cloud.conf.conductor.max_waits)

    def await_hosts(self, operation: Operation, why: str) -> None:
        """Retry awaited hosts after the back-off, as there is no other host."""
        plan = operation.planned(CreatePlan).after_wait(operation.attempt)

        def work(connection: Transaction) -> None:
            ledger.save(connection, operation.id, plan=plan, message=why)
            leases.postpone(connection, operation.id, backoff(plan.waits))

        self._cloud.store.run(work)
        hosts = ", ".join(plan.awaited)
        LOG.info("The build of server %s waits for %s: %s", operation.server_uuid, hosts, why)

    def _again_here(self, operation: Operation, failure: Failure) -> None:
        waits = operation.planned(CreatePlan).waits + 1

        def work(connection: Transaction) -> None:
            ledger.record_failure(connection, operation, failure)
            following = leases.next_attempt(connection, operation)
            plan = dataclasses.replace(operation.planned(CreatePlan), waits=waits)
            ledger.save(connection, following.id, plan=plan)
            leases.postpone(connection, following.id, backoff(waits))

        self._cloud.store.run(work)

    def _replace_vmid(self, operation: Operation, server: Server, failure: Failure) -> None:
        """Retry on the same host with another VMID: the VMID is at fault, not the host."""
        try:
            self._cloud.store.run(lambda c: replace_vmid.another(c, operation, server, failure))
        except BandExhausted as error:
            self._no_vmid(operation, server, replace_vmid.exhausted(failure, error))
            return
        self._cloud.wake()
        vmid = operation.plan.target.vmid
        LOG.info("VMID %s is not used for server %s: %s", vmid, server.uuid, failure.message)

    def _no_vmid(self, operation: Operation, server: Server, failure: Failure) -> None:
        """Retry on another cluster: this one has no VMID left."""
        if self._may_go_on(operation, Verdict.OTHER_CLUSTER):
            self._reschedule(operation, server, failure, Verdict.OTHER_CLUSTER)
        else:
            self.fail(operation, server, failure, gone=True)

    def _reschedule(
        self,
        operation: Operation,
        server: Server,
        failure: Failure,
        verdict: Verdict,
        *,
        wait: bool = False,
        leave: bool = False,
    ) -> None:
        """Release this host's reservation and schedule again without it; with ``wait`` later, and
        with all hosts that may work again by then.

        With ``leave`` what it may have made is there: its removal takes over the reservation.

        The next run releases the claim, as there is no host in the plan: if it were done here,
        an outcome that is reported twice would take the next attempt's claim.
        """
        plan = operation.planned(CreatePlan)
        left = _holder(operation) if leave else ""

        def work(connection: Transaction) -> None:
            if plan.has_volumes:
                # Before other rows, in the order in which all lock them.
                servers.get(connection, server.uuid, lock=True)
                build_volumes.renew(connection, self._cloud, server.uuid)
            failed = not_again(connection, plan.target, verdict)
            ledger.record_failure(connection, operation, failure)
            following = leases.next_attempt(connection, operation, unstarted=leave)
            server_groups.give_back(connection, server)
            if left:
                remove_left.begin(connection, self._cloud, operation, server, left)
            else:
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
            fresh = plan.on_another_host(failed, awaited=verdict == Verdict.AWAIT_HOST)
            fresh = dataclasses.replace(fresh, left=left)
            if wait:
                fresh = fresh.after_wait(following.attempt)
            ledger.save(connection, following.id, plan=fresh, message=failure.message)
            leases.postpone(connection, following.id, backoff(fresh.waits) if wait else 0)

        self._cloud.store.run(work)
        self._cloud.wake()
        host = plan.target.host
        LOG.info("Server %s: build failed on %s (%s): rescheduling.", server.uuid, host, verdict)

    # --- the end

    def fail(
        self, operation: Operation, server: Server, failure: Failure, *, gone: bool = False
    ) -> None:
        """End in ERROR. With ``gone``, or before an agent was called, there is no VM.

        Only the claim is left once this is committed. It is released after the commit, so that
        the server becomes ERROR even if placement does not answer or this conductor dies.
        """
        no_vm = gone or server.task_state != TaskState.SPAWNING

        def work(connection: Transaction) -> Task:
            task = Task(operation, server)
            if no_vm:
                task = self._give_back(connection, task, failure)
                return self._unwind(connection, task, failure, after=self._reserved)
            unwinds = self._unwind(connection, task, failure)
            _end(connection, server, operation.id)
            return unwinds

        task = self._cloud.store.run(work)
        LOG.error("Server %s is in ERROR (%s): %s", server.uuid, failure.category, failure.message)
        if no_vm:
            self._undoing.undo_rest(task, (self._claim,))

    def _unwind(
        self,
        connection: Transaction,
        task: Task,
        failure: Failure | None,
        *,
        after: Undo[Task] | None = None,
        seconds: float | None = None,
    ) -> Task:
        """Begin to unwind. What was asked is not needed any more, and may be secret."""
        return unwinding.write(
            connection,
            self._table(),
            task,
            failure,
            owner=self._cloud.name,
            seconds=backoff(1) if seconds is None else seconds,
            after=after,
            plan=task.operation.plan,
            params={},
        )

    # --- what was made is removed

    def _remove_vm(self, task: Task) -> bool:
        """Have the VM, its disks and its config drive removed; return whether none was made."""
        where = placed(task.operation)
        if where is None:
            return True
        seconds = self._cloud.conf.conductor.action_timeout_seconds
        self._cloud.destroy(task.operation, where, clock.after(seconds))
        return False

    def _vm_removed(self, task: Task, outcome: Removed) -> bool:
        """Return whether the agent has seen it gone, or another's in its place; else it is asked
        again later."""
        gone = outcome.gone or (outcome.failure is not None and outcome.failure.refused)
        if not gone:
            self._on_vm_left(task, outcome)
        return gone

    def _give_back(self, connection: Transaction, task: Task, failure: Failure | None) -> Task:
        """Release what is reserved in the record: volumes, the group's place, VMID, addresses."""
        operation, server = task.operation, task.server
        if attachments.of_servers(connection, [server.uuid]):
            servers.get(connection, server.uuid, lock=True)
            release.free_of_deleted(connection, self._cloud, [server.uuid], failed=True)
        server_groups.give_back(connection, server)
        doubt = failure or Failure(Category.UNKNOWN_OUTCOME, "")
        replace_vmid.give_back(connection, operation.plan.target, doubt, operation.id)
        networks.delete_ports(connection, server.uuid)
        if server.vm_state == VmState.BUILDING or server.vmid or server.addresses:
            server = _end(connection, server, operation.id, addresses=[], vmid=None)
        plan = operation.planned(CreatePlan).with_vmid(None)
        return dataclasses.replace(
            task, operation=dataclasses.replace(operation, plan=plan), server=server
        )

    def _release_claim(self, task: Task) -> bool:
        """Release the claim. Raises Unavailable to be repeated later."""
        self._cloud.placement.release(task.server.uuid)
        return True

    @staticmethod
    def undone(connection: Transaction, task: Task) -> None:
        """End the operation: nothing of it is left."""
        _close(connection, task.operation)

    # --- the operation lost its server

    def on_superseded(self, task: Task) -> None:
        """Remove what it made, unless another operation works on it; close it."""
        operation = task.operation
        if placed(operation) is None:
            # No agent was called, or the VM is gone; but a claim may have been made.
            self._cloud.placement.release(operation.server_uuid)
        elif task.server.deleted_at is not None:
            self._remove_vm(task)
            return
        # The operation that took the server knows its VMID and decides about the VM.
        self._cloud.store.run(lambda c: _close(c, operation))

    def on_late_outcome(self, task: Task, outcome: Outcome) -> None:
        """Take the agent's outcome of an operation that lost its server."""
        operation, server = task.operation, task.server
        gone = isinstance(outcome, Removed) and outcome.gone
        if outcome.ok and not gone:
            self._came_through(operation, server)
        elif task.ended:
            return
        elif not gone:
            self._on_vm_left(task, outcome)
        else:
            if server.deleted_at is not None:
                self._cloud.placement.release(server.uuid)
            self._cloud.store.run(lambda c: _close(c, operation))

    def _came_through(self, operation: Operation, server: Server) -> None:
        """Handle a build that succeeded after its server got another operation.

        That one knows the VM and decides about it, unless the server was deleted before the VM was
        made: then the VM is removed.
        """
        if server.deleted_at is None:
            self._cloud.store.run(lambda c: _close_with_vm(c, operation))
            return

        task = Task(operation, server)
        self._cloud.store.run(lambda c: self._unwind(c, task, None, seconds=0))
        self._cloud.wake()

    def _on_vm_left(self, task: Task, outcome: Outcome) -> None:
        operation = task.operation

        def work(connection: Transaction) -> None:
            if outcome.failure is not None:
                ledger.record_failure(connection, operation, outcome.failure)
            self._unwind(connection, task, None, seconds=backoff(operation.attempt))

        try:
            self._cloud.store.run(work)
        except StaleTransition:
            LOG.debug("Operation %s was reported on twice.", operation.id)


def _holder(operation: Operation) -> str:
    """Return who is to hold what a build leaves on its host, the same each time."""
    return ids.named("left", f"{operation.request_id} {operation.id} {operation.attempt}")


def _close_with_vm(connection: Transaction, operation: Operation) -> None:
    """End a build whose server was reset by an administrator: the server gets its VM and volumes.

    If a delete is under way, that decides about the volumes.
    """
    if operation.planned(CreatePlan).has_volumes:
        server = servers.get(connection, operation.server_uuid, lock=True)
        its = server.vmid is not None and server.vmid == operation.plan.target.vmid
        taker = ledger.get(connection, server.operation_id or 0)
        ends = taker is not None and taker.action == "delete" and taker.state in OPEN_STATES
        if its and server.launched_at is None and not ends:
            attachments.built(connection, [server.uuid])
    _close(connection, operation)


def _close(connection: Transaction, operation: Operation) -> None:
    message = operation.message or "Overtaken."
    ledger.close(connection, operation.id, OperationState.FAILED, message)


def _end(connection: Transaction, server: Server, operation_id: int, **values: Any) -> Server:
    """Move the server to ERROR, or leave the state it got since its build failed."""
    was = VmState(server.vm_state)
    return transitions.move(
        connection,
        server,
        operation_id=operation_id,
        vm_state=VmState.ERROR if was == VmState.BUILDING else was,
        task_state=None,
        **values,
    )
