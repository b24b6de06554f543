"""What servers can't do while they have volumes: said when it is asked for, not half-way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from common.errors import Conflict
from common.messages.scheduling import VolumeNeed
from conductor.store.servers import Server
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments
from conductor.volumes import reach

#: actions that end with a VM without its server
WITHOUT_VOLUMES = frozenset({"release"})


def pinned_by(connection: Transaction, server: Server) -> str | None:
    """Return why a server can't leave its host: a volume on a storage that only its node has.

    Proxmox VE refuses to move a VM whose disk is another VM's.
    """
    return next(iter(pinned(connection, [server.uuid]).values()), None)


def pinned(connection: Transaction, server_uuids: Collection[str]) -> Mapping[str, str]:
    """Return, of these servers, those that can't leave their hosts, and why: as ``pinned_by``."""
    found: dict[str, str] = {}
    for one in attachments.places(connection, server_uuids):
        if not one.shared:
            found.setdefault(one.server_uuid, _why(one))
    return found


def needs(
    connection: Transaction, server_uuids: Collection[str]
) -> Mapping[str, tuple[VolumeNeed, ...]]:
    """Return what the volumes of these servers need of the hosts that they move to. One query."""
    found: defaultdict[str, list[VolumeNeed]] = defaultdict(list)
    for one in attachments.places(connection, server_uuids):
        found[one.server_uuid].append(reach.need_of(one))
    return {uuid: tuple(each) for uuid, each in found.items()}


def require_none(connection: Transaction, server: Server, action: str) -> None:
    """Raise Conflict for a server with volumes where the action is one of WITHOUT_VOLUMES."""
    if action not in WITHOUT_VOLUMES:
        return
    found = attachments.of_server(connection, server.uuid)
    if found:
        raise Conflict(
            f"Cannot '{action}' instance {server.uuid} while it has volumes: detach "
            f"{', '.join(one.volume_id for one in found)} first."
        )


def _why(one: Any) -> str:
    return (
        f"volume {one.volume_id} is on storage {one.storage}, which only node {one.node} has; "
        "detach it first"
    )
