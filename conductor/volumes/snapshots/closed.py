"""Volumes with their snapshots inside: no server may have them open while one is changed."""

from __future__ import annotations

from typing import Any

from common.errors import Invalid
from common.resources.states import VmState
from common.resources.volumes import SnapshotWay
from conductor.store.servers import servers
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments

#: vm_states in which a server's VM doesn't run
_OFF = frozenset({VmState.STOPPED, VmState.SHELVED, VmState.SHELVED_OFFLOADED})


def require(connection: Transaction, volume: Any) -> None:
    """Raise Invalid for a volume whose snapshots are inside of it while its server runs."""
    if volume.snapshot_way != SnapshotWay.OFFLINE:
        return
    attached = attachments.of_volume(connection, volume.id)
    if attached is None:
        return
    server = servers.get(connection, attached.server_uuid)
    if server.vm_state not in _OFF:
        raise Invalid(
            f"Invalid volume: Snapshots on storage {volume.storage} are kept inside of the "
            f"volume: stop server {server.uuid}, or detach volume {volume.id}."
        )
