"""Server groups with their living members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from db import schema

_T = schema.server_groups.c
_SERVERS = schema.servers.c


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """A row of `server_groups`; members are UUIDs, oldest first."""

    uuid: str
    project_id: str
    user_id: str
    name: str
    policy: str
    rules: Mapping[str, Any]
    members: tuple[str, ...] = ()


_COLUMNS = (_T.uuid, _T.project_id, _T.user_id, _T.name, _T.policy, _T.rules)


def list_groups(
    connection: sa.Connection, project_id: str | None, *, limit: int, offset: int = 0
) -> list[ServerGroup]:
    """Return a page of a project's groups (None: of all), in order of age: two queries."""
    query = sa.select(*_COLUMNS).order_by(_T.id).limit(limit).offset(offset)
    if project_id is not None:
        query = query.where(_T.project_id == project_id)
    rows = connection.execute(query).all()
    members = _members(connection, [row.uuid for row in rows])
    return [ServerGroup(*row, tuple(members.get(row.uuid, ()))) for row in rows]


def find(connection: sa.Connection, uuid: str, project_id: str | None) -> ServerGroup | None:
    """Return the group of this UUID, or None; with `project_id` only if it is that project's."""
    query = sa.select(*_COLUMNS).where(_T.uuid == uuid)
    if project_id is not None:
        query = query.where(_T.project_id == project_id)
    row = connection.execute(query).first()
    if row is None:
        return None
    return ServerGroup(*row, tuple(_members(connection, [uuid]).get(uuid, ())))


def _members(connection: sa.Connection, uuids: Sequence[str]) -> dict[str, list[str]]:
    """Return {group: its living servers}."""
    found: dict[str, list[str]] = {}
    if not uuids:
        return found
    query = (
        sa.select(_SERVERS.server_group_uuid, _SERVERS.uuid)
        .where(_SERVERS.server_group_uuid.in_(uuids), _SERVERS.deleted_at.is_(None))
        .order_by(_SERVERS.id)
    )
    for group, server in connection.execute(query):
        found.setdefault(group, []).append(server)
    return found
