"""Move: migrate a VM to another node; until it is seen there a failure leaves it as it was."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

from common.messages.commands import Move
from common.messages.reports import Failure, Moved
from compute.commands import configdrive
from compute.commands.job import Job
from compute.commands.steps import Step, carry_out, remove
from compute.commands.vm_steps import seen
from compute.hypervisor.moving import Moving
from compute.hypervisor.port import Machine, Removal

#: names of the steps: of a live migration Nova's
_LIVE = (
    "compute_check_can_live_migrate_source",
    "compute_pre_live_migration",
    "compute_live_migration",
    "compute_post_live_migration_at_destination",
)
_OFFLINE = (
    "compute_check_can_migrate_source",
    "compute_take_config_drive_out",
    "compute_migrate_vm",
    "compute_put_config_drive_in",
)
#: how often the removal of copies is tried
_TRIES = 3


def move(job: Job, machine: Machine, command: Move) -> Moved:
    """Run the steps; the outcome says on which node the VM is, and its last power state."""
    moving = machine.moving(command)
    failure = None if command.settle else carry_out(job, _there(moving, command))
    if command.settle or failure is None:
        failure = carry_out(job, _afterwards(moving, command))
        if failure is None:
            _remove_copies(job, moving)
    return Moved(failure is None, _of(failure, moving), seen(machine), moving.node)


def _there(moving: Moving, command: Move) -> tuple[Step, ...]:
    """Return the steps until the VM is on the target."""
    check, out, there, _ = _names(command)
    return (
        Step("compute_find_vm", moving.find),
        Step(check, moving.check),
        Step(
            out,
            moving.take_drive_out,
            lambda: _put_back(moving, command),
            "compute_put_config_drive_back",
        ),
        Step(there, moving.carry_out, moving.clean_up, "compute_remove_copies"),
    )


def _afterwards(moving: Moving, command: Move) -> tuple[Step, ...]:
    """Return the steps that follow once the VM is on the target; they are not undone."""
    into = _names(command)[3]
    return (
        Step("compute_find_vm_after_move", moving.find),
        Step(into, lambda: moving.put_drive_in(_image(command))),
    )


def _names(command: Move) -> tuple[str, str, str, str]:
    return _LIVE if command.live else _OFFLINE


def _put_back(moving: Moving, command: Move) -> Removal:
    # The undo before this one has looked where the VM is: perhaps it has moved after all.
    return Removal(True, detail=moving.put_drive_in(_image(command)))


def _image(command: Move) -> Callable[[], bytes] | None:
    if command.config_drive is None:
        return None
    return functools.partial(configdrive.image, command.config_drive)


def _remove_copies(job: Job, moving: Moving) -> None:
    """Remove the copies that the move left on nodes where the VM isn't.

    It is tried again at once, as a single answer may get lost. A copy that can't be removed is
    reported, and doesn't fail the move: the audit shows it, and removes config drives.
    """
    for _ in range(_TRIES):
        if remove(job, "compute_remove_copies", moving.clean_up).gone:
            return


def _of(failure: Failure | None, moving: Moving) -> Failure | None:
    """Return the failure; not clean if it isn't known where the VM is."""
    if failure is None or moving.node:
        return failure
    return replace(failure, clean=False)
