"""What a host can make a server's disk of: the image's file, or the template that it is."""

from __future__ import annotations

import dataclasses

from common.errors import Invalid
from common.messages.commands import Image
from common.messages.facts import HostFacts
from common.messages.scheduling import ImageHome
from conductor.store.hosts import registry
from conductor.store.records import Server
from conductor.store.transactions import Transaction


def home(connection: Transaction, image_id: str | None, cluster: str | None) -> ImageHome | None:
    """Return the only place where a server's image can be imported from; None of others.

    Proxmox VE imports a template's disk on the template's node alone, whatever its storage.
    """
    row = registry.image_location(connection, str(image_id), str(cluster))
    if row is None or row.home is None:
        return None
    return dataclasses.replace(ImageHome(**row.home), shared=False)


def not_copied_on(home: ImageHome | None, image_id: str | None, node: str | None) -> str | None:
    """Return why a disk of an existing server can't be made of an image on its node, or None.

    Proxmox VE copies a template's disk on the template's node alone, also on a shared storage.
    """
    if home is None or home.node == node:
        return None
    return (
        f"Image {image_id} was made of a server: it can be copied only on node {home.node}, "
        f"where its disk is, and the server is on {node}. Migrate it there, or take another image."
    )


def require_copied_on(connection: Transaction, image_id: str | None, server: Server) -> None:
    """Raise Invalid for an image whose template or file the server's node can't copy."""
    found = home(connection, image_id, server.cluster)
    problem = not_copied_on(found, image_id, server.node)
    if problem is not None:
        raise Invalid(problem)


def image(
    connection: Transaction, image_id: str | None, facts: HostFacts, *, imported: bool = False
) -> Image | None:
    """Return an image that the host can make disks of, or None; ``imported``: no template is
    cloned."""
    row = registry.image_location(connection, str(image_id), facts.cluster)
    if row is None:
        return None
    at = None if row.home is None else ImageHome(**row.home)
    if at and imported and at.node != facts.node:
        return None
    if at and not imported and not at.reached_from(facts.cluster, facts.node, facts.vm_storage):
        return None
    return Image(
        id=row.id,
        name=row.name,
        volid=row.locations[facts.cluster],
        size_bytes=row.size_bytes,
        virtual_size_bytes=row.virtual_size_bytes or 0,
        min_disk_gib=max(row.min_disk_gib, -(-(row.virtual_size_bytes or 0) // 2**30)),
        checksum=row.checksum,
        properties=row.properties,
        template_only=at is not None,
        cd=row.disk_format == "iso",
    )
