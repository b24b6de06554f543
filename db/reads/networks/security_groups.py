"""Security groups and their rules."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from db.reads import keyset
from db.reads.networks.network_access import group_shared_with
from db.reads.networks.networks import EVERYBODY, Viewer, Where, read_page
from db.records import fields
from db.schema import (
    default_group_rules,
    port_security_groups,
    ports,
    security_group_rules,
    security_groups,
)


@dataclass(frozen=True)
class _Rule:
    """What is allowed."""

    id: str
    direction: str
    ethertype: str
    protocol: str | None
    port_range_min: int | None
    port_range_max: int | None
    remote_ip_prefix: str | None
    normalized_cidr: str | None
    remote_group_id: str | None
    remote_address_group_id: str | None
    description: str
    created_at: datetime.datetime


@dataclass(frozen=True)
class SecurityGroupRule(_Rule):
    """What a group allows."""

    security_group_id: str
    project_id: str


@dataclass(frozen=True)
class SecurityGroup:
    """A set of rules, for the ports that are in it."""

    id: str
    project_id: str
    name: str
    description: str
    tags: Sequence[str] | None
    created_at: datetime.datetime
    updated_at: datetime.datetime
    stateful: bool = True
    revision: int = 0
    shared: bool = False
    """Whether others share it with who asks."""
    rules: tuple[SecurityGroupRule, ...] = ()


_GROUP = fields(security_groups, SecurityGroup)
_RULE = fields(security_group_rules, SecurityGroupRule)


def list_groups(
    connection: sa.Connection,
    where: Where,
    order: Sequence[tuple[str, bool]] = (),
    page: keyset.Page = keyset.Page(),  # noqa: B008 - frozen
    viewer: Viewer = EVERYBODY,
) -> list[SecurityGroup]:
    """Return groups with their rules, as `list_networks` returns networks."""
    shared = group_shared_with(security_groups.c.id, viewer.project_id)
    seen = viewer.sees(security_groups.c.project_id, shared=shared)
    fields = {**_GROUP, "shared": shared}
    rows = read_page(connection, security_groups, fields, where, order, page, seen)
    rules = _rules_of(connection, [row.id for row in rows])
    return [SecurityGroup(**row._mapping, rules=tuple(rules[row.id])) for row in rows]


def list_rules(
    connection: sa.Connection,
    where: Where,
    order: Sequence[tuple[str, bool]] = (),
    page: keyset.Page = keyset.Page(),  # noqa: B008 - frozen
    viewer: Viewer = EVERYBODY,
) -> list[SecurityGroupRule]:
    """Return rules, in the same way."""
    seen = viewer.sees(security_group_rules.c.project_id)
    rows = read_page(connection, security_group_rules, _RULE, where, order, page, seen)
    return [SecurityGroupRule(**row._mapping) for row in rows]


@dataclass(frozen=True)
class DefaultRule(_Rule):
    """What new groups begin with."""

    used_in_default_sg: bool
    used_in_non_default_sg: bool

    @property
    def project_id(self) -> str:
        """The operator's."""
        return ""


_DEFAULT_RULE = fields(default_group_rules, DefaultRule)


def list_default_rules(
    connection: sa.Connection,
    where: Where,
    order: Sequence[tuple[str, bool]] = (),
    page: keyset.Page = keyset.Page(),  # noqa: B008 - frozen
    viewer: Viewer = EVERYBODY,
) -> list[DefaultRule]:
    """Return the default rules, in the same way: to all readers, or to nobody."""
    seen = () if viewer.everything else (sa.false(),)
    rows = read_page(connection, default_group_rules, _DEFAULT_RULE, where, order, page, seen)
    return [DefaultRule(**row._mapping) for row in rows]


def named(connection: sa.Connection, project_id: str, name: str) -> list[SecurityGroup]:
    """Return a project's group with this id, or else those of this name, without their rules."""
    mine = security_groups.c
    query = sa.select(*(column.label(key) for key, column in _GROUP.items()))
    query = query.where(mine.project_id == project_id, sa.or_(mine.id == name, mine.name == name))
    found = [SecurityGroup(**row._mapping) for row in connection.execute(query)]
    return [one for one in found if one.id == name] or found


def of_server(connection: sa.Connection, server_uuid: str) -> list[SecurityGroup]:
    """Return the groups, with their rules, that a port of a server is in, by name."""
    mine = (
        sa.select(port_security_groups.c.security_group_id)
        .join(ports, ports.c.id == port_security_groups.c.port_id)
        .where(ports.c.server_uuid == server_uuid)
    )
    columns = security_groups.c
    query = sa.select(*(column.label(key) for key, column in _GROUP.items()))
    query = query.where(columns.id.in_(mine)).order_by(
        columns.project_id, columns.name, columns.id
    )
    rows = connection.execute(query).all()
    rules = _rules_of(connection, [row.id for row in rows])
    return [SecurityGroup(**row._mapping, rules=tuple(rules[row.id])) for row in rows]


def names(connection: sa.Connection, group_ids: Collection[str]) -> Mapping[str, SecurityGroup]:
    """Return groups by their ids, without their rules."""
    query = sa.select(*(column.label(key) for key, column in _GROUP.items()))
    rows = connection.execute(query.where(security_groups.c.id.in_(sorted(group_ids))))
    return {row.id: SecurityGroup(**row._mapping) for row in rows}


def has_default(connection: sa.Connection, project_id: str) -> bool:
    """Return whether a project has its default group."""
    query = sa.select(security_groups.c.id).where(security_groups.c.default_of == project_id)
    return connection.execute(query).first() is not None


def _rules_of(
    connection: sa.Connection, group_ids: Sequence[str]
) -> Mapping[str, list[SecurityGroupRule]]:
    found: defaultdict[str, list[SecurityGroupRule]] = defaultdict(list)
    if group_ids:
        mine = security_group_rules.c
        query = (
            sa.select(*(column.label(name) for name, column in _RULE.items()))
            .where(mine.security_group_id.in_(group_ids))
            .order_by(mine.created_at, mine.id)
        )
        for row in connection.execute(query):
            found[row.security_group_id].append(SecurityGroupRule(**row._mapping))
    return found
