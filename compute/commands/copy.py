"""Copy: a server's root disk or a volume becomes an image; on failure nothing of it is left."""

from __future__ import annotations

from common.messages.commands import Copy
from common.messages.reports import Copied, CopiedDisk
from compute.commands.job import Job
from compute.commands.steps import Step, carry_out
from compute.hypervisor.port import Detail, DiskCopy, Removal


def copy(job: Job, disk: DiskCopy, command: Copy) -> Copied:
    """Run the steps; the outcome says what was made, or whether nothing is left."""
    made: list[CopiedDisk] = []
    removed: list[Removal] = []

    def make() -> Detail:
        made[:] = [disk.make()]
        (one,) = made
        return {"volume": one.volid, "bytes": one.size_bytes, "disk": one.virtual_size_bytes}

    def remove() -> Removal:
        removed[:] = [disk.remove()]
        return removed[0]

    name = "compute_backup_instance" if command.backup else "compute_snapshot_instance"
    if command.volid:
        name = "compute_upload_volume"
    steps = (
        Step("compute_find_vm", disk.find),
        Step(name, make, remove, "compute_remove_copy"),
    )
    failure = carry_out(job, steps)
    if failure is None:
        return Copied(True, disk=made[0])
    return Copied(False, failure, gone=bool(removed) and removed[0].gone)
