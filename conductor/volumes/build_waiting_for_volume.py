"""Wakes the build of a server that waits for a volume which is made with it."""

from __future__ import annotations

from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.servers import servers
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments

_BUILD = "create"


def wake(connection: Transaction, volume_id: str) -> bool:
    """Make the build due that waits for a volume, which is locked; return whether there is one.

    The build looks at its volumes with their rows locked before it waits, so that it misses none.
    """
    attached = attachments.of_volume(connection, volume_id)
    if attached is None or not attached.with_build:
        return False
    number = servers.get(connection, attached.server_uuid).operation_id
    operation = None if number is None else ledger.get(connection, number)
    if operation is not None and operation.action == _BUILD:
        leases.make_due(connection, operation.id)
    return True
