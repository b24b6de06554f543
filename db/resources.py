"""The resource of an operation, in SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from common.resources.states import ResourceType
from db.schema import (
    images,
    networks,
    operations,
    scaling_groups,
    servers,
    volume_backups,
    volume_snapshots,
    volumes,
)

_T = operations.c

_ON_SERVERS = _T.resource_type == sa.literal_column(f"'{ResourceType.SERVER}'", sa.String)

#: joins operations with the servers that they are about
ITS_SERVER = _ON_SERVERS & (servers.c.uuid == _T.resource_id)


#: resources with an ID and a name, but servers
_NAMED: Mapping[ResourceType, sa.Table] = {
    ResourceType.VOLUME: volumes,
    ResourceType.SNAPSHOT: volume_snapshots,
    ResourceType.BACKUP: volume_backups,
    ResourceType.IMAGE: images,
    ResourceType.NETWORK: networks,
    ResourceType.GROUP: scaling_groups,
}


def its_name() -> sa.ColumnElement[str | None]:
    """Return the name of an operation's resource, where servers are joined by `ITS_SERVER`; null:
    it has none, or is gone."""
    names = [
        (
            _T.resource_type == str(kind),
            sa.select(table.c.name).where(table.c.id == _T.resource_id).scalar_subquery(),
        )
        for kind, table in _NAMED.items()
    ]
    return sa.func.nullif(sa.case(*names, else_=servers.c.name), "")


def about(resource_type: str, resource_id: str) -> sa.ColumnElement[bool]:
    """Return the condition that an operation is about this resource."""
    return (_T.resource_type == resource_type) & (_T.resource_id == resource_id)


def about_servers(uuids: sa.Select[str] | Sequence[str]) -> sa.ColumnElement[bool]:
    """Return the condition that an operation is about one of these servers."""
    return _ON_SERVERS & _T.resource_id.in_(uuids)
