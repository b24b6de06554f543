"""Whether a call was carried out whose answer was lost, and what the answer was.

A conductor that is silent may have committed what it was asked for: it froze, or died, before its
answer. The call's ID says so. Each operation has the ID of the call that began it in its context,
and the UUIDs of what a call makes follow from the ID (``common.rpc.deadlines.new_uuid``). Of other
calls, and of those without an answer, the answer is recorded in their transaction
(``conductor.store.call_answers``). A call that is repeated, and a caller that has waited
for long enough, look for that first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import sqlalchemy as sa

from common import codec, rpc
from common.context import RequestContext
from common.errors import Unavailable
from common.rpc import deadlines
from db.schema import (
    address_groups,
    call_answers,
    default_group_rules,
    images,
    network_shares,
    networks,
    operations,
    ports,
    scaling_members,
    scaling_policies,
    scaling_profiles,
    security_group_rules,
    security_groups,
    server_groups,
    servers,
    subnets,
    volume_backups,
    volume_snapshots,
    volume_types,
    volumes,
)

#: method of the conductor → the column with the UUIDs that it makes
MAKES: Mapping[str, sa.Column[Any]] = {
    "create_address_groups": address_groups.c.id,
    "create_backup": volume_backups.c.id,
    "create_default_rules": default_group_rules.c.id,
    "create_image": images.c.id,
    "create_member": scaling_members.c.id,
    "create_network_shares": network_shares.c.id,
    "create_networks": networks.c.id,
    "create_policy": scaling_policies.c.id,
    "create_ports": ports.c.id,
    "create_profile": scaling_profiles.c.id,
    "create_security_group_rules": security_group_rules.c.id,
    "create_security_groups": security_groups.c.id,
    "create_server_group": server_groups.c.uuid,
    "create_server_image": images.c.id,
    "create_subnets": subnets.c.id,
    "create_volume": volumes.c.id,
    "create_volume_snapshot": volume_snapshots.c.id,
    "create_volume_type": volume_types.c.id,
    "upload_volume": images.c.id,
}

_BEGUN = (
    sa.select(operations.c.id, operations.c.action, operations.c.resource_id, operations.c.context)
    .where(operations.c.request_id == sa.bindparam("request"))
    .order_by(operations.c.id)
)

_ANSWER = sa.select(call_answers.c.answer).where(call_answers.c.id == sa.bindparam("id"))

#: how many UUIDs of a call are looked for: as many as one request makes at the most
_MOST = 512


def looking(read: Callable[[], AbstractContextManager[sa.Connection]]) -> rpc.Look:
    """Return what looks for calls in the cloud database; ``read`` gives a connection."""

    def look(ctxt: RequestContext, call: str, method: str, kind: Any) -> rpc.Done | None:
        with read() as connection:
            if method in MAKES:
                found = _made(connection, call, method, kind)
                return found or _answered(connection, call)
            found = _answered(connection, call)
            return found or _begun(connection, str(ctxt.request_id), call, method, kind)

    return look


def _answered(connection: sa.Connection, call: str) -> rpc.Done | None:
    found = connection.execute(_ANSWER, {"id": deadlines.made_by(call, 0)}).first()
    if found is None:
        return None
    return rpc.Done(None if found.answer is None else codec.loads(found.answer))


def _made(connection: sa.Connection, call: str, method: str, kind: Any) -> rpc.Done | None:
    column = MAKES[method]
    wanted = [deadlines.made_by(call, number) for number in range(1, _MOST + 1)]
    found = set(connection.scalars(sa.select(column).where(column.in_(wanted))))
    made = [one for one in wanted if one in found]
    if not made:
        return None
    return rpc.Done(made if kind == list[str] else made[0])


def _begun(
    connection: sa.Connection, request_id: str, call: str, method: str, kind: Any
) -> rpc.Done | None:
    """Look for operations. Raises Unavailable if there are some, and their answer is lost."""
    found = connection.execute(_BEGUN, {"request": request_id})
    begun = [row for row in found if row.context.get("call") == call]
    if not begun:
        return None
    if method == "create_servers":
        uuids = [row.resource_id for row in begun if row.action == "create"]
        query = sa.select(servers.c.reservation_id).where(servers.c.uuid == uuids[0])
        reservation = connection.execute(query).scalar_one()
        return rpc.Done({"reservation_id": reservation, "uuids": uuids})
    if method == "create_group":
        return rpc.Done([begun[0].resource_id, begun[0].id])
    if kind is int:
        return rpc.Done(begun[0].id)
    if kind is type(None):
        return rpc.Done(None)
    raise Unavailable(f"{method} was carried out, and its answer is lost.", outcome=rpc.UNKNOWN)
