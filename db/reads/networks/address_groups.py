"""Address groups, as they are listed and shown."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from db.reads import keyset
from db.reads.networks.network_access import group_shared_with
from db.reads.networks.networks import EVERYBODY, Viewer, Where, read_page
from db.schema import address_groups


@dataclass(frozen=True)
class AddressGroup:
    """Prefixes that rules of security groups name."""

    id: str
    project_id: str
    name: str
    description: str
    addresses: Sequence[str]
    created_at: datetime.datetime
    updated_at: datetime.datetime
    revision: int = 0


_FIELDS: Mapping[str, sa.ColumnElement[Any]] = {column.name: column for column in address_groups.c}


def list_address_groups(
    connection: sa.Connection,
    where: Where,
    order: Sequence[tuple[str, bool]] = (),
    page: keyset.Page = keyset.Page(),  # noqa: B008 - frozen
    viewer: Viewer = EVERYBODY,
) -> list[AddressGroup]:
    """Return address groups, as `list_networks` returns networks. Raises MarkerNotFound."""
    shared = group_shared_with(address_groups.c.id, viewer.project_id)
    seen = viewer.sees(address_groups.c.project_id, shared=shared)
    rows = read_page(connection, address_groups, _FIELDS, where, order, page, seen)
    return [AddressGroup(**row._mapping) for row in rows]
