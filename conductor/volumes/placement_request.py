"""What servers' volumes need of their host, for the scheduler."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from common.errors import VolumeNotFound
from common.messages.scheduling import VolumeNeed
from conductor.cloud import Cloud
from conductor.rpc.servers.servers import BlockDevice
from conductor.rpc.volumes.volumes import NewVolume
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments, origins, types, volumes
from conductor.volumes import create_volume, sources


def of_server(
    connection: Transaction, server_uuid: str, project_id: str
) -> tuple[VolumeNeed, ...]:
    """Return what a server needs of its host that is built with volumes."""
    return tuple(
        _to_make(connection, one, project_id) if one.with_build else there(one)
        for one in attachments.of_server(connection, server_uuid)
    )


def of_servers(
    connection: Transaction, server_uuids: Collection[str]
) -> Mapping[str, tuple[VolumeNeed, ...]]:
    """Return what servers that have their volumes need of another host. One query."""
    found: dict[str, list[VolumeNeed]] = defaultdict(list)
    for one in attachments.with_volumes(connection, server_uuids):
        found[one.server_uuid].append(there(one))
    return {uuid: tuple(needs) for uuid, needs in found.items()}


def there(volume: Any) -> VolumeNeed:
    """Return what a volume that is made needs."""
    return VolumeNeed(volume.storage, volume.cluster, None if volume.shared else volume.node)


def _to_make(connection: Transaction, one: Any, project_id: str) -> VolumeNeed:
    if one.snapshot_id is not None:
        return _of_snapshot(connection, one)
    home = None
    if one.image_id is not None:
        image = origins.image(connection, one.image_id, project_id)
        home = None if image is None else sources.home_of(image.home)
    return VolumeNeed(one.of_type, gib=one.size_gib, image_id=one.image_id, home=home)


def _of_snapshot(connection: Transaction, one: Any) -> VolumeNeed:
    """Return what the copy of a snapshot needs that is made with its server."""
    at = sources.place_of(connection, one.snapshot_id)
    if at is None:
        return VolumeNeed(one.of_type, gib=one.size_gib)
    found = sources.Found(place=at)
    return found.need(one.of_type, one.size_gib) or VolumeNeed(one.of_type, gib=one.size_gib)


def of_device(
    connection: Transaction,
    cloud: Cloud,
    device: BlockDevice,
    project_id: str,
    scope: str | None,
) -> VolumeNeed:
    """Return what a volume that is asked for would need. Raises NotFound, Invalid.

    ``scope``: whose volumes may be named; None: anybody's.
    """
    if device.volume_id is not None:
        row = volumes.get(connection, device.volume_id)
        if row is None or scope not in (None, row.project_id):
            raise VolumeNotFound(f"Volume {device.volume_id} could not be found.")
        return there(row)
    new = NewVolume(
        project_id,
        device.size_gib or sources.size_of(connection, device.snapshot_id),
        type_id=device.type_id,
        image_id=device.image_id,
        snapshot_id=device.snapshot_id,
    )
    found = sources.find(connection, new)
    type_ = create_volume.type_of(connection, cloud, new, found)
    storage = types.storage_of(type_)
    copy = found.need(storage, new.size_gib)
    if copy is not None:
        return copy
    return VolumeNeed(storage, gib=device.size_gib, image_id=device.image_id, home=found.home)
