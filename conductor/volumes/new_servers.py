"""Accepts the volumes of new servers, in the transaction that writes the servers.

Those that are there are reserved as by an attachment; the others are written with their quota, and
made once the server's host is chosen (``conductor.volumes.build_volumes``).
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.context import RequestContext
from common.errors import ImageNotFound, Invalid, NotFound, SnapshotNotFound, VolumeNotFound
from common.resources.volumes import ATTACH, ROOT_SLOT, SLOTS
from conductor.cloud import Cloud
from conductor.rpc.servers.servers import BlockDevice
from conductor.rpc.volumes.volumes import NewVolume
from conductor.store.quotas import volume_quotas
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments, volumes
from conductor.volumes import create_volume, sources, status_rules

#: in Nova's words
_INVALID = "Block Device Mapping is Invalid: {}"


def lock(
    connection: Transaction,
    devices: Sequence[BlockDevice],
    scope: str | None,
    servers: int,
    *,
    bootable: bool,
) -> Mapping[str, Any]:
    """Return the volumes that are named, by id, locked in one order and seen fit.

    ``scope``: whose they may be; None: anybody's. ``servers``: how many are created at the most.
    ``bootable``: whether a root volume must be.
    Raises Invalid.
    """
    named = [one for one in devices if one.volume_id is not None]
    wanted = sorted({str(one.volume_id) for one in named})
    if wanted and servers > 1:
        raise Invalid("Cannot attach one or more volumes to multiple instances")
    if len(wanted) < len(named):
        raise Invalid("Invalid volume: a volume is named twice.")
    if len(devices) > len(SLOTS):
        raise Invalid(
            f"The maximum allowed number of disk devices ({len(SLOTS)}) to attach to a single "
            "instance has been exceeded."
        )
    found = {}
    for volume_id in wanted:
        try:
            found[volume_id] = volumes.locked(connection, volume_id, scope)
        except VolumeNotFound as error:
            text = f"failed to get volume {volume_id}."
            raise Invalid(_INVALID.format(text)) from error
    for one in named:
        if bootable and one.boot and not found[str(one.volume_id)].bootable:
            raise Invalid(f"Block Device {one.volume_id} is not bootable.")
    return found


@dataclass(frozen=True)
class _Made:
    """A volume that each of the servers gets made."""

    device: BlockDevice
    slot: int
    new: NewVolume
    found: sources.Found
    type: Any | None


def accept(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    servers: Sequence[str],
    devices: Sequence[BlockDevice],
    locked: Mapping[str, Any],
) -> None:
    """Reserve the volumes that are there, and write those that are made, for each new server.

    ``locked``: see ``lock``. Raises Invalid, QuotaExceeded.
    """
    slots, made = iter(SLOTS), []
    for device in devices:
        slot = ROOT_SLOT if device.boot else next(slots)
        if device.volume_id is None:
            made.append(_made(connection, cloud, str(ctxt.project_id), device, slot))
        else:
            _reserve(connection, servers[0], device, slot, locked[device.volume_id])
    _take_quota(connection, cloud, str(ctxt.project_id), made, len(servers))
    for uuid in servers:
        for one in made:
            _write(connection, ctxt, uuid, one)


def _reserve(
    connection: Transaction, server_uuid: str, device: BlockDevice, slot: int, row: Any
) -> None:
    """Attach a volume to a new server in the record. Raises Invalid."""
    status_rules.begin(connection, row, ATTACH)
    if row.volid is None or row.vmid is None:
        raise Invalid(f"Invalid volume: Volume {row.id} was never made.")
    attachments.insert(
        connection,
        row.id,
        server_uuid,
        row.project_id,
        slot,
        mode="ro" if row.readonly else "rw",
        tag=device.tag,
        delete_on_termination=device.delete_on_termination,
    )


def _made(
    connection: Transaction, cloud: Cloud, project_id: str, device: BlockDevice, slot: int
) -> _Made:
    """Return a volume that is to be made, with its source. Raises Invalid.

    What it can be made of, ``sources.find`` says.
    """
    new = NewVolume(
        project_id,
        device.size_gib or sources.size_of(connection, device.snapshot_id),
        type_id=device.type_id,
        image_id=device.image_id,
        snapshot_id=device.snapshot_id,
    )
    try:
        found = sources.find(connection, new)
        type_ = create_volume.type_of(connection, cloud, new, found)
    except ImageNotFound as error:
        raise Invalid(_INVALID.format(f"failed to get image {device.image_id}.")) from error
    except SnapshotNotFound as error:
        raise Invalid(_INVALID.format(f"failed to get snapshot {device.snapshot_id}.")) from error
    except NotFound as error:
        raise Invalid(error.message) from error
    return _Made(device, slot, new, found, type_)


def _take_quota(
    connection: Transaction, cloud: Cloud, project_id: str, made: Sequence[_Made], servers: int
) -> None:
    """Raise QuotaExceeded unless the project may have all of them for each of the servers."""
    by_type: dict[str | None, list[int]] = defaultdict(list)
    for one in made:
        by_type[None if one.type is None else str(one.type.name)].append(one.new.size_gib)
    for name, sizes in by_type.items():
        wanted = {"volumes": len(sizes) * servers, "gigabytes": sum(sizes) * servers}
        volume_quotas.take(connection, project_id, cloud.conf, wanted, name, max(sizes))
    if len(by_type) > 1:
        sizes = [one.new.size_gib for one in made]
        wanted = {"volumes": len(sizes) * servers, "gigabytes": sum(sizes) * servers}
        volume_quotas.take(connection, project_id, cloud.conf, wanted, None, max(sizes))


def _write(connection: Transaction, ctxt: RequestContext, server_uuid: str, one: _Made) -> None:
    blank = one.new.image_id is None and one.new.snapshot_id is None
    name = one.device.name or (f"{server_uuid}-blank-vol" if blank else "")
    new = dataclasses.replace(one.new, name=name)
    attachments.insert(
        connection,
        create_volume.write(connection, ctxt, new, one.found, one.type),
        server_uuid,
        new.project_id,
        one.slot,
        tag=one.device.tag,
        delete_on_termination=one.device.delete_on_termination,
        with_build=True,
    )
