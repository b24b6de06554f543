"""Data volumes that belong to a place of a group.

They are made with the place's first server, as volumes of any server are. A server that could not
be built leaves none of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from common.errors import Invalid, VolumeNotFound
from common.log import logger
from common.resources.groups import Keep
from common.resources.volumes import ROOT_SLOT, VolumeStatus
from conductor.rpc.servers.servers import BlockDevice, CreateServers
from conductor.servers.groups.belongings import Belongings, paired
from conductor.store.transactions import after_commit
from conductor.store.volumes import attachments, volumes
from conductor.volumes import delete_volume

LOG = logger(__name__)


class PlaceVolumes(Belongings):
    """See ``Belongings``. A volume remains in its position: its data are those of that one."""

    keep = Keep.VOLUMES
    _asked: Sequence[BlockDevice] = ()

    def request(self, asked: CreateServers) -> CreateServers:
        self._asked = asked.volumes
        count = sum(map(_is_kept, asked.volumes))
        of = paired(count, self.had, lambda wanted, one: wanted == one and self._has(one))
        places = iter(enumerate(of, 1))
        devices = (
            self._device(one, *next(places)) if _is_kept(one) else one for one in asked.volumes
        )
        return dataclasses.replace(asked, volumes=tuple(devices))

    def _has(self, position: int) -> bool:
        return self.had[position] in self.there

    def _device(self, one: BlockDevice, number: int, volume_id: str | None) -> BlockDevice:
        if volume_id is not None:
            return BlockDevice(volume_id=volume_id, tag=one.tag)
        return dataclasses.replace(one, delete_on_termination=False, name=self.name(number))

    def _of(self, server_uuid: str) -> Sequence[str]:
        data = [one for one in self._asked if not one.boot]
        # They have slots in the order in which they are asked for.
        attached = attachments.of_server(self.connection, server_uuid)
        rows = [one for one in attached if one.slot != ROOT_SLOT]
        return [row.volume_id for one, row in zip(data, rows, strict=True) if _is_kept(one)]

    def _locked(self) -> Iterable[Any]:
        for volume_id in sorted(self.had):
            try:
                row = volumes.locked(self.connection, volume_id, self.member.project_id)
            except VolumeNotFound:
                continue
            if row.status != VolumeStatus.DELETING:
                yield row

    def _delete(self, row: Any) -> None:
        try:
            delete_volume.begin(self.connection, self.cloud, self.ctxt, row, now=False)
            after_commit(self.connection, self.cloud.wake)
        except Invalid as error:
            LOG.info("Volume %s of %s is left: %s", row.id, self.member.name, error.message)


def _is_kept(device: BlockDevice) -> bool:
    """Return whether it is a data volume that is made with a server."""
    return device.volume_id is None and not device.boot
