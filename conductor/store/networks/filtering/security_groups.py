"""Security groups, their rules, and which ports are in them.

A group's row is locked by who changes its rules or deletes it, and shared by who puts ports into
it, always after the project's lock. Refusals are Neutron's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import Conflict, NotFound
from common.resources.security_rules import DEFAULT, Rule
from common.rpc import deadlines
from conductor.rpc.networks.security_groups import NewRule, NewSecurityGroup, SecurityGroupChange
from conductor.store.networks import revisions
from conductor.store.networks.filtering import address_groups, default_rules, group_shares
from conductor.store.outbox import filter_outbox
from conductor.store.quotas import network_quotas
from db.schema import port_security_groups, ports, security_group_rules, security_groups

_G, _R, _B = security_groups.c, security_group_rules.c, port_security_groups.c

# Built once: every build and every delete executes them.
_DEFAULT = sa.select(_G.id).where(_G.default_of == sa.bindparam("project"))
_NAMED: sa.BindParameter[Any] = sa.bindparam("groups", expanding=True)
_SHARED = (
    sa.select(_G.id, _G.project_id, filter_outbox.is_watched(_NAMED).label("watched"))
    .where(_G.id.in_(_NAMED))
    .order_by(_G.id)
    .with_for_update(read=True)
)
_BIND = port_security_groups.insert()
_UNBIND = port_security_groups.delete().where(
    _B.port_id.in_(sa.bindparam("ports", expanding=True))
)
_OF_SERVERS = ports.c.server_uuid.in_(sa.bindparam("servers", expanding=True))
_WATCHED = filter_outbox.is_watched(
    sa.select(_B.security_group_id)
    .join(ports, ports.c.id == _B.port_id)
    .where(_OF_SERVERS, ~ports.c.kept)
    .correlate(None)
)
_PORTS_OF_SERVERS = (
    sa.select(ports.c.kept, _B.security_group_id, _WATCHED.label("watched"))
    .select_from(ports.outerjoin(port_security_groups, _B.port_id == ports.c.id))
    .where(_OF_SERVERS)
)
_UNBIND_OF_SERVERS = port_security_groups.delete().where(
    _B.port_id.in_(sa.select(ports.c.id).where(_OF_SERVERS, ~ports.c.kept))
)


def default(connection: sa.Connection, project_id: str) -> str:
    """Return the id of a project's default group, which is created if it doesn't exist.

    If another transaction creates it at the same time, this one is repeated and finds it.
    """
    found = connection.execute(_DEFAULT, {"project": project_id}).scalar()
    if found is not None:
        return str(found)
    new = NewSecurityGroup(project_id, DEFAULT, "Default security group")
    return _insert(connection, new, default_of=project_id)


def create(connection: sa.Connection, new: NewSecurityGroup, defaults: Mapping[str, int]) -> str:
    """Write a group; return its id. Raises Conflict over the project's limits, or ``defaults``."""
    owner = new.project_id
    default(connection, owner)
    network_quotas.take(connection, "security_group", [owner], defaults)
    rules = len(default_rules.of_new(connection, "", default=False))
    network_quotas.take(connection, "security_group_rule", [owner] * rules, defaults)
    return _insert(connection, new)


def change(connection: sa.Connection, row: Any, asked: SecurityGroupChange) -> None:
    """Change a group that is locked. Raises Conflict for a new name of a default group."""
    if asked.name is not None and row.default_of is not None:
        raise Conflict(
            "Updating default security group not allowed.",
            type="SecurityGroupCannotUpdateDefault",
        )
    values: dict[str, Any] = revisions.changed(security_groups)
    values |= {"name": asked.name} if asked.name is not None else {}
    values |= {"description": asked.description} if asked.description is not None else {}
    values |= {"stateful": asked.stateful} if asked.stateful is not None else {}
    connection.execute(security_groups.update().where(_G.id == row.id).values(**values))


def delete(connection: sa.Connection, row: Any, *, also_default: bool) -> None:
    """Delete a group that is locked, and all rules that are its, or name it.

    Raises Conflict while a port is in it, and for a default group unless that is allowed.
    """
    used = sa.select(_B.port_id).where(_B.security_group_id == row.id).limit(1)
    if connection.execute(used).first() is not None:
        raise Conflict(f"Security Group {row.id} in use.", type="SecurityGroupInUse")
    if row.default_of is not None and not also_default:
        raise Conflict(
            "Insufficient rights for removing default security group.",
            type="SecurityGroupCannotRemoveDefault",
        )
    # No port is in it, but other groups' rules name it.
    filter_outbox.members_changed(connection, [row.id])
    named = sa.or_(_R.security_group_id == row.id, _R.remote_group_id == row.id)
    connection.execute(security_group_rules.delete().where(named))
    group_shares.delete_all(connection, row.id)
    connection.execute(security_groups.delete().where(_G.id == row.id))


def locked(connection: sa.Connection, group_id: str, project_id: str | None) -> Any:
    """Return a group's row, locked; ``project_id`` None: of any. Raises NotFound."""
    row = connection.execute(
        sa.select(security_groups).where(_G.id == group_id).with_for_update()
    ).first()
    if row is None or project_id not in (None, row.project_id):
        raise missing(group_id)
    return row


def create_rules(
    connection: sa.Connection,
    group: Any,
    new: Sequence[NewRule],
    project_id: str | None,
    defaults: Mapping[str, int],
) -> list[str]:
    """Write rules of a group that is locked, as its project is; return their ids.

    ``project_id``: whose groups they may name; None: any. Raises NotFound, Conflict for a rule
    that is there, or twice, and over the limit.
    """
    remote = {one.rule.remote_group_id for one in new} - {None, group.id}
    shared(connection, [str(one) for one in remote], project_id)
    prefixes = {one.rule.remote_address_group_id for one in new} - {None}
    address_groups.require(connection, [str(one) for one in prefixes], project_id)
    owners = [group.project_id] * len(new)
    network_quotas.take(connection, "security_group_rule", owners, defaults)
    _require_new(connection, group.id, [one.rule.meaning() for one in new])
    made = _insert_rules(connection, group.id, group.project_id, new)
    revisions.bump(connection, security_groups, group.id)
    filter_outbox.groups_changed(connection, [group.id])
    return made


def delete_rule(connection: sa.Connection, rule_id: str, project_id: str | None) -> None:
    """Delete a rule. Raises NotFound."""
    known = connection.execute(sa.select(_R.security_group_id).where(_R.id == rule_id)).scalar()
    if known is not None:
        row = connection.execute(
            sa.select(_G.project_id).where(_G.id == known).with_for_update()
        ).first()
        mine = row is not None and project_id in (None, row.project_id)
        gone = security_group_rules.delete().where(_R.id == rule_id)
        if mine and connection.execute(gone).rowcount == 1:
            revisions.bump(connection, security_groups, known)
            filter_outbox.groups_changed(connection, [known])
            return
    raise NotFound(
        f"Security group rule {rule_id} does not exist", type="SecurityGroupRuleNotFound"
    )


def shared(connection: sa.Connection, group_ids: Iterable[str], project_id: str | None) -> bool:
    """Have these groups stay until the transaction ends, which are the project's, or shared with
    it; ``project_id`` None: of any project.

    Return whether a server with a filtered port must know who is in them. Raises NotFound.
    """
    wanted = sorted(set(group_ids))
    rows = connection.execute(_SHARED, {"groups": wanted}).all() if wanted else ()
    owners = {row.id: row.project_id for row in rows}
    found = {one for one, owner in owners.items() if project_id in (None, owner)}
    found |= group_shares.granted(connection, owners.keys() - found, project_id)
    absent = [one for one in wanted if one not in found]
    if absent:
        raise missing(", ".join(absent))
    return any(row.watched for row in rows)


def bind(
    connection: sa.Connection, groups: Sequence[tuple[str, str]], *, watched: bool = True
) -> None:
    """Put ports into groups, (port, group) each, which are ``shared`` or the default one.

    ``watched``: servers may have to know who is in them.
    """
    if groups:
        rows = [{"port_id": port, "security_group_id": group} for port, group in groups]
        connection.execute(_BIND, rows)
    if groups and watched:
        filter_outbox.members_changed(connection, {group for _, group in groups})


def bind_named(
    connection: sa.Connection,
    project_id: str,
    wanted: Sequence[str],
    port_ids: Sequence[str],
    *,
    filtered: bool,
) -> None:
    """Put ports of a project into the groups requested for a server: ids, or ``default``, which is
    also used if none was requested.

    ``filtered``: some of the ports are. Raises NotFound for a deleted group.
    """
    if not port_ids:
        return
    groups = {
        default(connection, project_id) if one == DEFAULT else one for one in wanted or (DEFAULT,)
    }
    watched = shared(connection, groups, project_id)
    bound = [(port_id, group) for port_id in port_ids for group in sorted(groups)]
    bind(connection, bound, watched=watched or filtered)


def of_port(connection: sa.Connection, port_id: str) -> list[str]:
    """Return the groups of a port."""
    query = sa.select(_B.security_group_id).where(_B.port_id == port_id)
    return sorted(connection.execute(query).scalars())


def unbind_from(connection: sa.Connection, group_id: str, port_ids: Sequence[str]) -> None:
    """Take ports from one group."""
    mine = _B.port_id.in_(port_ids) & (_B.security_group_id == group_id)
    connection.execute(port_security_groups.delete().where(mine))
    filter_outbox.members_changed(connection, [group_id])


def unbind(connection: sa.Connection, *port_ids: str) -> None:
    """Take ports from all groups."""
    query = sa.select(_B.security_group_id).distinct().where(_B.port_id.in_(port_ids))
    groups = connection.execute(query).scalars().all()
    if groups:
        connection.execute(_UNBIND, {"ports": sorted(port_ids)})
        filter_outbox.members_changed(connection, groups)


def unbind_of_servers(connection: sa.Connection, server_uuids: Sequence[str]) -> set[bool]:
    """Take the ports that go with these servers from all groups.

    Return what there are: ports that users made (True), others (False).
    """
    which = {"servers": sorted(server_uuids)}
    found = connection.execute(_PORTS_OF_SERVERS, which).all()
    left = {row.security_group_id for row in found if not row.kept} - {None}
    if left:
        connection.execute(_UNBIND_OF_SERVERS, which)
    if any(row.watched for row in found):
        filter_outbox.members_changed(connection, left)
    return {bool(row.kept) for row in found}


def missing(group_id: str) -> NotFound:
    """Return the refusal of a group that doesn't exist."""
    return NotFound(f"Security group {group_id} does not exist", type="SecurityGroupNotFound")


# --- inner


def _insert(
    connection: sa.Connection, new: NewSecurityGroup, default_of: str | None = None
) -> str:
    now, group_id = clock.utcnow(), deadlines.new_uuid()
    connection.execute(
        security_groups.insert().values(
            id=group_id,
            project_id=new.project_id,
            name=new.name,
            description=new.description,
            stateful=new.stateful,
            default_of=default_of,
            created_at=now,
            updated_at=now,
        )
    )
    rules = default_rules.of_new(connection, group_id, default=default_of is not None)
    _insert_rules(connection, group_id, new.project_id, [NewRule(group_id, one) for one in rules])
    return group_id


def _insert_rules(
    connection: sa.Connection, group_id: str, project_id: str, new: Sequence[NewRule]
) -> list[str]:
    now = clock.utcnow()
    rows = [_row(one) | {"project_id": project_id, "created_at": now} for one in new]
    if rows:
        connection.execute(security_group_rules.insert(), rows)
    return [row["id"] for row in rows]


def _row(new: NewRule) -> dict[str, Any]:
    rule: Rule = new.rule
    return {
        "id": deadlines.new_uuid(),
        "security_group_id": new.security_group_id,
        "direction": rule.direction,
        "ethertype": rule.ethertype,
        "protocol": rule.protocol,
        "port_range_min": rule.port_range_min,
        "port_range_max": rule.port_range_max,
        "remote_ip_prefix": rule.remote_ip_prefix,
        "normalized_cidr": rule.normalized_cidr,
        "remote_group_id": rule.remote_group_id,
        "remote_address_group_id": rule.remote_address_group_id,
        "description": new.description,
        "meaning": rule.meaning(),
    }


def _require_new(connection: sa.Connection, group_id: str, meanings: Sequence[str]) -> None:
    if len(set(meanings)) != len(meanings):
        raise Conflict(
            "Duplicate Security Group Rule in POST.", type="DuplicateSecurityGroupRuleInPost"
        )
    query = sa.select(_R.id).where(_R.security_group_id == group_id, _R.meaning.in_(meanings))
    there = connection.execute(query.order_by(_R.id)).scalars().first()
    if there is not None:
        raise Conflict(
            f"Security group rule already exists. Rule id is {there}.",
            type="SecurityGroupRuleExists",
        )
