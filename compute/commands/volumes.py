"""Make, grow, move and remove volumes, and have servers' VMs name them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from common.messages.commands import (
    BackUpVolume,
    GrowVolume,
    MakeVolume,
    PlugVolume,
    RemoveBackup,
    RemoveVolume,
    RetypeVolume,
    SnapshotVerb,
    SnapVolume,
)
from common.messages.reports import Category, MadeVolume, Plugged, Removed, VolumeMade, VolumeSeen
from compute.commands.job import Job
from compute.commands.steps import Step, carry_out
from compute.commands.vm_steps import seen
from compute.hypervisor.port import Detail, HypervisorError, Machine, Removal, Volume

_SNAPSHOT_STEPS: Mapping[SnapshotVerb, str] = {
    SnapshotVerb.TAKE: "compute_take_volume_snapshot",
    SnapshotVerb.REMOVE: "compute_remove_volume_snapshot",
    SnapshotVerb.REVERT: "compute_revert_volume",
    SnapshotVerb.PARK: "compute_park_volume",
}


def make(job: Job, volume: Volume, command: MakeVolume) -> VolumeMade:
    """Make the volume, until it is seen in its size. A failure leaves nothing, or says what."""
    removed: list[Removal] = []

    def unmake() -> Removal:
        removed[:] = [volume.unmake()]
        return removed[0]

    made: list[MadeVolume] = []
    step = Step(
        "compute_make_volume",
        lambda: _note(made, lambda: volume.make(command)),
        unmake,
        "compute_remove_volume",
    )
    failure = carry_out(job, (step,))
    if failure is None:
        return VolumeMade(True, volume=made[0])
    return VolumeMade(False, failure, gone=bool(removed) and removed[0].gone)


def remove(job: Job, volume: Volume, command: RemoveVolume) -> Removed:
    """Remove the volume, until it is seen gone. An absent one counts as removed."""

    def have() -> Detail:
        removal = volume.remove(command)
        if not removal.gone:
            raise HypervisorError(
                Category.STORAGE_CONFLICT,
                f"Of {command.resource_type} {command.resource_id} something is still there.",
                left=removal.left,
                remedy=removal.remedy,
            )
        return {"cleaned": list(removal.cleaned)}

    failure = carry_out(job, (Step("compute_remove_volume", have),))
    return Removed(failure is None, failure, gone=failure is None)


def grow(job: Job, volume: Volume, command: GrowVolume) -> VolumeSeen:
    """Grow the volume, until it is seen in its new size. It may run twice."""
    grown: list[MadeVolume] = []
    step = Step("compute_grow_volume", lambda: _note(grown, lambda: volume.grow(command)))
    failure = carry_out(job, (step,))
    return VolumeSeen(failure is None, failure, grown[0] if grown else None)


def retype(job: Job, volume: Volume, command: RetypeVolume) -> VolumeSeen:
    """Move the volume to another storage, or only see where it is, to settle. May run twice."""
    name = "compute_settle_volume" if command.settle else "compute_retype_volume"
    seen: list[MadeVolume] = []
    failure = carry_out(job, (Step(name, lambda: _note(seen, lambda: volume.retype(command))),))
    return VolumeSeen(failure is None, failure, seen[0] if seen else None)


def snap(job: Job, volume: Volume, command: SnapVolume) -> Removed:
    """Take or delete a snapshot, or bring the volume back to it. It may run twice."""
    step = Step(
        _SNAPSHOT_STEPS[command.verb],
        lambda: volume.snap(command),
        lambda: volume.unsnap(command),
        "compute_park_volume",
    )
    failure = carry_out(job, (step,))
    removed = failure is None and command.verb is SnapshotVerb.REMOVE
    return Removed(failure is None, failure, gone=removed)


def back_up(job: Job, volume: Volume, command: BackUpVolume) -> VolumeMade:
    """Back the volume up, until its archive is seen. A failure leaves none, or says what."""
    removed: list[Removal] = []

    def undo() -> Removal:
        removed[:] = [volume.remove_backup(command)]
        return removed[0]

    made: list[MadeVolume] = []
    step = Step(
        "compute_back_up_volume",
        lambda: _note(made, lambda: volume.back_up(command)),
        undo,
        "compute_remove_backup",
    )
    failure = carry_out(job, (step,))
    if failure is None:
        return VolumeMade(True, volume=made[0])
    return VolumeMade(False, failure, gone=bool(removed) and removed[0].gone)


def remove_backup(job: Job, volume: Volume, command: RemoveBackup) -> Removed:
    """Remove the archive, until it is seen gone. An absent one counts as removed."""

    def have() -> Detail:
        return {"cleaned": list(volume.remove_backup(command).cleaned)}

    failure = carry_out(job, (Step("compute_remove_backup", have),))
    return Removed(failure is None, failure, gone=failure is None)


def plug(job: Job, machine: Machine, command: PlugVolume) -> Plugged:
    """Plug the volume into a server's VM, or unplug it; if it refuses, nothing is changed."""
    find = Step("compute_find_vm", lambda: _find(machine, on=command.on))
    slots: list[int] = []
    if command.on:
        step = Step(
            "compute_attach_volume",
            lambda: _attach(machine, command, slots),
            lambda: _unplug(machine, command.volid),
            "compute_detach_volume",
        )
    else:
        step = Step("compute_detach_volume", lambda: _detach(machine, command.volid))
    failure = carry_out(job, (find, step))
    other = next((slot for slot in slots if failure is None and slot != command.slot), None)
    return Plugged(failure is None, failure, seen(machine), other)


def _attach(machine: Machine, command: PlugVolume, slots: list[int]) -> Detail:
    detail = machine.plug_volume(command)
    slots.append(int(str(detail["slot"]).removeprefix("scsi")))
    return detail


def _note(found: list[MadeVolume], act: Callable[[], MadeVolume]) -> Detail:
    found[:] = [act()]
    return {"volume": found[0].volid, "bytes": found[0].size_bytes}


def _find(machine: Machine, *, on: bool) -> Detail:
    detail = machine.find()
    if machine.absent and on:
        raise HypervisorError(Category.VANISHED, "The server has no VM.")
    return detail


def _detach(machine: Machine, volid: str) -> Detail:
    return {"absent": True} if machine.absent else machine.unplug_volume(volid)


def _unplug(machine: Machine, volid: str) -> Removal:
    machine.unplug_volume(volid)
    return Removal(True, (f"volume {volid} in the server's VM",))
