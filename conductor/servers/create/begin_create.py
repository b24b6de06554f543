"""Begins creates: takes the quota and writes servers and operations, in one transaction.

Requests of a project that come at once share it.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from common import clock, codec, ids
from common.context import RequestContext
from common.errors import Invalid, NetworkNotFound
from common.messages.reports import Step
from common.resources import states
from common.resources.networks import MOST_INTERFACES, too_many_interfaces
from common.resources.security_rules import DEFAULT
from common.resources.states import (
    ResourceType,
    TaskState,
    VmState,
)
from common.rpc import deadlines
from common.rpc.gathering import Apart, Combining
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.access import scope
from conductor.plans import CreateParams, CreatePlan, Interface
from conductor.rpc.servers.flavors import claimed_gib
from conductor.rpc.servers.servers import CreatedServers, CreateServers
from conductor.servers.auto_network import AutoNetwork
from conductor.servers.create import same_create
from conductor.store.ledger import operations as ledger
from conductor.store.ledger import transitions
from conductor.store.networks import addresses, networks, user_ports
from conductor.store.outbox import notification_payloads
from conductor.store.quotas import quotas
from conductor.store.records import Operation
from conductor.store.servers import server_groups, servers
from conductor.store.transactions import Transaction
from conductor.volumes import new_servers

_HYPHENS_IN_HOSTNAMES = re.compile(r"[ _.]")
_NOT_IN_HOSTNAMES = re.compile(r"[^\w.-]+")

#: requests that share a transaction
_MOST_TOGETHER = 32

_Accepted = tuple[CreatedServers, list[Operation]]


@dataclass(frozen=True)
class _Asked:
    """A request for servers."""

    ctxt: RequestContext
    request: CreateServers
    call: str = field(default_factory=deadlines.call)
    """The call's ID: others of the transaction have their own."""

    def uuid(self, index: int) -> str:
        """Return the UUID that one of its servers gets."""
        return self.request.uuids[index] if self.request.uuids else ids.new_uuid()

    def marks(self) -> dict[str, str]:
        """Return what is stored with its operations."""
        return {"call": self.call, **same_create.marks(self.request)}


class CreateAcceptance:
    """Begins builds."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._auto = AutoNetwork(cloud)
        self._combining = Combining[_Asked, _Accepted](self._create, _MOST_TOGETHER)

    def create(
        self, ctxt: RequestContext, request: CreateServers
    ) -> tuple[CreatedServers, list[Operation]]:
        """Write one to many servers with their operations; the quota is taken with them.

        Requests of a project that come at once share a transaction: they would wait for each
        other's lock of the quota.
        """
        asked = _Asked(ctxt, request)
        if _is_plain(request):
            return self._combining.do(asked, ctxt.project_id)
        return self._create([asked])[0]

    def accept(
        self, connection: Transaction, ctxt: RequestContext, request: CreateServers
    ) -> Operation:
        """Write one server with its operation, in a transaction that writes more."""
        ((_, operations),) = self._accept(connection, [_Asked(ctxt, request)])
        return operations[0]

    def _create(self, asked: Sequence[_Asked]) -> list[_Accepted]:
        tries = itertools.count()

        def work(connection: Transaction) -> list[_Accepted]:
            # A UUID that another conductor has just written ends the first try.
            if next(tries) or any(one.request.fingerprint for one in asked):
                found = [same_create.find(connection, one.request) for one in asked]
                if len(found) == 1 and found[0] is not None:
                    return [(found[0], [])]
                if any(found):
                    raise Apart
            return self._accept(connection, asked)

        return self._cloud.store.run(work)

    def _accept(self, connection: Transaction, asked: Sequence[_Asked]) -> list[_Accepted]:
        """Write the servers of requests of one project; if one is refused, none is written."""
        known = _networks_named(connection, asked)
        interfaces = [
            requested_networks(connection, one.ctxt, one.request, self._auto, known=known)
            for one in asked
        ]
        volumes = [self._lock_volumes(connection, one) for one in asked]
        taken = self._take_quota(connection, asked)
        params = [
            CreateParams(networks=tuple(nics), **one.request.of_build())
            for one, nics in zip(asked, interfaces, strict=True)
        ]
        begun = self._begin(connection, asked, taken, params)
        reservations = [f"r-{secrets.token_hex(4)}" for _ in asked]
        rows = [
            _record(one, operation, reservation, index, len(operations))
            for one, operations, reservation in zip(asked, begun, reservations, strict=True)
            for index, operation in enumerate(operations)
        ]
        new = iter(servers.insert(connection, rows))
        for one, operations, nics, locked in zip(asked, begun, interfaces, volumes, strict=True):
            self._join(connection, one, [each.server_uuid for each in operations], nics, locked)
        # They begin in the same transaction: the first thing done to each is a decision.
        every = list(itertools.chain.from_iterable(begun))
        transitions.record_begun(connection, every, VmState.BUILDING, TaskState.SCHEDULING)
        return [
            (
                CreatedServers(reservation, tuple(each.server_uuid for each in operations)),
                [dataclasses.replace(each, begun_on=next(new)) for each in operations],
            )
            for operations, reservation in zip(begun, reservations, strict=True)
        ]

    def _lock_volumes(self, connection: Transaction, asked: _Asked) -> Any:
        request = asked.request
        return new_servers.lock(
            connection,
            request.volumes,
            scope(asked.ctxt),
            request.max_count,
            # As in Nova, which asks it of a volume only to read the image that it was made of.
            bootable=not request.image_id,
        )

    def _take_quota(
        self, connection: Transaction, asked: Sequence[_Asked]
    ) -> list[tuple[int, Step]]:
        """Return how many servers each request gets, and the step to store. Raises QuotaExceeded.

        The requests take from the quota one after the other.
        """
        project_id, began = str(asked[0].ctxt.project_id), clock.utcnow()
        allowed, used = quotas.locked_with_usage(connection, project_id, self._cloud.quota)
        for one in asked:
            quotas.check_metadata(allowed, one.request.metadata)
            quotas.check_files(allowed, one.request.files)
        taken = []
        for one in asked:
            flavor = one.request.flavor
            each = {"instances": 1, "cores": flavor.vcpus, "ram": flavor.memory_mib}
            counts = (one.request.min_count, one.request.max_count)
            count, step = quotas.affordable(used, allowed, each, counts, began)
            taken.append((count, step))
            used = {name: amount + count * each[name] for name, amount in used.items()}
            if one.request.server_group is not None:
                limit = allowed["server_group_members"]
                which = (one.request.server_group, scope(one.ctxt), one.ctxt.user_id)
                server_groups.join(connection, *which, count, limit)
        return taken

    def _begin(
        self,
        connection: Transaction,
        asked: Sequence[_Asked],
        taken: Sequence[tuple[int, Step]],
        params: Sequence[CreateParams],
    ) -> list[list[Operation]]:
        """Insert the operations of each request: two statements for all."""
        new = [
            (
                one.ctxt,
                start.new(
                    self._cloud,
                    "create",
                    (ResourceType.SERVER, one.uuid(index)),
                    str(one.ctxt.project_id),
                    CreatePlan(has_volumes=bool(one.request.volumes)),
                    params=its,
                    quota=quota,
                    marks=one.marks(),
                ),
            )
            for one, (count, quota), its in zip(asked, taken, params, strict=True)
            for index in range(count)
        ]
        begun = iter(ledger.insert_all(connection, new))
        return [list(itertools.islice(begun, count)) for count, _ in taken]

    def _join(
        self,
        connection: Transaction,
        asked: _Asked,
        uuids: Sequence[str],
        interfaces: Sequence[Interface],
        volumes: Any,
    ) -> None:
        """Give new servers the group, the volumes and the ports that their request names."""
        ctxt, request = asked.ctxt, asked.request
        if request.server_group is not None:
            notification_payloads.server_group(
                connection, ctxt, request.server_group, "add_member"
            )
        if request.volumes:
            new_servers.accept(connection, self._cloud, ctxt, uuids, request.volumes, volumes)
        for position, one in enumerate(interfaces):
            # Only a single server can name a port.
            if one.port_id is not None:
                user_ports.give(connection, one.port_id, uuids[0], position, one.tag)


def requested_networks(
    connection: Transaction,
    ctxt: RequestContext,
    request: CreateServers,
    auto: AutoNetwork,
    *,
    make: bool = True,
    known: Mapping[str, networks.Network] | None = None,
) -> list[Interface]:
    """Return the checked interfaces of a request.

    ``make``: the network of those who name none is made, if need be. ``known``: networks that its
    user may use, by id; None: they are read.

    Raises NetworkNotFound, PortNotFound, Conflict when several networks could be meant or a port
    is in use, Invalid, Forbidden.
    """
    if len(request.networks) > MOST_INTERFACES:
        raise too_many_interfaces()
    if request.auto_network:
        network = auto.of_server(connection, ctxt, needed=request.needs_network, make=make)
        return [] if network is None else [_interface(network, None)]
    if known is None:
        known = networks.named(connection, _names(request), scope(ctxt))
    return list(_chosen(connection, ctxt, request, known))


def _names(request: CreateServers) -> list[str]:
    """Return the ids of the networks that a request names."""
    return [one.network_id for one in request.networks if one.network_id is not None]


def _chosen(
    connection: Transaction,
    ctxt: RequestContext,
    request: CreateServers,
    known: Mapping[str, networks.Network],
) -> Iterator[Interface]:
    """Return the interfaces by the networks, addresses, ports and tags that are named."""
    seen: set[tuple[str, str]] = set()
    for asked in request.networks:
        if asked.port_id is not None:
            port = user_ports.find(
                connection, asked.port_id, scope(ctxt), str(ctxt.project_id), request.name
            )
            network = networks.named(connection, [port.network_id])[port.network_id]
            network.require_addresses(port.id, port.ip)
            yield _interface(network, port.ip, asked.tag, port.id)
            continue
        if asked.network_id not in known:
            raise NetworkNotFound(f"Network {asked.network_id} could not be found.")
        network = known[asked.network_id]
        network.require_addresses()
        _require_groups(network, request)
        fixed_ip = None
        if asked.fixed_ip is not None:
            if request.max_count > 1:
                raise Invalid("A fixed IP address can't be given to more than one server.")
            fixed_ip = networks.check_address(
                connection, asked.network_id, asked.fixed_ip, anywhere=request.any_address
            )
            if (asked.network_id, fixed_ip) in seen:
                raise addresses.taken(fixed_ip)
            seen.add((asked.network_id, fixed_ip))
        yield _interface(network, fixed_ip, asked.tag)


def _require_groups(network: networks.Network, request: CreateServers) -> None:
    """Raise Invalid, in Nova's words, for groups that a network's ports can't be in."""
    if not network.port_security and set(request.security_groups) - {DEFAULT}:
        raise Invalid(
            "Network requires port_security_enabled and subnet associated in order to apply "
            "security groups."
        )


def _interface(
    network: networks.Network,
    fixed_ip: str | None,
    tag: str | None = None,
    port_id: str | None = None,
) -> Interface:
    return Interface(
        *(network.id, network.name, network.bridge, network.vlan, network.mtu),
        *(fixed_ip, tag, port_id, network.up, network.port_security),
        owner=network.owner,
    )


def _is_plain(request: CreateServers) -> bool:
    """Return whether nothing but networks and quota is read to accept it: what is refused then
    leaves nothing behind, and others don't wait for its locks."""
    named = all(one.port_id is None and one.fixed_ip is None for one in request.networks)
    apart = request.volumes or request.server_group or request.auto_network
    return request.max_count == 1 and named and not apart


def _networks_named(
    connection: Transaction, asked: Sequence[_Asked]
) -> Mapping[str, networks.Network] | None:
    """Read the networks that requests of equal rights name; None: each reads its own."""
    scopes = {scope(one.ctxt) for one in asked}
    if len(scopes) > 1:
        return None
    wanted = [name for one in asked for name in _names(one.request)]
    return networks.named(connection, wanted, *scopes)


def _record(
    asked: _Asked, operation: Operation, reservation: str, index: int, count: int
) -> dict[str, Any]:
    """Return the row of one new server."""
    ctxt, request = asked.ctxt, asked.request
    flavor = dataclasses.replace(request.flavor, volume_backed=request.volume_backed)
    kept = codec.loads(codec.dumps(flavor))
    name = f"{request.name}-{index + 1}" if count > 1 else request.name
    hostname = request.hostname or hostname_of(name, operation.server_uuid)
    if request.hostname and count > 1:
        hostname = f"{request.hostname}-{index + 1}"
    return {
        "uuid": operation.server_uuid,
        "project_id": operation.project_id,
        "user_id": ctxt.user_id,
        "name": name,
        "hostname": hostname,
        "description": request.description,
        "vm_state": VmState.BUILDING,
        "task_state": TaskState.SCHEDULING,
        "power_state": states.PowerState.NOSTATE,
        "operation_id": operation.id,
        "reservation_id": reservation,
        "launch_index": index,
        "flavor": kept,
        "vcpus": request.flavor.vcpus,
        "memory_mib": request.flavor.memory_mib,
        "disk_gib": claimed_gib(kept),
        "image_id": request.image_id or None,
        "image_properties": dict(request.image_properties),
        "key_name": request.key_name,
        "public_key": request.public_key,
        "config_drive": request.config_drive,
        "auto_disk_config": request.auto_disk_config,
        "access_ip_v4": request.access_ip_v4,
        "access_ip_v6": request.access_ip_v6,
        "user_data": request.user_data,
        "pinned_availability_zone": request.availability_zone,
        "meta": dict(request.metadata),
        "tags": list(request.tags),
        "addresses": [],
        "scheduler_hints": dict(request.scheduler_hints),
        "security_groups": list(request.security_groups),
        "held": False,
        "server_group_uuid": request.server_group,
        "member_of": request.member_of,
        "disk_tag": request.disk_tag,
        "created_at": clock.utcnow(),
    }


def hostname_of(name: str, server_uuid: str) -> str:
    """Return a host name made from a server's name, 63 characters at most.

    As Nova's ``sanitize_hostname`` does: a name's dots would make what follows the first one a
    domain, and ``node.1`` and ``node.2`` the same host.
    """
    latin = name.encode("latin-1", "ignore").decode("latin-1")[:63]
    text = _NOT_IN_HOSTNAMES.sub("", _HYPHENS_IN_HOSTNAMES.sub("-", latin)).lower().strip(".-")
    return text or f"Server-{server_uuid}"
