"""Carries out commands: each becomes a job of the pool, and its outcome a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from oslo_context import context as oslo_context

from common.context import RequestContext
from common.log import logger
from common.messages.commands import (
    Build,
    CacheImage,
    Command,
    Copy,
    Destroy,
    EndSwap,
    Grow,
    MakeVnet,
    Mark,
    Move,
    Plug,
    Power,
    RemoveImage,
    RemoveVnet,
    RetireTemplate,
    Shape,
    StoreImage,
    Swap,
)
from common.messages.reports import Category, Failure, Outcome, Report, Working
from compute import (
    build,
    cache,
    copy,
    destroy,
    mark,
    move,
    plug,
    power,
    retire,
    shape,
    store_image,
    swap,
    vnets,
)
from compute.hypervisor.port import Abandoned, Hypervisor, Machine
from compute.job import Job
from compute.repeats import Repeats
from compute.workpool import WorkPool

LOG = logger(__name__)


class Executor:
    """Commands in, reports out; threads may share it."""

    def __init__(
        self,
        hypervisors: Mapping[str, Hypervisor],
        report: Callable[[Report], None],
        threads: int,
        graceful_seconds: int,
        may_undo: Callable[[Working], bool],
        after: Callable[[Command, Outcome], None] = lambda _, __: None,
    ) -> None:
        """``may_undo`` asks the ledger; False if it can't be asked.

        ``after`` gets each command that was carried out, with its outcome; never raises.
        """
        self._hypervisors = hypervisors
        self._report = report
        self._graceful_seconds = graceful_seconds
        self._may_undo = may_undo
        self._after = after
        self._repeats = Repeats()
        self._pool = WorkPool(threads, self._run)

    def accept(self, ctxt: RequestContext, command: Command) -> bool:
        """Accept a command; returns at once. False: it is being worked on already."""
        ctxt.server_uuid = command.server_uuid
        if self._repeats.is_stale(command):
            LOG.info(
                "Operation %d is ignored: its command was sent before this process started.",
                command.operation_id,
            )
            return True
        done_before = self._repeats.is_done(command)
        job = Job(command, ctxt, self._report, self._may_undo, done_before=done_before)
        outcome = self._outcome_at_once(job)
        if outcome is not None:
            job.journal.close(outcome)
            return True
        return self._pool.submit(job)

    def working(self) -> tuple[Working, ...]:
        """Return a sign of life for each job."""
        return self._pool.working()

    def stop(self, seconds: float) -> bool:
        """Stop jobs without unwinding; return whether all ended within the time."""
        return self._pool.stop(seconds)

    def _outcome_at_once(self, job: Job) -> Outcome | None:
        """Return the outcome of a command that needs no work, or None."""
        command = job.command
        if command.placed.cluster not in self._hypervisors:
            problem = f"This worker carries no agent of cluster {command.placed.cluster}."
            return _refusal(job, Category.CONFIGURATION, problem)
        if self._repeats.is_overtaken(command):
            problem = "The server was destroyed meanwhile."
            return _refusal(job, Category.CREATION_FAILED, problem)
        return self._repeats.outcome(command)

    def _run(self, job: Job) -> Outcome | None:
        oslo_context.RequestContext.update_store(job.ctxt)
        command = job.command
        try:
            outcome = self._carry_out(job, command)
            # Before the job leaves its queue, where a repeated command finds it.
            self._repeats.keep(job.command, outcome)
            _log(command, outcome)
            self._after(command, outcome)
            return outcome
        except Abandoned:
            LOG.info("Operation %d is left to the next owner of its lease.", command.operation_id)
            return None
        except Exception:
            LOG.exception("Operation %d failed unexpectedly.", command.operation_id)
            return _refusal(job, Category.UNKNOWN_OUTCOME, "The agent broke; see its log.")

    def _carry_out(self, job: Job, command: Command) -> Outcome:
        hypervisor = self._hypervisors[command.placed.cluster]
        if isinstance(command, RetireTemplate):
            return retire.retire(job, hypervisor, command)
        if isinstance(command, Mark):
            return mark.mark(job, hypervisor.owner_mark(job), command)
        if isinstance(command, Copy):
            return copy.copy(job, hypervisor.disk_copy(job, command), command)
        if isinstance(command, (StoreImage, RemoveImage)):
            return _with_image(job, hypervisor, command)
        if isinstance(command, (MakeVnet, RemoveVnet)):
            return _with_vnet(job, hypervisor, command)
        return self._with_vm(job, hypervisor, command)

    def _with_vm(self, job: Job, hypervisor: Hypervisor, command: Command) -> Outcome:
        """Carry out a command about the VM that it places."""
        machine = hypervisor.machine(job)
        if isinstance(command, CacheImage):
            return cache.cache(job, machine, command)
        if isinstance(command, Build) and not isinstance(command, Swap):
            return build.build(job, machine, command, hypervisor.group_writer(command))
        if isinstance(command, Destroy):
            return destroy.destroy(job, machine, command, self._graceful_seconds)
        if isinstance(command, Power):
            return power.power(job, machine, command, self._graceful_seconds)
        return self._with_machine(job, machine, command)

    def _with_machine(self, job: Job, machine: Machine, command: Command) -> Outcome:
        """Carry out a command that changes the VM, or its place."""
        if isinstance(command, Swap):
            return swap.swap(job, machine, command, self._graceful_seconds)
        if isinstance(command, EndSwap):
            return swap.end_swap(job, machine, command)
        if isinstance(command, Move):
            return move.move(job, machine, command)
        if isinstance(command, Shape):
            return shape.shape(job, machine, command, self._graceful_seconds)
        if isinstance(command, Plug):
            return plug.plug(job, machine, command)
        if isinstance(command, Grow):
            return shape.grow(job, machine, command)
        raise TypeError(type(command).__name__)


def _with_image(job: Job, hypervisor: Hypervisor, command: StoreImage | RemoveImage) -> Outcome:
    if isinstance(command, StoreImage):
        return store_image.store(job, hypervisor, command)
    return store_image.remove(job, hypervisor, command)


def _with_vnet(job: Job, hypervisor: Hypervisor, command: MakeVnet | RemoveVnet) -> Outcome:
    if isinstance(command, MakeVnet):
        return vnets.make(job, hypervisor, command)
    return vnets.remove(job, hypervisor, command)


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


def _refusal(job: Job, category: Category, message: str) -> Outcome:
    host = job.command.placed.host
    return Outcome(False, failure=Failure(category, message, host=host, clean=False))
