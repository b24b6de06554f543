"""Rescue of a server, and its end."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import the_server
from api.compute.resources.servers import preconditions
from api.compute.resources.servers.boot_sources import no_data
from api.compute.resources.servers.requested import password
from api.compute.schemas import servers as schemas
from common.errors import Invalid
from common.guest import rescue
from db.reads.images import images
from db.reads.images.images import Image

#: from this version on servers that boot from volumes are rescued
_FROM_VOLUME_SINCE = 87


class RescueActions:
    """The actions that run a server from another disk, and from its own again."""

    @operation("os-rescue", body=schemas.RESCUE, on=the_server)
    def rescue(self, call: Call) -> Any:
        """Run a server from a disk made of an image, by default its own, with its disks beside it.

        The server's own disks retain their slots; the new disk is the last (stable device rescue).
        An ISO image is inserted as a CD. A server that boots from a volume can be rescued from
        microversion 2.87, with an image that has hw_rescue_device and hw_rescue_bus.
        """
        asked = call.body["rescue"] or {}
        preconditions.require(call, "rescue")
        image = _rescue_image(call, asked.get("rescue_image_ref"))
        secret = asked.get("adminPass") or password()
        call.conductor.rescue_server(call.ctxt, call.server.uuid, image.id, secret)
        return {"adminPass": secret} if call.cloud.conf.api.enable_instance_password else {}

    @operation("os-unrescue", body=schemas.UNRESCUE, status=202, on=the_server)
    def unrescue(self, call: Call) -> None:
        """Run a rescued server from its own disk again; the other one is removed."""
        call.conductor.act(call.ctxt, call.server.uuid, "unrescue")


def _rescue_image(call: Call, asked: str | None) -> Image:
    """Return the image to rescue from. Raises Invalid, in Nova's words, if it can't be."""
    image_id = asked or call.server.image_id
    if image_id is None:
        _require_stable(call, call.server.image_properties)
        raise Invalid(
            f"Instance {call.server.uuid} cannot be rescued: it has no image of its own, so "
            "rescue_image_ref must name one."
        )
    found: Image | None = call.read(images.get, str(uuid.UUID(image_id)), call.reach)
    if found is None or found.status != "active" or no_data(found):
        raise Invalid(f"Requested rescue image '{image_id}' is not supported")
    _require_stable(call, found.properties)
    problem = rescue.problem(found.disk_format, found.properties)
    if problem is not None:
        raise Invalid(problem)
    return found


def _require_stable(call: Call, properties: Mapping[str, Any]) -> None:
    """Raise Invalid for a volume-backed server, unless image and version allow stable devices.

    The message is Nova's.
    """
    stable = {"hw_rescue_device", "hw_rescue_bus"} <= properties.keys()
    if call.server.volume_backed and not (stable and call.version >= _FROM_VOLUME_SINCE):
        raise Invalid(
            f"Instance {call.server.uuid} cannot be rescued: "
            "Cannot rescue a volume-backed instance"
        )
