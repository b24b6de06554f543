"""Locks of servers: only the record changes, and the ledger has who did it."""

from __future__ import annotations

from common.context import RequestContext
from common.errors import Forbidden
from common.log import logger
from common.resources import locks
from common.resources.states import InternalAction
from conductor.cloud import Cloud
from conductor.engine import done
from conductor.engine.access import scope
from conductor.store.records import Server
from conductor.store.servers import servers
from conductor.store.transactions import Transaction

LOG = logger(__name__)


def lock(cloud: Cloud, ctxt: RequestContext, server_uuid: str, reason: str | None) -> None:
    """See ``ConductorRpc.lock_server``."""

    def work(connection: Transaction) -> bool:
        server = servers.alive(connection, server_uuid, scope(ctxt))
        changes = lock_changes(server, ctxt, reason)
        if changes is not None:
            servers.change(connection, server, changes)
            done.record(connection, cloud, ctxt, server, InternalAction.LOCK, "api_lock")
        return changes is not None

    if cloud.store.run(work):
        LOG.info("Server %s is locked.", server_uuid)


def unlock(cloud: Cloud, ctxt: RequestContext, server_uuid: str, *, override: bool) -> None:
    """See ``ConductorRpc.unlock_server``."""

    def work(connection: Transaction) -> None:
        server = servers.alive(connection, server_uuid, scope(ctxt))
        check_unlock(server, ctxt, override=override)
        servers.change(connection, server, {"locked_by": None, "locked_reason": None})
        done.record(connection, cloud, ctxt, server, InternalAction.UNLOCK, "api_unlock")

    cloud.store.run(work)
    LOG.info("Server %s is unlocked.", server_uuid)


def lock_changes(
    server: Server, ctxt: RequestContext, reason: str | None
) -> dict[str, str] | None:
    """Return the columns that a lock sets; None where the owner finds the server locked already.

    An administrator's lock replaces the owner's; its reason replaces the owner's if it has one.
    """
    who = locks.locker(server.project_id, ctxt.project_id)
    if server.locked_by is not None and who == locks.LockedBy.OWNER:
        return None
    return {"locked_by": who} | ({"locked_reason": reason} if reason else {})


def check_unlock(server: Server, ctxt: RequestContext, *, override: bool) -> None:
    """Raise Forbidden for a lock of somebody else, unless the policy allows to override it."""
    who = locks.locker(server.project_id, ctxt.project_id)
    if server.locked_by not in {None, who} and not override:
        raise Forbidden(
            "Policy doesn't allow os_compute_api:os-lock-server:unlock:unlock_override "
            "to be performed."
        )
