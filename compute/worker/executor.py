"""Carries out commands: each becomes a job of the pool, and its outcome a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from oslo_context import context as oslo_context

from common.context import RequestContext
from common.log import logger
from common.messages.commands import Command
from common.messages.queues import Queues
from common.messages.reports import (
    Category,
    Failure,
    NotUnderstood,
    Outcome,
    Report,
    Working,
)
from common.metrics import table
from common.release import VERSION
from compute.commands import COMMANDS, OF_STATE
from compute.commands.job import Job, Ledger
from compute.hypervisor.acting import acting_for
from compute.hypervisor.only_look import only_look
from compute.hypervisor.port import Abandoned, Hypervisor
from compute.queues import gathered
from compute.worker.repeats import Repeats
from compute.worker.workpool import WorkPool

LOG = logger(__name__)


class Executor:
    """Commands in, reports out; threads may share it."""

    def __init__(
        self,
        hypervisors: Mapping[str, Hypervisor],
        report: Callable[[Report], None],
        threads: int,
        graceful_seconds: int,
        ledger: Ledger,
        after: Callable[[Command, Outcome], None] = lambda _, __: None,
    ) -> None:
        """``after`` gets each command that was carried out, with its outcome; never raises."""
        self._hypervisors = hypervisors
        self._report = report
        self._graceful_seconds = graceful_seconds
        self._ledger = ledger
        self._after = after
        self._repeats = Repeats()
        self._pool = WorkPool(threads, self._run)

    def accept(self, ctxt: RequestContext, command: Command) -> bool:
        """Accept a command; returns at once. False: it is being worked on already."""
        ctxt.about(command.resource_type, command.resource_id)
        if not self._ledger.accepts(command.worker):
            LOG.info(
                "Operation %d is ignored: its command was sent to worker %s.",
                *(command.operation_id, command.worker),
            )
            return True
        done_before = self._repeats.is_done(command)
        job = Job(command, ctxt, self._report, self._ledger, done_before=done_before)
        outcome = self._outcome_at_once(job)
        if outcome is not None:
            job.journal.close(outcome)
            return True
        return self._pool.submit(job)

    def working(self) -> tuple[Working, ...]:
        """Return a sign of life for each job."""
        return self._pool.working()

    def operations(self, cluster: str) -> tuple[int, ...]:
        """Return the operations whose commands it has for a cluster."""
        return self._pool.operations(cluster)

    def queues(self) -> Queues:
        """Return what runs and waits on each host, in the drivers too."""
        storages = (one.queues() for one in self._hypervisors.values())
        return gathered(self._pool.idle, self._pool.queues(), storages)

    def stop(self, seconds: float) -> bool:
        """Stop jobs without unwinding; return whether all ended within the time."""
        return self._pool.stop(seconds)

    def _outcome_at_once(self, job: Job) -> Outcome | None:
        """Return the outcome of a command that needs no work, or None."""
        command = job.command
        if type(command) not in COMMANDS:
            return _not_understood(command)
        if command.placed.cluster not in self._hypervisors:
            problem = f"This worker carries no agent of cluster {command.placed.cluster}."
            return _refusal(job, Category.CONFIGURATION, problem)
        if job.only_look:
            # What is remembered of an operation may be of another one, with its number, of before
            # the database was put back.
            return None
        if self._repeats.is_overtaken(command):
            problem = "The server was destroyed after the command was sent."
            return _refusal(job, Category.CREATION_FAILED, problem)
        outdated = self._repeats.is_outdated(command)
        outcome = self._repeats.outcome(command)
        if outcome is None and outdated:
            problem = "A later operation has changed the server's power."
            return _refusal(job, Category.CREATION_FAILED, problem)
        return outcome

    def _run(self, job: Job) -> Outcome | None:
        oslo_context.RequestContext.update_store(job.ctxt)
        command = job.command
        try:
            outcome = self._carry_out(job, command)
            if not job.only_look:
                # Before the job leaves its queue, where a repeated command finds it.
                self._repeats.keep(job.command, outcome)
            _log(command, outcome)
            _measure(job, outcome)
            self._after(command, outcome)
            return outcome
        except Abandoned:
            LOG.info("Operation %d is left to the next owner of its lease.", command.operation_id)
            return None
        except Exception:
            LOG.exception("Operation %d failed unexpectedly.", command.operation_id)
            return _refusal(job, Category.UNKNOWN_OUTCOME, "The agent broke; see its log.")

    def _carry_out(self, job: Job, command: Command) -> Outcome:
        """Carry a command out. A VM whose notes were edited, or that is locked, is only looked at.

        So an undo ends where the fence refused the action before anything was changed.
        """
        outcome = self._attempt(job, command)
        failure = outcome.failure
        refused = failure is not None and failure.category in (Category.MARK_LOST, Category.LOCK)
        if job.only_look or not refused or not isinstance(command, OF_STATE):
            return outcome
        with job.looking() as show:
            seen = self._attempt(job, command, past_locks=True)
            if seen.ok:
                show()
        return seen if seen.ok else outcome

    def _attempt(self, job: Job, command: Command, *, past_locks: bool = False) -> Outcome:
        hypervisor = self._hypervisors[command.placed.cluster]
        acting = acting_for(job.command.worker)
        with acting, only_look(job.only_look, past_locks=past_locks):
            return COMMANDS[type(command)](job, hypervisor, command, self._graceful_seconds)


def _log(command: Command, outcome: Outcome) -> None:
    """Log one line about the end of a command."""
    name, where = type(command).__name__, command.placed
    if outcome.failure is None:
        LOG.info("%s of VM %d on %s is done.", name, where.vmid, where.node)
    else:
        LOG.error(
            "%s of VM %d on %s failed (%s): %s",
            *(name, where.vmid, where.node, outcome.failure.category, outcome.failure.message),
        )


def _measure(job: Job, outcome: Outcome) -> None:
    """Count a command that was carried out, and how long it took since it came."""
    name = type(job.command).__name__
    category = "" if outcome.failure is None else outcome.failure.category.value
    table.COMMANDS.count(name, "ok" if outcome.ok else "failed", category)
    table.COMMAND_SECONDS.observe(time.monotonic() - job.came_at, name)


def _not_understood(command: Command) -> Outcome:
    host = command.placed.host
    problem = f"The agent of {host} is of release {VERSION}, which doesn't know this action."
    failure = Failure(
        *(Category.API_NOT_SUPPORTED, problem),
        host=host,
        clean=False,
        remedy=f"upgrade the agent of {host}",
    )
    LOG.warning("Operation %d is refused: %s", command.operation_id, problem)
    return NotUnderstood(ok=False, failure=failure)


def _refusal(job: Job, category: Category, message: str) -> Outcome:
    host = job.command.placed.host
    failure = Failure(category, message, host=host, clean=False)
    return job.command.outcome()(False, failure)
