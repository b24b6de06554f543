"""Images of VMs and volumes that are kept in memory."""

from __future__ import annotations

import threading

from common.messages.commands import Copy
from common.messages.reports import Category, Copied
from compute.hypervisor.nullmachine import Vm
from compute.hypervisor.nullvolume import Kept
from compute.hypervisor.port import Detail, HypervisorError, Removal


class NullCopy:
    """The image of one VM or volume; implements ``port.DiskCopy``."""

    def __init__(
        self,
        vms: dict[int, Vm],
        volumes: dict[int, Kept],
        templates: dict[int, str],
        lock: threading.Lock,
        command: Copy,
    ) -> None:
        self._vms, self._volumes, self._templates, self._lock = vms, volumes, templates, lock
        self._command = command

    def find(self) -> Detail:
        """Find the VM or the volume by its id and owner."""
        self._source_gib()
        return {"vmid": self._command.source_vmid}

    def make(self) -> Copied:
        """Keep that the image is there."""
        size, command = self._source_gib() << 30, self._command
        vmid = command.placed.vmid
        with self._lock:
            if self._templates.setdefault(vmid, command.image_id) != command.image_id:
                raise HypervisorError(
                    Category.STORAGE_CONFLICT, f"VM {vmid} is another image's template."
                )
        return Copied(f"{command.storage}:base-{vmid}-disk-0", "raw", size, size)

    def remove(self) -> Removal:
        """Remove the image, if it is this one."""
        vmid = self._command.placed.vmid
        with self._lock:
            ours = self._templates.get(vmid) == self._command.image_id
            if ours:
                del self._templates[vmid]
        return Removal(True, (f"template {vmid}",) if ours else ())

    def _source_gib(self) -> int:
        command = self._command
        if command.volid:
            kept = self._volumes.get(command.source_vmid)
            if kept is None or (kept.volume_id, kept.volid) != (
                command.server_uuid,
                command.volid,
            ):
                raise HypervisorError(Category.VANISHED, "There is no such volume.")
            return kept.size_gib
        found = self._vms.get(command.source_vmid)
        if found is None or found.server_uuid != command.server_uuid:
            raise HypervisorError(
                Category.VANISHED, f"The server has no VM {command.source_vmid}."
            )
        return found.disk_gib
