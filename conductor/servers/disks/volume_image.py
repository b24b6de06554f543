"""Images of servers that boot from volumes, as in Nova: snapshots of all their volumes.

Such an image has no data; a server that is made of it gets new volumes, made of the snapshots.

Facts of nova/compute/api.py (``snapshot_volume_backed``): nobody waits for the snapshots, and they
stay when the image is deleted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from common.context import RequestContext
from common.messages.commands import Copy
from common.resources.states import OperationState
from common.resources.volumes import ROOT_SLOT, device
from common.rpc import deadlines
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.plans import ImagePlan
from conductor.rpc.servers.servers import NewServerImage
from conductor.rpc.volumes.snapshots import NewVolumeSnapshot
from conductor.store.images import server_images
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation, Server
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments, volumes
from conductor.volumes.snapshots import take_snapshot

#: properties that say what a server is made of
MAPPING, IS_V2, ROOT_NAME = "block_device_mapping", "bdm_v2", "root_device_name"


def make(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    server: Server,
    asked: NewServerImage,
    inherited: Mapping[str, str],
) -> tuple[str, tuple[Operation, ...]]:
    """Write the image of a server that is locked, and begin its volumes' snapshots.

    Return its id, and what is to be started. ``inherited``: properties that it has of the
    server's own image. Raises Invalid where a snapshot can't be taken now, QuotaExceeded; then
    nothing may be committed.
    """
    taken: dict[str, str] = {}
    begun: list[Operation] = []
    # In the order in which all lock volumes.
    for one in attachments.of_servers(connection, [server.uuid]):
        row = volumes.locked(connection, one.volume_id, None)
        snapshot = NewVolumeSnapshot(
            row.id, f"snapshot for {asked.name}"[:255], row.description, in_use=True
        )
        taken[row.id], taking = take_snapshot.begin(connection, cloud, ctxt, row, snapshot)
        begun += [] if taking is None else [taking]
    attached = attachments.of_server(connection, server.uuid)
    root = next(one for one in attached if one.slot == ROOT_SLOT)
    mapping = [_device(one, taken[one.volume_id]) for one in attached]
    image_id = deadlines.new_uuid()
    properties = {
        **inherited,
        "base_image_ref": server.image_id or "",
        **asked.metadata,
        MAPPING: json.dumps(mapping),
        IS_V2: "True",
        ROOT_NAME: device(ROOT_SLOT),
    }
    least = _least(root.image_metadata or {})
    server_images.list_volumes(
        connection, image_id, asked.name, server.project_id, properties, least
    )
    plan = ImagePlan(command=Copy(image_id=image_id, image_name=asked.name))
    operation = start.begin(connection, cloud, ctxt, server, "createImage", plan)
    ledger.close(connection, operation.id, OperationState.DONE)
    return image_id, tuple(begun)


def _device(attached: Any, snapshot_id: str) -> dict[str, Any]:
    """Return a volume of the server as a block device, with all of Nova's fields."""
    return {
        "source_type": "snapshot",
        "destination_type": "volume",
        "snapshot_id": snapshot_id,
        "volume_id": None,
        "image_id": None,
        "volume_size": attached.size_gib,
        "volume_type": None,
        "boot_index": 0 if attached.slot == ROOT_SLOT else None,
        "delete_on_termination": bool(attached.delete_on_termination),
        "device_name": device(attached.slot),
        "device_type": "disk",
        "disk_bus": "scsi",
        "guest_format": None,
        "no_device": None,
        "tag": None,
    }


def _least(image_metadata: Mapping[str, Any]) -> tuple[int, int]:
    """Return the GiB of disk and the MiB of memory that the root volume's image needed."""
    return _number(image_metadata.get("min_disk")), _number(image_metadata.get("min_ram"))


def _number(value: Any) -> int:
    text = str(value or "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
