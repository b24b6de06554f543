"""Backups of a volume: archives that Proxmox VE makes of its holder, with the disk plugged in.

An archive belongs to the backup that its notes name. An archive without notes, whose task was
ended before it wrote them, belongs to the task that names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from common.failures import Verdict
from common.messages.commands import BackUpVolume, RemoveBackup
from common.messages.reports import Category, MadeVolume
from compute.hypervisor.port import HypervisorError, Removal, Work
from compute.hypervisor.proxmox.api import paths, privileges
from compute.hypervisor.proxmox.cluster import quorum
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.cluster.vmid import Vm
from compute.hypervisor.proxmox.vm import power
from compute.hypervisor.proxmox.vmconfig import marks
from compute.hypervisor.proxmox.vmconfig.marks import volume_mark
from compute.hypervisor.proxmox.volume.parking import Holder

KIND = "vzdump"
#: of a task's log: what names the archive, and what is written once its notes are
_NAMES = re.compile(r"creating vzdump archive '(?:[^']*/)?([^'/]+)'")
_NOTED = "adding notes to backup"
_LOG_LINES = 200


@dataclass(frozen=True)
class Archive:
    """An archive of a VM as its storage lists it."""

    volid: str
    size_bytes: int
    notes: str
    protected: bool

    @property
    def file(self) -> str:
        """Its name without the folder."""
        return self.volid.rpartition("/")[2]


def back_up(shared: Shared, holder: Holder, command: BackUpVolume) -> MadeVolume:
    """See ``port.Volume.back_up``."""
    vm = holder.vm
    quorum.require(vm)
    holder.having(command.volid)
    # A vzdump task of an earlier run may still wait for the node's lock, with the VM unlocked.
    vm.await_tasks()
    _require_privileges(shared, command)
    archives = Archives(shared, vm, command.storage, command.backup_id, command.cloud)
    if archives.made() is None:
        archives.remove_unfinished()
        _require_off(vm)
        holder.plug(command.volid)
        _dump(shared, holder, command, archives)
    made = archives.made()
    if made is None:
        raise HypervisorError(
            Category.UNKNOWN_OUTCOME, f"The archive of {vm} on {command.storage} was not seen."
        )
    archives.protect(made)
    _require_off(vm)
    holder.park()
    return MadeVolume(made.volid, made.size_bytes)


def remove(shared: Shared, work: Work, command: BackUpVolume | RemoveBackup) -> Removal:
    """See ``port.Volume.remove_backup``."""
    if isinstance(command, BackUpVolume):
        backup_id, archive, volume_id = command.backup_id, None, command.resource_id
    else:
        backup_id, archive = command.resource_id, command.archive
        volume_id = command.volume_id or ""
    placed = command.placed
    mark = volume_mark(volume_id, command.cloud)
    holder = Holder.of(shared, work, placed, mark)
    if volume_id:
        _park(holder)
    archives = Archives(shared, holder.vm, command.storage, backup_id, command.cloud)
    return Removal(True, tuple(archives.remove(archive)))


def _park(holder: Holder) -> None:
    """Have the holder at rest, once nothing works on it; it may be gone."""
    if holder.vm.locate() is None:
        return
    holder.vm.await_tasks()
    if holder.seen() is not None:
        _require_off(holder.vm)
        holder.park()


def _require_off(vm: Vm) -> None:
    """Stop a holder that runs: its own QEMU, of a backup that was ended by force, has the disk."""
    power.stop(vm, 0)


def _dump(shared: Shared, holder: Holder, command: BackUpVolume, archives: Archives) -> None:
    vm = holder.vm

    def call() -> Any:
        vm.fence()
        values = {
            "vmid": vm.vmid,
            "storage": command.storage,
            "mode": "snapshot",
            "compress": "zstd",
            "notes-template": marks.backup_notes(command),
            "protected": 1,
            # Others' archives are none of ours to prune.
            "remove": 0,
        }
        return shared.client.post(f"nodes/{vm.node}/vzdump", **values)

    def done() -> bool:
        holder.required()
        return archives.made() is not None

    vm.converge(done, call, look_first=False)


def _require_privileges(shared: Shared, command: BackUpVolume) -> None:
    """Raise HypervisorError (authorization), which Proxmox VE reports only in a task's log."""
    needed = privileges.backups(command.storage, f"/vms/{command.placed.vmid}")
    lacks = privileges.lacking(shared.client.get("access/permissions"), needed)
    if lacks:
        raise HypervisorError(
            Category.AUTHORIZATION,
            f"The agent's token lacks {privileges.sentence(lacks)}: it can't make backups.",
            remedy=shared.client.granting(privileges.backups(command.storage)),
            verdict=Verdict.FATAL,
        )


class Archives:
    """The archives of one VMID on a storage, and those among them that are one backup's."""

    def __init__(self, shared: Shared, vm: Vm, storage: str, backup_id: str, cloud: str) -> None:
        self._shared, self._vm, self._storage = shared, vm, storage
        self._mark = (backup_id, cloud)

    def made(self) -> Archive | None:
        """Return the backup's archive; None: there is none."""
        return next((one for one in self._listed() if self._is_mine(one)), None)

    def protect(self, archive: Archive) -> None:
        """Keep Proxmox VE's own jobs from pruning it."""
        if not archive.protected:
            self._set_protected(archive, wanted=True)

    def remove(self, known: str | None) -> Iterator[str]:
        """Remove the backup's archives; yield what was removed. ``known``: by the record."""
        listed = {one.volid: one for one in self._listed()}
        if known is not None and known in listed and not self._is_mine(listed[known]):
            raise HypervisorError(
                Category.PROTECTED,
                f"The notes of {known} don't name backup {self._mark[0]}. It was not touched.",
                left=(f"archive {known}: its notes name another owner, not touched",),
            )
        for one in listed.values():
            if self._is_mine(one):
                self._delete(one)
                yield f"archive {one.volid}"
        yield from self.remove_unfinished()

    def remove_unfinished(self) -> list[str]:
        """Remove archives that tasks of ours made which were ended before they wrote the notes."""
        bare = {one.file: one for one in self._listed() if not one.notes and not one.protected}
        removed = []
        for file in self._unfinished() if bare else ():
            if file in bare:
                self._delete(bare[file])
                removed.append(f"archive {bare[file].volid}")
        return removed

    def _unfinished(self) -> Iterator[str]:
        me = self._shared.settings.token.id
        for task in self._shared.tasks.of_vm(self._vm.node, self._vm.vmid, KIND):
            if task.who == me:
                log = self._shared.tasks.log_head(task, _LOG_LINES)
                named = (_NAMES.search(line) for line in log)
                if not any(_NOTED in line for line in log):
                    yield from (match[1] for match in named if match is not None)

    def _is_mine(self, archive: Archive) -> bool:
        named = marks.backup_of(archive.notes)
        return named is not None and (named.backup_id, named.cloud) == self._mark

    def _listed(self) -> list[Archive]:
        path = f"nodes/{self._vm.node}/storage/{self._storage}/content"
        listed = self._shared.client.get(path, content="backup", vmid=self._vm.vmid)
        return [_archive(one) for one in listed if int(one.get("vmid") or 0) == self._vm.vmid]

    def _set_protected(self, archive: Archive, *, wanted: bool) -> None:
        path = paths.volume(self._vm.node, archive.volid)

        def done() -> bool:
            found = next((one for one in self._listed() if one.volid == archive.volid), None)
            return found is None or found.protected == wanted

        self._vm.converge(done, lambda: self._shared.client.put(path, protected=int(wanted)))

    def _delete(self, archive: Archive) -> None:
        if archive.protected:
            self._set_protected(archive, wanted=False)

        path = paths.volume(self._vm.node, archive.volid)

        def call() -> Any:
            self._require_unchanged(archive)
            return self._shared.client.delete(path)

        def done() -> bool:
            return all(one.volid != archive.volid for one in self._listed())

        key = self._shared.storage_key(self._vm.node, self._storage)
        with self._shared.storage_queue.slot(self._vm.work, key, "free"):
            self._vm.converge(done, call, look_first=False)
        if not done():
            raise HypervisorError(
                Category.UNKNOWN_OUTCOME, f"{archive.volid} is still there after its removal."
            )

    def _require_unchanged(self, archive: Archive) -> None:
        """Raise HypervisorError (protected) if the archive's notes changed since it was read."""
        for one in self._listed():
            if one.volid == archive.volid and one.notes != archive.notes:
                raise HypervisorError(
                    Category.PROTECTED,
                    f"Somebody changed the notes of {one.volid}. It was not touched.",
                    left=(f"archive {one.volid}: its notes were changed, not touched",),
                )


def _archive(listed: Mapping[str, Any]) -> Archive:
    return Archive(
        str(listed["volid"]),
        int(listed.get("size") or 0),
        str(listed.get("notes") or ""),
        str(listed.get("protected") or "0") == "1",
    )
