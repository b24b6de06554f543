"""Build: create the VM of the record and see it run; on failure leave nothing behind.

The VM's configuration names the server's volumes, but they don't belong to the VM: its removal
leaves them where they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

from common.messages.commands import Build, PlugVolume
from common.messages.reports import Built
from common.resources.states import PowerState
from compute.commands import configdrive
from compute.commands.filtering import filtered
from compute.commands.job import Job
from compute.commands.steps import Step, carry_out, undo_if_ours
from compute.hypervisor.port import Detail, Lost, Machine

CHECK, IMAGE = "compute_check_host", "compute_ensure_image"


def build(
    job: Job,
    machine: Machine,
    command: Build,
    write_group: Callable[[], Detail] | None = None,
) -> Built:
    """Run the steps of a build, until the VM is seen running; the guest agent isn't waited for.

    With ``job.only_look`` it only looks whether the VM is as a completed build leaves it.

    ``write_group`` adds the VM to its strict group in the hypervisor; it never fails a build.
    """
    if job.only_look:
        return _look(job, machine)
    todo = steps(machine, command, lambda: _start(job, machine))
    if write_group is not None:
        todo += (Step("compute_write_affinity", write_group),)
    # A build that an earlier run finished may be reported, and its server in use. Only a Destroy,
    # which the conductor commits first, may remove it.
    failure = carry_out(job, todo, is_kept=lambda: machine.finished)
    if failure is None:
        return Built(True, power_state=PowerState.RUNNING)
    if failure.step in (CHECK, IMAGE) and not machine.finished:
        _look_behind(job, machine, command)
    # Nothing of ours is left if everything was seen absent, or if what was found is not ours.
    clean = failure.clean and (machine.absent or machine.foreign)
    # What only the operator can remove is reported, and its VM id quarantined.
    set_aside = bool(machine.stuck) and set(failure.left) == set(machine.stuck)
    gone = clean or set_aside
    reported = replace(failure, clean=clean, refused=gone and machine.refused)
    return Built(False, reported, gone=gone)


def _look(job: Job, machine: Machine) -> Built:
    failure = carry_out(job, [Step("compute_find_vm", machine.find_built)])
    if failure is None:
        return Built(True, power_state=PowerState.RUNNING)
    return Built(False, failure, gone=machine.absent)


def _look_behind(job: Job, machine: Machine, command: Build) -> None:
    """Clean up what an earlier run of the same command may have left.

    The audit finds what can't be removed now, because the host is down.
    """
    if not (machine.absent or machine.foreign or machine.stuck):
        # Perhaps only the look failed.
        carry_out(job, [Step("compute_find_vm", machine.find)])
    if machine.absent and command.config_drive is not None:
        undo_if_ours(job, "compute_delete_config_drive", machine.remove_config_drive)


def steps(machine: Machine, command: Build, start: Callable[[], Detail]) -> tuple[Step, ...]:
    """Return the steps of a build; ``start`` starts the VM."""
    return (
        Step(CHECK, lambda: machine.check_host(command)),
        Step(IMAGE, lambda: machine.ensure_image(command)),
        Step(
            "compute_upload_config_drive",
            lambda: _upload_config_drive(machine, command),
            machine.remove_config_drive,
            "compute_delete_config_drive",
        ),
        Step(
            "compute_create_vm",
            lambda: machine.create(command),
            machine.remove,
            "compute_destroy_vm",
        ),
        Step("compute_resize_disk", lambda: machine.resize_disk(command)),
        *_local_disks(machine, command),
        *_attached(machine, command),
        *filtered(machine, command.filter),
        Step("compute_start_vm", start),
    )


def _start(job: Job, machine: Machine) -> Detail:
    """Start the VM, unless another host continues the build.

    The record may have lost the build, in a restore of the database. Then the VM isn't started, as
    the lost record may have let another host build the server as well. Its description notes that
    only the start is missing: the VM is started when it is adopted.
    """
    try:
        job.require_may_start()
    except Lost:
        machine.leave_unstarted()
        raise
    return machine.start()


def _upload_config_drive(machine: Machine, command: Build) -> Detail:
    if command.config_drive is None:
        return {"skipped": "no config drive asked"}
    return machine.upload_config_drive(
        command, functools.partial(configdrive.image, command.config_drive)
    )


def _local_disks(machine: Machine, command: Build) -> tuple[Step, ...]:
    """Return the step that makes the disks beside the root disk; none where it has none."""
    if not command.local_disks:
        return ()
    made = command.local_disks, command.storage
    return (Step("compute_create_local_disks", lambda: machine.fit_local_disks(*made)),)


def _attached(machine: Machine, command: Build) -> tuple[Step, ...]:
    """Return the step that has the VM name its volumes; none where it has none."""
    if not command.volumes:
        return ()
    return (Step("compute_attach_volumes", lambda: _attach_volumes(machine, command)),)


def _attach_volumes(machine: Machine, command: Build) -> Detail:
    return {
        one.volume_id: machine.plug_volume(
            PlugVolume(
                command.operation_id,
                command.attempt,
                command.resource_type,
                command.resource_id,
                command.placed,
                command.deadline,
                volume_id=one.volume_id,
                volid=one.volid,
                holder=one.holder,
                cloud=command.cloud,
                slot=one.slot,
                serial=one.serial,
                readonly=one.readonly,
            )
        )
        for one in command.volumes
    }
