"""Key pairs: the public halves, per user."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common.errors import Invalid
from db import schema
from db.reads import keyset
from db.records import columns

_T = schema.keypairs.c


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A row of `keypairs`."""

    id: int
    user_id: str
    name: str
    type: str
    fingerprint: str
    public_key: str
    created_at: datetime.datetime


_COLUMNS = columns(schema.keypairs, KeyPair)


def find(connection: sa.Connection, user_id: str, name: str) -> KeyPair | None:
    """Return a user's key pair of this name, or None."""
    query = sa.select(*_COLUMNS).where(_T.user_id == user_id, _T.name == name)
    row = connection.execute(query).first()
    return None if row is None else KeyPair(*row)


def list_keypairs(
    connection: sa.Connection, user_id: str, *, limit: int | None = None, marker: str | None = None
) -> list[KeyPair]:
    """Return a page of a user's key pairs, by name. Raises Invalid for an unknown marker."""
    if limit == 0:
        return []
    try:
        rows: Sequence[Any] = keyset.read(
            connection,
            sa.select(*_COLUMNS),
            [keyset.Sort(_T.name)],
            keyset.Page(limit, marker),
            _T.name,
            visible=[_T.user_id == user_id],
        )
    except keyset.MarkerNotFound as error:
        raise Invalid(f"Marker {marker} could not be found.") from error
    return [KeyPair(*row) for row in rows]
