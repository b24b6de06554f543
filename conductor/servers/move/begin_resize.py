"""Accepts resizes, cold migrations, their confirmations and reversions, in one transaction each.

From then on until it is confirmed or reverted the server holds the larger of both sizes: its
columns, which the quota adds up, have it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from common import codec
from common.context import RequestContext
from common.errors import Conflict, Invalid
from common.guest.asked import CannotError
from common.guest.hardware import Hardware, read
from common.messages.reports import Step
from common.resources import local_disks
from common.resources.migrations import MigrationStatus, MigrationType
from conductor.cloud import Cloud
from conductor.engine import access, start
from conductor.plans import Place, ResizePlan
from conductor.rpc.servers.flavors import FlavorSnapshot, claimed_gib, local_disks_of
from conductor.servers.move import destination, own_host
from conductor.servers.move.begin_live_migration import place
from conductor.servers.move.cold_move import moved_to
from conductor.store.hosts import registry
from conductor.store.quotas import quotas
from conductor.store.records import Operation, Server
from conductor.store.servers import migrations
from conductor.store.servers.migrations import Resize
from conductor.store.transactions import Transaction
from conductor.sync.allocations import of_flavor

_AGENT_DOWN = "Service is unavailable at this time."


class ResizeAcceptance:
    """Begins resizes, and what ends them."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def resize(self, ctxt: RequestContext, server_uuid: str, flavor: FlavorSnapshot) -> Operation:
        """See ``ConductorRpc.resize_server``."""
        self._require_host(ctxt, server_uuid, flavor)
        return self._cloud.store.run(lambda c: self._resize(c, ctxt, server_uuid, flavor))

    def _require_host(self, ctxt: RequestContext, uuid: str, flavor: FlavorSnapshot) -> None:
        """Raise Invalid if it is known that no host can take the flavor: the server can't be
        moved, and its own host has no room or may not be used."""
        with self._cloud.store.read() as connection:
            server = access.free(connection, ctxt, uuid, "resize", lock=False)
            bound = destination.immovable(connection, server)
        if bound is None:
            return
        flavor = _of_server(server, flavor)
        _check(server, flavor)
        why = "its own host may not be used (allow_resize_to_same_host)"
        if self._cloud.conf.conductor.allow_resize_to_same_host:
            new = codec.loads(codec.dumps(flavor))
            decision = own_host.decide(self._cloud, ctxt, server, server.flavor, new)
            if decision.host is not None:
                return
            why = f"host {server.host} can't take it: {decision.reason}"
        words = own_host.NO_VALID_HOST.format("resize")
        raise Invalid(f"{words}: the server can't be moved, {bound}; {why}")

    def migrate(self, ctxt: RequestContext, server_uuid: str, host: str | None) -> Operation:
        """See ``ConductorRpc.migrate_server``."""
        return self._cloud.store.run(lambda c: self.begin_migration(c, ctxt, server_uuid, host))

    def end(self, ctxt: RequestContext, server_uuid: str, action: str) -> Operation:
        """Begin ``confirmResize`` or ``revertResize``."""
        return self._cloud.store.run(lambda c: self.begin_end(c, ctxt, server_uuid, action))

    def _resize(
        self, connection: Transaction, ctxt: RequestContext, uuid: str, flavor: FlavorSnapshot
    ) -> Operation:
        server = access.free(connection, ctxt, uuid, "resize")
        flavor = _of_server(server, flavor)
        new: Mapping[str, Any] = codec.loads(codec.dumps(flavor))
        _check(server, flavor)
        self._require_agent(connection, server)
        quota = self._take_quota(connection, server, flavor)
        claim = _both(
            of_flavor(server.flavor, server.image_properties),
            of_flavor(new, server.image_properties),
        )
        # A migration that was still open when the server became ERROR.
        destination.end_left(connection, server)
        row = migrations.insert(
            connection,
            str(ctxt.user_id),
            server,
            new,
            kind=MigrationType.RESIZE,
            dest_host=server.host,
            dest_node=server.node,
            claim=claim,
        )
        plan = ResizePlan(
            _here(connection, server),
            migration_id=row.id,
            holder=row.uuid,
            was=server.vm_state,
            old=dict(server.flavor),
            new=new,
        )
        larger: dict[str, Any] = {
            "vcpus": max(server.vcpus, flavor.vcpus),
            "memory_mib": max(server.memory_mib, flavor.memory_mib),
            "disk_gib": max(server.disk_gib, claimed_gib(new)),
        }
        which = (self._cloud, ctxt, server, "resize", plan)
        return start.take(connection, *which, quota=quota, **larger)[0]

    def begin_end(
        self, connection: Transaction, ctxt: RequestContext, uuid: str, action: str
    ) -> Operation:
        """As ``end``, in this transaction."""
        server = access.free(connection, ctxt, uuid, action)
        resize = migrations.finished(connection, uuid)
        if resize is None:
            raise Invalid("Instance has not been resized.")
        self._require_agent(connection, server)
        plan = _plan(_here(connection, server), resize)
        if resize.moved and action == "revertResize":
            plan = self._back(connection, plan, resize.source_host)
        operation, _ = start.take(connection, self._cloud, ctxt, server, action, plan)
        migrations.set_status(connection, resize.id, _ENDING[action], operation)
        return operation

    def _back(self, connection: Transaction, plan: ResizePlan, host: str) -> ResizePlan:
        """Return the plan of a way back to a host. Raises Conflict if it has no agent."""
        if self._cloud.worker_of(connection, host) is None:
            raise Conflict(_AGENT_DOWN)
        here, _ = registry.host(connection, str(plan.target.host))
        there, _ = registry.host(connection, host)
        return moved_to(plan, here, there, place(there, plan.target.vmid))

    def begin_migration(
        self, connection: Transaction, ctxt: RequestContext, uuid: str, host: str | None
    ) -> Operation:
        """As ``migrate``, in this transaction."""
        server = access.free(connection, ctxt, uuid, "migrate")
        _check_target(connection, server, host)
        self._require_agent(connection, server)
        here = destination.movable_from(connection, server)
        if isinstance(here, str):
            raise Invalid(f"Migration pre-check error: {here}.")
        why = destination.out_of_reach(connection, server, host)
        if why is not None:
            raise Invalid(f"Migration pre-check error: {why}.")
        destination.end_left(connection, server)
        flavor = dict(server.flavor)
        kind = MigrationType.MIGRATION
        row = migrations.insert(connection, str(ctxt.user_id), server, flavor, kind=kind)
        plan = ResizePlan(
            Place(here.host, here.uuid, server.cluster, server.node, server.vmid),
            migration_id=row.id,
            holder=row.uuid,
            asked_host=host,
            was=server.vm_state,
            old=flavor,
            new=flavor,
        )
        operation, moved = start.take(connection, self._cloud, ctxt, server, "migrate", plan)
        # Nothing of the server's own is touched before the commit that moves it on from there.
        return dataclasses.replace(operation, begun_on=moved)

    def _require_agent(self, connection: Transaction, server: Server) -> None:
        if self._cloud.worker_of(connection, str(server.host)) is None:
            raise Conflict(_AGENT_DOWN)

    def _take_quota(
        self, connection: Transaction, server: Server, flavor: FlavorSnapshot
    ) -> Step | None:
        """Take what the server grows by, as Nova counts it. Raises QuotaExceeded."""
        grows = {
            "cores": max(0, flavor.vcpus - server.vcpus),
            "ram": max(0, flavor.memory_mib - server.memory_mib),
        }
        if not any(grows.values()):
            return None
        return quotas.take(connection, server.project_id, self._cloud.quota, grows)


_ENDING = {
    "confirmResize": MigrationStatus.CONFIRMING,
    "revertResize": MigrationStatus.REVERTING,
}


def _plan(here: Place, resize: Resize) -> ResizePlan:
    return ResizePlan(
        here,
        migration_id=resize.id,
        holder=resize.uuid,
        was=resize.old_vm_state,
        old=resize.old_flavor,
        new=resize.new_flavor,
    )


def _here(connection: Transaction, server: Server) -> Place:
    facts, _ = registry.host(connection, str(server.host))
    return Place(facts.host, facts.uuid, server.cluster, server.node, server.vmid)


def _check_target(connection: Transaction, server: Server, host: str | None) -> None:
    """Raise Invalid for a host that the server can't go to, HostNotFound for an unknown one."""
    if host is None:
        return
    if host == server.host:
        raise Invalid("Cannot migrate to the host where the server exists.")
    facts, _ = registry.host(connection, host)
    if facts.cluster != server.cluster:
        raise Invalid(
            f"Migration pre-check error: host {host} is in cluster {facts.cluster}, and the "
            f"server can't leave {server.cluster}."
        )


def _of_server(server: Server, flavor: FlavorSnapshot) -> FlavorSnapshot:
    """Return the flavor as this server would have it: volume-backed or not, with its own disks."""
    had, sizes = local_disks_of(server.flavor), (flavor.ephemeral_gib, flavor.swap_mib)
    disks = local_disks.resized(had, int(server.flavor.get("ephemeral_gib") or 0), *sizes)
    return dataclasses.replace(flavor, volume_backed=server.volume_backed, local_disks=disks)


def _check(server: Server, flavor: FlavorSnapshot) -> None:
    """Raise Invalid for a flavor that the server can't have, in Nova's words where it has some."""
    if flavor.id == server.flavor.get("id"):
        raise Invalid("When resizing, instances must change flavor!")
    # A resize does not change a root volume.
    old_disk = 0 if server.volume_backed else int(server.flavor.get("disk_gib", server.disk_gib))
    if not flavor.disk_gib and old_disk:
        raise Invalid(
            "Server disk was unable to be resized because: "
            "Resize to zero disk flavor is not allowed."
        )
    if flavor.disk_gib < old_disk:
        raise Invalid(
            "Server disk was unable to be resized because: disks can't shrink, and the new "
            f"flavor has {flavor.disk_gib} GiB instead of {old_disk}."
        )
    if local_disks.shrinks(local_disks_of(server.flavor), flavor.ephemeral_gib):
        raise Invalid(
            "Server disk was unable to be resized because: ephemeral disks can't shrink, and the "
            f"new flavor has {flavor.ephemeral_gib} GiB of them."
        )
    try:
        old = _hardware(server.flavor, server.image_properties)
        new = read(flavor.vcpus, flavor.memory_mib, flavor.extra_specs, server.image_properties)
    except CannotError as error:
        raise Invalid(f"The flavor asks for what can't be had: {error}.") from error
    if _fixed(old) != _fixed(new):
        raise Invalid(
            "The flavor would change the firmware, the TPM or the machine type, "
            "which can't change after the create."
        )


def _hardware(flavor: Mapping[str, Any], image_properties: Mapping[str, str]) -> Hardware:
    specs = flavor.get("extra_specs") or {}
    return read(flavor["vcpus"], flavor["memory_mib"], specs, image_properties)


def _fixed(found: Hardware) -> tuple[Any, ...]:
    return found.uefi, found.secure_boot, found.tpm, found.machine, found.iommu


def _both(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """Return the larger of both in each class."""
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in sorted({*one, *other})}
