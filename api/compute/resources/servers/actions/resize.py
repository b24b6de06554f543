"""Resize and cold migration of a server, their confirmation and their reversion."""

from __future__ import annotations

import sqlalchemy as sa

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import the_server
from api.compute.resources.servers.create import check_size, snapshot
from api.compute.schemas import servers as schemas
from api.compute.views import servers as views
from common.errors import FlavorNotFound, HostNotFound, Invalid
from db.reads.images import images
from db.reads.images.images import Image
from db.reads.servers import flavors
from db.reads.servers.flavors import Flavor
from db.reads.volumes import volumes


class ResizeActions:
    """Actions that change a server's flavor, or its host while it is stopped."""

    @operation(
        "servers:resize",
        body=schemas.RESIZE,
        status=202,
        on=the_server,
        errors={FlavorNotFound: Invalid},
    )
    def resize(self, call: Call) -> None:
        """Give a server another flavor, to be confirmed or reverted afterwards.

        The server is stopped first. It remains on its host if that has room; otherwise it moves to
        another host.
        """
        asked = call.body["resize"]
        flavor, image = call.read(_read, call, str(asked["flavorRef"]))
        if flavor is None or flavor.disabled:
            raise FlavorNotFound(f"Flavor {asked['flavorRef']} could not be found.")
        if call.server.volume_backed:
            _require_memory(call, flavor, image)
        elif image is not None:
            check_size(flavor, image)
        call.conductor.resize_server(call.ctxt, call.server.uuid, snapshot(flavor))
        if "OS-DCF:diskConfig" in asked:
            automatic = asked["OS-DCF:diskConfig"] == views.AUTO
            changes = {"auto_disk_config": automatic}
            call.conductor.update_server(call.ctxt, call.server.uuid, changes)

    @operation(
        "os-migrate-server:migrate",
        body=schemas.MIGRATE,
        status=202,
        on=the_server,
        errors={HostNotFound: Invalid},
    )
    def migrate(self, call: Call) -> None:
        """Move a server, which is stopped for it, to another host.

        It is to be confirmed or reverted afterwards. Since 2.56 `host` names the host.
        """
        asked = call.body["migrate"] if call.version >= 56 else None
        host = asked.get("host") if asked else None
        if host is not None:
            call.check("os-migrate-server:migrate:host")
        call.conductor.migrate_server(call.ctxt, call.server.uuid, host)

    @operation("servers:confirm_resize", body=schemas.CONFIRM_RESIZE, status=204, on=the_server)
    def confirm_resize(self, call: Call) -> None:
        """Keep the new flavor; the disk grows to its size."""
        call.conductor.end_resize(call.ctxt, call.server.uuid, "confirmResize")

    @operation("servers:revert_resize", body=schemas.REVERT_RESIZE, status=202, on=the_server)
    def revert_resize(self, call: Call) -> None:
        """Give the server its old flavor back."""
        call.conductor.end_resize(call.ctxt, call.server.uuid, "revertResize")


def _read(
    connection: sa.Connection, call: Call, named_flavor: str
) -> tuple[Flavor | None, Image | None]:
    flavor = flavors.find(connection, named_flavor.rsplit("/", 1)[-1], call.reach)
    image_id = call.server.image_id
    return flavor, images.get(connection, image_id, None) if image_id else None


def _require_memory(call: Call, flavor: Flavor, image: Image | None) -> None:
    """Raise Invalid for a flavor with less memory than the image of a server on a volume needs.

    As in Nova, the minimum is that of the named image, or else the one stored in the volume's
    metadata. A flavor's disk size does not apply to a volume.
    """
    if image is not None:
        least = image.min_ram_mib
    else:
        least = volumes.least_memory_mib(call.read(volumes.root_metadata, call.server.uuid))
    if least > flavor.memory_mib:
        raise Invalid("Flavor's memory is too small for requested image.")
