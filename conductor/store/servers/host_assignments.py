"""Servers that have a host, with their networks, for questions about moving them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from db.schema import networks, ports, servers


@dataclass(frozen=True)
class Placed:
    """Rows of servers, the largest first."""

    rows: Sequence[sa.Row[Any]]
    nics: Mapping[str, Sequence[tuple[str, int | None]]]
    """Server → (bridge, VLAN) of each of its ports."""


def on_host(connection: sa.Connection, host: str) -> Placed:
    """Return all servers of a host."""
    return _find(connection, (servers.c.host == host) & servers.c.deleted_at.is_(None), None)


def idle(connection: sa.Connection, vm_states: Collection[str], limit: int) -> Placed:
    """Return the ``limit`` largest servers in these states without a task_state."""
    columns = servers.c
    which = (
        columns.deleted_at.is_(None)
        & columns.host.is_not(None)
        & columns.task_state.is_(None)
        & ~columns.held
        & columns.vm_state.in_(vm_states)
    )
    return _find(connection, which, limit)


def _find(connection: sa.Connection, which: sa.ColumnElement[bool], limit: int | None) -> Placed:
    columns = servers.c
    order = (columns.memory_mib.desc(), columns.id)
    rows = connection.execute(sa.select(servers).where(which).order_by(*order).limit(limit)).all()
    those = sa.select(columns.uuid).where(which).order_by(*order).limit(limit).subquery()
    nics: dict[str, list[tuple[str, int | None]]] = {}
    for row in connection.execute(
        sa.select(ports.c.server_uuid, networks.c.bridge, networks.c.vlan)
        .join(networks, networks.c.id == ports.c.network_id)
        .join(those, those.c.uuid == ports.c.server_uuid)
    ):
        nics.setdefault(row.server_uuid, []).append((row.bridge, row.vlan))
    return Placed(rows, nics)
