"""A build, from the record to ACTIVE or ERROR, read top to bottom.

Each stage ends in one transaction that keeps what it decided and moves the server on; a conductor
that takes over goes on from the task_state that it finds. Nothing is asked of an agent before
node, VMID, names and addresses are committed.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from common import clock, wire
from common.errors import MicronovaError, Unavailable
from common.log import logger
from common.messages import (
    Alternate,
    Build,
    Category,
    Decision,
    Failure,
    HostFacts,
    Image,
    Nic,
    Outcome,
    Requested,
    Step,
    Template,
)
from common.server_groups import GroupFacts
from common.states import OperationState, TaskState, VmState
from conductor import guestdata, leases, lifecycle
from conductor.cloud import Cloud, placed
from conductor.store import networks, registry, server_groups, servers, vmids
from conductor.store import operations as ledger
from conductor.store.operations import Operation, Plan
from conductor.store.servers import Server
from conductor.unwind import Unwinding

LOG = logger(__name__)

#: how often a host may be lost to another server before the build pauses
_LOSSES = 10


class Create:
    """The flow of the action ``create``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._unwinding = Unwinding(cloud)
        self._stages = {
            None: self._begin,
            TaskState.SCHEDULING: self._schedule,
            TaskState.NETWORKING: self._network,
            TaskState.BLOCK_DEVICE_MAPPING: self._map_disk,
        }

    def resume(self, operation: Operation, *, fresh: bool) -> None:
        """Go on from what the record says, until the agent has the command or it failed."""
        with self._cloud.store.read() as connection:
            server = servers.get(connection, operation.server_uuid)
        if server.operation_id != operation.id or operation.state == OperationState.UNWINDING:
            self._unwinding.resume(operation, server)
            return
        if operation.deadline is not None and operation.deadline < clock.utcnow():
            self._unwinding.fail(operation, server, _timed_out(operation, server))
            return
        if not fresh and operation.plan.host is None:
            # A claim may have been made that was never written down.
            self._cloud.placement.release(server.uuid)
        self._walk(operation, server)

    def finished(self, operation: Operation, outcome: Outcome) -> None:
        """The agent's word on the build: ACTIVE, another attempt, or ERROR."""
        with self._cloud.store.read() as connection:
            server = servers.get(connection, operation.server_uuid)
        if server.operation_id != operation.id or operation.state == OperationState.UNWINDING:
            self._unwinding.finished(operation, server, outcome)
        elif outcome.ok:
            self._activate(operation, server, outcome)
        else:
            self._unwinding.failed(operation, server, outcome)

    def overtaken(self, operation: Operation) -> None:
        """Another operation took the server while this one was at work."""
        with self._cloud.store.read() as connection:
            server = servers.get(connection, operation.server_uuid)
        if server.operation_id != operation.id:
            self._unwinding.resume(operation, server)
        # Else somebody else goes on with this very operation: our lease had run out.

    # --- the stages

    def _walk(self, operation: Operation, server: Server) -> None:
        spawned = False
        while server.task_state != TaskState.SPAWNING:
            stage = self._stages[TaskState(server.task_state) if server.task_state else None]
            moved = stage(operation, server)
            if moved is None:
                return
            operation, server = moved
            spawned = server.task_state == TaskState.SPAWNING
        self._spawn(operation, server, handed_over=spawned)

    def _begin(self, operation: Operation, server: Server) -> tuple[Operation, Server]:
        return self._advance(operation, server, operation.plan)

    def _schedule(self, operation: Operation, server: Server) -> tuple[Operation, Server] | None:
        """Find a host, and another one where that is given to somebody else meanwhile."""
        alternates = tuple(wire.load(Alternate, item) for item in operation.plan.alternates)
        claims: tuple[Mapping[str, str], ...] = ()
        for _ in range(_LOSSES):
            started = clock.utcnow()
            decision = self._select(operation, server, alternates)
            decision = dataclasses.replace(decision, claims=(*claims, *decision.claims))
            if decision.host is None:
                self._nowhere(operation, server, decision)
                return None
            placed_or_why_not = self._commit(operation, server, decision, started)
            if not isinstance(placed_or_why_not, str):
                return placed_or_why_not
            LOG.info("Host %s is lost: %s.", decision.host, placed_or_why_not)
            self._cloud.placement.release(server.uuid)
            claims = (*decision.claims, {"host": decision.host, "result": placed_or_why_not})
            alternates = decision.alternates
        raise Unavailable("Every host was given to another server meanwhile.")

    def _select(
        self, operation: Operation, server: Server, alternates: tuple[Alternate, ...]
    ) -> Decision:
        group = None
        if server.server_group_uuid is not None:
            with self._cloud.store.read() as connection:
                group = server_groups.facts(connection, server)
        seconds = self._cloud.conf.rpc.rpc_timeout_seconds
        requested = _requested(operation, server, group, seconds)
        return self._cloud.scheduler.select(operation.ctxt, requested, alternates)

    def _commit(
        self, operation: Operation, server: Server, decision: Decision, started: datetime.datetime
    ) -> tuple[Operation, Server] | str:
        step = Step(
            "conductor_schedule",
            0,
            started,
            clock.utcnow(),
            "Success",
            detail={"host": decision.host, "considered": decision.considered},
        )
        return self._cloud.store.run(
            lambda connection: self._place(connection, operation, server, decision, step)
        )

    def _place(
        self,
        connection: sa.Connection,
        operation: Operation,
        server: Server,
        decision: Decision,
        step: Step,
    ) -> tuple[Operation, Server] | str:
        """Reserve what the build will use on the chosen host, and write it down.

        Returns why the host can't be had where its zone, or a server of the group, came between.
        """
        facts, worker = registry.host(connection, str(decision.host), lock=True)
        zone = server.pinned_availability_zone
        if zone not in (None, facts.availability_zone):
            return f"in zone {facts.availability_zone}, {zone} asked"
        lost = server_groups.take(connection, server, facts.host)
        if lost is not None:
            return lost
        vmid = vmids.reserve(connection, facts.cluster, server.uuid, operation.id)
        plan = dataclasses.replace(
            operation.plan,
            host=facts.host,
            uuid=facts.uuid,
            cluster=facts.cluster,
            node=facts.node,
            worker=worker,
            vmid=vmid,
            storage=facts.vm_storage,
            alternates=tuple(dataclasses.asdict(item) for item in decision.alternates),
        )
        ledger.record_decision(connection, operation, decision)
        ledger.upsert_events(connection, [ledger.conductor_event(operation, step)])
        return self._moved(
            connection,
            operation,
            server,
            plan,
            host=facts.host,
            node=facts.node,
            cluster=facts.cluster,
            vmid=vmid,
            availability_zone=facts.availability_zone,
        )

    def _nowhere(self, operation: Operation, server: Server, decision: Decision) -> None:
        self._cloud.store.run(
            lambda connection: ledger.record_decision(connection, operation, decision)
        )
        reason = decision.reason or "No valid host was found."
        if operation.plan.failed_hosts:
            # The last attempt's own fault is the cause; it is kept beside this one.
            reason = f"{reason} Earlier attempts failed on {len(operation.plan.failed_hosts)}."
        failure = Failure(Category.NO_VALID_HOST, reason, "conductor_schedule")
        self._unwinding.fail(operation, server, failure, gone=True)

    def _network(self, operation: Operation, server: Server) -> tuple[Operation, Server]:
        return self._cloud.store.run(
            lambda connection: self._connect(connection, operation, server)
        )

    def _connect(
        self, connection: sa.Connection, operation: Operation, server: Server
    ) -> tuple[Operation, Server]:
        """Make the server's ports, or find those of an earlier attempt."""
        started = clock.utcnow()
        wishes = {wish["id"]: wish for wish in _wishes(operation)}
        ports = networks.ports_of(connection, server.uuid) if operation.attempt > 1 else []
        if not ports:
            wanted = [(wish["id"], wish["fixed_ip"]) for wish in _wishes(operation)]
            prefix = self._cloud.conf.networks.mac_prefix
            ports = networks.create_ports(
                connection, server.uuid, server.project_id, wanted, prefix
            )
        nics = [_nic(port, wishes[port.network_id]) for port in ports]
        plan = dataclasses.replace(
            operation.plan, nics=tuple(dataclasses.asdict(nic) for nic in nics)
        )
        detail = {"addresses": [nic.ip for nic in nics if nic.ip]}
        step = Step(
            "conductor_allocate_network", 1, started, clock.utcnow(), "Success", detail=detail
        )
        ledger.upsert_events(connection, [ledger.conductor_event(operation, step)])
        return self._moved(
            connection, operation, server, plan, addresses=guestdata.addresses(nics)
        )

    def _map_disk(self, operation: Operation, server: Server) -> tuple[Operation, Server] | None:
        with self._cloud.store.read() as connection:
            facts, _ = registry.host(connection, str(operation.plan.host))
            image = _image(connection, server, facts)
        if image is None:
            text = f"Image {server.image_id} is no longer in cluster {facts.cluster}."
            self._unwinding.fail(
                operation, server, Failure(Category.IMAGE_NOT_FOUND, text), gone=True
            )
            return None
        return self._cloud.store.run(
            lambda connection: self._choose_disk(connection, operation, server, facts, image)
        )

    def _choose_disk(
        self,
        connection: sa.Connection,
        operation: Operation,
        server: Server,
        facts: HostFacts,
        image: Image,
    ) -> tuple[Operation, Server]:
        """Reserve the template to clone from, where the host can clone; the lease moves on."""
        template = None
        if facts.capabilities.get("linked_clone") or facts.capabilities.get("full_clone"):
            vmid = vmids.template(
                connection, facts.cluster, facts.node, facts.vm_storage, image.id
            )
            template = dataclasses.asdict(Template(vmid, facts.node, facts.vm_storage))
        plan = dataclasses.replace(
            operation.plan, image=dataclasses.asdict(image), template=template
        )
        moved = self._moved(connection, operation, server, plan)
        leases.hand_over(connection, operation.id, str(plan.worker), self._cloud.lease_seconds)
        return moved

    def _spawn(self, operation: Operation, server: Server, *, handed_over: bool) -> None:
        """Send the command; sending it again does no harm."""
        host = str(operation.plan.host)
        # The scheduler has just seen the agent alive; later it is asked for anew.
        worker = operation.plan.worker if handed_over else self._unwinding.take_to(operation, host)
        if worker is None:
            text = f"The agent of host {host} does not answer."
            self._unwinding.fail(
                operation, server, Failure(Category.NODE_UNHEALTHY, text, host=host)
            )
            return
        LOG.info("Build goes to host %s, VMID %s.", host, operation.plan.vmid)
        self._cloud.compute.build(operation.ctxt, worker, _command(operation, server))

    def _activate(self, operation: Operation, server: Server, outcome: Outcome) -> None:
        def work(connection: sa.Connection) -> None:
            lifecycle.move(
                connection,
                server,
                operation_id=operation.id,
                vm_state=VmState.ACTIVE,
                task_state=None,
                power_state=outcome.power_state,
                launched_at=clock.utcnow(),
            )
            ledger.close(connection, operation.id, OperationState.DONE)

        if server.task_state == TaskState.SPAWNING:
            self._cloud.store.run(work)
            LOG.info("Server is active on %s.", server.host)

    # --- one step on

    def _advance(
        self, operation: Operation, server: Server, plan: Plan
    ) -> tuple[Operation, Server]:
        return self._cloud.store.run(
            lambda connection: self._moved(connection, operation, server, plan)
        )

    def _moved(
        self,
        connection: sa.Connection,
        operation: Operation,
        server: Server,
        plan: Plan,
        **values: Any,
    ) -> tuple[Operation, Server]:
        following = lifecycle.next_task("create", server.task_state)
        server = lifecycle.move(
            connection,
            server,
            operation_id=operation.id,
            vm_state=VmState.BUILDING,
            task_state=following,
            **values,
        )
        if plan != operation.plan:
            leases.advance(connection, operation, plan, self._cloud.name)
        return dataclasses.replace(operation, plan=plan), server


def _timed_out(operation: Operation, server: Server) -> Failure:
    text = f"The build did not end in time; it was {server.task_state} last."
    return Failure(Category.TASK_TIMEOUT, text, host=operation.plan.host)


def _wishes(operation: Operation) -> list[Mapping[str, Any]]:
    return list(operation.params.get("networks", ()))


def _requested(
    operation: Operation, server: Server, group: GroupFacts | None, seconds: float
) -> Requested:
    return Requested(
        server_uuid=server.uuid,
        project_id=server.project_id,
        user_id=server.user_id,
        vcpus=server.vcpus,
        memory_mib=server.memory_mib,
        disk_gib=server.disk_gib,
        image_id=server.image_id,
        image_properties=server.image_properties,
        extra_specs=server.flavor.get("extra_specs", {}),
        availability_zone=server.pinned_availability_zone,
        networks=tuple(wish["bridge"] for wish in _wishes(operation)),
        ignore_hosts=operation.plan.failed_hosts,
        force_host=operation.params.get("force_host"),
        hints=server.scheduler_hints,
        group=group,
        until=clock.after(seconds),
        least_memory_mib=operation.params.get("least_memory_mib", 0),
        least_disk_gib=operation.params.get("least_disk_gib", 0),
    )


def _nic(port: networks.Port, wish: Mapping[str, Any]) -> Nic:
    return Nic(
        port_id=port.id,
        network_id=port.network_id,
        network_name=wish["name"],
        bridge=wish["bridge"],
        mac=port.mac,
        mtu=wish["mtu"],
        vlan=wish["vlan"],
        ip=port.ip,
        cidr=port.cidr,
        gateway=port.gateway,
        dns=port.dns,
    )


def _image(connection: sa.Connection, server: Server, facts: HostFacts) -> Image | None:
    row = registry.image_location(connection, str(server.image_id), facts.cluster)
    if row is None:
        return None
    return Image(
        id=row.id,
        name=row.name,
        volid=row.locations[facts.cluster],
        size_bytes=row.size_bytes,
        min_disk_gib=row.min_disk_gib,
        checksum=row.checksum,
        properties=row.properties,
    )


def _command(operation: Operation, server: Server) -> Build:
    plan = operation.plan
    where = placed(operation)
    if where is None or operation.deadline is None:
        raise MicronovaError(f"Operation {operation.id} is spawning without a plan.")
    nics = tuple(wire.load(Nic, item) for item in plan.nics)
    return Build(
        operation_id=operation.id,
        attempt=operation.attempt,
        server_uuid=server.uuid,
        placed=where,
        deadline=operation.deadline,
        name=server.name,
        hostname=server.hostname,
        project_id=server.project_id,
        user_id=server.user_id,
        vcpus=server.vcpus,
        memory_mib=server.memory_mib,
        disk_gib=server.disk_gib,
        storage=plan.storage or None,
        image=wire.load(Image, plan.image) if plan.image else None,
        template=wire.load(Template, plan.template) if plan.template else None,
        nics=nics,
        config_drive=guestdata.config_drive(server, nics, operation.params.get("admin_password")),
        tags=tuple(server.tags),
    )
