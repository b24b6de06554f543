"""Notification payloads of aggregates, flavors, key pairs, server groups and services.

They are read only if notifications are wanted. Each function is called in the transaction that
makes the change: after the change, but before a deletion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from common import clock, context
from common.context import RequestContext
from conductor.store import change_events
from conductor.store.transactions import Transaction
from db.schema import (
    aggregate_hosts,
    aggregates,
    flavor_access,
    flavors,
    keypairs,
    server_groups,
    servers,
    services,
)

#: the end of a public key that was generated for its user
_GENERATED = "Generated-by-micronova"
_WHOLE = ("start", "end")


def flavor(connection: Transaction, ctxt: RequestContext, flavorid: str, action: str) -> None:
    """Notify of a flavor: create, update, delete."""
    row = _row(connection, flavors, flavors.c.flavorid == flavorid)
    if row is None:
        return
    granted = sa.select(flavor_access.c.project_id).where(flavor_access.c.flavor_id == row["id"])
    data = {
        "flavorid": row["flavorid"],
        "name": row["name"],
        "memory_mb": row["memory_mib"],
        "vcpus": row["vcpus"],
        "root_gb": row["disk_gib"],
        "ephemeral_gb": row["ephemeral_gib"],
        "swap": row["swap_mib"],
        "rxtx_factor": row["rxtx_factor"],
        "vcpu_weight": 0,
        "disabled": row["disabled"],
        "is_public": row["is_public"],
        "extra_specs": row["extra_specs"],
        "projects": sorted(connection.scalars(granted)),
        "description": row["description"],
    }
    _notify(connection, ctxt, [f"flavor.{action}"], "FlavorPayload", data)


def keypair(
    connection: Transaction, ctxt: RequestContext, user_id: str, name: str, action: str
) -> None:
    """Notify of a key pair: create (import, if its public key was given), delete."""
    mine = (keypairs.c.user_id == user_id) & (keypairs.c.name == name)
    row = _row(connection, keypairs, mine)
    if row is None:
        return
    if action == "create" and not row["public_key"].endswith(_GENERATED):
        action = "import"
    shown = ("user_id", "name", "fingerprint", "public_key", "type")
    events = [f"keypair.{action}.{phase}" for phase in _WHOLE]
    _notify(connection, ctxt, events, "KeypairPayload", {one: row[one] for one in shown})


def server_group(connection: Transaction, ctxt: RequestContext, uuid: str, action: str) -> None:
    """Notify of a server group: create, delete, add_member."""
    row = _row(connection, server_groups, server_groups.c.uuid == uuid)
    if row is None:
        return
    inside = servers.c.server_group_uuid == uuid, servers.c.deleted_at.is_(None)
    data = {
        **{one: row[one] for one in ("uuid", "name", "project_id", "user_id", "policy")},
        "policies": [row["policy"]],
        "rules": {name: str(value) for name, value in (row["rules"] or {}).items()},
        "members": sorted(connection.scalars(sa.select(servers.c.uuid).where(*inside))),
        "hosts": None,
    }
    _notify(connection, ctxt, [f"server_group.{action}"], "ServerGroupPayload", data)


def aggregate(connection: Transaction, ctxt: RequestContext, number: int, action: str) -> None:
    """Notify of an aggregate: create, delete, add_host, remove_host, update_prop and so on."""
    row = _row(connection, aggregates, aggregates.c.id == number)
    if row is None:
        return
    inside = sa.select(aggregate_hosts.c.host).where(aggregate_hosts.c.aggregate_id == number)
    data = {
        **{one: row[one] for one in ("id", "uuid", "name")},
        "metadata": row["meta"],
        "hosts": sorted(connection.scalars(inside)),
    }
    events = [f"aggregate.{action}.{phase}" for phase in _WHOLE]
    _notify(connection, ctxt, events, "AggregatePayload", data)


def service(connection: Transaction, ctxt: RequestContext, uuid: str, action: str) -> None:
    """Notify of a service: update, delete."""
    row = _row(connection, services, services.c.uuid == uuid)
    if row is not None:
        _notify_of_service(connection, ctxt, row, action)


def new_services(connection: Transaction, rows: Iterable[Mapping[str, Any]]) -> None:
    """Notify of services that have just been registered by their first heartbeats."""
    if change_events.watched(connection):
        unset = dict.fromkeys(("disabled_reason", "aggregate_zone"))
        for row in rows:
            known = {**unset, "disabled": False, "forced_down": False, **row}
            _notify_of_service(connection, context.internal(), known, "create")


def _notify_of_service(
    connection: Transaction, ctxt: RequestContext, row: Mapping[str, Any], action: str
) -> None:
    shown = ("uuid", "binary", "host", "disabled", "disabled_reason", "forced_down")
    data = {
        **{one: row[one] for one in shown},
        "topic": row["binary"].removeprefix("nova-"),
        # Nova's is a number; releases here have none.
        "version": 0,
        "availability_zone": row["aggregate_zone"] or row["availability_zone"],
        "last_seen_up": clock.iso(row["last_seen_at"]),
        "report_count": 0,
    }
    _notify(connection, ctxt, [f"service.{action}"], "ServiceStatusPayload", data)


def _row(
    connection: Transaction, table: sa.Table, mine: sa.ColumnElement[bool]
) -> Mapping[str, Any] | None:
    """Return the row by the columns' names here; None also if notifications are not wanted."""
    if not change_events.watched(connection):
        return None
    columns = [column.label(column.key) for column in table.columns]
    row = connection.execute(sa.select(*columns).where(mine)).mappings().first()
    return None if row is None else dict(row)


def _notify(
    connection: Transaction,
    ctxt: RequestContext,
    events: list[str],
    kind: str,
    data: Mapping[str, Any],
) -> None:
    change_events.note(
        connection, [change_events.Announced(event, kind, data, ctxt) for event in events]
    )
