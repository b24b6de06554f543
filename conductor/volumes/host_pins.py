"""What servers can't do while they have volumes, or boot from one: said when it is asked for, not
half-way."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from common.errors import Conflict, Invalid
from conductor.store.records import Server
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments

#: action → why a server that boots from a volume can't: Nova's words where it has some
NOT_FROM_A_VOLUME = {
    "createBackup": "Backup is not supported for volume-backed instances.",
}
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


def require_own_disk(server: Server, action: str) -> None:
    """Raise Invalid for a server that boots from a volume and an action on its own root disk."""
    if server.volume_backed and action in NOT_FROM_A_VOLUME:
        raise Invalid(NOT_FROM_A_VOLUME[action].format(server.uuid))


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
    way_out = "detach it first" if one.slot else "the server boots from it"
    return (
        f"volume {one.volume_id} is on storage {one.storage}, which only node {one.node} has; "
        f"{way_out}"
    )
