"""Whether a server's node reaches a volume."""

from __future__ import annotations

from typing import Any

from common.errors import Invalid
from conductor.store.servers import Server
from conductor.store.transactions import Transaction
from conductor.store.volumes import backends


def require(connection: Transaction, volume: Any, server: Server) -> None:
    """Raise Invalid, with the reason, unless the server's node has the volume's storage."""
    where = f"storage {volume.storage} of cluster {volume.cluster}"
    if server.cluster != volume.cluster:
        raise Invalid(
            f"Volume {volume.id} is on {where}; the server is in cluster {server.cluster}."
        )
    if not volume.shared and server.node != volume.node:
        raise Invalid(
            f"Volume {volume.id} is on {where}, which node {volume.node} has of its own; the "
            f"server is on node {server.node}."
        )
    reached = (
        one.node == server.node and one.storage.name == volume.storage
        for one in backends.read(connection)
        if one.cluster == volume.cluster
    )
    if volume.shared and not any(reached):
        raise Invalid(f"Node {server.node} of the server doesn't reach {where}.")
