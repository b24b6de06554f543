"""Volumes that belong to a place of a group: each server in it has them after the former one.

They are made with the place's first server, as volumes of any server are, and recorded with it in
one transaction. A server that could not be built leaves none of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from common.context import RequestContext
from common.errors import Invalid, VolumeNotFound
from common.log import logger
from common.resources.volumes import ROOT_SLOT, VolumeStatus
from conductor.cloud import Cloud
from conductor.rpc.servers.servers import BlockDevice
from conductor.store.groups.groups import Member
from conductor.store.transactions import Transaction, after_commit
from conductor.store.volumes import attachments, volumes
from conductor.volumes import delete_volume

LOG = logger(__name__)


def devices(
    connection: Transaction, member: Member, asked: Sequence[BlockDevice]
) -> tuple[BlockDevice, ...]:
    """Return what a new server of a place gets: its volumes, and those that it still lacks.

    A volume that its user deleted, or gave to another project, is made again.
    """
    there = {str(row.id) for row in _locked(connection, member)}
    left, found, number = iter(member.volumes), [], 0
    for one in asked:
        if not _is_kept(one):
            found.append(one)
            continue
        number += 1
        volume_id = next(left, None)
        if volume_id in there:
            found.append(BlockDevice(volume_id=volume_id, tag=one.tag))
        else:
            name = f"{member.name}-volume-{number}"[-255:]
            found.append(dataclasses.replace(one, delete_on_termination=False, name=name))
    return tuple(found)


def recorded(
    connection: Transaction, member: Member, asked: Sequence[BlockDevice], server_uuid: str
) -> list[str]:
    """Return the volumes of a place once its new server is written; those that another profile
    had and this one has not are still the place's."""
    data = [one for one in asked if not one.boot]
    # They have slots in the order in which they are asked for.
    rows = [one for one in attachments.of_server(connection, server_uuid) if one.slot != ROOT_SLOT]
    mine = [row.volume_id for one, row in zip(data, rows, strict=True) if _is_kept(one)]
    return [*mine, *member.volumes[len(mine) :]]


def delete(
    connection: Transaction, cloud: Cloud, ctxt: RequestContext, members: Iterable[Member]
) -> None:
    """Begin to delete the volumes of places that are given up.

    What its user has attached elsewhere, or made snapshots of, is left to the user.
    """
    for member in members:
        for row in _locked(connection, member):
            try:
                delete_volume.begin(connection, cloud, ctxt, row, now=False)
                after_commit(connection, cloud.wake)
            except Invalid as error:
                LOG.info("Volume %s of %s is left: %s", row.id, member.name, error.message)


def _is_kept(device: BlockDevice) -> bool:
    """Return whether it is a data volume that is made with a server."""
    return device.volume_id is None and not device.boot


def _locked(connection: Transaction, member: Member) -> list[Any]:
    """Return the volumes of a place that exist, and are not being deleted."""
    found = []
    for volume_id in sorted(member.volumes):
        try:
            row = volumes.locked(connection, volume_id, member.project_id)
        except VolumeNotFound:
            continue
        if row.status != VolumeStatus.DELETING:
            found.append(row)
    return found
