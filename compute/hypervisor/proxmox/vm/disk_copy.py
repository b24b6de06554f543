"""Images of servers and volumes: a disk is imported into a VM that becomes a template.

Proxmox VE copies a running VM's disk while the VM runs, and holds the lock of its configuration:
the VM can't be stopped, started or changed until the copy ends. Its task is never stopped.
"""

from __future__ import annotations

from typing import Any

from common.messages.commands import Copy, Image, Template
from common.messages.reports import Category, CopiedDisk
from compute.hypervisor.port import Detail, HypervisorError, Removal, Work
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster import quorum
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.cluster.vmid import Config, Vm
from compute.hypervisor.proxmox.vm import half_created, removal, templates
from compute.hypervisor.proxmox.vmconfig import disks, volumes
from compute.hypervisor.proxmox.vmconfig.marks import (
    epoch_lines,
    owner_lines,
    server_mark,
    template_mark,
    volume_mark,
)


class ProxmoxDiskCopy:
    """Implements ``port.DiskCopy`` for one operation."""

    def __init__(self, shared: Shared, work: Work, command: Copy) -> None:
        self._shared, self._command = shared, command
        where = command.placed
        mark = server_mark(command.resource_id, command.cloud)
        if command.volid:
            mark = volume_mark(command.resource_id, command.cloud)
        self._source = Vm(shared, work, command.source_vmid, where.node, mark)
        about = (*owner_lines(command.project_id, command.user_id), *epoch_lines(command))
        made = template_mark(command.image_id, command.cloud, about)
        self._vm = Vm(shared, work, where.vmid, where.node, made)

    def find(self) -> Detail:
        """See ``port.DiskCopy``."""
        return {"node": self._source.node, "volume": self._disk()}

    def make(self) -> CopiedDisk:
        """See ``port.DiskCopy``."""
        quorum.require(self._source)
        config = self._seen()
        if config is None:
            templates.free_remains(self._vm)
            self._copy()
            config = self._seen()
        if config is None:
            raise HypervisorError(
                Category.UNKNOWN_OUTCOME, f"{self._vm} is not there after its task ended well."
            )
        templates.convert(self._vm, look_first=True)
        return self._copied(self._vm.look() or {})

    def remove(self) -> Removal:
        """See ``port.DiskCopy``."""
        return removal.remove(self._vm)

    def _disk(self) -> str:
        """Return the server's root disk, or the volume that the holder has.

        Raises HypervisorError if their VM isn't on the node of the command.
        """
        config = self._source.locate()
        found = None if config is None else self._source.ours(config)
        if found is None:
            what = "volume has no holder" if self._command.volid else "server has no VM"
            raise HypervisorError(Category.VANISHED, f"The {what}.")
        if self._source.node != self._source.home:
            raise HypervisorError(
                Category.CONFIGURATION,
                f"{self._source} was on {self._source.home} when the image was begun.",
            )
        if self._command.volid:
            return self._held(found)
        volid = disks.root(found).split(",", 1)[0]
        if ":" not in volid:
            raise HypervisorError(Category.CONFIGURATION, f"{self._source} has no root disk.")
        return volid

    def _held(self, config: Config) -> str:
        """Return the volume that the holder has, if it is that of the command."""
        has, volid = volumes.held(config, self._source.vmid), self._command.volid
        if has != volid:
            raise HypervisorError(
                Category.VANISHED, f"{self._source} has {has or 'no disk'}, not {volid}."
            )
        return volid

    def _seen(self) -> Config | None:
        """Return the copy's configuration, after waiting for the task that makes it."""
        config = self._vm.locate()
        try:
            return None if config is None else self._vm.ours(config)
        except HypervisorError as error:
            half_created.name_disks(self._vm, error)
            raise

    def _copy(self) -> None:
        command = self._command
        template = Template(self._vm.vmid, self._vm.node, command.storage)

        def post() -> Any:
            # Looked up before each write: the server's disk may have another name by now.
            image = Image(command.image_id, command.image_name, self._disk())
            values = templates.values(self._vm, image, template, "")
            return self._shared.client.post(f"nodes/{self._vm.node}/qemu", **values)

        try:
            self._vm.converge(lambda: self._seen() is not None, post, look_first=False)
        except ApiError as error:
            # The owner decides: our copy is continued with, another's VM is never adopted.
            if not error.id_taken or self._seen() is None:
                raise

    def _copied(self, config: Config) -> CopiedDisk:
        value = str(config.get(disks.ROOT_DISK, ""))
        volid = value.split(",", 1)[0]
        size = disks.size_bytes(value)
        return CopiedDisk(
            volid, "qcow2" if volid.endswith(".qcow2") else "raw", self._used(volid) or size, size
        )

    def _used(self, volid: str) -> int:
        """Return what the copy takes on its storage; 0 where the storage doesn't say."""
        path = f"nodes/{self._vm.node}/storage/{volid.split(':', 1)[0]}/content"
        listed = self._shared.client.get(path, content="images", vmid=self._vm.vmid)
        return next((int(one.get("used") or 0) for one in listed if one["volid"] == volid), 0)
