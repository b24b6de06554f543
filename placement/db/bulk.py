"""Many new resource providers with all they have, in one transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from common.errors import Invalid
from placement.db import inventories, schema, sequence
from placement.db.names import resource_classes, traits

_P = schema.providers.c
_INSERT = sa.insert(schema.providers).values(changed=sequence.NOW)
#: nodes are alike: one statement for all that have the same
_INSERT_TRAITS = sa.insert(schema.provider_traits).from_select(
    ["provider_id", "trait"],
    sa.select(_P.id, schema.traits.c.name)
    .join_from(schema.providers, schema.traits, sa.true())
    .where(
        _P.id.in_(sa.bindparam("providers", expanding=True)),
        schema.traits.c.name.in_(sa.bindparam("names", expanding=True)),
    ),
)
#: their inventories and traits are there from the beginning, as after a change
_GENERATION = 1


class NewProvider(NamedTuple):
    """A root provider to be made."""

    uuid: str
    name: str
    inventories: Mapping[str, Mapping[str, Any]]
    traits: frozenset[str]


def create(connection: Connection, given: Sequence[NewProvider]) -> list[str]:
    """Insert the providers whose UUID and name are both unused; return their UUIDs.

    Raises Invalid for an unknown resource class or trait; IntegrityError when a concurrent
    transaction inserts one of them.
    """
    _require_names(connection, given)
    new = _absent(connection, given)
    if not new:
        return []
    now = sequence.seconds()
    sequence.advance(connection)
    common = {"generation": _GENERATION, "parent_id": None, "root_id": None}
    times = {"created_at": now, "updated_at": now}
    connection.execute(
        _INSERT, [{"uuid": one.uuid, "name": one.name, **common, **times} for one in new]
    )
    uuids = [one.uuid for one in new]
    mine = _P.uuid.in_(uuids)
    connection.execute(sa.update(schema.providers).where(mine).values(root_id=_P.id))
    ids = {row.uuid: row.id for row in connection.execute(sa.select(_P.id, _P.uuid).where(mine))}
    inventories.insert_all(connection, {ids[one.uuid]: one.inventories for one in new})
    alike: dict[frozenset[str], list[int]] = defaultdict(list)
    for one in new:
        alike[one.traits].append(ids[one.uuid])
    for names, providers in alike.items():
        if names:
            connection.execute(_INSERT_TRAITS, {"providers": providers, "names": sorted(names)})
    return uuids


def _require_names(connection: Connection, given: Sequence[NewProvider]) -> None:
    for what, names, table in (
        ("resource class", {name for one in given for name in one.inventories}, resource_classes),
        ("trait", {name for one in given for name in one.traits}, traits),
    ):
        missing = names - table.among(connection, names).keys()
        if missing:
            raise Invalid(f"No such {what} {', '.join(sorted(missing))}")


def _absent(connection: Connection, given: Sequence[NewProvider]) -> list[NewProvider]:
    """Return those whose UUID and name are free, ordered by UUID."""
    rows = connection.execute(
        sa.select(_P.uuid, _P.name).where(
            sa.or_(
                _P.uuid.in_([one.uuid for one in given]),
                _P.name.in_([one.name for one in given]),
            )
        )
    ).all()
    uuids, names = {row.uuid for row in rows}, {row.name for row in rows}
    free: dict[str, NewProvider] = {}
    for one in sorted(given):
        if one.uuid not in uuids and one.name not in names:
            free[one.uuid] = one
            uuids.add(one.uuid)
            names.add(one.name)
    return list(free.values())
