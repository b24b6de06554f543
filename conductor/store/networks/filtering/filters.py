"""What is to pass a server's interfaces, from its ports' security groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from common.messages.filters import Filter, FilterRule, PortFilter
from common.resources.security_rules import Rule
from db.schema import (
    address_groups,
    networks,
    port_security_groups,
    ports,
    security_group_rules,
    subnets,
)

_P, _B, _R = ports.c, port_security_groups.c, security_group_rules.c
#: a server's own port gets an address wherever its network has a subnet
_ADDRESSED = ports.c.kept & sa.exists().where(subnets.c.network_id == _P.network_id)
_PORTS = (
    sa.select(
        _P.id,
        _P.server_uuid,
        _P.mac,
        _P.ip,
        _P.ip6,
        _P.more_addresses,
        _P.address_pairs,
        _P.port_security,
        _ADDRESSED.label("addressed"),
        _P.admin_state_up.label("port_up"),
        networks.c.admin_state_up.label("network_up"),
    )
    .select_from(ports.join(networks, networks.c.id == _P.network_id))
    .where(_P.server_uuid.in_(sa.bindparam("servers", expanding=True)))
    .order_by(_P.server_uuid, _P.position)
)
_RULES = (
    sa.select(_B.port_id, security_group_rules)
    .join(security_group_rules, _R.security_group_id == _B.security_group_id)
    .where(_B.port_id.in_(sa.bindparam("ports", expanding=True)))
    .order_by(_R.created_at, _R.id)
)
_PREFIXES = sa.select(address_groups.c.id, address_groups.c.addresses).where(
    address_groups.c.id.in_(sa.bindparam("groups", expanding=True))
)
_MEMBERS = (
    sa.select(_B.security_group_id, _P.ip, _P.ip6, _P.more_addresses, _P.address_pairs)
    .join(ports, _P.id == _B.port_id)
    .where(_B.security_group_id.in_(sa.bindparam("groups", expanding=True)))
)


def wanted(connection: sa.Connection, server_uuid: str) -> Filter:
    """Return what is to pass a server's interfaces. Three statements."""
    return wanted_of(connection, [server_uuid])[server_uuid]


def wanted_of(connection: sa.Connection, server_uuids: Collection[str]) -> Mapping[str, Filter]:
    """Return what is to pass the interfaces of each of some servers. Three statements."""
    rows = connection.execute(_PORTS, {"servers": sorted(server_uuids)}).all()
    rules = _rules(connection, [row.id for row in rows if row.port_security])
    ports: dict[str, list[PortFilter]] = {uuid: [] for uuid in server_uuids}
    for row in rows:
        may_use = _addresses(row) or (() if row.addressed else None)
        of_port = tuple(rules[row.id])
        any_mac = any(" " in pair for pair in row.address_pairs or ())
        made = PortFilter(row.mac, row.port_security, may_use, of_port, _is_up(row), any_mac)
        ports[row.server_uuid].append(made)
    remote = {uuid: _remote_groups(made) for uuid, made in ports.items()}
    every = {group for groups in remote.values() for group in groups}
    prefixes = {
        one.rule.remote_address_group_id
        for port_rules in rules.values()
        for one in port_rules
        if one.rule.remote_address_group_id
    }
    members = _members(connection, every, prefixes)
    return {
        uuid: Filter(tuple(made), {group: members[group] for group in remote[uuid]})
        for uuid, made in ports.items()
    }


def _is_up(row: Any) -> bool | None:
    """Return whether an interface has a link; None: not specified."""
    said = [one for one in (row.port_up, row.network_up) if one is not None]
    return all(said) if said else None


def _remote_groups(ports: Collection[PortFilter]) -> set[str]:
    return {one.rule.remote for port in ports for one in port.rules if one.rule.remote}


def _rules(connection: sa.Connection, port_ids: Collection[str]) -> Mapping[str, list[FilterRule]]:
    found: defaultdict[str, list[FilterRule]] = defaultdict(list)
    for row in connection.execute(_RULES, {"ports": sorted(port_ids)}) if port_ids else ():
        rule = Rule(
            row.direction,
            row.ethertype,
            row.protocol,
            row.port_range_min,
            row.port_range_max,
            row.remote_ip_prefix,
            row.normalized_cidr,
            row.remote_group_id,
            row.remote_address_group_id,
        )
        found[row.port_id].append(FilterRule(row.id, rule))
    return found


def _members(
    connection: sa.Connection, group_ids: Collection[str], prefixes: Collection[str]
) -> Mapping[str, tuple[str, ...]]:
    """Return the addresses of groups; ``prefixes``: those of them that are address groups."""
    found: dict[str, set[str]] = {one: set() for one in group_ids}
    if not group_ids:
        return {}
    for row in connection.execute(_MEMBERS, {"groups": sorted(group_ids)}):
        found[row.security_group_id].update(_addresses(row))
    if prefixes:
        for group in connection.execute(_PREFIXES, {"groups": sorted(prefixes)}):
            found[group.id].update(group.addresses)
    return {group: tuple(sorted(addresses)) for group, addresses in found.items()}


def _addresses(port: Any) -> tuple[str, ...]:
    more = (ip for _, ip in port.more_addresses or ())
    pairs = (pair.partition(" ")[0] for pair in port.address_pairs or ())
    return (*(ip for ip in (port.ip, port.ip6, *more) if ip), *pairs)
