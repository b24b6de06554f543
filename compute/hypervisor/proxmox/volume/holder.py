"""The holder of a volume: a stopped VM of its own, whose disk rests as ``unused`` and protected.

The disk is plugged into it only for what Proxmox VE does to plugged disks, and only while no
server names it.
"""

from __future__ import annotations

from typing import Any

from common.messages.commands import (
    BackUpVolume,
    GrowVolume,
    MakeVolume,
    RemoveBackup,
    RemoveVolume,
    RetypeVolume,
    SnapVolume,
    VolumeUser,
)
from common.messages.reports import Category, MadeVolume
from compute.hypervisor.port import Detail, HypervisorError, Removal, Work
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster import quorum
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.cluster.vmid import Config, ForeignError, Vm
from compute.hypervisor.proxmox.storage import one_volume
from compute.hypervisor.proxmox.storage import volumes as stored
from compute.hypervisor.proxmox.vm import half_created, host_checks, removal, templates
from compute.hypervisor.proxmox.vmconfig import disks, marks, volumes
from compute.hypervisor.proxmox.volume import (
    archives,
    content,
    fence,
    remains,
    retyping,
    snapshots,
)
from compute.hypervisor.proxmox.volume.parking import Holder


class ProxmoxVolume:
    """Implements ``port.Volume`` for one operation."""

    def __init__(self, shared: Shared, work: Work) -> None:
        self._shared, self._work = shared, work
        self._holder = Holder.of_command(shared, work)
        self._vm = self._holder.vm

    def make(self, command: MakeVolume) -> MadeVolume:
        """See ``port.Volume``. Create, grow, park: six calls for an empty one."""
        quorum.require(self._vm)
        config = self._seen()
        if config is not None and self._is_remains(command, config):
            self.unmake()
            config = self._seen()
        if config is None:
            self._require_no_strays()
            templates.free_remains(self._vm)
            self._create(command)
            config = self._made()
        if marks.is_building(config):
            self._configure()
            config = self._made()
        disk = self._holder.disk(config)
        if disk is None:
            raise HypervisorError(Category.CREATION_FAILED, f"{self._vm} has no disk.")
        if not volumes.parked(config, self._vm.vmid):
            self._holder.plug(disk)
            size = self._grow(self._vm, disk, command.size_gib)
            _require_asked(command, size)
            way = snapshots.way(self._shared, self._vm, command.storage)
            self._holder.park()
        else:
            size = self._holder.bytes_of(disk)
            self._holder.park()
            way = snapshots.known_way(self._shared, self._vm.node, command.storage)
        return MadeVolume(disk, size, way)

    def remove(self, command: RemoveVolume) -> Removal:
        """See ``port.Volume``."""
        config = self._seen()
        disk = command.volid
        if config is not None:
            disk = self._holder.disk(config) or disk
        if config is not None:
            # No server gets it any more: attaching one requires that its holder is protected.
            self._holder.unprotect()
        try:
            if disk is not None:
                fence.require_unused(self._vm, disk, command.users)
        except HypervisorError:
            if config is not None:
                self._holder.park()
            raise
        return removal.remove(self._vm)

    def unmake(self) -> Removal:
        """See ``port.Volume``: a volume that was never reported has no users."""
        try:
            if self._seen() is not None:
                self._holder.unprotect()
            return removal.remove(self._vm)
        except HypervisorError as error:
            half_created.name_disks(self._vm, error)
            raise

    def grow(self, command: GrowVolume) -> MadeVolume:
        """See ``port.Volume``."""
        user = command.user
        if user is not None:
            return MadeVolume(command.volid, self._grow_of(user, command))
        config = self._holder.having(command.volid)
        if volumes.parked(config, self._vm.vmid):
            size = one_volume.listed_bytes(self._vm, command.volid)
            if size >= command.size_gib << 30:
                return MadeVolume(command.volid, size)
        try:
            self._holder.plug(command.volid)
            size = self._grow(self._vm, command.volid, command.size_gib)
        except HypervisorError:
            # Grown or not: a volume that is not in use is parked.
            self._holder.park()
            raise
        self._holder.park()
        return MadeVolume(command.volid, size)

    def _grow_of(self, user: VolumeUser, command: GrowVolume) -> int:
        """Grow the disk of a server's VM, on the node that this is on by then."""
        try:
            return self._grow(self._holder.server(user), command.volid, command.size_gib)
        except ApiError as error:
            if not error.no_config:
                raise
        # It was moved between the look and the call.
        return self._grow(self._holder.server(user), command.volid, command.size_gib)

    def _grow(self, vm: Vm, disk: str, gib: int) -> int:
        """Grow a plugged disk to this size; return its size in bytes. Never shrinks."""

        def size() -> int:
            config = vm.look() or {}
            slot = volumes.slot_of(config, disk)
            return 0 if slot is None else disks.size_bytes(str(config[slot]))

        def call() -> Any:
            config = vm.fence()
            slot = volumes.slot_of(config, disk)
            if slot is None:
                raise HypervisorError(Category.VANISHED, f"{vm} hasn't {disk} any more.")
            path, digest = f"{vm.path}/resize", config["digest"]
            return self._shared.client.put(path, disk=slot, size=f"{gib}G", digest=digest)

        if size() < gib << 30:
            key = self._shared.storage_key(vm.node, disk.split(":", 1)[0])
            with self._shared.storage_queue.slot(self._work, key, "resize"):
                vm.converge(lambda: size() >= gib << 30, call, look_first=False)
        found = size()
        if found < gib << 30:
            raise HypervisorError(
                Category.UNKNOWN_OUTCOME, f"{disk} has {found >> 20} MiB after it was grown."
            )
        return found

    def retype(self, command: RetypeVolume) -> MadeVolume:
        """See ``port.Volume``."""
        return retyping.change(self._shared, self._holder, command)

    def snap(self, command: SnapVolume) -> Detail:
        """See ``port.Volume``."""
        return snapshots.change(self._shared, self._holder, command)

    def unsnap(self, command: SnapVolume) -> Removal:
        """See ``port.Volume``."""
        return snapshots.undo(self._shared, self._holder, command)

    def back_up(self, command: BackUpVolume) -> MadeVolume:
        """See ``port.Volume``."""
        return archives.back_up(self._shared, self._holder, command)

    def remove_backup(self, command: BackUpVolume | RemoveBackup) -> Removal:
        """See ``port.Volume``."""
        return archives.remove(self._shared, self._work, command)

    # --- making

    def _create(self, command: MakeVolume) -> None:
        storage = host_checks.storage(self._shared, self._vm.node, command.storage)
        source = command.source
        fence.require_room(self._vm, storage, command.size_gib << 30)
        key = self._shared.storage_key(self._vm.node, storage.name)
        what = "volume" if source is None else f"copy of {source.volid}"
        try:
            with self._shared.storage_queue.slot(self._work, key, what):
                self._vm.converge(
                    self._is_there,
                    lambda: content.request(self._shared, self._vm, command, storage),
                    look_first=False,
                )
        except ApiError as error:
            if source is not None and source.snapshot is not None:
                # The task of a copy meets the lock of what it copies.
                content.holder_of(self._vm, command, source).explain_lock(error)
            # The owner decides: our holder is gone on with, another's VM is never adopted.
            if not error.id_taken or self._holder.seen() is None:
                raise

    def _is_there(self) -> bool:
        """Return whether the holder is there; what a restore of ours left that failed is none."""
        try:
            return self._holder.seen() is not None
        except ForeignError:
            if not remains.are_ours(self._vm):
                raise
            return False

    def _is_remains(self, command: MakeVolume, config: Config) -> bool:
        """Return whether a restore has failed there, which left its VM without a disk."""
        restores = command.source is not None and command.source.archive
        building = marks.is_building(config)
        return restores and building and self._holder.disk(config) is None

    def _configure(self) -> None:
        """Give a clone the marks of its own volume."""

        def call() -> Any:
            config = self._vm.fence()
            path, values = f"{self._vm.path}/config", content.marks_of(self._vm)
            return self._shared.client.post(path, digest=config["digest"], **values)

        self._vm.converge(lambda: not marks.is_building(self._vm.look() or {}), call)

    def _made(self) -> Config:
        config = self._holder.seen()
        if config is None:
            raise HypervisorError(Category.VANISHED, f"{self._vm} isn't there any more.")
        return config

    def _require_no_strays(self) -> None:
        strays = stored.strays(self._vm, stored.everywhere(self._vm))
        if strays is not None:
            raise strays

    # --- looking

    def _seen(self) -> Config | None:
        """Return the holder's configuration; None: it is gone.

        What a restore of ours left that failed gets our mark before.
        """
        try:
            return self._holder.seen()
        except ForeignError:
            if not remains.claim(self._vm):
                raise
            return self._holder.seen()


def _require_asked(command: MakeVolume, size: int) -> None:
    """Raise image_corrupt if what was copied has made the volume larger than asked for."""
    if command.source is not None and size > command.size_gib << 30:
        raise HypervisorError(
            Category.IMAGE_CORRUPT,
            f"{command.source.volid} became a disk of {size} bytes, where {command.size_gib} GiB "
            "were asked for.",
        )
