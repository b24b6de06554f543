"""Accepts images of servers and backups: the image's row and the operation in one transaction."""

from __future__ import annotations

from collections.abc import Mapping

from common.context import RequestContext
from common.guest.hardware import ROOT_BUS
from common.messages.commands import Copy
from common.rpc import deadlines
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.access import check_state, scope
from conductor.plans import ImagePlan, Place
from conductor.rpc.servers.servers import NewServerImage
from conductor.servers.disks import volume_image
from conductor.store.hosts import registry
from conductor.store.images import server_images
from conductor.store.quotas import image_quotas, quotas
from conductor.store.records import Operation, Server
from conductor.store.servers import servers
from conductor.store.transactions import Transaction
from conductor.volumes import host_pins

#: properties of a server's image that say what that image is, not how its servers are made
_OWN = frozenset(
    {"backup_type", "base_image_ref", "image_location", "image_state", "image_type"}
    | {"instance_uuid", "user_id", ROOT_BUS}
)


def accept(
    cloud: Cloud, ctxt: RequestContext, server_uuid: str, asked: NewServerImage
) -> tuple[str | None, Operation | None]:
    """Begin ``createImage`` or ``createBackup``; return the image's id, None if none is kept.

    Without an operation it is done: of a server that boots from a volume only the records of the
    image and of its volumes' snapshots are written. Raises ServerNotFound, ServerStateConflict,
    QuotaExceeded, Invalid. A lock doesn't matter, as in Nova.
    """
    image_id, operation, snapshots = cloud.store.run(
        lambda c: _accept(c, cloud, ctxt, server_uuid, asked)
    )
    for one in snapshots:
        cloud.start(one)
    return image_id, operation


def _accept(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    server_uuid: str,
    asked: NewServerImage,
) -> tuple[str | None, Operation | None, tuple[Operation, ...]]:
    """Return the image's id, its operation, and those of volumes' snapshots."""
    server = servers.alive(connection, server_uuid, scope(ctxt))
    action = "createImage" if asked.backup_type is None else "createBackup"
    check_state(server, action)
    host_pins.require_own_disk(server, action)
    if asked.limited:
        allowed = quotas.limits(connection, server.project_id, cloud.quota)
        quotas.check_image_metadata(allowed, asked.metadata)
    if asked.backup_type is None or asked.rotation:
        one_more = {"image_count_total": 1}
        image_quotas.take(connection, server.project_id, cloud.conf, one_more)
    if server.volume_backed:
        inherits = inherited(server)
        made, taken = volume_image.make(connection, cloud, ctxt, server, asked, inherits)
        return made, None, taken
    image_id = None
    if asked.backup_type is None or asked.rotation:
        image_id = deadlines.new_uuid()
        _insert(connection, ctxt, server, image_id, asked)
    plan = ImagePlan(
        _here(connection, server),
        Copy(
            source_vmid=server.vmid or 0,
            image_id=image_id or "",
            image_name=asked.name,
            backup=asked.backup_type is not None,
            project_id=server.project_id,
            user_id=str(ctxt.user_id or ""),
        ),
        backup_type=asked.backup_type or "",
        rotation=asked.rotation,
    )
    return image_id, start.take(connection, cloud, ctxt, server, action, plan)[0], ()


def _insert(
    connection: Transaction,
    ctxt: RequestContext,
    server: Server,
    image_id: str,
    asked: NewServerImage,
) -> None:
    disk, memory = server_images.least_of(connection, server.root_image_id)
    server_images.insert(
        connection,
        image_id,
        asked.name,
        server.project_id,
        server.uuid,
        properties(server, str(ctxt.user_id), asked),
        (max(disk, int(server.flavor.get("disk_gib", 0))), memory),
    )


def properties(server: Server, user_id: str, asked: NewServerImage) -> Mapping[str, str]:
    """Return the properties of a server's image, under Nova's names. Pure."""
    own = {
        "base_image_ref": server.image_id or "",
        "image_type": "snapshot" if asked.backup_type is None else "backup",
        "instance_uuid": server.uuid,
        "user_id": user_id,
    }
    if asked.backup_type is not None:
        own["backup_type"] = asked.backup_type
    return {**inherited(server), **own, **asked.metadata}


def inherited(server: Server) -> dict[str, str]:
    """Return the properties that a server's image has of the server's own image. Pure."""
    return {name: value for name, value in server.image_properties.items() if name not in _OWN}


def _here(connection: Transaction, server: Server) -> Place:
    """Return the server's host; its template's VMID is not reserved yet."""
    facts, _ = registry.host(connection, str(server.host))
    return Place(facts.host, facts.uuid, server.cluster, server.node)
