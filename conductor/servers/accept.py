"""Accepts requests: takes quota and writes the operation, in one transaction."""

from __future__ import annotations

import dataclasses
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from common import clock, codec, ids
from common.context import RequestContext
from common.errors import Invalid, NetworkNotFound
from common.messages.reports import Step
from common.resources import locks, states
from common.resources.networks import MOST_INTERFACES, too_many_interfaces
from common.resources.security_rules import DEFAULT
from common.resources.states import (
    ACTIONS,
    SHELVED,
    SOFT_DELETABLE,
    ResourceType,
    TaskState,
    VmState,
)
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.access import check_state, scope
from conductor.engine.start import HandedOver
from conductor.plans import PLANS, CreateParams, CreatePlan, DeletePlan, Interface, Plan
from conductor.rpc.servers.flavors import claimed_gib
from conductor.rpc.servers.servers import CreatedServers, CreateServers
from conductor.servers.auto_network import AutoNetwork
from conductor.servers.remove import delete
from conductor.store.images import server_images
from conductor.store.ledger import operations as ledger
from conductor.store.ledger import transitions
from conductor.store.networks import addresses, networks, user_ports
from conductor.store.outbox import notification_payloads
from conductor.store.quotas import quotas
from conductor.store.records import Operation, Server
from conductor.store.servers import migrations, server_groups, servers
from conductor.store.transactions import Transaction
from conductor.volumes import host_pins, new_servers

_HYPHENS_IN_HOSTNAMES = re.compile(r"[ _.]")
_NOT_IN_HOSTNAMES = re.compile(r"[^\w.-]+")


#: the task states of moves whose migration is open: only a delete interrupts them
MOVING = frozenset(
    task for name in ("resize", "live-migration", "unshelve") for task in ACTIONS[name].walk
)
#: a server in one of these states may have an open migration
_MAY_HAVE_MOVED = (VmState.RESIZED, VmState.ERROR)

#: a delete that can be undone, and the action that undoes it
SOFT_DELETE, RESTORE = "soft-delete", "restore"


class Accept:
    """Begins operations."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._auto = AutoNetwork(cloud)

    # --- create

    def create(
        self, ctxt: RequestContext, request: CreateServers
    ) -> tuple[CreatedServers, list[Operation]]:
        """Write one to many servers with their operations; the quota is taken with them."""
        return self._cloud.store.run(lambda connection: self._create(connection, ctxt, request))

    def _create(
        self, connection: Transaction, ctxt: RequestContext, request: CreateServers
    ) -> tuple[CreatedServers, list[Operation]]:
        interfaces = requested_networks(connection, ctxt, request, self._auto)
        volumes = new_servers.lock(
            connection,
            request.volumes,
            scope(ctxt),
            request.max_count,
            # As in Nova, which asks it of a volume only to read the image that it was made of.
            bootable=not request.image_id,
        )
        each = {
            "instances": 1,
            "cores": request.flavor.vcpus,
            "ram": request.flavor.memory_mib,
        }
        project_id, began = str(ctxt.project_id), clock.utcnow()
        allowed = quotas.locked(connection, project_id, self._cloud.quota)
        quotas.check_metadata(allowed, request.metadata)
        quotas.check_files(allowed, request.files)
        counts = (request.min_count, request.max_count)
        count, quota = quotas.affordable(connection, project_id, allowed, each, counts, began)
        if request.server_group is not None:
            limit = allowed["server_group_members"]
            server_groups.join(
                connection, request.server_group, scope(ctxt), ctxt.user_id, count, limit
            )
        params = CreateParams(networks=tuple(interfaces), **request.of_build())
        uuids = [ids.new_uuid() for _ in range(count)]
        plan = CreatePlan(has_volumes=bool(request.volumes))
        begun = self._begin(connection, ctxt, project_id, uuids, params, plan, quota)
        reservation = f"r-{secrets.token_hex(4)}"
        new = servers.insert(
            connection,
            [
                _record(ctxt, request, operation, reservation, index, count)
                for index, operation in enumerate(begun)
            ],
        )
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
        # They begin in the same transaction: the first thing done to each is a decision.
        transitions.record_begun(connection, begun, VmState.BUILDING, TaskState.SCHEDULING)
        begun = [
            dataclasses.replace(operation, begun_on=server)
            for operation, server in zip(begun, new, strict=True)
        ]
        return CreatedServers(reservation, tuple(uuids)), begun

    def _begin(
        self,
        connection: Transaction,
        ctxt: RequestContext,
        project_id: str,
        uuids: Sequence[str],
        params: CreateParams,
        plan: CreatePlan,
        quota: Step,
    ) -> list[Operation]:
        """Insert the whole batch with two statements."""
        return ledger.insert(
            connection,
            ctxt,
            [
                start.new(
                    self._cloud,
                    "create",
                    (ResourceType.SERVER, uuid),
                    project_id,
                    plan,
                    params=params,
                    quota=quota,
                )
                for uuid in uuids
            ],
        )

    # --- everything else

    def act(
        self,
        ctxt: RequestContext,
        server_uuid: str,
        action: str,
        values: Mapping[str, Any] | None = None,
        plan: Callable[[Transaction, Server], Plan] | None = None,
    ) -> Operation | None:
        """Begin an action on a server; None if the same one is in progress already.

        ``values`` are columns of the server that change with it; ``plan`` refuses what is asked,
        or returns it as the operation's plan.
        """
        return self._cloud.store.run(
            lambda connection: self._act(connection, ctxt, server_uuid, action, values, plan)
        )

    def _act(
        self,
        connection: Transaction,
        ctxt: RequestContext,
        server_uuid: str,
        action: str,
        values: Mapping[str, Any] | None = None,
        planned: Callable[[Transaction, Server], Plan] | None = None,
    ) -> Operation | None:
        server = servers.alive(connection, server_uuid, scope(ctxt))
        locks.check(server.uuid, server.locked_by, is_admin=bool(ctxt.is_admin))
        if action == SOFT_DELETE and not _restorable(server):
            action = "delete"
        if _is_being_deleted(server, action):
            return None
        check_state(server, action)
        host_pins.require_none(connection, server, action)
        quota = self._take_back(connection, server) if action == RESTORE else None
        plan = PLANS.get(action, Plan)() if planned is None else planned(connection, server)
        if action == "delete" and (
            server.vm_state in _MAY_HAVE_MOVED or server.task_state in MOVING
        ):
            plan = DeletePlan(
                holders=(
                    *_held_by_former(connection, server),
                    *migrations.end_open(connection, server.uuid),
                )
            )
        if action == "delete" and server.vm_state in SHELVED:
            # It is listed among the images.
            server_images.forget_parked(connection, server.uuid)
        handed_over = self._hand_over(connection, server) if action == "delete" else None
        which = (self._cloud, ctxt, server, action, plan)
        more = {"handed_over": handed_over, "quota": quota, **(values or {})}
        return start.take(connection, *which, **more)[0]

    def reclaim(self, ctxt: RequestContext, server_uuid: str) -> Operation | None:
        """Delete a soft-deleted server for good; None if it is none any more."""

        def work(connection: Transaction) -> Operation | None:
            server = servers.alive(connection, server_uuid, None)
            if server.vm_state != VmState.SOFT_DELETED or server.task_state is not None:
                return None
            return self._act(connection, ctxt, server_uuid, "delete")

        return self._cloud.store.run(work)

    def _take_back(self, connection: Transaction, server: Server) -> Step:
        """Take what a soft-deleted server has from the quota again. Raises QuotaExceeded."""
        began = clock.utcnow()
        each = {"instances": 1, "cores": server.vcpus, "ram": server.memory_mib}
        allowed = quotas.locked(connection, server.project_id, self._cloud.quota)
        return quotas.affordable(connection, server.project_id, allowed, each, (1, 1), began)[1]

    def _hand_over(self, connection: Transaction, server: Server) -> HandedOver | None:
        """Return the worker that gets a delete's one command, and with it the lease."""
        if server.host is None or server.vmid is None:
            return None
        worker = self._cloud.worker_of(connection, server.host)
        return None if worker is None else HandedOver(worker, delete.STAGE)


def _held_by_former(connection: Transaction, server: Server) -> tuple[str, ...]:
    """Return what an overdue delete, which shows ERROR and is taken over, had still to release."""
    former = None if server.operation_id is None else ledger.get(connection, server.operation_id)
    plan = None if former is None or former.state not in states.OPEN_STATES else former.plan
    return plan.holders if isinstance(plan, DeletePlan) else ()


def _restorable(server: Server) -> bool:
    """Return whether it could be restored as it was: it ran, and has its own disk and size."""
    known = server.vm_state in {*SOFT_DELETABLE, VmState.SOFT_DELETED}
    return known and server.launched_at is not None


def _is_being_deleted(server: Server, action: str) -> bool:
    """Return whether the server is already deleted, or being deleted, as this action would do."""
    if action == SOFT_DELETE and server.vm_state == VmState.SOFT_DELETED:
        return server.task_state in {None, TaskState.DELETING}
    if action == SOFT_DELETE:
        return server.task_state in {TaskState.DELETING, TaskState.SOFT_DELETING}
    return action == "delete" and server.task_state == TaskState.DELETING


def requested_networks(
    connection: Transaction,
    ctxt: RequestContext,
    request: CreateServers,
    auto: AutoNetwork,
    *,
    make: bool = True,
) -> list[Interface]:
    """Return the checked interfaces of a request.

    ``make``: the network of those who name none is made, if need be.

    Raises NetworkNotFound, PortNotFound, Conflict when several networks could be meant or a port
    is in use, Invalid, Forbidden.
    """
    if len(request.networks) > MOST_INTERFACES:
        raise too_many_interfaces()
    if request.auto_network:
        network = auto.of_server(connection, ctxt, needed=request.needs_network, make=make)
        return [] if network is None else [_interface(network, None)]
    return list(_chosen(connection, ctxt, request))


def _chosen(
    connection: Transaction, ctxt: RequestContext, request: CreateServers
) -> Iterator[Interface]:
    """Return the interfaces by the networks, addresses, ports and tags that are named."""
    seen: set[tuple[str, str]] = set()
    wanted = [one.network_id for one in request.networks if one.network_id is not None]
    known = networks.named(connection, wanted, scope(ctxt))
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
    )


def _record(
    ctxt: RequestContext,
    request: CreateServers,
    operation: Operation,
    reservation: str,
    index: int,
    count: int,
) -> dict[str, Any]:
    """Return the row of one new server."""
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
