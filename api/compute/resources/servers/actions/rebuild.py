"""Rebuild of a server: a new disk, made from an image."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from oslo_utils import strutils

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import the_server, the_shown_server
from api.compute.resources.servers import preconditions
from api.compute.resources.servers.boot_sources import no_data, too_small
from api.compute.resources.servers.create import check_size
from api.compute.resources.servers.requested import access_addresses, files, password
from api.compute.schemas import servers as schemas
from api.compute.views import servers as views
from common import codec
from common.errors import ImageNotFound, Invalid, KeyPairNotFound, NotSupported
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.servers import RebuildServer
from db.reads.images import images
from db.reads.images.images import Image
from db.reads.servers import keypairs
from db.reads.servers.keypairs import KeyPair
from db.reads.volumes import volumes
from web.guard import Reply

_CERTIFICATES = "trusted_image_certificates"
#: the microversion from which Nova writes the image to the root volume
_REIMAGES = 93


class RebuildActions:
    """The action that gives a server a new disk."""

    @operation(
        "servers:rebuild",
        body=schemas.REBUILD,
        status=202,
        on=the_server,
        errors={ImageNotFound: Invalid, KeyPairNotFound: Invalid},
    )
    def rebuild(self, call: Call) -> Any:
        """Give a server a new disk, made from an image; all that was on the old one is lost.

        The host, addresses and ID don't change; an image can't change firmware, TPM or NUMA
        topology. The server is stopped first, and started again if it was running. A root volume
        is left unchanged; from microversion 2.93 the image is written to it as well.
        """
        request = _request(call)
        call.conductor.rebuild_server(call.ctxt, call.server.uuid, request)
        the_shown_server(call, {"server_id": call.server.uuid})
        server = views.shown(call, call.server, all_fields=call.version >= 75)
        if call.version >= 54:
            server["key_name"] = call.server.key_name
        if call.version >= 57:
            # Nova's view leaves its own name of it out of this answer.
            server.pop(views.USER_DATA, None)
            server["user_data"] = call.server.user_data
        if call.cloud.conf.api.enable_instance_password:
            server["adminPass"] = request.admin_password
        location = call.links.location(views.COLLECTION, call.server.uuid)
        return Reply({"server": server}, headers={"Location": location})


def _request(call: Call) -> RebuildServer:
    """Return the message for the conductor, checked against the database."""
    asked = call.body["rebuild"]
    if _CERTIFICATES in asked:
        target = {"project_id": call.server.project_id, "user_id": call.server.user_id}
        call.check("servers:rebuild:trusted_certs", target)
    preconditions.require(call, "rebuild")
    if asked.get(_CERTIFICATES):
        raise NotSupported("Image certificates are not supported.")
    _require_same_image(call, str(uuid.UUID(asked["imageRef"])))
    if strutils.bool_from_string(asked.get("preserve_ephemeral", False), strict=True):
        raise NotSupported("preserve_ephemeral is not supported: a rebuild replaces the disk.")
    image, keypair = call.read(_read, call, asked)
    if image is None:
        raise ImageNotFound("Cannot find image for rebuild")
    if image.status != "active":
        raise Invalid(f"Image {image.id} is not active.")
    missing = no_data(image)
    if missing is not None:
        raise Invalid(missing)
    if asked.get("key_name") and keypair is None:
        raise KeyPairNotFound("Invalid key_name provided.")
    _require_fit(call, image)
    return RebuildServer(
        image_id=image.id,
        image_properties={key: str(value) for key, value in image.properties.items()},
        changes=_changes(asked, keypair),
        admin_password=asked.get("adminPass") or password(),
        files=files(asked),
        reimages=call.version >= _REIMAGES,
    )


def _require_same_image(call: Call, image_id: str) -> None:
    """Raise Invalid, in Nova's words, for a volume that would get another image too early."""
    if not call.server.volume_backed or call.version >= _REIMAGES:
        return
    if image_id != call.read(volumes.root_image, call.server.uuid):
        raise Invalid(
            f"Image {image_id} is unacceptable: Unable to rebuild with a different image for a "
            "volume-backed server."
        )


def _require_fit(call: Call, image: Image) -> None:
    """Raise Invalid for an image that the flavor, or the volume that it boots from, is too small
    for."""
    flavor = codec.load(FlavorSnapshot, dict(call.server.flavor))
    if not call.server.volume_backed:
        check_size(flavor, image)
        return
    if image.min_ram_mib > flavor.memory_mib:
        raise Invalid("Flavor's memory is too small for requested image.")
    size = call.read(volumes.root_size, call.server.uuid) or 0
    if image.min_disk_gib > size:
        raise Invalid(too_small(size, image.min_disk_gib))


def _read(
    connection: sa.Connection, call: Call, asked: Mapping[str, Any]
) -> tuple[Image | None, KeyPair | None]:
    key_name = asked.get("key_name")
    user = call.ctxt.user_id or ""
    return (
        images.get(connection, str(uuid.UUID(asked["imageRef"])), call.reach),
        keypairs.find(connection, user, key_name) if key_name else None,
    )


def _changes(asked: Mapping[str, Any], keypair: KeyPair | None) -> dict[str, Any]:
    """Return the columns of the server that a body changes."""
    changes: dict[str, Any] = {
        name: asked[name] for name in ("description", "hostname", "user_data") if name in asked
    }
    if "name" in asked:
        changes["name"] = asked["name"].strip()
    if "metadata" in asked:
        changes["meta"] = asked["metadata"]
    if "key_name" in asked:
        changes["key_name"] = keypair.name if keypair is not None else None
        changes["public_key"] = keypair.public_key if keypair is not None else None
    if "OS-DCF:diskConfig" in asked:
        changes["auto_disk_config"] = asked["OS-DCF:diskConfig"] == views.AUTO
    return changes | access_addresses(asked)
