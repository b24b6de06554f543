"""Networks, subnets and the ports of servers, with their addresses."""

from __future__ import annotations

import dataclasses
import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common import clock, ids
from common.errors import ConfigurationError, Conflict, Invalid
from common.messages.commands import Address
from common.resources.security_rules import DEFAULT
from conductor.store.networks import addresses, more_addresses, subnet_rules, unknown_vms
from conductor.store.networks.filtering import security_groups
from conductor.store.networks.pools import ANYWHERE, Macs, Pools, Within, in_use
from db.reads.networks.network_access import own_or_shared, usable_by
from db.schema import networks, port_addresses, ports, subnets

_OWN = subnets.alias("own_subnets")
# Built once: every build and every delete executes them.
_KNOWN = sa.select(
    networks.c.id,
    networks.c.name,
    networks.c.bridge,
    networks.c.vlan,
    networks.c.mtu,
    networks.c.discovered,
    sa.func.coalesce(networks.c.admin_state_up, sa.true()).label("up"),
    sa.func.coalesce(networks.c.port_security, sa.true()).label("port_security"),
    sa.exists().where(_OWN.c.network_id == networks.c.id).correlate(networks).label("addressed"),
    sa.case((networks.c.discovered, ""), else_=networks.c.project_id).label("owner"),
).order_by(networks.c.name, networks.c.id)
_WHO: sa.BindParameter[str] = sa.bindparam("project")
_UNNAMED = _KNOWN.where(own_or_shared(_WHO))
_USABLE = _KNOWN.where(usable_by(_WHO))
_NAMED = _KNOWN.where(networks.c.id.in_(sa.bindparam("ids", expanding=True)))
_NAMED_USABLE = _NAMED.where(usable_by(_WHO))
_OF_SERVERS = ports.c.server_uuid.in_(sa.bindparam("servers", expanding=True))
_DELETE_PORTS = ports.delete().where(_OF_SERVERS, ~ports.c.kept)
#: what a user's port is that no server has
FREED: Mapping[str, Any] = {
    "server_uuid": "",
    "position": 0,
    "tag": None,
    "binding_host": None,
    "revision": ports.c.revision + 1,
}
_FREE_PORTS = ports.update().where(_OF_SERVERS, ports.c.kept).values(**FREED)


@dataclass(frozen=True)
class Subnet:
    """The configured addresses of a bridge."""

    bridge: str
    cidr: str
    gateway: str | None
    first: str
    last: str
    dns: tuple[str, ...] = ()


def parse_subnet(text: str) -> Subnet:
    """Parse ``BRIDGE=CIDR[;gateway=IP][;pool=FIRST-LAST][;dns=IP+IP]``. Raises Invalid."""
    bridge, _, rest = text.partition("=")
    cidr, *extras = rest.split(";")
    settings = dict(extra.partition("=")[::2] for extra in extras)
    unknown = settings.keys() - {"gateway", "pool", "dns"}
    if unknown:
        raise Invalid(f"{text}: there is no {', '.join(sorted(unknown))}")
    dns = tuple(settings["dns"].split("+")) if settings.get("dns") else ()
    try:
        network = ipaddress.ip_network(cidr)
        gateway = ipaddress.ip_address(settings.get("gateway") or network[1])
        first, _, last = settings.get("pool", f"{network[2]}-{network[-2]}").partition("-")
        pool = ipaddress.ip_address(first), ipaddress.ip_address(last)
        dns = tuple(str(ipaddress.ip_address(one)) for one in dns)
    except (ValueError, IndexError) as error:
        raise Invalid(f"{text}: {error}") from error
    if not bridge or any(address not in network for address in (gateway, *pool)):
        raise Invalid(f"{text}: every address must be in {cidr}")
    if int(pool[0]) > int(pool[1]) or not all(addresses.usable(end, network) for end in pool):
        raise Invalid(
            f"{text}: the pool must begin and end with addresses that a "
            "server may have, the lower one first"
        )
    return Subnet(bridge, str(network), str(gateway), str(pool[0]), str(pool[1]), dns)


def ensure_network(connection: sa.Connection, bridge: str) -> str:
    """Return the id of a bridge's network, which is created if it is new."""
    network_id = ids.named("network", bridge)
    # Also a network that an administrator made before the bridge was seen.
    same = networks.c.discovered | (networks.c.segment == 0)
    known = sa.select(networks.c.id).where(networks.c.bridge == bridge, same)
    found = connection.execute(known.order_by(networks.c.discovered.desc())).scalar()
    if found is not None:
        return str(found)
    now = clock.utcnow()
    connection.execute(
        networks.insert().values(
            id=network_id, name=bridge, bridge=bridge, mtu=1500, created_at=now, updated_at=now
        )
    )
    return network_id


def set_vlans(connection: sa.Connection, wanted: Mapping[str, int]) -> None:
    """Take over the configured VLAN tags, {bridge: tag}; other bridges' networks have none.

    Raises ConfigurationError for a tag that a network made through the API has.
    """
    for bridge in wanted:
        ensure_network(connection, bridge)
    columns = networks.c
    of_clusters = sa.select(columns.id, columns.bridge, columns.vlan).where(columns.discovered)
    for row in connection.execute(of_clusters).all():
        vlan = wanted.get(row.bridge)
        if row.vlan != vlan:
            _require_free(connection, row.bridge, vlan)
            connection.execute(
                networks.update()
                .where(columns.id == row.id)
                .values(vlan=vlan, segment=vlan or 0, updated_at=clock.utcnow())
            )


def _require_free(connection: sa.Connection, bridge: str, vlan: int | None) -> None:
    """Raise ConfigurationError if a network that was made through the API has the tag."""
    at = (networks.c.bridge == bridge) & (networks.c.segment == (vlan or 0))
    other = connection.execute(sa.select(networks.c.id).where(at)).scalar()
    if other is not None:
        tag = f"VLAN {vlan}" if vlan else "untagged traffic"
        raise ConfigurationError(f"[networks] vlans: {tag} of {bridge} is network {other}.")


def ensure_subnet(connection: sa.Connection, wanted: Subnet) -> None:
    """Store a configured subnet; addresses in use are retained. Mostly only reads.

    Raises ConfigurationError if it overlaps a subnet that was made through the API.
    """
    network_id = ensure_network(connection, wanted.bridge)
    subnet_id = ids.named("subnet", f"{wanted.bridge}/{wanted.cidr}")
    settings: dict[str, Any] = {
        "gateway_ip": wanted.gateway,
        "pool_start": wanted.first,
        "pool_end": wanted.last,
        "dns_nameservers": list(wanted.dns),
    }
    mine = subnets.c.id == subnet_id
    known = connection.execute(
        sa.select(*(subnets.c[name] for name in settings)).where(mine)
    ).first()
    now = clock.utcnow()
    if known is None:
        _require_apart(connection, network_id, wanted.cidr)
        connection.execute(
            subnets.insert().values(
                id=subnet_id,
                network_id=network_id,
                name=f"{wanted.bridge}-{wanted.cidr.replace('/', '-')}",
                cidr=wanted.cidr,
                next_ip=wanted.first,
                created_at=now,
                updated_at=now,
                **settings,
            )
        )
    elif dict(known._mapping) != settings:
        connection.execute(subnets.update().where(mine).values(updated_at=now, **settings))


def _require_apart(connection: sa.Connection, network_id: str, cidr: str) -> None:
    made = (subnets.c.network_id == network_id) & ~subnets.c.configured
    others = connection.execute(sa.select(subnets.c.cidr).where(made)).scalars()
    if subnet_rules.overlaps(cidr, others):
        raise ConfigurationError(
            f"[networks] subnets: {cidr} overlaps a subnet of network {network_id} that was made "
            "through the API."
        )


@dataclass(frozen=True)
class Network:
    """A network as a build needs it."""

    id: str
    name: str
    bridge: str
    vlan: int | None
    mtu: int
    discovered: bool = True
    """Whether it was read from a cluster: the network of a bridge."""
    up: bool = True
    """Whether its ports are switched on."""
    port_security: bool = True
    """Whether new ports on it are filtered, where ports are."""
    addressed: bool = True
    """Whether it has a subnet."""
    owner: str = ""
    """Its project; empty: it is the network of a bridge."""

    def require_addresses(self, port_id: str | None = None, ip: str | None = None) -> None:
        """Raise Invalid, in Nova's words, if a server can't have an address there, or with a port.

        The guests on a cluster's own network may ask its DHCP server.
        """
        if port_id is not None and ip is None and (self.addressed or not self.discovered):
            raise Invalid(f"Port {port_id} requires a FixedIP in order to be used.")
        if port_id is None and not (self.addressed or self.discovered):
            raise Invalid(f"Network {self.id} requires a subnet in order to boot instances on.")


def unnamed(connection: sa.Connection, project_id: str) -> list[Network]:
    """Return the networks that a project's server can get without naming one, by name."""
    return [Network(*row) for row in connection.execute(_UNNAMED, {"project": project_id})]


def usable(connection: sa.Connection, project_id: str) -> list[Network]:
    """Return the networks that a project may use, by name."""
    return [Network(*row) for row in connection.execute(_USABLE, {"project": project_id})]


def named(
    connection: sa.Connection, network_ids: Iterable[str], project_id: str | None = None
) -> dict[str, Network]:
    """Return those of these networks that there are, and that the project may use, by their ids.

    ``project_id`` None: all of them.
    """
    wanted: dict[str, Any] = {"ids": sorted(set(network_ids))}
    if not wanted["ids"]:
        return {}
    if project_id is None:
        rows = connection.execute(_NAMED, wanted)
    else:
        rows = connection.execute(_NAMED_USABLE, wanted | {"project": project_id})
    return {row.id: Network(*row) for row in rows}


@dataclass(frozen=True)
class Port:
    """A server's interface with its address; without a subnet it has none."""

    id: str
    network_id: str
    mac: str
    ip: str | None
    cidr: str | None = None
    gateway: str | None = None
    dns: tuple[str, ...] = ()
    tag: str | None = None
    position: int = 0
    routes: tuple[tuple[str, str], ...] = ()
    """(destination, next hop) of the subnet's further routes."""
    port_security: bool | None = None
    up: bool = True
    """Whether it is switched on."""
    second: Address | None = None
    """The IPv6 address, if ``ip`` is an IPv4 address."""
    more: tuple[Address, ...] = ()
    """Addresses beyond these."""

    @property
    def ips(self) -> tuple[str, ...]:
        """Return its addresses."""
        second = None if self.second is None else self.second.ip
        found = (self.ip, second, *(one.ip for one in self.more))
        return tuple(ip for ip in found if ip is not None)


_SIX = subnets.alias("subnets6")
# Built once: every build and move executes them.
_PORTS = (
    sa.select(
        ports.c.id,
        ports.c.network_id,
        ports.c.mac,
        ports.c.ip,
        subnets.c.cidr,
        subnets.c.gateway_ip,
        subnets.c.dns_nameservers,
        ports.c.tag,
        ports.c.position,
        subnets.c.host_routes,
        ports.c.port_security,
        sa.func.coalesce(ports.c.admin_state_up, sa.true()),
        ports.c.ip6,
        _SIX.c.cidr,
        _SIX.c.gateway_ip,
        _SIX.c.dns_nameservers,
        _SIX.c.host_routes,
        ports.c.more_addresses,
    )
    .select_from(
        ports.outerjoin(subnets, subnets.c.id == ports.c.subnet_id).outerjoin(
            _SIX, _SIX.c.id == ports.c.subnet6_id
        )
    )
    .where(ports.c.server_uuid == sa.bindparam("server"))
    .order_by(ports.c.position)
)
_FIELDS = [one.name for one in dataclasses.fields(Port) if one.name not in ("second", "more")]
_PORT_COLUMNS = len(_PORTS.selected_columns)
_INTERFACES = _PORTS.join(networks, networks.c.id == ports.c.network_id).add_columns(
    *_KNOWN.selected_columns
)


def ports_of(connection: sa.Connection, server_uuid: str) -> list[Port]:
    """Return a server's ports in order."""
    rows = connection.execute(_PORTS, {"server": server_uuid}).all()
    more = more_addresses.resolved(connection, (row.more_addresses for row in rows))
    return [_port(row, mine) for row, mine in zip(rows, more, strict=True)]


def interfaces_of(connection: sa.Connection, server_uuid: str) -> list[tuple[Port, Network]]:
    """Return a server's ports in order, with the network of each."""
    rows = connection.execute(_INTERFACES, {"server": server_uuid}).all()
    more = more_addresses.resolved(connection, (row.more_addresses for row in rows))
    return [
        (_port(row[:_PORT_COLUMNS], mine), Network(*row[_PORT_COLUMNS:]))
        for row, mine in zip(rows, more, strict=True)
    ]


def _port(row: Any, more: tuple[Address, ...]) -> Port:
    known: dict[str, Any] = dict(zip(_FIELDS, row[: len(_FIELDS)], strict=True))
    ip6, cidr, gateway, dns, routes, _ = row[len(_FIELDS) :]
    known |= {"more": more, "dns": tuple(known["dns"] or ()), "routes": _routes(known["routes"])}
    if ip6 is not None:
        known["second"] = Address(ip6, cidr, gateway, tuple(dns or ()), _routes(routes))
    return Port(**known)


def _routes(stored: Sequence[Sequence[str]] | None) -> tuple[tuple[str, str], ...]:
    return tuple((destination, hop) for destination, hop in stored or ())


@dataclass(frozen=True)
class RequestedPort:
    """A port that is to be made."""

    network_id: str
    fixed_ip: str | None = None
    tag: str | None = None
    port_security: bool = True
    """Whether its network has port security; it matters where ports are filtered."""


def bridges_of(connection: sa.Connection, server_uuid: str) -> list[tuple[str, int | None]]:
    """Return (bridge, VLAN) of each of a server's ports, in order."""
    query = (
        sa.select(networks.c.bridge, networks.c.vlan)
        .join(ports, ports.c.network_id == networks.c.id)
        .where(ports.c.server_uuid == server_uuid)
        .order_by(ports.c.position)
    )
    return [(row.bridge, row.vlan) for row in connection.execute(query)]


@dataclass(frozen=True)
class ServerPorts:
    """The ports that are to be made for one server."""

    server_uuid: str
    project_id: str
    requested: Sequence[RequestedPort | None]
    """None: this port exists."""
    groups: Sequence[str] = (DEFAULT,)
    """Their security groups: ids, or the project's default one."""
    first: int = 0
    """The position of the first."""


def create_ports(
    connection: sa.Connection,
    servers: Sequence[ServerPorts],
    mac_prefix: str,
    *,
    filtered: bool = False,
    within: Within = ANYWHERE,
) -> list[list[Port]]:
    """Create the requested ports; return those of each server.

    ``filtered``: by the rules of their security groups.

    Raises Unsettled (see ``Pools``), Conflict when a subnet has no free address, Invalid when a
    requested one is in use by now, or is not the network's any more, NetworkNotFound when that is
    gone, NotFound for a group that is. Permission was checked before.
    """
    new = [one for server in servers for one in server.requested if one is not None]
    macs = Macs(mac_prefix, len(new))
    pools = Pools(connection, [one.network_id for one in new], macs, within)
    made = [
        [
            _new_port(pools, one, position, macs.take(), filtered)
            for position, one in enumerate(server.requested, server.first)
            if one is not None
        ]
        for server in servers
    ]
    pools.close()
    now = clock.utcnow()
    rows = [
        {
            "id": port.id,
            "network_id": port.network_id,
            **columns,
            "server_uuid": server.server_uuid,
            "project_id": server.project_id,
            "position": port.position,
            "mac": port.mac,
            "tag": port.tag,
            "port_security": port.port_security,
            "created_at": now,
        }
        for server, its in zip(servers, made, strict=True)
        for port, columns in its
    ]
    if rows:
        connection.execute(ports.insert(), rows)
    found = [[port for port, _ in its] for its in made]
    _bind(connection, servers, found)
    return found


def _bind(
    connection: sa.Connection, servers: Sequence[ServerPorts], made: Sequence[Sequence[Port]]
) -> None:
    """Put new ports into their security groups: those of servers with the same ones at once."""
    alike: defaultdict[tuple[str, tuple[str, ...]], list[Port]] = defaultdict(list)
    for server, its in zip(servers, made, strict=True):
        alike[server.project_id, tuple(server.groups)].extend(
            port for port in its if port.port_security is not False
        )
    for (project_id, groups), found in alike.items():
        filtered = any(port.port_security for port in found)
        port_ids = [port.id for port in found]
        security_groups.bind_named(connection, project_id, groups, port_ids, filtered=filtered)


def _new_port(
    pools: Pools, requested: RequestedPort, position: int, mac: str, filtered: bool
) -> tuple[Port, dict[str, str | None]]:
    """Return a port with its addresses, and the columns of these. Raises Conflict, Invalid."""
    given = _addresses(pools, requested.network_id, requested.fixed_ip)
    found = [
        Address(
            ip,
            subnet.cidr,
            subnet.gateway_ip,
            tuple(subnet.dns_nameservers),
            _routes(subnet.host_routes),
        )
        for subnet, ip in given
    ]
    port = Port(ids.new_uuid(), requested.network_id, mac, None, position=position)
    security = (filtered or None) if requested.port_security else False
    port = dataclasses.replace(port, tag=requested.tag, port_security=security)
    if found:
        port = dataclasses.replace(port, **vars(found[0]), second=next(iter(found[1:]), None))
    return port, address_columns([(subnet.id, ip) for subnet, ip in given])


def address_columns(given: Sequence[tuple[str, str]]) -> dict[str, str | None]:
    """Return the columns of a port's (subnet, address) pairs, at most two."""
    (subnet_id, ip), (subnet6_id, ip6) = [*given, *[(None, None)] * 2][:2]
    return {"subnet_id": subnet_id, "ip": ip, "subnet6_id": subnet6_id, "ip6": ip6}


def check_address(
    connection: sa.Connection, network_id: str, fixed_ip: str, *, anywhere: bool
) -> str:
    """Return the normalised address, if it is available; errors as for ``addresses.chosen``.

    Raises Invalid also when it is in use.
    """
    rows = connection.execute(sa.select(subnets).where(subnets.c.network_id == network_id)).all()
    subnet, ip = addresses.chosen(addresses.in_order(rows), fixed_ip, anywhere=anywhere)
    if in_use(connection, subnet, ip):
        raise addresses.taken(fixed_ip)
    return ip


def delete_ports(connection: sa.Connection, *server_uuids: str) -> None:
    """Delete the ports of these servers with their addresses; those that users made stay, for
    other servers. One statement where they have none, else up to four."""
    kept = security_groups.unbind_of_servers(connection, server_uuids)
    if kept:
        # Also where all are kept: one may be no longer by now, but none becomes kept.
        connection.execute(_DELETE_PORTS, {"servers": sorted(server_uuids)})
    if True in kept:
        connection.execute(_FREE_PORTS, {"servers": sorted(server_uuids)})


def address_in_use(connection: sa.Connection, network_id: str, fixed_ip: str) -> bool:
    """Return whether a port of the network has the address, or a VM that the record doesn't
    know."""
    more = sa.select(port_addresses.c.port_id).where(port_addresses.c.ip == fixed_ip)
    has = sa.or_(ports.c.ip == fixed_ip, ports.c.ip6 == fixed_ip, ports.c.id.in_(more))
    query = sa.select(ports.c.id).where(ports.c.network_id == network_id, has)
    others_have = unknown_vms.on_network(network_id, fixed_ip)
    return connection.execute(query.union_all(others_have)).first() is not None


def delete_port(connection: sa.Connection, port_id: str, server_uuid: str | None) -> None:
    """Detach a port from this server, if it is still its port; delete it unless a user made it."""
    mine = (ports.c.id == port_id) & (ports.c.server_uuid == server_uuid)
    if connection.execute(ports.delete().where(mine, ~ports.c.kept)).rowcount:
        security_groups.unbind(connection, port_id)
    connection.execute(ports.update().where(mine, ports.c.kept).values(**FREED))


def _addresses(pools: Pools, network_id: str, fixed_ip: str | None) -> Sequence[tuple[Any, str]]:
    """Return (subnet row, address) of a new port: none where the network has no subnets."""
    rows = pools.subnets(network_id)
    if fixed_ip is not None:
        subnet, ip = addresses.chosen(rows, fixed_ip, anywhere=True)
        if not pools.is_free(subnet, ip):
            raise addresses.taken(fixed_ip)
        pools.take(subnet, ip)
        return [(subnet, ip)]
    found = pools.one_of_each(rows)
    if found is None:
        raise Conflict(f"No fixed IP addresses available for network: {network_id}")
    return found
