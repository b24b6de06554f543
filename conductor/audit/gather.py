"""Gathers the facts of one look: the record, placement, every cluster, and the record again.

The record is read before and after: a server with an open operation in either is in flux, and
findings are compared with servers created or deleted in between.
"""

from __future__ import annotations

import dataclasses
import datetime
import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from common import clock, context
from common.errors import MicronovaError, NotFound
from common.log import logger
from common.messages.inventory import ClusterInventory
from common.messages.questions import Agent, ReadInventory
from common.resources.states import InternalAction, ResourceType
from conductor.audit.each import each
from conductor.audit.facts import (
    AttachmentFacts,
    BackupFacts,
    Facts,
    GroupPlace,
    HolderFacts,
    HostFact,
    NetworkFacts,
    OpenOperation,
    Place,
    PortFacts,
    Reservation,
    ServerFacts,
    SnapshotFacts,
    TemplateFacts,
    UploadFacts,
    VolumeFacts,
)
from conductor.audit.kinds import BY_CONFIG, BY_FIREWALL
from conductor.audit.look_at_firewalls import firewalls
from conductor.cloud import Cloud
from conductor.plans import LeftPlan
from conductor.store.audits import audit_record, findings
from conductor.store.ledger import operations as ledger
from conductor.store.networks import segments, vnets
from conductor.store.outbox import filter_outbox
from conductor.store.servers import migrations, server_groups, vmids
from conductor.store.transactions import Transaction
from conductor.store.volumes import backups, snapshots
from conductor.sync.allocations import of_flavor

LOG = logger(__name__)

#: actions that keep the VM and delete the record
_LET_GO = ("release", InternalAction.FORGET)

Allocations = Mapping[str, Mapping[str, Mapping[str, int]]]


class Gatherer:
    """Gathers the facts of a look."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._reads: int = cloud.conf.conductor.audit_reads

    def look(self, read: Mapping[str, frozenset[int]] | None = None) -> Facts:
        """Look once. What doesn't answer is named in ``unseen``; only our own database must.

        ``read``: VMIDs of the record whose VMs' descriptions are to be read; None: those that are
        due.
        """
        unseen: list[str] = []
        with self._cloud.store.read() as connection:
            before = dataclasses.replace(
                _record(connection),
                cloud=self._cloud.id,
                restored=self._cloud.guard.restored,
                mac_prefix=self._cloud.conf.networks.mac_prefix,
                tenant_vlans=tuple(map(segments.parse, self._cloud.conf.networks.tenant_vlans)),
            )
            if read is None:
                doubted = findings.doubted(connection, BY_CONFIG | BY_FIREWALL)
                read = due(before.reservations.values(), doubted, self._reads)
            before = dataclasses.replace(before, read=read)
            workers = self._workers(connection, unseen)
        without = {server.cluster for server in before.servers.values() if server.place}
        without -= {host.cluster for host in before.hosts.values()}
        unseen += [f"No host of cluster {name} is known." for name in sorted(map(str, without))]
        allocations = self._allocations(before.hosts.values(), unseen)
        inventories = self._inventories(workers, before, unseen)
        seen = dataclasses.replace(before, allocations=allocations, inventories=inventories)
        seen = dataclasses.replace(seen, firewalls=firewalls(self._cloud, workers, seen, unseen))
        with self._cloud.store.read() as connection:
            return dataclasses.replace(_after(connection, seen), unseen=tuple(unseen))

    # --- the clusters

    def _workers(self, connection: Transaction, unseen: list[str]) -> dict[str, str]:
        """Return a live worker with agents of the cluster, for each cluster."""
        down = self._cloud.down(connection)
        agents = audit_record.agents(connection)
        workers: dict[str, str] = {}
        for cluster, host, worker in agents:
            if host not in down:
                workers.setdefault(cluster, worker)
        silent = sorted({cluster for cluster, _, _ in agents} - set(workers))
        unseen += [f"No agent of cluster {cluster} answers." for cluster in silent]
        return workers

    def _inventories(
        self, workers: Mapping[str, str], facts: Facts, unseen: list[str]
    ) -> dict[str, ClusterInventory]:
        known: dict[str, set[int]] = {cluster: set() for cluster in workers}
        for cluster, vmid in _recorded(facts):
            known.setdefault(cluster, set()).add(vmid)

        def ask(cluster: str) -> ClusterInventory:
            return self._cloud.compute.ask(
                context.internal(),
                Agent(workers[cluster], cluster),
                ReadInventory(
                    tuple(sorted(known[cluster])),
                    tuple(sorted(facts.read.get(cluster, frozenset()))),
                ),
            )

        found: dict[str, ClusterInventory] = {}
        for cluster, answer in each(sorted(workers), ask):
            if isinstance(answer, ClusterInventory):
                found[cluster] = answer
                unseen += [f"Cluster {cluster}: {text}" for text in answer.unseen]
            else:
                unseen.append(f"Cluster {cluster} can't be looked at: {answer.message}")
        return found

    # --- placement

    def _allocations(self, hosts: Iterable[HostFact], unseen: list[str]) -> Allocations | None:
        """Return servers' allocations, by server and host; None if placement doesn't answer."""
        uuids = {host.uuid for host in hosts}
        try:
            everything = self._cloud.placement.all_allocations()
        except MicronovaError as error:
            unseen.append(f"Placement can't be looked at: {error.message}")
            return None
        if everything is None:
            return self._allocations_by_host(sorted(uuids), unseen)
        mine = (
            (consumer, {uuid: held[uuid] for uuid in held.keys() & uuids})
            for consumer, held in everything.items()
        )
        return {consumer: held for consumer, held in mine if held}

    def _allocations_by_host(self, uuids: Sequence[str], unseen: list[str]) -> Allocations | None:
        """Return the same by one request per host: OpenStack's placement has no list of all."""

        def ask(uuid: str) -> Mapping[str, Mapping[str, int]]:
            try:
                return self._cloud.placement.provider_allocations(uuid)
            except NotFound:
                return {}  # a host that was never published has none

        found: dict[str, dict[str, Mapping[str, int]]] = {}
        for uuid, answer in each(uuids, ask):
            if isinstance(answer, MicronovaError):
                unseen.append(f"Placement can't be looked at: {answer.message}")
                return None
            for consumer, resources in answer.items():
                found.setdefault(consumer, {})[uuid] = resources
        return found


def due(
    reservations: Iterable[Reservation], doubted: Collection[Place], most: int
) -> dict[str, frozenset[int]]:
    """Return whose descriptions to read this time, by cluster: a bounded number of each. Pure.

    First those that the last audit doubted, then those last read the longest ago.
    """
    by_cluster: dict[str, list[Reservation]] = {}
    for one in reservations:
        if one.state == vmids.RESERVED:
            by_cluster.setdefault(one.cluster, []).append(one)

    def turn(one: Reservation) -> tuple[bool, datetime.datetime, int]:
        return (one.cluster, one.vmid) not in doubted, one.read_at or one.since, one.vmid

    return {
        cluster: frozenset(one.vmid for one in heapq.nsmallest(most, listed, key=turn))
        for cluster, listed in by_cluster.items()
    }


# --- the record


def _servers_of(operations: Iterable[OpenOperation]) -> frozenset[str]:
    return frozenset(one.server_uuid for one in operations if one.server_uuid is not None)


def _record(connection: Transaction) -> Facts:
    """Return the record before the look. Operations first: so all that end are in flux."""
    operations = audit_record.open_operations(connection, OpenOperation)
    servers = _servers(
        audit_record.living_servers(connection, ServerFacts), migrations.claims(connection)
    )
    return Facts(
        now=clock.utcnow(),
        servers=servers,
        busy=_servers_of(operations),
        operations=tuple(operations),
        reservations={
            (one.cluster, one.vmid): one
            for one in audit_record.rows(connection, "vmids", Reservation)
        },
        templates=tuple(audit_record.rows(connection, "templates", TemplateFacts)),
        volumes=_volumes(connection),
        backups=_backups(connection),
        left=_left(connection),
        busy_backups=audit_record.busy(connection, ResourceType.BACKUP),
        attachments=_attachments(connection),
        snapshots=_snapshots(connection),
        busy_volumes=_busy_volumes(connection),
        busy_holders=audit_record.busy_holders(connection),
        busy_images=audit_record.busy(connection, ResourceType.IMAGE),
        busy_networks=audit_record.busy(connection, ResourceType.NETWORK),
        ports=tuple(audit_record.rows(connection, "ports", PortFacts)),
        networks={one.id: one for one in audit_record.rows(connection, "networks", NetworkFacts)},
        firewalls_due=filter_outbox.changing(connection),
        group_places=tuple(audit_record.rows(connection, "server_group_places", GroupPlace)),
        groups=server_groups.strict(connection),
        holders=_holders(migrations.open_holders(connection), servers),
        hosts={one.host: one for one in audit_record.rows(connection, "hosts", HostFact)},
    )


def _servers(
    rows: Iterable[dict[str, Any]], claims: Mapping[str, Mapping[str, int]] | None = None
) -> dict[str, ServerFacts]:
    """Return the servers; ``claims`` is what those hold that are being resized."""
    found, held = {}, claims or {}
    for values in rows:
        shown = values.pop("addresses") or ()
        addresses = tuple(str(one["ip"]) for one in shown if one.get("ip"))
        uuid = values["uuid"]
        found[uuid] = ServerFacts(**values, addresses=addresses, claim=held.get(uuid))
    return found


def _holders(
    rows: Iterable[migrations.Holder], servers: Mapping[str, ServerFacts]
) -> dict[str, HolderFacts]:
    """Return what migrations hold in addition to their servers, by UUID."""
    found = {}
    for row in rows:
        server = servers.get(row.server_uuid)
        properties = server.image_properties if server is not None else {}
        amounts = of_flavor(row.flavor, properties) if row.flavor else {}
        found[row.uuid] = HolderFacts(row.uuid, row.server_uuid, row.open, row.host, amounts)
    return found


def _after(connection: Transaction, facts: Facts) -> Facts:
    """Return the facts, updated by the record as it is after the look."""
    had, refused = audit_record.journal(connection, _strange(facts))
    journal = {place: frozenset(one for one in who if one) for place, who in had.items()}
    named = _named(facts) | {uuid for uuids in journal.values() for uuid in uuids}
    named |= {uuid for uuids in refused.values() for uuid in uuids}
    unknown = sorted(named - facts.servers.keys())
    others = _servers(audit_record.servers(connection, ServerFacts, unknown))
    migrated = migrations.holders(connection, unknown)
    missing = sorted({one.server_uuid for one in migrated} - facts.servers.keys() - others.keys())
    others |= _servers(audit_record.servers(connection, ServerFacts, missing))
    operations = audit_record.open_operations(connection, OpenOperation)
    busy = _servers_of(operations)
    attachments, shots = _attachments(connection), _snapshots(connection)
    # Not deleted, and not there before: created during the look.
    came = {uuid for uuid, server in others.items() if server.deleted_at is None}
    return dataclasses.replace(
        facts,
        servers={**facts.servers, **others},
        holders={**facts.holders, **_holders(migrated, {**facts.servers, **others})},
        busy=facts.busy | busy | came,
        left=facts.left | _left(connection),
        firewalls_due=facts.firewalls_due | filter_outbox.changing(connection),
        uploads={one.id: one for one in audit_record.uploads(connection, UploadFacts)},
        volumes=_still_there(connection, facts),
        backups=_unchanged_backups(connection, facts),
        busy_backups=facts.busy_backups | audit_record.busy(connection, ResourceType.BACKUP),
        busy_holders=facts.busy_holders | audit_record.busy_holders(connection),
        attachments=attachments,
        snapshots=shots,
        busy_volumes=facts.busy_volumes
        | _busy_volumes(connection)
        | {one.volume_id for one in set(facts.attachments) ^ set(attachments)}
        | {one.volume_id for one in set(facts.snapshots) ^ set(shots)},
        busy_images=facts.busy_images | audit_record.busy(connection, ResourceType.IMAGE),
        uploaded=ledger.begun_about(
            connection, ResourceType.IMAGE, InternalAction.STORE_IMAGE, _files(facts)
        ),
        vnets={(one.cluster, one.network_id): one for one in vnets.every(connection)},
        busy_networks=facts.busy_networks | audit_record.busy(connection, ResourceType.NETWORK),
        networked=ledger.begun_about(
            connection, ResourceType.NETWORK, InternalAction.MAKE_VNET, _vnets(facts)
        ),
        bands=vmids.bands(connection),
        journal=journal,
        refused=refused,
        template_places=frozenset(place for place, who in had.items() if None in who),
        deleted_on_request=_deleted_on_request(connection, others),
        released=_released(connection, others),
    )


def _files(facts: Facts) -> list[str]:
    """Return the images whose files were found."""
    found = facts.inventories.values()
    return sorted({file.image_id for one in found for file in one.image_files or ()})


def _still_there(connection: Transaction, facts: Facts) -> tuple[VolumeFacts, ...]:
    """Return the volumes that are as they were before the look, and those made since."""
    before = {one.id: one for one in facts.volumes}
    now = _volumes(connection)
    return tuple(one for one in now if before.get(one.id, one).vmid == one.vmid)


def _attachments(connection: Transaction) -> tuple[AttachmentFacts, ...]:
    return tuple(audit_record.rows(connection, "volume_attachments", AttachmentFacts))


def _snapshots(connection: Transaction) -> tuple[SnapshotFacts, ...]:
    return tuple(audit_record.rows(connection, "volume_snapshots", SnapshotFacts))


def _volumes(connection: Transaction) -> tuple[VolumeFacts, ...]:
    """Return what has a holder: volumes, and snapshots that are copies."""
    tables = ("volumes", "volume_snapshots")
    return tuple(
        one for table in tables for one in audit_record.rows(connection, table, VolumeFacts)
    )


def _backups(connection: Transaction) -> tuple[BackupFacts, ...]:
    return tuple(audit_record.rows(connection, "volume_backups", BackupFacts))


def _unchanged_backups(connection: Transaction, facts: Facts) -> tuple[BackupFacts, ...]:
    """Return the backups that are as they were before the look, and those made since."""
    before = {one.id: one for one in facts.backups}
    return tuple(one for one in _backups(connection) if before.get(one.id, one) == one)


def _left(connection: Transaction) -> frozenset[str]:
    """Return the consumers that hold what builds left on hosts, until it is removed."""
    plans = audit_record.open_plans(connection, (InternalAction.REMOVE_LEFT,))
    return frozenset(one.holder for one in plans if isinstance(one, LeftPlan))


def _busy_volumes(connection: Transaction) -> frozenset[str]:
    """Return the volumes, and those of the snapshots and backups, with an open operation."""
    busy = audit_record.busy(connection, ResourceType.VOLUME)
    shots = audit_record.busy(connection, ResourceType.SNAPSHOT)
    remade = frozenset(one.volume_id for one in audit_record.new_contents(connection))
    saved = audit_record.busy(connection, ResourceType.BACKUP)
    parts = snapshots.volumes_of(connection, shots) | backups.volumes_of(connection, saved)
    return busy | shots | remade | parts


def _vnets(facts: Facts) -> list[str]:
    """Return the networks whose vnets were found."""
    found = facts.inventories.values()
    return sorted({vnet.network_id for one in found for vnet in one.vnets or ()})


def _recorded(facts: Facts) -> set[Place]:
    servers = {server.place for server in facts.servers.values() if server.place}
    volumes = {(str(one.cluster), one.vmid) for one in facts.volumes if one.vmid is not None}
    return servers | volumes | {(one.cluster, one.vmid) for one in facts.templates}


def _strange(facts: Facts) -> set[Place]:
    """Return the places with something that the record doesn't explain."""
    found: set[Place] = set()
    for cluster, inventory in facts.inventories.items():
        found |= {(cluster, vm.vmid) for vm in inventory.vms}
        found |= {(cluster, volume.vmid) for volume in inventory.volumes}
    drives = {
        (cluster, one.vmid)
        for cluster, inventory in facts.inventories.items()
        for one in inventory.volumes
        if one.server_uuid
    }
    return (found - _recorded(facts)) | drives | _doubtful(facts)


def _doubtful(facts: Facts) -> set[Place]:
    """Return the places of VMs whose marks don't agree."""
    return {
        (cluster, vm.vmid)
        for cluster, inventory in facts.inventories.items()
        for vm in inventory.vms
        if vm.read and not vm.proven
    }


def _named(facts: Facts) -> set[str]:
    """Return the servers that anything names."""
    named: set[str | None] = set(facts.allocations or ())
    for inventory in facts.inventories.values():
        named |= {one.server_uuid for one in inventory.vms}
        named |= {one.server_uuid for one in inventory.volumes}
    named |= {one.server_uuid for one in facts.ports}
    named |= {one.server_uuid for one in facts.group_places}
    named |= {one.server_uuid for one in facts.reservations.values()}
    return {uuid for uuid in named if uuid is not None}


def _deleted_on_request(
    connection: Transaction, servers: Mapping[str, ServerFacts]
) -> frozenset[str]:
    found = audit_record.actions_on(connection, _deleted(servers), ("delete", *_LET_GO))
    # A VM that an operator unmanaged is never removed, whatever was asked before.
    return frozenset(uuid for uuid, actions in found.items() if actions == {"delete"})


def _released(connection: Transaction, servers: Mapping[str, ServerFacts]) -> frozenset[str]:
    return audit_record.done_on(connection, _deleted(servers), "release")


def _deleted(servers: Mapping[str, ServerFacts]) -> list[str]:
    return sorted(uuid for uuid, one in servers.items() if one.deleted_at is not None)
