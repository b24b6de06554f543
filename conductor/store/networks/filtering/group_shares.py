"""With whom security groups and address groups are shared (Neutron's RBAC policies)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import Conflict, NotFound
from common.rpc import deadlines
from conductor.rpc.networks.networks import NewShare
from db.reads.networks.network_access import EVERYBODY
from db.schema import (
    address_groups,
    group_shares,
    port_security_groups,
    ports,
    security_group_rules,
    security_groups,
)

_C = group_shares.c
#: type of what is shared → where it is
_TABLES: Mapping[str, sa.Table] = {
    "security_group": security_groups,
    "address_group": address_groups,
}
KINDS = tuple(_TABLES)


def create(connection: sa.Connection, wanted: Sequence[NewShare]) -> list[str]:
    """Write shares of groups; return their ids. Raises NotFound, Conflict."""
    made = []
    for new in wanted:
        _locked_object(connection, new.object_type, new.object_id)
        _require_new(connection, new.object_id, new.target)
        row = {
            "id": deadlines.new_uuid(),
            "object_type": new.object_type,
            "object_id": new.object_id,
            "target": new.target,
            "project_id": new.project_id,
            "created_at": clock.utcnow(),
        }
        connection.execute(group_shares.insert(), [row])
        made.append(str(row["id"]))
    return made


def find(connection: sa.Connection, share_id: str) -> Any:
    """Return a share, its group locked; None: it isn't one of a group."""
    query = sa.select(group_shares).where(_C.id == share_id)
    share = connection.execute(query).first()
    if share is None:
        return None
    _locked_object(connection, share.object_type, share.object_id)
    return connection.execute(query).first()


def change(connection: sa.Connection, share: Any, target: str) -> None:
    """Share with another project instead. Raises Conflict."""
    if target == share.target:
        return
    _require_new(connection, share.object_id, target)
    _require_unused(connection, share, {target})
    connection.execute(group_shares.update().where(_C.id == share.id).values(target=target))


def delete(connection: sa.Connection, share: Any) -> None:
    """Delete a share. Raises Conflict while who loses the group uses it."""
    _require_unused(connection, share, set())
    connection.execute(group_shares.delete().where(_C.id == share.id))


def delete_all(connection: sa.Connection, object_id: str) -> None:
    """Delete the shares of a group."""
    connection.execute(group_shares.delete().where(_C.object_id == object_id))


def granted(
    connection: sa.Connection, object_ids: Collection[str], project_id: str | None
) -> set[str]:
    """Return those of these groups that others share with a project. One statement, if any."""
    if not object_ids:
        return set()
    query = sa.select(_C.object_id).where(
        _C.object_id.in_(sorted(object_ids)), _C.target.in_([project_id or "", EVERYBODY])
    )
    return set(connection.execute(query).scalars())


# --- inner


def _locked_object(connection: sa.Connection, kind: str, object_id: str) -> None:
    table = _TABLES[kind]
    mine = sa.select(table.c.id).where(table.c.id == object_id).with_for_update()
    if connection.execute(mine).first() is None:
        noun = kind.replace("_", " ").capitalize()
        raise NotFound(f"{noun} {object_id} could not be found.")


def _require_new(connection: sa.Connection, object_id: str, target: str) -> None:
    if target in _targets(connection, object_id):
        raise Conflict(
            "An RBAC policy already exists with those values.", type="DuplicateRbacPolicy"
        )


def _targets(connection: sa.Connection, object_id: str) -> set[str]:
    query = sa.select(_C.target).where(_C.object_id == object_id)
    return set(connection.execute(query).scalars())


def _require_unused(connection: sa.Connection, share: Any, instead: set[str]) -> None:
    kept = (_targets(connection, share.object_id) - {share.target}) | instead
    if EVERYBODY in kept:
        return
    table = _TABLES[share.object_type]
    owner = connection.execute(
        sa.select(table.c.project_id).where(table.c.id == share.object_id)
    ).scalar()
    losing = _users(connection, share) - {str(owner)} - kept
    if share.target != EVERYBODY:
        losing &= {share.target}
    if losing:
        raise Conflict(
            f"RBAC policy on object {share.object_id} cannot be removed because other objects "
            f"depend on it.\nDetails: {len(losing)} project(s) use it.",
            type="RbacPolicyInUse",
        )


def _users(connection: sa.Connection, share: Any) -> set[str]:
    """Return the projects that have ports in a group, or rules that name it."""
    rules, bound = security_group_rules.c, port_security_groups.c
    named = rules.remote_address_group_id
    queries = [sa.select(rules.project_id).where(named == share.object_id)]
    if share.object_type == "security_group":
        members = ports.join(port_security_groups, bound.port_id == ports.c.id)
        in_it = sa.select(ports.c.project_id).select_from(members)
        queries = [
            in_it.where(bound.security_group_id == share.object_id),
            sa.select(rules.project_id).where(rules.remote_group_id == share.object_id),
        ]
    return {str(one) for query in queries for one in connection.execute(query).scalars()}
