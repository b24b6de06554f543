"""The host that a server moves to: chosen by the scheduler, and reserved beside the source.

Until the VM has moved the server holds its claim on the source, and the migration the claim on the
target: its UUID is the consumer in placement and the member of a strict server group. So each
reservation is released by one deletion, and a VM is never on a host where its server has no claim.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from common import clock, moving
from common.errors import Unavailable
from common.log import logger
from common.messages.facts import HostFacts
from common.messages.scheduling import Decision, RequestSpec, VolumeNeed
from common.resources import hints
from conductor.cloud import Cloud
from conductor.engine.access import scope
from conductor.engine.stages import Task
from conductor.plans import Place
from conductor.rpc.servers.flavors import claimed_gib
from conductor.servers import build_command
from conductor.servers.waiting.kept import kept_from
from conductor.store.hosts import registry
from conductor.store.networks import networks
from conductor.store.records import Server
from conductor.store.servers import migrations, server_groups, servers
from conductor.store.transactions import Transaction
from conductor.volumes import host_pins, placement_request, storage_reachability

LOG = logger(__name__)

#: how often a host may be lost to another server before the move waits
_LOSSES = 10

T = TypeVar("T")


@dataclass(frozen=True)
class Wanted:
    """What a server needs of the host that it moves to."""

    holder: str
    """UUID of the migration."""
    flavor: Mapping[str, Any]
    """Its flavor there; see ``conductor.rpc.servers.flavors.FlavorSnapshot``."""
    host: str | None = None
    """The only host that would do; None: any other than its own."""
    without: tuple[str, ...] = ()
    """Hosts that were tried, or that can't take it."""


@dataclass(frozen=True)
class Chosen:
    """A host that is claimed, with the decision; its place in a strict group is taken."""

    place: Place
    facts: HostFacts
    decision: Decision


@dataclass(frozen=True)
class _Lost:
    reason: str


class Destinations:
    """Finds hosts for servers that move, and gives back what is reserved there."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def find(
        self, task: Task, wanted: Wanted, commit: Callable[[Transaction, Chosen], T]
    ) -> T | Decision:
        """Choose a host, claim it, take the place in a strict group, and commit.

        ``commit`` writes what follows, in the transaction that takes the place. Returns its
        answer, or the decision that there is no host; then nothing is reserved. May be repeated:
        what an earlier run claimed is given back first. Raises Unavailable, and StaleTransition as
        ``commit`` does: if another operation has the server, the caller gives the claim back.
        """
        if not task.fresh:
            self.release(wanted.holder)
        claims: tuple[Mapping[str, Any], ...] = ()
        without = list(wanted.without)
        for _ in range(_LOSSES):
            decision, volumes = self._select(task, wanted, without)
            decision = dataclasses.replace(decision, claims=(*claims, *decision.claims))
            if decision.host is None:
                return decision
            # If that is stale, the claim may be what another conductor decided by now.
            found = self._commit(task.server, wanted, decision, volumes, commit)
            if not isinstance(found, _Lost):
                self._cloud.news.taken(str(decision.uuid))
                return found
            uuid, host, why = task.server.uuid, decision.host, found.reason
            LOG.info("Server %s: host %s is no longer usable: %s.", uuid, host, why)
            self.release(wanted.holder)
            claims = (*decision.claims, {"host": decision.host, "result": found.reason})
            without.append(decision.host)
        raise Unavailable("Every suitable host was claimed by another server first.")

    def release(self, holder: str) -> None:
        """Give the migration's claim back. May be repeated; raises Unavailable."""
        self._cloud.placement.release(holder)

    def _select(
        self, task: Task, wanted: Wanted, without: Sequence[str]
    ) -> tuple[Decision, Sequence[VolumeNeed]]:
        """Return the decision, and what the server's volumes need.

        No volume can be attached during a move.
        """
        operation, server = task.operation, task.server
        with self._cloud.store.read() as connection:
            request = _request(connection, server, wanted, scope(operation.ctxt))
        seconds = min(float(self._cloud.conf.rpc.rpc_timeout_seconds), self._patience())
        request = dataclasses.replace(
            request,
            ignore_hosts=(str(server.host), *without),
            # Who names a host gets it all the same.
            kept_hosts=tuple(sorted(kept_from(self._cloud).values())) if not wanted.host else (),
            until=clock.after(seconds),
        )
        return self._cloud.scheduler.select(operation.ctxt, request), request.volumes

    def _patience(self) -> float:
        """Half a lease is left for what follows a claim."""
        return self._cloud.lease_seconds / 2

    def _commit(
        self,
        server: Server,
        wanted: Wanted,
        decision: Decision,
        volumes: Sequence[VolumeNeed],
        commit: Callable[[Transaction, Chosen], T],
    ) -> T | _Lost:
        def work(connection: Transaction) -> T | _Lost:
            host = str(decision.host)
            found = registry.chosen(connection, [host])[host]
            if isinstance(found, str):
                return _Lost(found)
            facts, _ = found
            lost = (
                _unsuitable(server, facts)
                or storage_reachability.missing_one(volumes, facts)
                or server_groups.take_beside(connection, server, facts.host, wanted.holder)
            )
            if lost is not None:
                return _Lost(lost)
            place = Place(facts.host, facts.uuid, facts.cluster, facts.node, server.vmid)
            return commit(connection, Chosen(place, facts, decision))

        return self._cloud.store.run(work)


def _unsuitable(server: Server, facts: HostFacts) -> str | None:
    """Return why a server can't move to a host, whatever a scheduler of another release says."""
    if facts.cluster != server.cluster:
        return f"in cluster {facts.cluster}, the server can't leave {server.cluster}"
    zone = server.pinned_availability_zone
    if zone not in (None, facts.availability_zone):
        return f"in zone {facts.availability_zone}, {zone} asked"
    return None


def immovable(connection: Transaction, server: Server) -> str | None:
    """Return why a server's VM can't be moved to another node, or None: nothing is known."""
    found = movable_from(connection, server)
    return found if isinstance(found, str) else None


def movable_from(connection: Transaction, server: Server) -> HostFacts | str:
    """Return the facts of a server's host, or why its VM can't be moved to another one."""
    if server.host is None or server.vmid is None:
        return moving.NO_VM
    facts, _ = registry.host(connection, server.host)
    return (
        moving.pin(facts.pinned, server.vmid) or host_pins.pinned_by(connection, server) or facts
    )


def out_of_reach(connection: Transaction, server: Server, host: str | None) -> str | None:
    """Return why a host that is asked for doesn't reach the server's volumes, or None."""
    if host is None:
        return None
    wanted = placement_request.of_servers(connection, [server.uuid]).get(server.uuid)
    if not wanted:
        return None
    facts, _ = registry.host(connection, host)
    why = storage_reachability.missing_one(wanted, facts)
    return why and f"host {host} can't take it because {why}"


def end_left(connection: Transaction, server: Server) -> None:
    """End a migration that was left open when the server went to ERROR: as if confirmed.

    The place in its group becomes the server's; what the migration holds in placement is left to
    the audit.
    """
    for holder in migrations.end_open(connection, server.uuid):
        server_groups.move_place(connection, server, holder)


def storage(source: HostFacts, target: HostFacts) -> str | None:
    """Return where disks on the source's storage are copied to on the target; None: to the one of
    the same name."""
    same = any(one.name == source.vm_storage for one in target.storages)
    return None if same else target.vm_storage or None


def request_of(connection: Transaction, server: Server, wanted: Wanted) -> RequestSpec:
    """Return the request for another host, without what a claim needs: to preview it."""
    request = _request(connection, server, wanted, None)
    return dataclasses.replace(request, ignore_hosts=(str(server.host), *wanted.without))


def _request(
    connection: Transaction, server: Server, wanted: Wanted, project_id: str | None
) -> RequestSpec:
    """Return what the server needs. Its disk moves with it, so no image is needed, except for a
    CD on node-local storage, which is ejected before and inserted on the target."""
    image_id = server.root_image_id or ""
    local_cd = image_id and registry.is_local_cd(connection, image_id, str(server.host))
    nics = networks.bridges_of(connection, server.uuid)
    named = hints.all_servers(server.scheduler_hints)
    flavor = wanted.flavor
    return RequestSpec(
        server_uuid=wanted.holder,
        project_id=server.project_id,
        user_id=server.user_id,
        vcpus=flavor["vcpus"],
        memory_mib=flavor["memory_mib"],
        disk_gib=claimed_gib(flavor),
        image_id=image_id if local_cd else None,
        image_properties=server.image_properties,
        extra_specs=dict(flavor.get("extra_specs") or {}),
        availability_zone=server.pinned_availability_zone,
        networks=tuple(bridge for bridge, _ in nics),
        vlans=build_command.vlans(nics),
        force_host=wanted.host,
        cluster=server.cluster,
        vm=None if server.vmid is None else (str(server.cluster), server.vmid),
        hints=server.scheduler_hints,
        server_hosts=servers.hosts_of(connection, named, project_id) if named else {},
        group=server_groups.facts(
            connection, server.server_group_uuid, server.uuid, wanted.holder
        ),
        volumes=placement_request.of_servers(connection, [server.uuid]).get(server.uuid, ()),
        volume_backed=server.volume_backed,
    )
