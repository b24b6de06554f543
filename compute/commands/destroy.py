"""Destroy: remove the VM if it is provably the server's, and see it gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from common.messages.commands import Destroy
from common.messages.reports import Category, Failure, Removed
from compute.commands.job import Job
from compute.commands.steps import Step, Unwound, carry_out
from compute.hypervisor.port import Detail, HypervisorError, Machine, Removal


def destroy(job: Job, machine: Machine, command: Destroy, graceful_seconds: int) -> Removed:
    """Stop, remove, see config and volumes gone. An absent VM counts as gone."""
    sums = _Sums()
    if command.drive_only:
        remove = sums.removing(machine.let_go_of_config_drive)
        todo: tuple[Step, ...] = (Step("compute_delete_config_drive", remove),)
    else:
        seconds = graceful_seconds if command.graceful else 0
        todo = steps(machine, sums, seconds if command.stopped_on is None else None)
    failure = carry_out(job, todo)
    if failure is None:
        return Removed(True, gone=True)
    if machine.anothers:
        # The VM is another server's. Of this server only the config drive may be left, by name.
        let_go = sums.removing(machine.let_go_of_config_drive)
        carry_out(job, [Step("compute_delete_config_drive", let_go)])
    return Removed(False, sums.failure(failure, machine))


class _Sums:
    """The sum of this run's removals, for the fault."""

    def __init__(self) -> None:
        self.total = Unwound()

    def removing(self, remove: Callable[[], Removal]) -> Callable[[], Detail]:
        """Wrap a removal as a step that fails when something is left."""

        def do() -> Detail:
            removal = remove()
            self.total = self.total.plus(removal)
            if not removal.gone:
                raise HypervisorError(
                    Category.UNKNOWN_OUTCOME,
                    "Not everything of the server could be removed.",
                    left=removal.left,
                    remedy=removal.remedy,
                )
            return {"cleaned": list(removal.cleaned), **removal.detail}

        return do

    def failure(self, failure: Failure, machine: Machine) -> Failure:
        """Return the failure with what was removed nevertheless."""
        clean = machine.absent and not failure.left
        return replace(failure, cleaned=self.total.cleaned, clean=clean, refused=machine.anothers)


def steps(machine: Machine, sums: _Sums, graceful_seconds: int | None) -> tuple[Step, ...]:
    """Return the steps of a destroy. Nothing is undone: a repeated command continues.

    Without seconds nothing is stopped: only a stopped VM is removed.
    """
    stop: tuple[Step, ...] = ()
    if graceful_seconds is not None:
        stop = (Step("compute_stop_vm", lambda: _stop(machine, graceful_seconds)),)
    return (
        Step("compute_find_vm", lambda: machine.find(to_remove=True)),
        *stop,
        Step("compute_destroy_vm", sums.removing(machine.remove)),
        Step("compute_delete_config_drive", sums.removing(machine.remove_config_drive)),
    )


def _stop(machine: Machine, graceful_seconds: int) -> Detail:
    return {"absent": True} if machine.absent else machine.stop(graceful_seconds)
