"""Images and backups of a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import the_server
from api.compute.schemas import servers as schemas
from common.resources.image_attributes import require_property
from conductor.rpc.servers.servers import NewServerImage
from web.guard import Reply

#: up to this version the quota of metadata counts for images too
_LIMITED_UNTIL = 38
#: from this version on the image's id is in the answer's body
_NAMED_IN_BODY = 45


class ImageActions:
    """Actions that copy a server's root disk into an image."""

    @operation("servers:create_image", body=schemas.CREATE_IMAGE, status=202, on=the_server)
    def create_image(self, call: Call) -> Reply:
        """Make an image of a server without stopping it; the data remain in its cluster."""
        asked = call.body["createImage"]
        return _made(call, _request(call, asked))

    @operation("os-create-backup", body=schemas.CREATE_BACKUP, status=202, on=the_server)
    def create_backup(self, call: Call) -> Reply:
        """Do the same, and delete the server's older backups beyond the rotation."""
        asked = call.body["createBackup"]
        rotation = int(asked["rotation"])
        return _made(call, _request(call, asked, asked["backup_type"], rotation))


def _request(
    call: Call, asked: Mapping[str, Any], backup_type: str | None = None, rotation: int = 0
) -> NewServerImage:
    metadata = asked.get("metadata") or {}
    for name in metadata:
        require_property(name)
    return NewServerImage(
        asked["name"].strip(),
        metadata,
        call.version <= _LIMITED_UNTIL,
        backup_type,
        rotation,
    )


def _made(call: Call, request: NewServerImage) -> Reply:
    image_id = call.conductor.create_server_image(call.ctxt, call.server.uuid, request)
    if image_id is None:
        return Reply()
    if call.version >= _NAMED_IN_BODY:
        return Reply({"image_id": image_id})
    (link,) = call.links.bookmark("images", image_id)
    return Reply(headers={"Location": link["href"]})
