"""A create that is repeated: by a client with its key, or by the API while a conductor is silent.

The UUIDs are those of the first create. So it is found by them, and can't be created twice.
"""

from __future__ import annotations

from collections.abc import Mapping

from common.errors import Conflict
from conductor.rpc.servers.servers import CreatedServers, CreateServers
from conductor.store.servers import servers
from conductor.store.transactions import Transaction

#: in the context of an operation: what was asked for under a client's key
_FINGERPRINT = "fingerprint"


def marks(request: CreateServers) -> Mapping[str, str]:
    """Return what is stored with the operations of a create."""
    return {_FINGERPRINT: request.fingerprint} if request.fingerprint else {}


def find(connection: Transaction, request: CreateServers) -> CreatedServers | None:
    """Return the servers that the same request has created; None: it has not.

    Raises Conflict if the key was used for another request, or a server is deleted.
    """
    created = servers.created(connection, request.uuids)
    if not created:
        return None
    first = created[0]
    if first.context.get(_FINGERPRINT, "") != request.fingerprint:
        raise Conflict(
            f"The Idempotency-Key was used for another request, which created server {first.uuid}."
        )
    if first.deleted_at is not None:
        raise Conflict(
            f"The request with this Idempotency-Key created server {first.uuid}, which is deleted."
        )
    return CreatedServers(first.reservation_id, tuple(row.uuid for row in created), repeated=True)
