"""Records of scaling groups, by the IDs, short IDs and names that clients put into paths."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

from common.errors import Invalid, NotFound
from common.resources import hints
from common.resources.groups import Keep
from db.reads.groups import shown
from db.reads.volumes.block_storage import Filter, Listing, each
from db.records import columns
from db.schema import (
    scaling_bindings,
    scaling_groups,
    scaling_members,
    scaling_policies,
    scaling_profiles,
    scaling_receivers,
    servers,
)

#: what a short ID has at least
_SHORT = 4


@dataclass(frozen=True)
class Profile:
    """What members' servers are made of."""

    id: str
    project_id: str
    user_id: str
    name: str
    spec: Mapping[str, Any]
    meta: Mapping[str, Any]
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


@dataclass(frozen=True)
class Group:
    """A group of servers whose number is kept; see the table."""

    id: str
    project_id: str
    user_id: str
    name: str
    profile_id: str
    former_profile_id: str | None
    desired: int
    min_size: int
    max_size: int
    timeout_seconds: int
    meta: Mapping[str, Any]
    config: Mapping[str, Any]
    next_index: int
    rolling: bool
    paused: bool
    deleting: bool
    failures: int
    refusals: int
    not_before: datetime.datetime | None
    halted: str | None
    status: str
    status_reason: str
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    default_wait_seconds: int | None = None


@dataclass(frozen=True)
class Member:
    """A place in a group, and what its server is."""

    id: str
    group_id: str | None
    member_index: int | None
    project_id: str
    user_id: str
    name: str
    role: str | None
    meta: Mapping[str, Any]
    profile_id: str
    server_uuid: str | None
    state: str
    reason: str
    recoveries: int
    ready_at: datetime.datetime | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    health: str | None = None
    """What its checks say; None: nothing yet."""
    health_reason: str | None = None
    health_at: datetime.datetime | None = None
    repaired_at: datetime.datetime | None = None
    volumes: Sequence[str] = ()
    """Those that belong to the place, whatever its server is."""
    ports: Sequence[str] = ()
    """As ``volumes``."""
    vm_state: str | None = None
    """Its server's, as what follows; None: it has none."""
    task_state: str | None = None
    host: str | None = None
    availability_zone: str | None = None
    pinned_zone: str | None = None
    cluster: str | None = None
    """The cluster of Proxmox VE that has its server, or will."""
    server_created_at: datetime.datetime | None = None
    launched_at: datetime.datetime | None = None
    deleted_at: datetime.datetime | None = None
    locked_by: str | None = None
    held: bool | None = None
    status: str = ""
    """What clients of the clustering API see."""

    @property
    def kept(self) -> Mapping[Keep, Sequence[str]]:
        """Return what belongs to the place, by kind; a kind without any is left out."""
        found = {Keep.VOLUMES: self.volumes, Keep.PORTS: self.ports}
        return {kind: some for kind, some in found.items() if some}


@dataclass(frozen=True)
class Policy:
    """A deletion or a health policy."""

    id: str
    project_id: str
    user_id: str
    name: str
    spec: Mapping[str, Any]
    created_at: datetime.datetime
    updated_at: datetime.datetime | None

    @property
    def type(self) -> str:
        """The type without its version."""
        return str(self.spec["type"])


@dataclass(frozen=True)
class Binding:
    """A policy that a group has."""

    id: str
    group_id: str
    policy_id: str
    enabled: bool
    policy_name: str
    spec: Mapping[str, Any]


@dataclass(frozen=True)
class Receiver:
    """A webhook, without its secret."""

    id: str
    project_id: str
    user_id: str
    name: str
    group_id: str
    action: str
    params: Mapping[str, Any]
    key_hash: str
    sealed: str
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


R = TypeVar("R")


class Kind(Generic[R]):
    """The records of one table, in the API's noun."""

    def __init__(
        self,
        noun: str,
        record: type[R],
        query: sa.Select[Any],
        table: sa.Table,
        **columns: sa.ColumnElement[Any],
    ) -> None:
        """``columns``: what lists are filtered and sorted by beside those of the table."""
        self.noun, self._record, self._query, self._of = noun, record, query, table
        of = table.c
        sortable = {
            **{name: of[name] for name in ("id", "name", "created_at")},
            "init_at": of.created_at,
            "updated_at": sa.func.coalesce(of.updated_at, of.created_at),
            **columns,
        }
        filters = {**dict(of), **columns}
        self._list: Listing[R, Filter] = Listing(query, sortable, each(record), filters)
        self.listing, self.count, self.get = self._list.page, self._list.count, self._list.get
        self.sortable = frozenset(sortable)

    def find(self, connection: sa.Connection, named: str, project_id: str | None) -> R:
        """Return the record of this ID, name or beginning of an ID; at most three queries.

        ``project_id``: whose; None: anybody's. Raises NotFound, Invalid where it is of several.
        """
        table = self._of.c
        ways = [table.id == named, table.name == named]
        if len(named) >= _SHORT:
            ways.append(table.id.startswith(named, autoescape=True))
        for way in ways:
            query = self._query.where(way)
            if project_id is not None:
                query = query.where(table.project_id == project_id)
            rows = connection.execute(query.limit(2)).all()
            if len(rows) > 1:
                raise Invalid(
                    f"Multiple results found matching the query criteria {named!r}. "
                    "Please be more specific."
                )
            if rows:
                return self._record(*tuple(rows[0]))
        raise NotFound(f"The {self.noun} '{named}' could not be found.")


_MEMBERS = sa.select(
    *columns(
        scaling_members,
        Member,
        **{
            name: servers.c[name]
            for name in (
                *("vm_state", "task_state", "host", "availability_zone", "launched_at"),
                *("deleted_at", "locked_by", "held"),
            )
        },
        server_created_at=servers.c.created_at,
        pinned_zone=servers.c.pinned_availability_zone,
        status=shown.node_status(),
        cluster=sa.func.coalesce(
            servers.c.cluster, servers.c.scheduler_hints[hints.CLUSTER].as_string()
        ),
    )
).select_from(scaling_members.outerjoin(servers, servers.c.uuid == scaling_members.c.server_uuid))

PROFILES = Kind(
    *("profile", Profile, sa.select(*columns(scaling_profiles, Profile)), scaling_profiles),
    type=shown.type_of(scaling_profiles.c.spec),
)
GROUPS = Kind(
    *("cluster", Group, sa.select(*columns(scaling_groups, Group)), scaling_groups),
    status=scaling_groups.c.status,
)
MEMBERS = Kind(
    *("node", Member, _MEMBERS, scaling_members),
    state=scaling_members.c.state,
    status=shown.node_status(),
    index=sa.func.coalesce(scaling_members.c.member_index, -1),
)
POLICIES = Kind(
    *("policy", Policy, sa.select(*columns(scaling_policies, Policy)), scaling_policies),
    type=shown.type_of(scaling_policies.c.spec),
)
RECEIVERS = Kind(
    *("receiver", Receiver, sa.select(*columns(scaling_receivers, Receiver)), scaling_receivers),
    action=scaling_receivers.c.action,
    type=sa.literal("webhook"),
    cluster_id=scaling_receivers.c.group_id,
    user=scaling_receivers.c.user_id,
)


def members(connection: sa.Connection, group_id: str) -> list[Member]:
    """Return the members of a group, by their indexes. One query."""
    of = scaling_members.c
    query = _MEMBERS.where(of.group_id == group_id).order_by(of.member_index)
    return [Member(*tuple(row)) for row in connection.execute(query)]


def ids_of_members(
    connection: sa.Connection, group_ids: Sequence[str]
) -> Mapping[str, Sequence[str]]:
    """Return group → the IDs of its members, by their indexes. One query."""
    of = scaling_members.c
    query = (
        sa.select(of.group_id, of.id)
        .where(of.group_id.in_(group_ids))
        .order_by(of.group_id, of.member_index)
    )
    found: dict[str, list[str]] = {}
    for group_id, member_id in connection.execute(query):
        found.setdefault(group_id, []).append(member_id)
    return found


def ids_of_policies(
    connection: sa.Connection, group_ids: Sequence[str]
) -> Mapping[str, Sequence[str]]:
    """Return group → the IDs of the policies that it has, by their names. One query."""
    of, policy = scaling_bindings.c, scaling_policies.c
    query = (
        sa.select(of.group_id, of.policy_id)
        .join(scaling_policies, policy.id == of.policy_id)
        .where(of.group_id.in_(group_ids))
        .order_by(of.group_id, policy.name, of.id)
    )
    found: dict[str, list[str]] = {}
    for group_id, policy_id in connection.execute(query):
        found.setdefault(group_id, []).append(policy_id)
    return found


def bindings(connection: sa.Connection, group_id: str) -> list[Binding]:
    """Return the policies that a group has, by their names. One query."""
    of, policy = scaling_bindings.c, scaling_policies.c
    query = (
        sa.select(of.id, of.group_id, of.policy_id, of.enabled, policy.name, policy.spec)
        .join(scaling_policies, policy.id == of.policy_id)
        .where(of.group_id == group_id)
        .order_by(policy.name, of.id)
    )
    return [Binding(*tuple(row)) for row in connection.execute(query)]


def names(connection: sa.Connection, kind: Kind[Any], record_ids: Sequence[str]) -> dict[str, str]:
    """Return ID → name of these profiles, groups or policies. One query."""
    table = kind._of.c
    query = sa.select(table.id, table.name).where(table.id.in_(set(record_ids)))
    return {row.id: row.name for row in connection.execute(query)}
