"""The tags of networks, subnets, ports and security groups, which clients find them by."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from common.errors import Invalid, NotFound
from conductor.rpc.networks.ports import TagChange
from conductor.store.networks import revisions
from db import schema

#: Neutron's (neutron/extensions/tagging.py)
MOST = 50

_TABLES: Mapping[str, sa.Table] = {
    "network": schema.networks,
    "subnet": schema.subnets,
    "port": schema.ports,
    "security_group": schema.security_groups,
}


def change(connection: sa.Connection, kind: str, record_id: str, asked: TagChange) -> list[str]:
    """Change the tags of a record; return those it has then, sorted.

    Raises NotFound (the record, or a tag that is to be removed), Invalid over ``MOST``.
    """
    table = _TABLES[kind]
    mine = table.c.id == record_id
    row = connection.execute(sa.select(table.c.tags).where(mine).with_for_update()).first()
    if row is None:
        raise NotFound(
            f"Resource {kind}s {record_id} could not be found.", type="TagResourceNotFound"
        )
    had = set(row.tags or ())
    for tag in asked.remove:
        if tag not in had:
            raise NotFound(f"Tag {tag} could not be found.", type="TagNotFound")
    tags = sorted((set() if asked.replace else had - set(asked.remove)) | set(asked.add))
    require_few(kind, tags)
    if set(tags) != had:
        values = {"tags": tags, **revisions.changed(table)}
        connection.execute(table.update().where(mine).values(**values))
    return tags


def require_few(kind: str, tags: list[str]) -> None:
    """Raise Invalid over ``MOST`` tags."""
    if len(tags) > MOST:
        raise Invalid(
            f"Bad {kind}s request: The number of tags exceed the per-resource limit of {MOST}.",
            type="BadRequest",
        )
