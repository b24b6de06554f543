"""The inventory's volumes: disks in our band and config drives of ours, and which we made."""

from __future__ import annotations

import concurrent.futures
import datetime
import random
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from common.messages.facts import OwnerMark
from common.messages.inventory import SeenBackup, SeenImageFile, SeenVm, SeenVolume
from common.resources import image_files
from common.resources.states import ResourceType
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.storage.volumes import Volume, made_on
from compute.hypervisor.proxmox.vmconfig import disks, marks

#: VMIDs without a VM for whose disks the making task is searched, in each inventory
STRAYS = 50

_CONFIG_DRIVE = re.compile(r"micronova-([0-9]+)-([0-9a-f-]{36})(?:-2)?\.iso$")


class VolumeReader:
    """Lists storages; adds what can't be read to ``unseen``, with its node."""

    def __init__(self, shared: Shared, unseen: dict[str, str]) -> None:
        self._shared, self._unseen = shared, unseen
        self.files: list[SeenImageFile] = []
        """Files of uploaded images on what was read."""
        self.backups: list[SeenBackup] = []
        """Archives on what was read that name a backup."""
        self._listed: set[tuple[str, str]] = set()
        """Node (empty: any) and storage whose disks were listed."""

    def read(
        self, node: str, storage: str, shared: bool, *, has_disks: bool = True
    ) -> list[SeenVolume]:
        """Return the disks of the band, and config drives of ours, on one storage."""
        try:
            listed = self._shared.client.get(f"nodes/{node}/storage/{storage}/content")
        except ApiError as error:
            self._unseen[f"Storage {storage} on {node}: {error.message}"] = node
            return []
        if has_disks:
            self._listed.add(("" if shared else node, storage))
        self.files += _image_files(listed, node, storage, shared)
        self.backups += _backups(listed, node, storage, shared)
        found = (self._volume(one, node, storage, shared) for one in listed)
        return [volume for volume in found if volume is not None]

    def with_lost(self, vm: SeenVm, found: Iterable[SeenVolume]) -> SeenVm:
        """Return the VM with which of its own disks their storages, which were read, don't list.

        Disks of other bands are not in what was found.
        """
        if not vm.drives or not self._shared.settings.in_band(vm.vmid):
            return vm
        there = {one.volid for one in found if one.vmid == vm.vmid}
        own = disks.volumes({one.slot: one.volid for one in vm.drives}, vm.vmid)

        def is_lost(volid: str) -> bool:
            storage = volid.partition(":")[0]
            listed = {("", storage), (vm.node, storage)} & self._listed
            return volid in own - there and bool(listed)

        drives = tuple(replace(one, lost=is_lost(one.volid)) for one in vm.drives)
        return replace(vm, drives=drives)

    def _volume(
        self, one: Mapping[str, Any], node: str, storage: str, shared: bool
    ) -> SeenVolume | None:
        volid = str(one.get("volid", ""))
        server = None
        if one.get("content") == "iso":
            match = _CONFIG_DRIVE.search(volid)
            if match is None:
                return None
            vmid, server = int(match[1]), match[2]
        else:
            vmid = int(one.get("vmid") or 0)
        if one.get("content") not in ("images", "iso") or not self._shared.settings.in_band(vmid):
            return None
        created = one.get("ctime")
        return SeenVolume(
            volid,
            storage,
            node,
            vmid,
            shared,
            int(one.get("size") or 0),
            datetime.datetime.fromtimestamp(int(created), datetime.UTC) if created else None,
            server,
        )

    def with_makers(
        self,
        found: list[SeenVolume],
        present: Collection[int],
        online: Collection[str],
        readers: concurrent.futures.Executor,
    ) -> list[SeenVolume]:
        """Return the volumes; those without a VM, or of a VM that was never finished, with
        whether a task of ours made them.

        A bounded number of random VMIDs is checked each time, so that the number of calls is
        bounded however many volumes there are.
        """
        stray = [one for one in found if one.server_uuid is None and one.vmid not in present]
        vmids = sorted({one.vmid for one in stray})
        chosen = set(random.sample(vmids, min(STRAYS, len(vmids))))
        asked = [one for one in stray if one.vmid in chosen]
        proven = dict(
            zip(asked, readers.map(lambda one: self._maker_of(one, online), asked), strict=True)
        )
        return [proven.get(one, one) for one in found]

    def _maker_of(self, volume: SeenVolume, online: Collection[str]) -> SeenVolume:
        """Return the volume as its maker's node sees it, where its removal is proven once more."""
        created = int(volume.created_at.timestamp()) if volume.created_at else None
        nodes = sorted(online, key=lambda node: (node != volume.node, node))
        for node in nodes if volume.shared else [volume.node]:
            one = Volume(volume.volid, volume.storage, node, created)
            try:
                if made_on(self._shared, node, volume.vmid, [one]):
                    return replace(volume, node=node, ours=True)
            except ApiError as error:
                self._unseen[f"The tasks of {node} can't be read: {error.message}"] = node
        return volume


def _backups(
    listed: Iterable[Mapping[str, Any]], node: str, storage: str, shared: bool
) -> list[SeenBackup]:
    found = []
    for one in listed:
        named = marks.backup_of(str(one.get("notes") or ""))
        if named is None or one.get("content") != "backup":
            continue
        about, made = (ResourceType.BACKUP, named.backup_id), one.get("ctime")
        found.append(
            SeenBackup(
                *(str(one["volid"]), storage, node, named.backup_id, named.cloud, shared),
                size_bytes=int(one.get("size") or 0),
                mark=OwnerMark(named.cloud, *about, named.epoch) if named.epoch else None,
                project_id=named.project,
                user_id=named.user,
                volume_id=named.volume,
                size_gib=named.size,
                vmid=int(one.get("vmid") or 0),
                created_at=datetime.datetime.fromtimestamp(int(made), datetime.UTC)
                if made
                else None,
            )
        )
    return found


def _image_files(
    listed: Iterable[Mapping[str, Any]], node: str, storage: str, shared: bool
) -> list[SeenImageFile]:
    found = []
    for one in listed:
        volid = str(one.get("volid", ""))
        named = image_files.parse(volid)
        if named is not None and one.get("content") in ("import", "iso"):
            size = int(one.get("size") or 0)
            found.append(
                SeenImageFile(
                    *(volid, storage, node, named.image_id, named.cloud, shared, size),
                    *(named.project_id, named.digest),
                )
            )
    return found
