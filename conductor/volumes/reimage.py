"""Gives volumes new content, made of an image: in another holder, which takes the old one's place.

Until it does, the old content is whole; afterwards the old holder is removed by an operation of
its own. A volume that a server has gets it by a rebuild of the server
(``conductor.servers.disks.rebuild``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from common import clock
from common.context import RequestContext
from common.errors import Invalid
from common.messages.commands import MakeVolume, Placed, VolumeUser
from common.messages.reports import VolumeMade
from common.resources.states import ResourceType
from common.resources.volumes import REIMAGED_RESERVED, VolumeAction, VolumeStatus
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.command_end import End
from conductor.plans import NewContent, Place, ReimagePlan
from conductor.rpc.volumes.volumes import NewVolume
from conductor.store.records import Operation
from conductor.store.servers import vmids
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments, backends, snapshots, volumes
from conductor.volumes import remove_volume, sources, status_rules, storage_choice, uncertain
from conductor.volumes.volume_command import MakingVolume, VolumeWork


def content_of(
    connection: Transaction, row: Any, image_id: str, cluster: str
) -> tuple[NewContent, sources.Found]:
    """Return the new content of a volume that is locked, without a place, and its source.

    Raises NotFound; Invalid if the image isn't fit for it, or it has snapshots in its holder.
    """
    found = sources.find(connection, NewVolume(row.project_id, row.size_gib, image_id=image_id))
    source = found.source(cluster)
    if source is None:
        raise Invalid(f"Image {image_id} is not in cluster {cluster}, where volume {row.id} is.")
    if row.volid is None or row.vmid is None:
        raise Invalid(f"Invalid volume: Volume {row.id} was never made.")
    if any(one.snapname is not None for one in snapshots.of_volume(connection, row.id)):
        raise Invalid(
            f"Invalid volume: Volume {row.id} has snapshots, which storage {row.storage} "
            "stores with its content: delete them before its content is replaced."
        )
    content = NewContent(
        volume_id=row.id,
        image_id=image_id,
        image_metadata=found.image_metadata or {},
        make=MakeVolume(size_gib=row.size_gib, storage=row.storage, source=source),
    )
    return content, found


def begin(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    row: Any,
    image_id: str,
    *,
    reserved: bool,
) -> Operation:
    """Write the operation that gives a volume new content, for ``cloud.start`` after the commit.

    The volume's row must be locked and the volume not attached. ``reserved``: allow the status
    ``reserved``. Raises NotFound, Invalid, BandExhausted.
    """
    statuses = REIMAGED_RESERVED if reserved else ()
    volumes.require_status(row, VolumeAction.REIMAGE, statuses)
    if attachments.of_volume(connection, row.id) is not None:
        raise Invalid(f"Invalid volume: Volume {row.id} is attached: rebuild its server.")
    content, found = content_of(connection, row, image_id, row.cluster)
    status_rules.begin(connection, row, VolumeAction.REIMAGE, statuses)
    place = _place(connection, cloud, row, found)
    vmid = vmids.reserve(connection, row.cluster, None, None)
    where = Place(place.host, None, place.cluster, place.node, vmid)
    plan = ReimagePlan(where, dataclasses.replace(content, place=where))
    resource = (ResourceType.VOLUME, row.id)
    item = start.new(cloud, VolumeAction.REIMAGE, resource, row.project_id, plan)
    return start.begin_now(connection, cloud, ctxt, item)


def _place(
    connection: Transaction, cloud: Cloud, row: Any, found: sources.Found
) -> backends.Backend:
    """Return where the new holder is made: on the same storage. Raises Invalid."""
    placement = dataclasses.replace(
        found.placement,
        size_gib=row.size_gib,
        storage=row.storage,
        clusters=frozenset({row.cluster}),
        on=None if row.shared else row.host,
        new=False,
    )
    known, promised = backends.read(connection), backends.promised(connection)
    place = storage_choice.choose(known, promised, placement, cloud.down(connection))
    if isinstance(place, str):
        raise Invalid(f"Invalid input received: {place}")
    return place


def take(
    connection: Transaction,
    cloud: Cloud,
    row: Any,
    content: NewContent,
    users: tuple[VolumeUser, ...] = (),
) -> None:
    """Record the new holder of a locked volume, and begin to remove the old one.

    ``users``: the servers that have it; none of them may name the old one's disk any more.
    """
    former, volid, place = remove_volume.place_of(row), row.volid, content.place
    volumes.change(
        connection,
        row.id,
        host=place.host,
        node=place.node,
        vmid=place.vmid,
        volid=content.volid,
        image_id=content.image_id,
        image_metadata=dict(content.image_metadata),
        snapshot_id=None,
        source_volume_id=None,
    )
    remove_volume.begin_holder(connection, cloud, row.id, row.project_id, former, volid, users)


def drop(
    connection: Transaction,
    cloud: Cloud,
    project_id: str,
    content: NewContent,
    users: tuple[VolumeUser, ...] = (),
) -> None:
    """Begin to remove a new holder that the volume's record doesn't take."""
    if content.place.vmid is not None:
        remove_volume.begin_holder(
            connection,
            cloud,
            content.volume_id,
            project_id,
            content.place,
            content.volid,
            users,
        )


def command(operation: Operation, content: NewContent) -> MakeVolume:
    """Return the command that makes the new holder; it may be sent again."""
    place = content.place
    about = operation.about(
        Placed(str(place.host), str(place.cluster), str(place.node), int(place.vmid or 0)),
        operation.deadline or clock.utcnow(),
        (ResourceType.VOLUME, content.volume_id),
    )
    make = dataclasses.replace(content.make, project_id=str(operation.project_id))
    return make.begun(*about)


class ReimageVolumeFlow(MakingVolume):
    """The flow of ``VolumeAction.REIMAGE``."""

    stage = "make"
    unseen = "The volume was not seen there."
    late = "The volume did not get its image in time."

    def command(self, task: VolumeWork) -> MakeVolume:
        """Return what makes the new holder."""
        return command(task.operation, task.operation.planned(ReimagePlan).content)

    def write_done(self, connection: Transaction, end: End[VolumeWork, VolumeMade]) -> None:
        """Record the volume's new holder, unless it was deleted or reset."""
        content, row = end.operation.planned(ReimagePlan).content, end.row
        content = dataclasses.replace(content, volid=end.made.volid)
        if row is None or row.status != VolumeStatus.DOWNLOADING:
            self._drop(connection, end, content)
            return
        take(connection, self._cloud, row, content)
        volumes.end(connection, row, VolumeAction.REIMAGE, ok=True, fault=None)

    def write_failed(self, connection: Transaction, end: End[VolumeWork, VolumeMade]) -> None:
        """Set the volume to error; its content is unchanged."""
        self._drop(connection, end, end.operation.planned(ReimagePlan).content)
        if end.row is not None:
            fault = end.failure.message
            volumes.end(connection, end.row, VolumeAction.REIMAGE, ok=False, fault=fault)

    def uncertain(self) -> Callable[[Transaction, VolumeWork], None]:
        """Set the volume to error."""
        return uncertain.volume

    def _drop(
        self, connection: Transaction, end: End[VolumeWork, VolumeMade], content: NewContent
    ) -> None:
        """Begin to remove the new holder, and the volume too if it was deleted."""
        operation, row = end.operation, end.row
        drop(connection, self._cloud, str(operation.project_id), content)
        if row is not None and row.status == VolumeStatus.DELETING:
            where = remove_volume.place_of(row)
            remove_volume.begin(connection, self._cloud, operation.ctxt, row, where)
