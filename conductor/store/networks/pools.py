"""Assigns the addresses of subnets in one transaction, many in as few statements as one."""

from __future__ import annotations

import dataclasses
import datetime
import ipaddress
import secrets
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from common.errors import NetworkNotFound, Unavailable
from conductor.store.networks import unknown_vms
from conductor.store.networks.addresses import in_order, pools_of
from conductor.store.networks.unknown_vms import EVERY
from db.schema import networks, other_nics, port_addresses, ports, subnets

_MACS: sa.BindParameter[Sequence[str]] = sa.bindparam("macs", expanding=True)
_CLUSTER: sa.BindParameter[str] = sa.bindparam("cluster")
_SINCE: sa.BindParameter[datetime.datetime] = sa.bindparam("since")
#: columns read together with a lock, to save a statement
_OPEN = sa.type_coerce(unknown_vms.unsettled(_CLUSTER, _SINCE), sa.Boolean).label("unsettled")
_UNSETTLED = sa.select(_OPEN)
_BESIDE = (sa.exists(unknown_vms.macs(_MACS)).label("macs_taken"), _OPEN)
# Built once: every build executes them.
_LOCK = (
    sa.select(subnets, *_BESIDE)
    .where(subnets.c.network_id.in_(sa.bindparam("networks", expanding=True)))
    .order_by(subnets.c.network_id, subnets.c.cidr)
    .with_for_update()
)
_LOCK_NETWORKS = (
    sa.select(networks.c.id, *_BESIDE)
    .where(networks.c.id.in_(sa.bindparam("networks", expanding=True)))
    .order_by(networks.c.id)
    .with_for_update(read=True)
)
# An IPv6 address is the second one of ports that have an IPv4 address.
_OF: sa.BindParameter[str] = sa.bindparam("subnet_id")
_IP: sa.BindParameter[str] = sa.bindparam("ip")
_FIRST, _SECOND = ports.c.subnet_id == _OF, ports.c.subnet6_id == _OF
_MORE = port_addresses.c
_THERE = sa.exists().where(ports.c.id == _MORE.port_id).correlate(port_addresses)
_PORTS = (
    sa.select(ports.c.id).where(_FIRST, ports.c.ip == _IP),
    sa.select(ports.c.id).where(_SECOND, ports.c.ip6 == _IP),
    sa.select(_MORE.port_id).where(_MORE.subnet_id == _OF, _MORE.ip == _IP, _THERE),
)
_USER = sa.union_all(*_PORTS)
# Also what VMs have that the record doesn't know.
_TAKEN = sa.union_all(*_PORTS, unknown_vms.ADDRESSES.where(other_nics.c.ip == _IP))
_IPS: sa.BindParameter[Sequence[str]] = sa.bindparam("ips", expanding=True)
_TAKEN_OF = sa.union_all(
    sa.select(ports.c.ip).where(_FIRST, ports.c.ip.in_(_IPS)),
    sa.select(ports.c.ip6).where(_SECOND, ports.c.ip6.in_(_IPS)),
    sa.select(_MORE.ip).where(_MORE.subnet_id == _OF, _MORE.ip.in_(_IPS), _THERE),
    unknown_vms.ADDRESSES.where(other_nics.c.ip.in_(_IPS)),
)
_USED = sa.union_all(
    sa.select(ports.c.ip).where(_FIRST),
    sa.select(ports.c.ip6).where(_SECOND),
    sa.select(_MORE.ip).where(_MORE.subnet_id == _OF, _THERE),
    unknown_vms.ADDRESSES,
)
_MOVE_ON = subnets.update().where(subnets.c.id == sa.bindparam("of"))


def of_port(connection: sa.Connection, subnet: Any, ip: str) -> bool:
    """Return whether a port, or the gateway, has the address of a subnet's row."""
    wanted = {"subnet_id": subnet.id, "ip": ip}
    return ip == subnet.gateway_ip or connection.execute(_USER, wanted).first() is not None


def port_with(connection: sa.Connection, subnet_id: str, ip: str) -> Any | None:
    """Return the row of the port that has an address of a subnet; None: none has that."""
    port_id = connection.scalar(_USER, {"subnet_id": subnet_id, "ip": ip})
    return connection.execute(sa.select(ports).where(ports.c.id == port_id)).first()


def in_use(connection: sa.Connection, subnet: Any, ip: str) -> bool:
    """Return whether a port, the gateway, or a VM that the record doesn't know, has the address
    of a subnet's row."""
    wanted = {"subnet_id": subnet.id, "ip": ip}
    return ip == subnet.gateway_ip or connection.execute(_TAKEN, wanted).first() is not None


class Unsettled(Unavailable):
    """Which addresses the VMs of a cluster have isn't known yet."""


@dataclass(frozen=True)
class Within:
    """The cluster whose VMs' addresses must be known, or ``EVERY``, and since when; empty: it
    isn't asked."""

    cluster: str
    since: datetime.datetime

    def only(self, cluster: str | None) -> Within:
        """Return the same of one cluster, if it is known."""
        return dataclasses.replace(self, cluster=cluster) if self.cluster and cluster else self

    def require(self, connection: sa.Connection) -> None:
        """Raise Unsettled while what VMs in the cluster have isn't known."""
        asked = {"cluster": self.cluster, "since": self.since}
        if self.cluster and connection.execute(_UNSETTLED, asked).scalar():
            raise self.unsettled()

    def unsettled(self) -> Unsettled:
        """Return what is raised then."""
        where = "clusters" if self.cluster == EVERY else f"cluster {self.cluster}"
        return Unsettled(f"The VMs of {where} were not looked at yet.")


ANYWHERE = Within("", datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC))


class Macs:
    """New MAC addresses that no VM has which the record doesn't know."""

    def __init__(self, prefix: str, count: int) -> None:
        self._prefix, self._count = prefix, count
        self.tried = [self._new() for _ in range(count)]
        """They are looked for with the locks of the networks."""

    def _new(self) -> str:
        return f"{self._prefix}:{secrets.token_bytes(3).hex(':')}"

    def choose(self, connection: sa.Connection) -> None:
        """Take others in the place of those that are in use."""
        while True:
            taken: set[str] = {
                row.mac
                for row in connection.execute(unknown_vms.macs(_MACS), {"macs": self.tried})
            }
            if not taken:
                return
            self.tried = [self._new() if mac in taken else mac for mac in self.tried]

    def take(self) -> str:
        """Return an address that was not returned yet."""
        return self.tried.pop()


class Pools:
    """The addresses of some networks: their subnets' rows are locked until the transaction ends,
    always in the same order, so that concurrent transactions don't deadlock.

    Until then none of the networks can be deleted, as that takes the locks of its subnets. A
    network without subnets has its own row locked. Raises NetworkNotFound, and Unsettled until
    the addresses of VMs that the record doesn't know have been read from the cluster.
    """

    def __init__(
        self,
        connection: sa.Connection,
        network_ids: Iterable[str],
        macs: Macs | None = None,
        within: Within = ANYWHERE,
    ) -> None:
        """``network_ids``: that of each port to be made."""
        self._connection = connection
        found: defaultdict[str, list[Any]] = defaultdict(list)
        self._states: dict[str, _State] = {}
        counts = Counter(network_ids)
        wanted = sorted(counts)
        macs = macs or Macs("", 0)
        beside = {"macs": macs.tried, "cluster": within.cluster, "since": within.since}
        rows = list(connection.execute(_LOCK, {"networks": wanted, **beside}) if wanted else ())
        for row in rows:
            found[row.network_id].append(row)
            self._states[row.id] = _State(row, counts[row.network_id])
        missing = [one for one in wanted if one not in found]
        rows += _require(connection, missing, beside)
        if any(row.unsettled for row in rows):
            raise within.unsettled()
        if any(row.macs_taken for row in rows):
            macs.choose(connection)
        self._subnets = {key: in_order(rows) for key, rows in found.items()}

    def subnets(self, network_id: str) -> Sequence[Any]:
        """Return the rows of a network's subnets, in the order in which they give addresses."""
        return self._subnets.get(network_id, ())

    def is_free(self, subnet: Any, ip: str) -> bool:
        """Return whether neither a port nor the gateway has the address."""
        return not self._states[subnet.id].has(self._connection, int(ipaddress.ip_address(ip)))

    def take(self, subnet: Any, ip: str) -> None:
        """Note that a port has the address from now on."""
        self._states[subnet.id].given.add(int(ipaddress.ip_address(ip)))

    def next_free(self, rows: Iterable[Any]) -> tuple[Any, str] | None:
        """Take the next address of the first of these subnets that has one left, going round."""
        for row in rows:
            state = self._states[row.id]
            number = state.next_free(self._connection)
            if number is not None:
                state.given.add(number)
                return row, state.text(number)
        return None

    def one_of_each(self, rows: Iterable[Any]) -> Sequence[tuple[Any, str]] | None:
        """Take the next address of each family that these subnets have, IPv4 first.

        None if a family has none left.
        """
        families: defaultdict[bool, list[Any]] = defaultdict(list)
        for row in rows:
            families[":" in row.cidr].append(row)
        found = [self.next_free(families[six]) for six in sorted(families)]
        return None if None in found else [one for one in found if one is not None]

    def close(self) -> None:
        """Store where the next search continues. One statement."""
        moved = [
            {"of": subnet_id, "next_ip": state.text(state.next)}
            for subnet_id, state in self._states.items()
            if state.moved
        ]
        if moved:
            self._connection.execute(_MOVE_ON, moved)


def _require(
    connection: sa.Connection, network_ids: Sequence[str], beside: Mapping[str, Any]
) -> list[Any]:
    """Have these networks stay; return their rows. Raises NetworkNotFound."""
    if not network_ids:
        return []
    rows = connection.execute(_LOCK_NETWORKS, {"networks": network_ids, **beside}).all()
    known = {row.id for row in rows}
    for network_id in network_ids:
        if network_id not in known:
            raise NetworkNotFound(f"Network {network_id} could not be found.")
    return list(rows)


@dataclass
class _State:
    """What is known of a subnet's addresses, as numbers."""

    row: Any
    count: int
    """How many addresses will be asked for."""
    given: set[int] = field(default_factory=set)
    _checked: dict[int, bool] = field(default_factory=dict)
    """Whether something has an address."""
    _used: set[int] | None = None
    moved: bool = False

    def __post_init__(self) -> None:
        self.pools = [(_number(first), _number(last)) for first, last in pools_of(self.row)]
        self.next = _number(self.row.next_ip)
        if self.row.gateway_ip is not None:
            self.given.add(_number(self.row.gateway_ip))

    def has(self, connection: sa.Connection, number: int) -> bool:
        """Mostly as many are asked for as are wanted, in a row; for more, all are read."""
        if number in self.given:
            return True
        if not self._checked:
            # Some of them may be given already: the gateway's.
            last = number + self.count + (len(self.given) if self.count > 1 else 0)
            self._check(connection, range(number, last))
        if number in self._checked:
            return self._checked[number]
        if self._used is None:
            found = connection.execute(_USED, {"subnet_id": self.row.id}).scalars()
            self._used = {_number(ip) for ip in found if ip is not None}
        return number in self._used

    def _check(self, connection: sa.Connection, numbers: range) -> None:
        if len(numbers) == 1:
            wanted = {"subnet_id": self.row.id, "ip": self.text(numbers[0])}
            self._checked[numbers[0]] = connection.execute(_TAKEN, wanted).first() is not None
            return
        last = _number(str(ipaddress.ip_network(self.row.cidr)[-1]))
        known = [number for number in numbers if number <= last]
        asked = {"subnet_id": self.row.id, "ips": [self.text(one) for one in known]}
        taken = {_number(ip) for ip in connection.scalars(_TAKEN_OF, asked) if ip is not None}
        self._checked = {number: number in taken for number in known}

    def next_free(self, connection: sa.Connection) -> int | None:
        """Return the next free address of the pools, going round; None if there is none."""
        start = self.next
        for part in (
            *(range(max(first, start), last + 1) for first, last in self.pools),
            *(range(first, min(last + 1, start)) for first, last in self.pools),
        ):
            for number in part:
                if not self.has(connection, number):
                    self.next, self.moved = min(number + 1, self.pools[-1][1]), True
                    return number
        return None

    def text(self, number: int) -> str:
        """Return the address of a number."""
        return str(type(ipaddress.ip_address(self.row.next_ip))(number))


def _number(ip: str) -> int:
    return int(ipaddress.ip_address(ip))
