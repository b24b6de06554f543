"""Volumes that are kept in memory."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from common.messages.commands import (
    BackUpVolume,
    GrowVolume,
    MakeVolume,
    RemoveBackup,
    RemoveVolume,
    RetypeVolume,
    SnapshotVerb,
    SnapVolume,
)
from common.messages.reports import Category, MadeVolume
from common.resources.volumes import SnapshotWay
from compute.hypervisor.nullmachine import Vm
from compute.hypervisor.port import Detail, HypervisorError, Removal, Work


@dataclass
class Kept:
    """One volume's data."""

    volume_id: str
    volid: str
    size_gib: int
    node: str
    cloud: str
    snapshots: set[str] = field(default_factory=set)


class NullVolume:
    """One volume in memory; implements ``port.Volume``."""

    def __init__(
        self, volumes: dict[int, Kept], vms: dict[int, Vm], lock: threading.Lock, work: Work
    ) -> None:
        """``volumes`` by the VMID of their holder."""
        self._volumes, self._vms, self._lock, self._work = volumes, vms, lock, work

    def make(self, command: MakeVolume) -> MadeVolume:
        """Keep it."""
        vmid = command.placed.vmid
        volid = f"{command.storage}:vm-{vmid}-disk-0"
        new = Kept(
            command.server_uuid, volid, command.size_gib, command.placed.node, command.cloud
        )
        with self._lock:
            kept = self._volumes.setdefault(vmid, new)
            if kept.volume_id != command.server_uuid or vmid in self._vms:
                raise HypervisorError(Category.STORAGE_CONFLICT, f"VM {vmid} isn't the volume's.")
        return _made(kept)

    def remove(self, command: RemoveVolume) -> Removal:
        """Remove the volume, if it is the command's and no VM uses it."""
        with self._lock:
            kept = self._mine()
            users = () if kept is None else self._users(kept.volid)
            if users:
                raise HypervisorError(
                    Category.PROTECTED, f"VM {users[0]} uses the volume. It was not touched."
                )
            if kept is not None:
                del self._volumes[command.placed.vmid]
        return Removal(True, () if kept is None else (f"volume {kept.volid}",))

    def unmake(self) -> Removal:
        """Remove it, if it is this one."""
        with self._lock:
            kept = self._mine()
            if kept is not None:
                del self._volumes[self._work.command.placed.vmid]
        return Removal(True, () if kept is None else (f"volume {kept.volid}",))

    def grow(self, command: GrowVolume) -> MadeVolume:
        """Keep its new size."""
        with self._lock:
            kept = self._mine()
            if kept is None:
                raise HypervisorError(Category.VANISHED, "There is no such volume.")
            kept.size_gib = max(kept.size_gib, command.size_gib)
            return _made(kept)

    def retype(self, command: RetypeVolume) -> MadeVolume:
        """Keep that it is on another storage, unless it is only looked for."""
        with self._lock:
            kept = self._mine()
            if kept is None:
                raise HypervisorError(Category.VANISHED, "There is no such volume.")
            if not command.settle:
                kept.volid = f"{command.storage}:{kept.volid.partition(':')[2]}"
            return _made(kept)

    def snap(self, command: SnapVolume) -> Detail:
        """Keep the snapshot's name, or forget it."""
        with self._lock:
            kept = self._mine()
            if kept is None:
                raise HypervisorError(Category.VANISHED, "There is no such volume.")
            if command.verb is SnapshotVerb.TAKE:
                kept.snapshots.add(command.name)
            elif command.verb is SnapshotVerb.REMOVE:
                kept.snapshots.discard(command.name)
            elif command.verb is SnapshotVerb.REVERT and command.name not in kept.snapshots:
                raise HypervisorError(Category.VANISHED, "There is no such snapshot.")
        return {"volume": kept.volid, "snapshot": command.name}

    def unsnap(self, command: SnapVolume) -> Removal:
        """Forget a snapshot that was being taken."""
        with self._lock:
            kept = self._mine()
            if kept is not None:
                kept.snapshots.discard(command.name)
        return Removal(True, (f"snapshot {command.name}",))

    def back_up(self, command: BackUpVolume) -> MadeVolume:
        """Say where an archive would be: nothing of a volume but its size is kept here."""
        with self._lock:
            kept = self._mine()
            if kept is None:
                raise HypervisorError(Category.VANISHED, "There is no such volume.")
            return MadeVolume(f"{command.storage}:backup/{command.backup_id}", kept.size_gib << 30)

    def remove_backup(self, command: BackUpVolume | RemoveBackup) -> Removal:
        """Do nothing: no archive is kept."""
        return Removal(True)

    def _mine(self) -> Kept | None:
        kept = self._volumes.get(self._work.command.placed.vmid)
        mine = kept is not None and kept.volume_id == self._work.command.server_uuid
        return kept if mine else None

    def _users(self, volid: str) -> list[int]:
        return [vmid for vmid, vm in self._vms.items() if volid in vm.volumes.values()]


def _made(kept: Kept) -> MadeVolume:
    return MadeVolume(kept.volid, kept.size_gib << 30, SnapshotWay.ONLINE)
