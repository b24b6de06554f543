"""Address groups: prefixes that rules of security groups name, changed in one place.

Refusals are Neutron's: its words, and the ``type`` of its answers in the details.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import Conflict, NotFound
from common.rpc import deadlines
from conductor.rpc.networks.address_groups import NewAddressGroup
from conductor.store.networks import revisions
from conductor.store.networks.filtering import group_shares
from conductor.store.outbox import filter_outbox
from db.schema import address_groups, security_group_rules

_C, _R = address_groups.c, security_group_rules.c


def create(connection: sa.Connection, wanted: Sequence[NewAddressGroup]) -> list[str]:
    """Write address groups; return their ids."""
    now = clock.utcnow()
    rows = [
        {
            "id": deadlines.new_uuid(),
            "project_id": new.project_id,
            "name": new.name,
            "description": new.description,
            "addresses": sorted(set(new.addresses)),
            "created_at": now,
            "updated_at": now,
        }
        for new in wanted
    ]
    connection.execute(address_groups.insert(), rows)
    return [str(row["id"]) for row in rows]


def change(connection: sa.Connection, row: Any, asked: dict[str, str]) -> None:
    """Change name and description of a group that is locked."""
    _write(connection, row, asked)


def add(connection: sa.Connection, row: Any, addresses: Sequence[str]) -> None:
    """Add addresses to a group that is locked. Raises Conflict for those that it has."""
    there = sorted(set(addresses) & set(row.addresses))
    if there:
        raise Conflict(
            f"Addresses {there} already exist in the address group {row.id}.",
            type="AddressesAlreadyExist",
        )
    _write(connection, row, {"addresses": sorted({*row.addresses, *addresses})})
    _rules_changed(connection, row.id)


def remove(connection: sa.Connection, row: Any, addresses: Sequence[str]) -> None:
    """Remove addresses from a locked group. Raises NotFound for an address not in the group."""
    missing = sorted(set(addresses) - set(row.addresses))
    if missing:
        raise NotFound(
            f"Addresses {missing} not found in the address group {row.id}.",
            type="AddressesNotFound",
        )
    _write(connection, row, {"addresses": sorted(set(row.addresses) - set(addresses))})
    _rules_changed(connection, row.id)


def delete(connection: sa.Connection, row: Any) -> None:
    """Delete a group that is locked. Raises Conflict while a rule names it."""
    used = sa.select(_R.id).where(_R.remote_address_group_id == row.id).limit(1)
    if connection.execute(used).first() is not None:
        raise Conflict(
            f"Address group {row.id} is in use on one or more security group rules.",
            type="AddressGroupInUse",
        )
    group_shares.delete_all(connection, row.id)
    connection.execute(address_groups.delete().where(_C.id == row.id))


def locked(connection: sa.Connection, group_id: str, project_id: str | None) -> Any:
    """Return a group's row, locked; ``project_id`` None: of any. Raises NotFound."""
    query = sa.select(address_groups).where(_C.id == group_id).with_for_update()
    row = connection.execute(query).first()
    if row is None or project_id not in (None, row.project_id):
        raise missing(group_id)
    return row


def require(connection: sa.Connection, group_ids: Sequence[str], project_id: str | None) -> None:
    """Have these groups stay until the transaction ends, for rules that name them.

    ``project_id`` None: of any project. Raises NotFound.
    """
    for group_id in sorted(set(group_ids)):
        query = sa.select(_C.project_id).where(_C.id == group_id).with_for_update(read=True)
        row = connection.execute(query).first()
        if row is None:
            raise missing(group_id)
        if project_id not in (None, row.project_id) and not group_shares.granted(
            connection, [group_id], project_id
        ):
            raise missing(group_id)


def missing(group_id: str) -> NotFound:
    """Return the refusal of a group that doesn't exist."""
    return NotFound(f"Address group {group_id} could not be found.", type="AddressGroupNotFound")


# --- inner


def _write(connection: sa.Connection, row: Any, values: dict[str, Any]) -> None:
    mine = address_groups.update().where(_C.id == row.id)
    connection.execute(mine.values(**values, **revisions.changed(address_groups)))


def _rules_changed(connection: sa.Connection, group_id: str) -> None:
    """Record that servers in groups whose rules name it must know."""
    naming = sa.select(_R.security_group_id).distinct()
    found = connection.execute(naming.where(_R.remote_address_group_id == group_id)).scalars()
    groups = found.all()
    if groups:
        filter_outbox.groups_changed(connection, groups)
