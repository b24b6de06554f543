"""Networks, subnets and ports: bridges, their addresses, and the owners of these."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common.resources.states import PowerState
from db.reads import keyset
from db.reads.networks.network_access import shared_with
from db.reads.patterns import holds
from db.records import fields
from db.schema import (
    group_shares,
    network_shares,
    networks,
    port_addresses,
    port_security_groups,
    ports,
    security_group_rules,
    security_groups,
    servers,
    subnets,
)

Where = Mapping[str, Sequence[Any]]
"""Field → the values it may have."""


@dataclass(frozen=True)
class Network:
    """One bridge (or SDN vnet), perhaps with a VLAN on it, that servers can be attached to."""

    id: str
    name: str
    bridge: str
    vlan: int | None
    network_type: str
    """``vlan``, ``flat`` or ``vxlan``."""
    mtu: int
    created_at: datetime.datetime
    updated_at: datetime.datetime
    project_id: str = ""
    """Its owner; empty: the operator."""
    description: str = ""
    shared: bool = True
    """Whether others share it with who asks."""
    external: bool = False
    discovered: bool = True
    """Whether it is the network of a bridge, read from a cluster."""
    physical_network: str | None = None
    """Its bridge; a network on vnets has none."""
    segmentation_id: int | None = None
    """Its VLAN tag, or VNI."""
    status: str = "ACTIVE"
    availability_zone_hints: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    admin_state_up: bool = True
    is_default: bool = False
    port_security: bool = True
    """Whether new ports on it are filtered, where ports are."""
    revision: int = 0
    subnet_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Subnet:
    """The addresses of a network; those of `pools`, (first, last) each, go to servers."""

    id: str
    network_id: str
    name: str
    ip_version: int
    cidr: str
    gateway_ip: str | None
    pool_start: str
    pool_end: str
    dns_nameservers: Sequence[str]
    created_at: datetime.datetime
    updated_at: datetime.datetime
    pools: Sequence[Sequence[str]] | None = None
    """None: one from `pool_start` to `pool_end`."""
    project_id: str = ""
    network_project_id: str = ""
    description: str = ""
    host_routes: Sequence[Sequence[str]] | None = None
    enable_dhcp: bool = False
    ipv6_ra_mode: str | None = None
    ipv6_address_mode: str | None = None
    tags: Sequence[str] | None = None
    revision: int = 0


@dataclass(frozen=True)
class Port:
    """An interface on a network: a server's, or a port that a user made for a later server."""

    id: str
    network_id: str
    subnet_id: str | None
    server_uuid: str
    """Empty: the port has no server."""
    project_id: str
    mac: str
    ip: str | None
    bridge: str | None
    host: str | None
    device_owner: str
    """``compute:`` and the availability zone of the server; empty without one."""
    status: str
    """``ACTIVE`` while the server runs, else ``DOWN``."""
    created_at: datetime.datetime
    updated_at: datetime.datetime
    name: str = ""
    description: str = ""
    tags: Sequence[str] | None = None
    tag: str | None = None
    """The user's name for the guest's device."""
    network_project_id: str = ""
    port_security: bool = False
    """Whether it is filtered."""
    address_pairs: Sequence[str] | None = None
    """More addresses, or ranges of them, that it may use."""
    security_groups: tuple[str, ...] = ()
    """IDs, where they are asked for."""
    subnet6_id: str | None = None
    ip6: str | None = None
    """The IPv6 address of a port that also has an IPv4 address."""
    admin_state_up: bool = True
    revision: int = 0
    more_addresses: Sequence[Sequence[str]] | None = None
    """(subnet, address) beyond these."""

    @property
    def fixed_ips(self) -> list[dict[str, str | None]]:
        """Its addresses, as they are shown."""
        first = ((self.subnet_id, self.ip), (self.subnet6_id, self.ip6))
        found = (*first, *(self.more_addresses or ()))
        return [{"subnet_id": subnet, "ip_address": ip} for subnet, ip in found if ip]


@dataclass(frozen=True)
class Share:
    """What a project, or all of them (``*``), may use."""

    id: str
    object_type: str
    object_id: str
    target: str
    project_id: str
    """Who shares it."""

    @property
    def network_project_id(self) -> str:
        """Nobody but who shares it sees it."""
        return ""


@dataclass(frozen=True)
class Viewer:
    """Who asks, and what of others' networks the policy shows."""

    project_id: str = ""
    everything: bool = True
    own: bool = False
    shared: bool = False
    external: bool = False

    def sees(
        self, *owners: sa.ColumnElement[str], shared: sa.ColumnElement[bool] | None = None
    ) -> tuple[sa.ColumnElement[bool], ...]:
        """Return the condition on what belongs to one of these projects, or is ``shared``."""
        if self.everything:
            return ()
        own = sa.or_(*(owner == self.project_id for owner in owners))
        found = own if self.own else sa.false()
        return (found | shared if shared is not None and self.shared else found,)


EVERYBODY = Viewer()

_NETWORK = fields(
    networks,
    Network,
    network_type=sa.case(
        (networks.c.vni.is_not(None), "vxlan"), (networks.c.vlan.is_(None), "flat"), else_="vlan"
    ),
    physical_network=sa.case((networks.c.vni.is_(None), networks.c.bridge)),
    segmentation_id=sa.func.coalesce(networks.c.vlan, networks.c.vni),
    admin_state_up=sa.func.coalesce(networks.c.admin_state_up, sa.true()),
    port_security=sa.func.coalesce(networks.c.port_security, sa.true()),
)
_SUBNET = fields(
    subnets,
    Subnet,
    ip_version=sa.case((subnets.c.cidr.contains(":"), 6), else_=4),
    network_project_id=networks.c.project_id,
)
_OF_NETWORKS, _OF_GROUPS = network_shares.c, group_shares.c
_SHARES = sa.union_all(
    sa.select(
        _OF_NETWORKS.id,
        sa.literal("network").label("object_type"),
        _OF_NETWORKS.network_id.label("object_id"),
        _OF_NETWORKS.target,
        _OF_NETWORKS.project_id,
    ),
    sa.select(
        _OF_GROUPS.id,
        _OF_GROUPS.object_type,
        _OF_GROUPS.object_id,
        _OF_GROUPS.target,
        _OF_GROUPS.project_id,
    ),
).subquery("shares")
_SHARE: Mapping[str, sa.ColumnElement[Any]] = {column.name: column for column in _SHARES.c}
_SUBNET_SOURCE = subnets.join(networks, networks.c.id == subnets.c.network_id)
#: Nova's default_availability_zone: for servers that asked for none
_ZONE = "nova"
_PLUGGED = (int(PowerState.RUNNING), int(PowerState.PAUSED))
#: whether a port, and its network, are switched on
_UP = sa.func.coalesce(ports.c.admin_state_up, sa.true()) & sa.func.coalesce(
    networks.c.admin_state_up, sa.true()
)
_PORT = fields(
    ports,
    Port,
    bridge=networks.c.bridge,
    host=sa.func.coalesce(servers.c.host, ports.c.binding_host),
    device_owner=sa.case(
        (ports.c.server_uuid == "", ""),
        else_=sa.literal("compute:") + sa.func.coalesce(servers.c.availability_zone, _ZONE),
    ),
    status=sa.case((servers.c.power_state.in_(_PLUGGED) & _UP, "ACTIVE"), else_="DOWN"),
    updated_at=sa.func.coalesce(ports.c.updated_at, ports.c.created_at),
    network_project_id=sa.func.coalesce(networks.c.project_id, ""),
    port_security=sa.func.coalesce(ports.c.port_security, sa.false()),
    admin_state_up=sa.func.coalesce(ports.c.admin_state_up, sa.true()),
)
#: fields of a port's first address → of its second, which filters find, too
_SECOND: Mapping[str, str] = {"ip": "ip6", "subnet_id": "subnet6_id"}
_MORE = port_addresses.c
_PORT_SOURCE = ports.outerjoin(servers, servers.c.uuid == ports.c.server_uuid).outerjoin(
    networks, networks.c.id == ports.c.network_id
)

#: the value of a null in an order
_NULLS: Mapping[str, Any] = {
    **dict.fromkeys(("vlan", "segmentation_id", "port_range_min", "port_range_max"), 0),
    **dict.fromkeys(("physical_network", "gateway_ip", "subnet_id", "ip", "host"), ""),
    **dict.fromkeys(("ipv6_ra_mode", "ipv6_address_mode"), ""),
    **dict.fromkeys(("protocol", "remote_group_id", "remote_ip_prefix", "normalized_cidr"), ""),
    "remote_address_group_id": "",
}


def list_networks(
    connection: sa.Connection,
    where: Where,
    order: Sequence[tuple[str, bool]] = (),
    page: keyset.Page = keyset.Page(),  # noqa: B008 - frozen
    viewer: Viewer = EVERYBODY,
) -> list[Network]:
    """Return networks with their subnets' IDs; `order` is (field, descending).

    Only what the `viewer` sees can be a marker. Raises MarkerNotFound.
    """
    fields = {**_NETWORK, "shared": shared_with(viewer.project_id)}
    seen = _networks_seen(viewer)
    rows = read_page(connection, networks, fields, where, order, page, seen)
    members = _subnet_ids(connection, [row.id for row in rows])
    return [Network(**row._mapping, subnet_ids=tuple(members[row.id])) for row in rows]


def list_subnets(
    connection: sa.Connection,
    where: Where,
    order: Sequence[tuple[str, bool]] = (),
    page: keyset.Page = keyset.Page(),  # noqa: B008 - frozen
    viewer: Viewer = EVERYBODY,
) -> list[Subnet]:
    """Return subnets, as `list_networks` returns networks. Raises MarkerNotFound."""
    fields = {**_SUBNET, "shared": shared_with(viewer.project_id)}
    seen = _networks_seen(viewer, own=subnets.c.project_id == viewer.project_id)
    rows = read_page(
        connection, _SUBNET_SOURCE, fields, where, order, page, seen, unshown={"shared"}
    )
    return [Subnet(**row._mapping) for row in rows]


def list_ports(
    connection: sa.Connection,
    where: Where,
    order: Sequence[tuple[str, bool]] = (),
    page: keyset.Page = keyset.Page(),  # noqa: B008 - frozen
    viewer: Viewer = EVERYBODY,
) -> list[Port]:
    """Return ports with their groups' IDs, in the same way; `where` also takes `ip_part`, pieces
    of addresses, and `security_group`. Raises MarkerNotFound.
    """
    seen = viewer.sees(ports.c.project_id, networks.c.project_id)
    rows = read_page(connection, _PORT_SOURCE, _PORT, where, order, page, seen)
    groups = _group_ids(connection, [row.id for row in rows])
    return [Port(**row._mapping, security_groups=tuple(groups[row.id])) for row in rows]


def list_shares(
    connection: sa.Connection,
    where: Where,
    order: Sequence[tuple[str, bool]] = (),
    page: keyset.Page = keyset.Page(),  # noqa: B008 - frozen
    viewer: Viewer = EVERYBODY,
) -> list[Share]:
    """Return with whom networks and groups are shared, in the same way. Raises MarkerNotFound."""
    seen = viewer.sees(_SHARES.c.project_id)
    rows = read_page(connection, _SHARES, _SHARE, where, order, page, seen)
    return [Share(**row._mapping) for row in rows]


def ports_of(connection: sa.Connection, server_uuid: str) -> list[Port]:
    """Return a server's ports, in the order of its interfaces."""
    rows = connection.execute(
        sa.select(*(column.label(name) for name, column in _PORT.items()))
        .select_from(_PORT_SOURCE)
        .where(ports.c.server_uuid == server_uuid)
        .order_by(ports.c.position)
    )
    return [Port(**row._mapping) for row in rows]


#: what has a limit → where it is
_LIMITED: Mapping[str, sa.FromClause] = {
    "network": networks,
    "subnet": subnets,
    "port": ports,
    "rbac_policy": _SHARES,
    "security_group": security_groups,
    "security_group_rule": security_group_rules,
}


def count(connection: sa.Connection, kind: str, project_id: str) -> int:
    """Return how many of one kind a project has."""
    table = _LIMITED[kind]
    query = sa.select(sa.func.count()).where(table.c.project_id == project_id)
    return int(connection.execute(query).scalar_one())


def usage(connection: sa.Connection, project_id: str) -> dict[str, int]:
    """Return how many networks, subnets, ports and shares a project has. One statement."""
    counts = (
        sa.select(sa.func.count())
        .select_from(table)
        .where(table.c.project_id == project_id)
        .scalar_subquery()
        .label(kind)
        for kind, table in _LIMITED.items()
    )
    return dict(connection.execute(sa.select(*counts)).one()._mapping)


def _networks_seen(
    viewer: Viewer, own: sa.ColumnElement[bool] | None = None
) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the condition on the networks that a viewer sees; `own`: or on what is his there."""
    if viewer.everything:
        return ()
    mine = networks.c.project_id == viewer.project_id
    conditions = {
        "own": mine if own is None else mine | own,
        "shared": shared_with(viewer.project_id),
        "external": networks.c.external,
    }
    shown = (condition for name, condition in conditions.items() if getattr(viewer, name))
    return (sa.or_(sa.false(), *shown),)


def _group_ids(connection: sa.Connection, port_ids: Sequence[str]) -> Mapping[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    mine = port_security_groups.c
    if port_ids:
        query = sa.select(mine.port_id, mine.security_group_id).where(mine.port_id.in_(port_ids))
        for row in connection.execute(query.order_by(mine.security_group_id)):
            found[row.port_id].append(row.security_group_id)
    return found


def _subnet_ids(connection: sa.Connection, network_ids: Sequence[str]) -> Mapping[str, list[str]]:
    members: defaultdict[str, list[str]] = defaultdict(list)
    if network_ids:
        statement = (
            sa.select(subnets.c.network_id, subnets.c.id)
            .where(subnets.c.network_id.in_(network_ids))
            .order_by(subnets.c.created_at, subnets.c.id)
        )
        for row in connection.execute(statement):
            members[row.network_id].append(row.id)
    return members


def read_page(
    connection: sa.Connection,
    source: sa.FromClause,
    fields: Mapping[str, sa.ColumnElement[Any]],
    where: Where,
    order: Sequence[tuple[str, bool]],
    page: keyset.Page,
    seen: Sequence[sa.ColumnElement[bool]],
    unshown: Collection[str] = (),
) -> Sequence[sa.Row[Any]]:
    """Return the rows of `source`. Raises MarkerNotFound.

    `unshown` fields are filtered and sorted by alone.
    """
    shown = {name: column for name, column in fields.items() if name not in unshown}
    statement = (
        sa.select(*(column.label(name) for name, column in shown.items()))
        .select_from(source)
        .where(*(_matches(connection, fields, name, values) for name, values in where.items()))
    )
    sorts = [keyset.Sort(_ordered(fields, name), descending) for name, descending in order]
    if "id" not in {name for name, _ in order}:
        sorts.append(keyset.Sort(fields["id"]))
    return keyset.read(connection, statement, sorts, page, fields["id"], visible=seen)


#: filters by tags → what holds for those that are named, and whether it must not
_BY_TAGS: Mapping[str, tuple[Callable[..., sa.ColumnElement[bool]], bool]] = {
    "tags": (sa.and_, False),
    "tags-any": (sa.or_, False),
    "not-tags": (sa.and_, True),
    "not-tags-any": (sa.or_, True),
}


def _matches(
    connection: sa.Connection,
    fields: Mapping[str, sa.ColumnElement[Any]],
    name: str,
    values: Sequence[Any],
) -> sa.ColumnElement[bool]:
    if name not in _BY_TAGS:
        return _one_of(fields, name, values)
    combine, negated = _BY_TAGS[name]
    # What has no tags holds none of them.
    column = fields["tags"]
    held = combine(*(holds(connection, column, value) for value in values))
    found = sa.and_(column.is_not(None), held)
    return sa.not_(found) if negated else found


def _one_of(
    fields: Mapping[str, sa.ColumnElement[Any]], name: str, values: Sequence[Any]
) -> sa.ColumnElement[bool]:
    if name == "ip_part":
        columns = (fields["ip"], fields["ip6"], _MORE.ip)
        found, found6, others = (
            sa.or_(*(column.contains(value, autoescape=True) for value in values))
            for column in columns
        )
        of_others = sa.select(_MORE.port_id).where(others)
        return sa.or_(found, found6, fields["id"].in_(of_others))
    if name == "security_group":
        mine = port_security_groups.c
        return fields["id"].in_(sa.select(mine.port_id).where(mine.security_group_id.in_(values)))
    second = fields.get(_SECOND.get(name, ""))
    found = _among(fields[name], values)
    if second is None:
        return found
    more = sa.select(_MORE.port_id).where(_among(_MORE[name], values))
    return sa.or_(found, _among(second, values), fields["id"].in_(more))


def _among(column: sa.ColumnElement[Any], values: Sequence[Any]) -> sa.ColumnElement[bool]:
    present = [value for value in values if value is not None]
    if len(present) == len(values):
        return column.in_(present)
    return sa.or_(column.is_(None), column.in_(present))


def _ordered(fields: Mapping[str, sa.ColumnElement[Any]], name: str) -> sa.ColumnElement[Any]:
    column = fields[name]
    return sa.func.coalesce(column, _NULLS[name]) if name in _NULLS else column
