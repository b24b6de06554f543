"""A conductor dies at any commit of any flow: another one takes over, and it ends as if not.

For every table of stages, and for every transaction that its run commits, once right before and
once right after: what was begun is gone on with from what is committed alone. And one that is only
slow, so that another one has ended all when it commits, changes nothing.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import ids
from common.context import RequestContext
from common.errors import StaleTransition, Unavailable
from common.messages.commands import (
    BackUpVolume,
    Build,
    Command,
    Copy,
    Destroy,
    GrowVolume,
    MakeVnet,
    MakeVolume,
    Mark,
    Move,
    Plug,
    PlugVolume,
    Power,
    PowerAction,
    RemoveBackup,
    RemoveImage,
    RemoveVnet,
    RemoveVolume,
    RetireTemplate,
    RetypeVolume,
    Shape,
    SnapshotVerb,
    SnapVolume,
    StoreImage,
    Swap,
)
from common.messages.facts import HaService, Inspection, StorageFacts
from common.messages.reports import (
    Category,
    CopiedDisk,
    Failure,
    MadeVolume,
    Moved,
    Outcome,
    VolumeSeen,
)
from common.resources import bulk_migrations, volumes
from common.resources.states import OPEN_STATES, InternalAction, ResourceType
from common.resources.volumes import VolumeAction
from conductor.endpoints.images import ImageEndpoint
from conductor.endpoints.networks.networks import NetworkEndpoint
from conductor.endpoints.volumes.backups import BackupEndpoint
from conductor.endpoints.volumes.snapshots import VolumeSnapshotEndpoint
from conductor.endpoints.volumes.volumes import VolumeEndpoint
from conductor.engine import stage_runner
from conductor.engine.cases import Cases
from conductor.engine.stages import Table
from conductor.images import cache_image, image_source, remove_image, remove_template
from conductor.plans import BulkPlan, CommandPlan, FollowPlan, Place, Plan
from conductor.rpc.images import ImageData, NewImage
from conductor.rpc.networks.networks import NewNetwork
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.interfaces import Attachment
from conductor.rpc.servers.manage import Adoption
from conductor.rpc.servers.server_volumes import AttachRequest
from conductor.rpc.servers.servers import (
    BlockDevice,
    CreateServers,
    NewServerImage,
    RebuildServer,
    RequestedNetwork,
)
from conductor.rpc.volumes.backups import NewBackup
from conductor.rpc.volumes.snapshots import NewVolumeSnapshot
from conductor.rpc.volumes.volumes import NewVolume, NewVolumeImage
from conductor.servers.bulk import begin_bulk
from conductor.servers.disks import begin_image
from conductor.servers.guest.begin_plug import PlugAcceptance
from conductor.servers.guest.begin_volume import VolumeAcceptance
from conductor.servers.manage import mark
from conductor.servers.manage.abandon import Abandoning
from conductor.servers.manage.begin_adopt import Acceptance
from conductor.servers.move import begin_evacuation, begin_live_migration, steer_migration
from conductor.servers.table import tables
from conductor.store.hosts import registry
from conductor.store.images import templates
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.ledger.operations import NewOperation
from conductor.store.networks import networks
from conductor.store.records import Operation
from conductor.store.servers import servers, vmids
from conductor.store.servers.migrations import OPEN as OPEN_MIGRATIONS
from conductor.store.volumes import volumes as volume_store
from conductor.volumes.snapshots import park_volume
from conductor.volumes.volume_types import VolumeTypes
from db import schema
from db.resources import about
from tests.functional.conductor.harness import IMAGE, Conductor, Died, Mortal, World, said

VOLUMES = schema.volumes
ADMIN = RequestContext(user_id="boss", project_id="admin", roles=["admin"], is_admin=True)
_OPEN = sa.select(1).where(schema.operations.c.state.in_(OPEN_STATES)).limit(1)
LOST = Failure(Category.UNKNOWN_OUTCOME, "The answer was lost.", host="pve1")
BROKEN = Failure(Category.AUTHORIZATION, "Permission check failed", host="pve1")
#: in a node that has no quorum; waiting does not help
OTHERS = Failure(Category.PROTECTED, "VNI 5000 of zone tenants is vnet blue's.")
NO_DRIVE = Failure(Category.AUTHORIZATION, "Permission denied.")


@dataclass
class Cloud:
    """Two conductors without threads, agents that do what they are told, and what they won't."""

    world: World
    mortal: Mortal
    heir: Conductor
    refused: set[type[Command]] = field(default_factory=set)
    cleans_up: bool = False
    """Whether an agent that refuses removes what it made."""
    stays: bool = False
    """Whether migrations leave VMs where they are."""
    silent: bool = False
    """Whether nothing is heard of how they ended."""
    snapshot_way: str = "online"
    """How the storage makes snapshots of volumes."""
    drive_fails: int = 0
    """The last attempt that can't put the config drive in where the VM has moved to."""
    nodes: dict[str, str] = field(default_factory=dict)
    """Where VMs are that were to be moved."""
    goal: str = "pve2"
    """The node that moves go to, unless they are undone."""
    made: int = 0
    vms: set[str] = field(default_factory=set)
    """Servers whose VM, or a part of it, is on a host."""

    def __post_init__(self) -> None:
        """Watch in which order things are given back."""
        subnet = networks.parse_subnet("vmbr0=10.0.0.0/24")
        self.world.conductor.store.run(lambda c: networks.ensure_subnet(c, subnet))
        release = self.world.placement.release

        def watched(uuid: str) -> None:
            assert uuid not in self.vms or self.claims_nothing(uuid), "the claim of a VM there"
            if uuid in self.world.placement.claims and self.unwinds(uuid):
                assert self.reserved(uuid) == (0, 0), "the claim is the last that goes"
            release(uuid)

        self.world.placement.release = watched  # type: ignore[method-assign]

    def claims_nothing(self, uuid: str) -> bool:
        """Whether its VM is parked, and has no disk of its own."""
        found = [one for one in self.world.rows(schema.servers) if one.uuid == uuid]
        return bool(found) and found[0].disk_gib == 0 and "shelv" in found[0].vm_state

    def reserved(self, uuid: str) -> tuple[int, int]:
        """VMIDs and ports of a server."""
        tables = schema.vmids, schema.ports
        found = [[one.server_uuid for one in self.world.rows(table)] for table in tables]
        return found[0].count(uuid), found[1].count(uuid)

    def unwinds(self, uuid: str) -> bool:
        """Whether its build is being undone."""
        rows = [one for one in self.world.rows(schema.operations) if one.resource_id == uuid]
        # A migration, which holds something too, has none.
        return bool(rows) and (rows[-1].action, rows[-1].state) == ("create", "unwinding")

    def server(self) -> Any:
        """A new server, active."""
        operation = self.build()
        self.work_off(self.heir, operation)
        return self.world.row(operation.server_uuid)

    def build(self, *volumes: BlockDevice) -> Operation:
        flavor = FlavorSnapshot("1", "m1.tiny", 1, 512, 1)
        with self.world.conductor.store.read() as connection:
            query = sa.select(schema.networks.c.id).where(schema.networks.c.bridge == "vmbr0")
            network = connection.scalars(query).one()
        wanted = (RequestedNetwork(network),)
        image = "" if any(one.boot for one in volumes) else IMAGE
        request = CreateServers(
            "web", flavor, image, networks=wanted, auto_network=False, volumes=volumes
        )
        (operation,) = self.world.conductor.accept.create(self.world.ctxt, request)[1]
        return operation

    def act(self, server: Any, action: str) -> Operation:
        operation = self.world.conductor.accept.act(self.world.ctxt, server.uuid, action)
        assert operation is not None
        return operation

    def resize(self, server: Any) -> Operation:
        flavor = FlavorSnapshot("2", "m1.larger", 4, 256, 3)
        return self.world.conductor.resizes.resize(self.world.ctxt, server.uuid, flavor)

    def rebuild(self, server: Any, image_id: str = IMAGE) -> Operation:
        request = RebuildServer(image_id, changes={"key_name": "new"})
        return self.world.conductor.rebuilds.rebuild(self.world.ctxt, server.uuid, request)

    def image(self, server: Any, backup_type: str | None = None) -> Operation:
        asked = NewServerImage("copy", backup_type=backup_type, rotation=1)
        conductor = self.world.conductor
        return begin_image.accept(conductor.cloud, self.world.ctxt, server.uuid, asked)[1]

    def insert(self, server: Any, action: str, plan: Plan) -> Operation:
        new = NewOperation(server.uuid, "p", action, "c1", 60, 60, plan=plan)
        return self.world.conductor.store.run(lambda c: ledger.insert(c, ADMIN, [new]))[0]

    def remember(self) -> Callable[[], None]:
        """Return what brings all back to what it is now."""
        back = self.world.remember()
        names = ("refused", "cleans_up", "stays", "silent", "nodes", "goal", "vms")
        kept = copy.deepcopy({name: getattr(self, name) for name in names})

        def restore() -> None:
            back()
            for name, value in copy.deepcopy(kept).items():
                setattr(self, name, value)
            # However long it takes, the agents are alive.
            self.world.beat()

        return restore

    # --- conductors

    def work_off(self, conductor: Conductor, first: Operation | None = None) -> None:
        """Work on one, and on all that is due, until nothing is open."""
        if first is not None:
            self._work(conductor, first, fresh=True)
        actions = conductor.runner._flows.keys()
        for _ in range(20):
            if not self._is_open():
                return
            self.world.make_due()
            due = conductor.store.run(
                lambda c: leases.due(c, conductor.cloud.name, 60, 100, actions)
            )
            if not due:
                return
            for operation in due:
                self._work(conductor, operation, fresh=False)
        raise AssertionError(self.world.rows(schema.operations))

    def _is_open(self) -> bool:
        """Whether any operation has not ended."""
        with self.world.conductor.store.read() as connection:
            return connection.execute(_OPEN).first() is not None

    def _work(self, conductor: Conductor, operation: Operation, *, fresh: bool) -> None:
        flow, sent = conductor.runner._flows[operation.action], self.world.compute.sent
        sent.clear()
        try:
            flow.resume(operation, fresh=fresh)
            # Another conductor may have sent some of its own meanwhile.
            mine = [command for _, command in sent if command.operation_id == operation.id]
            for command in mine:
                with conductor.store.read() as connection:
                    now = ledger.get(connection, command.operation_id)
                if now is not None and now.attempt == command.attempt:
                    assert now.stage in self._names(flow.table), "the command's stage is committed"
                    outcome = self._act(command)
                    flow.finished(now, outcome)
                    flow.finished(now, outcome)  # a report may come twice
        except StaleTransition:
            flow.overtaken(operation)
        except Unavailable:
            pass

    @staticmethod
    def _names(table: Table[Any] | Cases[Any]) -> set[str]:
        return {one.name for one in (*table.stages, *table.undos)}

    def _act(self, command: Command) -> Outcome:
        """What the agent does with it, and its last word."""
        uuid = command.resource_id
        if isinstance(command, Destroy) and uuid in self.vms:
            claimed = self.world.placement.claims.get(uuid) or self.claims_nothing(uuid)
            assert claimed, "a VM needs its claim"
            assert self.reserved(uuid)[0] == 1, "a VM needs its VMID"
            self.vms.discard(uuid)
        if type(command) is Build:
            self.vms.add(uuid)
        if isinstance(command, Mark) and not command.on:
            self.vms.discard(uuid)  # it is somebody else's
        if type(command) in self.refused and _makes(command, self.goal):
            if self.cleans_up:
                self.vms.discard(uuid)
            failure = OTHERS if isinstance(command, MakeVnet) else BROKEN
            return said(command, ok=False, gone=self.cleans_up, failure=failure)
        if isinstance(command, Move):
            return self._moved(command)
        if isinstance(command, Plug | PlugVolume) and self.silent and command.attempt == 1:
            return said(command, ok=False, failure=LOST)
        removals = (
            Destroy | RetireTemplate | RemoveImage | RemoveVnet | RemoveVolume | RemoveBackup
        )
        gone = isinstance(command, removals) or (isinstance(command, Mark) and not command.on)
        if isinstance(command, SnapVolume):
            gone = command.verb is SnapshotVerb.REMOVE
        if isinstance(command, RetypeVolume):
            return self._retyped(command)
        if isinstance(command, BackUpVolume):
            archive = f"safe:backup/vzdump-qemu-{command.placed.vmid}-1.vma.zst"
            return said(command, volume=MadeVolume(archive, 4096))
        if isinstance(command, MakeVolume | GrowVolume):
            size, volid = command.size_gib << 30, f"data:vm-{command.placed.vmid}-disk-0"
            made = MadeVolume(volid, size, self.snapshot_way)
            return said(command, volume=made)
        copied = None
        if isinstance(command, Copy):
            copied = CopiedDisk(f"local:base-{command.placed.vmid}-disk-0", "raw", 5, 1 << 30)
        return said(command, gone=gone, power_state=0 if gone else 1, disk=copied)

    def _moved(self, command: Move) -> Outcome:
        """Where the agent sees the VM after it; settling moves nothing."""
        at = self.nodes.setdefault(command.resource_id, command.placed.node)
        if not command.settle and not self.stays:
            at = self.nodes[command.resource_id] = command.target_node
        if self.silent and not command.settle:
            return said(command, ok=False, failure=BROKEN)
        if command.attempt <= self.drive_fails:
            return Moved(False, NO_DRIVE, 1, at)
        return Moved(True, None, 1, at)

    def _retyped(self, command: RetypeVolume) -> Outcome:
        """Where the agent sees the volume after it; settling moves nothing."""
        storage, _, name = command.volid.partition(":")
        at = self.nodes.setdefault(command.resource_id, storage)
        if not command.settle:
            at = self.nodes[command.resource_id] = command.storage
        if self.silent and not command.settle:
            return said(command, ok=False, failure=BROKEN)
        return VolumeSeen(True, volume=MadeVolume(f"{at}:{name}", 2 << 30, self.snapshot_way))

    # --- what became of it

    def ending(self, operation: Operation) -> dict[str, Any]:
        """All that there is of a resource, as far as two runs must have it alike."""
        if operation.resource_type == ResourceType.SERVER:
            return self._server(operation.server_uuid)
        with self.world.conductor.store.read() as connection:
            now = ledger.get(connection, operation.id)
        assert now is not None
        if isinstance(now.plan, BulkPlan):
            moves = now.plan.moves
            return {
                "operation": (now.state, now.message),
                "moves": [(one.state, one.way, one.tries) for one in moves],
                "servers": [self._server(one.server_uuid) for one in moves],
            }
        vmids = [one.reason for one in self.world.rows(schema.vmids)]
        return {
            "operation": (now.state, now.attempt),
            "others": sorted(
                (one.action, one.state)
                for one in self.world.rows(schema.operations)
                if one.resource_id == operation.resource_id
            ),
            "image": [
                (one.status, one.locations.keys())
                for one in self.world.rows(schema.images)
                if one.id == operation.resource_id
            ],
            "networks": [(one.status, one.vni) for one in self.world.rows(schema.networks)],
            "vnets": [(one.state, one.vni) for one in self.world.rows(schema.vnets)],
            "volumes": self.volumes(),
            "places": [
                (one.storage, str(one.volid).split(":")[0], one.new_type_id, one.fault)
                for one in self.world.rows(VOLUMES)
            ],
            "made": [
                (one.status, one.min_disk_gib)
                for one in self.world.rows(schema.images)
                if one.project_id is not None
            ],
            "snapshots": [
                (one.status, one.vmid is not None)
                for one in self.world.rows(schema.volume_snapshots)
            ],
            "templates": [one.image_id for one in self.world.rows(schema.templates)],
            "vmids": vmids,
        }

    def volumes(self) -> list[Any]:
        """What becomes of volumes, and how many attachments there are."""
        attached = [one.status for one in self.world.rows(schema.volume_attachments)]
        rows = self.world.rows(VOLUMES)
        found = sorted((one.status, one.size_gib, one.vmid is None) for one in rows)
        return [*found, attached]

    def _amounts(self, uuid: str) -> Any:
        held = self.world.placement.allocations_of(uuid).by_provider
        return list(held.values())

    def copies(self) -> int:
        """How many templates are, or were, of images of servers."""
        return sum(one.image_id != IMAGE for one in self.world.rows(schema.templates))

    def _server(self, uuid: str) -> dict[str, Any]:
        row, columns = self.world.row(uuid), schema.operations.c
        with self.world.conductor.store.read() as connection:
            query = sa.select(columns.action, columns.state).where(
                about(ResourceType.SERVER, uuid)
            )
            operations = [tuple(one) for one in connection.execute(query.order_by(columns.id))]
        own = [one for one in self.world.rows(schema.vmids) if one.server_uuid == uuid]
        return {
            "volumes": self.volumes(),
            "server": (row.vm_state, row.task_state, row.power_state, row.host, row.node),
            "record": (len(row.addresses), row.vmid is None, row.deleted_at is None),
            "operations": operations,
            "ports": sum(one.server_uuid == uuid for one in self.world.rows(schema.ports)),
            "vmids": [one.state for one in own],
            "claim": self.world.placement.claims.get(uuid),
            "size": (row.vcpus, row.memory_mib, row.disk_gib, row.flavor["vcpus"]),
            "amounts": self._amounts(uuid),
            "made_of": (row.image_id, row.key_name),
            "images": [
                (one.status, one.home)
                for one in self.world.rows(schema.images)
                if one.server_uuid == uuid
            ],
            "copies": self.copies(),
            "others": sum(one != uuid for one in self.world.placement.claims),
            "resizes": [
                one.status for one in self.world.rows(schema.migrations) if one.server_uuid == uuid
            ],
        }


def _after(first: str, action: str) -> Callable[[Cloud], Operation]:
    """Begins an action on a server on which another one was carried out."""

    def begin(cloud: Cloud) -> Operation:
        server = cloud.server()
        cloud.work_off(cloud.heir, cloud.act(server, first))
        return cloud.act(server, action)

    return begin


def _makes(command: Command, goal: str) -> bool:
    """Whether it makes something, and doesn't undo it; ``goal``: where moves go."""
    if isinstance(command, Move):
        return not command.settle and command.target_node == goal
    if isinstance(command, RetypeVolume):
        return not command.settle
    if isinstance(command, Power):
        return command.action == PowerAction.START
    if isinstance(command, SnapVolume):
        return command.verb in (SnapshotVerb.TAKE, SnapshotVerb.REVERT)
    if isinstance(command, Shape):
        return command.size.vcpus > command.former.vcpus
    return bool(getattr(command, "on", True))


def _resize(cloud: Cloud) -> Operation:
    return cloud.resize(cloud.server())


def _offload(cloud: Cloud) -> Operation:
    """It was to keep its claim when it was shelved."""
    conf = cloud.heir.cloud.conf
    conf.set_override("shelved_offload_time", -1, group="conductor")
    server = cloud.server()
    cloud.work_off(cloud.heir, cloud.act(server, "shelve"))
    conf.clear_override("shelved_offload_time", group="conductor")
    return cloud.act(server, "shelveOffload")


def _unshelve_elsewhere(cloud: Cloud) -> Operation:
    """Its own host takes no more."""
    operation = _after("shelve", "unshelve")(cloud)
    cloud.world.scheduler.hosts.remove("pve1")
    return operation


def _unshelve_nowhere(cloud: Cloud) -> Operation:
    operation = _after("shelve", "unshelve")(cloud)
    cloud.world.scheduler.hosts.clear()
    return operation


def _overtaken_unshelve(cloud: Cloud) -> Operation:
    operation = _unshelve_elsewhere(cloud)
    cloud.act(cloud.world.row(operation.server_uuid), "delete")
    return operation


def _unshelve_badly(cloud: Cloud) -> Operation:
    """It can't be started, and is stopped again."""
    operation = _after("shelve", "unshelve")(cloud)
    cloud.refused.add(Power)
    return operation


def _image(cloud: Cloud) -> Operation:
    return cloud.image(cloud.server())


def _backup(cloud: Cloud) -> Operation:
    """One backup is there already, and one is kept."""
    server = cloud.server()
    cloud.work_off(cloud.heir, cloud.image(server, "daily"))
    return cloud.image(cloud.world.row(server.uuid), "daily")


def _image_as_backup(cloud: Cloud) -> Operation:
    return cloud.image(cloud.server(), "weekly")


def _image_overtaken(cloud: Cloud) -> Operation:
    operation = _image(cloud)
    cloud.act(cloud.world.row(operation.server_uuid), "delete")
    return operation


def _live(
    cloud: Cloud, *, stays: bool = False, silent: bool = False, drive_fails: int = 0
) -> Operation:
    server = cloud.server()
    cloud.drive_fails = drive_fails
    cloud.stays, cloud.silent = stays, silent
    return begin_live_migration.accept(
        cloud.world.conductor.cloud, cloud.world.ctxt, server.uuid, None, None
    )


def _aborted(cloud: Cloud) -> Operation:
    """It is aborted before it began."""
    operation = _live(cloud)
    conductor, ctxt = cloud.world.conductor.cloud, cloud.world.ctxt
    number = cloud.world.rows(schema.migrations)[-1].id
    steer_migration.steer(conductor, ctxt, operation.server_uuid, number, abort=True)
    return operation


def _end_resize(action: str) -> Callable[[Cloud], Operation]:
    def begin(cloud: Cloud) -> Operation:
        operation = _resize(cloud)
        cloud.work_off(cloud.heir, operation)
        resizes = cloud.world.conductor.resizes
        return resizes.end(cloud.world.ctxt, operation.server_uuid, action)

    return begin


def _rebuild(cloud: Cloud) -> Operation:
    return cloud.rebuild(cloud.server())


def _rescue(cloud: Cloud, image_id: str = IMAGE) -> Operation:
    uuid, rescues = cloud.server().uuid, cloud.world.conductor.rescues
    return rescues.rescue(cloud.world.ctxt, uuid, image_id, "secret")


def _unrescue(cloud: Cloud) -> Operation:
    operation = _rescue(cloud)
    cloud.work_off(cloud.heir, operation)
    return cloud.act(cloud.world.row(operation.server_uuid), "unrescue")


def _resize_without_room(cloud: Cloud) -> Operation:
    """No host has any, which is found out before any agent acts."""
    operation = _resize(cloud)
    cloud.world.scheduler.hosts.clear()
    return operation


def _resize_elsewhere(cloud: Cloud) -> Operation:
    operation = _resize(cloud)
    cloud.world.scheduler.hosts.remove("pve1")
    return operation


def _migrate(cloud: Cloud) -> Operation:
    resizes = cloud.world.conductor.resizes
    return resizes.migrate(cloud.world.ctxt, cloud.server().uuid, None)


def _migrate_nowhere(cloud: Cloud) -> Operation:
    operation = _migrate(cloud)
    cloud.world.scheduler.hosts.remove("pve2")
    return operation


def _end_move(move: Callable[[Cloud], Operation], action: str) -> Callable[[Cloud], Operation]:
    """Begins what ends a move to the other host."""

    def begin(cloud: Cloud) -> Operation:
        operation = move(cloud)
        cloud.work_off(cloud.heir, operation)
        cloud.goal = "pve1"
        resizes = cloud.world.conductor.resizes
        return resizes.end(cloud.world.ctxt, operation.server_uuid, action)

    return begin


def _delete_moved(cloud: Cloud) -> Operation:
    operation = _migrate(cloud)
    cloud.work_off(cloud.heir, operation)
    return cloud.act(cloud.world.row(operation.server_uuid), "delete")


def _overtaken_live(cloud: Cloud) -> Operation:
    operation = _live(cloud)
    cloud.act(cloud.world.row(operation.server_uuid), "delete")
    return operation


def _overtaken_move(cloud: Cloud) -> Operation:
    operation = _migrate(cloud)
    cloud.act(cloud.world.row(operation.server_uuid), "delete")
    return operation


def _refused(
    cloud: Cloud,
    kind: type[Command],
    begin: Callable[[Cloud], Operation],
    *,
    cleans_up: bool = False,
) -> Operation:
    operation = begin(cloud)
    cloud.refused.add(kind)
    cloud.cleans_up = cleans_up
    return operation


def _without_image(cloud: Cloud) -> Operation:
    """Its image goes right after it was asked for, which is found out before any agent acts."""
    operation = cloud.build()
    server = schema.servers.c.uuid == operation.server_uuid
    change = schema.servers.update().where(server).values(image_id=ids.named("image", "gone"))
    cloud.world.conductor.store.run(lambda c: c.execute(change))
    return dataclasses.replace(operation, begun_on=None)


def _overtaken(cloud: Cloud) -> Operation:
    operation = cloud.build()
    cloud.act(cloud.world.row(operation.server_uuid), "delete")
    return operation


def _adopt(cloud: Cloud) -> Operation:
    cloud.made += 1
    vmid = 500 + cloud.made
    uuid = ids.named("adopted", str(vmid))
    cloud.world.compute.vms[vmid] = Inspection(
        vmid, True, "pve1", name="db", vcpus=1, memory_mib=512, disk_gib=1, smbios_uuid=uuid
    )
    acceptance = Acceptance(cloud.world.conductor.cloud)
    return acceptance.adopt(ADMIN, Adoption("sim1", vmid, "p", "u"))[1]


def _attach(cloud: Cloud) -> Operation:
    server = cloud.server()
    plugs = PlugAcceptance(cloud.world.conductor.cloud)
    network = cloud.world.rows(schema.ports)[-1].network_id
    return plugs.attach(cloud.world.ctxt, server.uuid, Attachment(network))[0]


def _detach(cloud: Cloud) -> Operation:
    server = cloud.server()
    plugs = PlugAcceptance(cloud.world.conductor.cloud)
    port = cloud.world.rows(schema.ports)[-1]
    return plugs.detach(cloud.world.ctxt, server.uuid, port.id)


def _unheard(cloud: Cloud, begin: Callable[[Cloud], Operation]) -> Operation:
    """Nobody hears what became of the first attempt."""
    operation = begin(cloud)
    cloud.silent = True
    return operation


def _reap(cloud: Cloud) -> Operation:
    server = cloud.server()
    cloud.work_off(cloud.heir, cloud.act(server, "delete"))
    place = Place("pve1", None, "sim1", "pve1", server.vmid)
    operation = cloud.insert(server, InternalAction.REAP, CommandPlan(place, Destroy()))
    held = cloud.world.conductor.store.run(
        lambda c: vmids.hold(c, "sim1", server.vmid, server.uuid, operation.id)
    )
    assert held
    return operation


def _follow(cloud: Cloud) -> Operation:
    server = cloud.server()
    cloud.world.compute.vms[server.vmid] = Inspection(
        server.vmid, True, "pve2", power_state=1, ours=True, marked_by=server.uuid
    )
    seen = Place(cluster="sim1", node="pve2", vmid=server.vmid)
    return cloud.insert(server, InternalAction.FOLLOW, FollowPlan(seen))


def _evacuate(cloud: Cloud, ends_as: str = "started") -> Operation:
    """The manager gives its node up, and then has it elsewhere, or in error."""
    server = cloud.server()
    cloud.world.beat(lost="pve1")
    node = "pve2" if ends_as == "started" else "pve1"
    cloud.world.compute.services[server.vmid] = [
        HaService(server.vmid, "pve1", "started", "started", online=False),
        HaService(server.vmid, "pve1", "fence", "started", online=False),
        HaService(server.vmid, node, ends_as, "started", online=node == "pve2"),
    ]
    cloud.world.compute.vms[server.vmid] = Inspection(
        server.vmid, True, node, power_state=1, ours=True, marked_by=server.uuid
    )
    return begin_evacuation.accept(cloud.world.conductor.cloud, ADMIN, server.uuid, None)


def _overtaken_evacuation(cloud: Cloud) -> Operation:
    operation = _evacuate(cloud)
    cloud.act(cloud.world.row(operation.server_uuid), "delete")
    return operation


def _forget(cloud: Cloud) -> Operation:
    abandoning = Abandoning(cloud.world.conductor.cloud)
    server = cloud.server()
    cloud.vms.discard(server.uuid)
    return abandoning.begin(ADMIN, server.uuid, None, force=False)


def _mark(cloud: Cloud) -> Operation:
    return mark.begin(cloud.world.conductor.cloud, ADMIN, cloud.server().uuid)


def _remove_template(cloud: Cloud) -> Operation:
    conductor = cloud.world.conductor

    def work(connection: sa.Connection) -> Operation | None:
        facts, _ = registry.host(connection, "pve1")
        template = templates.reserve(connection, facts, "an-image-that-went")
        assert template is not None
        known = templates.get(connection, "sim1", template.vmid)
        assert known is not None
        templates.mark(connection, known, templates.RETIRING)
        where = Place("pve1", None, "sim1", "pve1", template.vmid)
        return remove_template.begin(connection, conductor.cloud, where, known.image_id)

    operation = conductor.store.run(work)
    assert operation is not None
    return operation


def _cache_image(cloud: Cloud) -> Operation:
    conductor = cloud.world.conductor

    def work(connection: sa.Connection) -> Operation | None:
        facts, _ = registry.host(connection, "pve1")
        image = image_source.image(connection, IMAGE, facts)
        assert image is not None
        return cache_image.begin(connection, conductor.cloud, ADMIN, facts, image)

    operation = conductor.store.run(work)
    assert operation is not None
    return operation


def _store_image(cloud: Cloud) -> Operation:
    """What a user uploaded goes to the cluster's one shared storage."""
    conductor, ctxt = cloud.world.conductor, cloud.world.ctxt
    endpoint = ImageEndpoint(conductor.cloud)
    new = NewImage("p", disk_format="qcow2", container_format="bare")
    image_id = endpoint.create_image(ctxt, new)
    data = ImageData("http://api/spool", "secret", 5, 1 << 30, "qcow2", "0" * 32, "0" * 128)
    endpoint.save_image(ctxt, image_id, data)
    return _operation_on(cloud, image_id, InternalAction.STORE_IMAGE)


def _operation_on(cloud: Cloud, image_id: str, action: InternalAction) -> Operation:
    rows = cloud.world.rows(schema.operations)
    mine = [one.id for one in rows if (one.resource_id, one.action) == (image_id, action)]
    with cloud.world.conductor.store.read() as connection:
        found = ledger.get(connection, mine[-1])
    assert found is not None
    return found


def _overtaken_store(cloud: Cloud) -> Operation:
    operation = _store_image(cloud)
    conductor = cloud.world.conductor.cloud
    remove_image.delete(conductor, cloud.world.ctxt, operation.resource_id)
    return operation


def _remove_image(cloud: Cloud) -> Operation:
    operation = _store_image(cloud)
    cloud.work_off(cloud.heir, operation)
    conductor = cloud.world.conductor.cloud
    remove_image.delete(conductor, cloud.world.ctxt, operation.resource_id)
    return _operation_on(cloud, operation.resource_id, InternalAction.REMOVE_IMAGE)


def _make_vnet(cloud: Cloud) -> Operation:
    """The cluster gets the vnet of a network."""
    conductor = cloud.world.conductor.cloud
    conductor.conf.set_override("tenant_vnets", ["*:tenants:5000-5009"], "networks")
    endpoint = NetworkEndpoint(conductor)
    [network_id] = endpoint.create_networks(cloud.world.ctxt, [NewNetwork("p")])
    return _operation_on(cloud, network_id, InternalAction.MAKE_VNET)


def _overtaken_vnet(cloud: Cloud) -> Operation:
    operation = _make_vnet(cloud)
    endpoint = NetworkEndpoint(cloud.world.conductor.cloud)
    endpoint.delete_network(cloud.world.ctxt, operation.resource_id)
    return operation


def _remove_vnet(cloud: Cloud) -> Operation:
    operation = _make_vnet(cloud)
    cloud.work_off(cloud.heir, operation)
    endpoint = NetworkEndpoint(cloud.world.conductor.cloud)
    endpoint.delete_network(cloud.world.ctxt, operation.resource_id)
    return _operation_on(cloud, operation.resource_id, InternalAction.REMOVE_VNET)


def _create_volume(cloud: Cloud) -> Operation:
    cloud.world.storages.append(StorageFacts("data", "rbd", True, True, 1000, 900, ("images",)))
    cloud.world.beat()
    made = VolumeEndpoint(cloud.world.conductor.cloud).create_volume(
        cloud.world.ctxt, NewVolume("p", 2)
    )
    return _operation_on(cloud, made, VolumeAction.CREATE)


def _volume(cloud: Cloud) -> str:
    """One that is available."""
    operation = _create_volume(cloud)
    cloud.work_off(cloud.heir, operation)
    return operation.resource_id


def _delete_volume(cloud: Cloud) -> Operation:
    made = _volume(cloud)
    endpoint = VolumeEndpoint(cloud.world.conductor.cloud)
    endpoint.delete_volume(cloud.world.ctxt, made, force=False)
    return _operation_on(cloud, made, VolumeAction.DELETE)


def _extend_volume(cloud: Cloud) -> Operation:
    made = _volume(cloud)
    endpoint = VolumeEndpoint(cloud.world.conductor.cloud)
    endpoint.extend_volume(cloud.world.ctxt, made, 5, in_use=False)
    return _operation_on(cloud, made, VolumeAction.EXTEND)


def _retype_volume(cloud: Cloud, *, silent: bool = False) -> Operation:
    """A volume goes to another storage; ``silent``: nobody hears that it has."""
    cloud.silent = silent
    other = StorageFacts("other", "lvmthin", False, True, 1000, 100, ("images",))
    cloud.world.storages.append(other)
    made = _volume(cloud)
    VolumeTypes(cloud.world.conductor.cloud).follow()
    endpoint = VolumeEndpoint(cloud.world.conductor.cloud)
    type_id = ids.named("volume_type", "other")
    endpoint.retype_volume(cloud.world.ctxt, made, type_id, may_move=True)
    return _operation_on(cloud, made, VolumeAction.RETYPE)


def _upload_volume(cloud: Cloud) -> Operation:
    made = _volume(cloud)
    endpoint = VolumeEndpoint(cloud.world.conductor.cloud)
    endpoint.upload_volume(cloud.world.ctxt, made, NewVolumeImage("golden"))
    return _operation_on(cloud, made, VolumeAction.UPLOAD)


def _overtaken_upload(cloud: Cloud) -> Operation:
    """The image is deleted while it is made."""
    operation = _upload_volume(cloud)
    (image,) = [one for one in cloud.world.rows(schema.images) if one.project_id is not None]
    remove_image.delete(cloud.heir.cloud, ADMIN, image.id)
    return operation


def _snapshot(cloud: Cloud, *, way: str = "online") -> Operation:
    """A snapshot of a volume is taken: in its holder, or as a copy."""
    cloud.snapshot_way = way
    volume_id = _volume(cloud)
    endpoint = VolumeSnapshotEndpoint(cloud.world.conductor.cloud)
    made = endpoint.create_volume_snapshot(cloud.world.ctxt, NewVolumeSnapshot(volume_id))
    return _operation_on(cloud, made, VolumeAction.TAKE_SNAPSHOT)


def _remove_snapshot(cloud: Cloud, *, way: str = "online") -> Operation:
    operation = _snapshot(cloud, way=way)
    cloud.work_off(cloud.heir, operation)
    endpoint = VolumeSnapshotEndpoint(cloud.world.conductor.cloud)
    endpoint.delete_volume_snapshot(cloud.world.ctxt, operation.resource_id)
    return _operation_on(cloud, operation.resource_id, VolumeAction.DELETE_SNAPSHOT)


def _cascade(cloud: Cloud) -> Operation:
    """The last snapshot goes, and its volume with it."""
    operation = _snapshot(cloud)
    cloud.work_off(cloud.heir, operation)
    (volume,) = cloud.world.rows(VOLUMES)
    endpoint = VolumeEndpoint(cloud.world.conductor.cloud)
    endpoint.delete_volume(cloud.world.ctxt, volume.id, force=False, cascade=True)
    return _operation_on(cloud, operation.resource_id, VolumeAction.DELETE_SNAPSHOT)


def _revert_volume(cloud: Cloud) -> Operation:
    operation = _snapshot(cloud)
    cloud.work_off(cloud.heir, operation)
    (volume,) = cloud.world.rows(VOLUMES)
    endpoint = VolumeSnapshotEndpoint(cloud.world.conductor.cloud)
    endpoint.revert_volume(cloud.world.ctxt, volume.id, operation.resource_id)
    return _operation_on(cloud, volume.id, VolumeAction.REVERT)


def _back_up(cloud: Cloud) -> Operation:
    made = _volume(cloud)
    cloud.world.storages.append(StorageFacts("safe", "nfs", True, True, 1000, 900, ("backup",)))
    cloud.world.beat()
    endpoint = BackupEndpoint(cloud.world.conductor.cloud)
    backup_id = endpoint.create_backup(cloud.world.ctxt, NewBackup(made))
    return _operation_on(cloud, backup_id, VolumeAction.BACK_UP)


def _backed_up(cloud: Cloud) -> str:
    operation = _back_up(cloud)
    cloud.work_off(cloud.heir, operation)
    return operation.resource_id


def _remove_backup(cloud: Cloud) -> Operation:
    backup_id = _backed_up(cloud)
    endpoint = BackupEndpoint(cloud.world.conductor.cloud)
    endpoint.delete_backup(cloud.world.ctxt, backup_id, force=False)
    return _operation_on(cloud, backup_id, VolumeAction.DELETE_BACKUP)


def _restore_backup(cloud: Cloud) -> Operation:
    """In place of what its volume has."""
    backup_id = _backed_up(cloud)
    (volume,) = cloud.world.rows(VOLUMES)
    endpoint = BackupEndpoint(cloud.world.conductor.cloud)
    endpoint.restore_backup(cloud.world.ctxt, backup_id, volume.id, None)
    return _operation_on(cloud, volume.id, VolumeAction.RESTORE)


def _overtaken_restore(cloud: Cloud) -> Operation:
    """The volume is deleted by force meanwhile."""
    operation = _restore_backup(cloud)
    endpoint = VolumeEndpoint(cloud.world.conductor.cloud)
    endpoint.delete_volume(cloud.world.ctxt, operation.resource_id, force=True)
    return operation


def _park_volume(cloud: Cloud) -> Operation:
    made = _volume(cloud)
    conductor = cloud.world.conductor.cloud

    def work(connection: sa.Connection) -> Operation:
        row = volume_store.locked(connection, made, None)
        return park_volume.begin(connection, conductor, cloud.world.ctxt, row)

    return conductor.store.run(work)


def _attach_volume(cloud: Cloud) -> Operation:
    server, made = cloud.server(), _volume(cloud)
    plugs = VolumeAcceptance(cloud.world.conductor.cloud)
    return plugs.attach(cloud.world.ctxt, server.uuid, AttachRequest(made))[0]


def _detach_volume(cloud: Cloud) -> Operation:
    operation = _attach_volume(cloud)
    cloud.work_off(cloud.heir, operation)
    plugs = VolumeAcceptance(cloud.world.conductor.cloud)
    (volume,) = cloud.world.rows(VOLUMES)
    return plugs.detach(cloud.world.ctxt, operation.server_uuid, volume.id)


def _boot(cloud: Cloud) -> Operation:
    """A server from a volume that is made with it, and one that is there beside it."""
    there = _volume(cloud)
    root = BlockDevice(size_gib=3, image_id=IMAGE, boot=True, delete_on_termination=True)
    return cloud.build(root, BlockDevice(there))


def _overtaken_boot(cloud: Cloud) -> Operation:
    operation = _boot(cloud)
    cloud.act(cloud.world.row(operation.server_uuid), "delete")
    return operation


def _boot_without_image(cloud: Cloud) -> Operation:
    """The image goes before the volume is begun."""
    operation = _boot(cloud)
    change = VOLUMES.update().where(VOLUMES.c.size_gib == 3).values(image_id=ids.new_uuid())
    cloud.world.conductor.store.run(lambda c: c.execute(change))
    return operation


def _delete_boot(cloud: Cloud) -> Operation:
    operation = _boot(cloud)
    cloud.work_off(cloud.heir, operation)
    return cloud.act(cloud.world.row(operation.server_uuid), "delete")


def _booted(cloud: Cloud) -> Any:
    """A server that boots from a volume."""
    operation = _boot(cloud)
    cloud.work_off(cloud.heir, operation)
    return cloud.world.row(operation.server_uuid)


def _rebuild_booted(cloud: Cloud, *, reimages: bool) -> Operation:
    """Its volume is made of another image, or stays as it is."""
    server = _booted(cloud)
    change = VOLUMES.update().where(VOLUMES.c.size_gib == 3)
    values = {"image_metadata": {"image_id": ids.named("image", "before")}}
    cloud.world.conductor.store.run(lambda c: c.execute(change.values(**values)))
    request = RebuildServer(IMAGE, changes={"key_name": "new"}, reimages=reimages)
    return cloud.world.conductor.rebuilds.rebuild(cloud.world.ctxt, server.uuid, request)


def _rebuild_volume(cloud: Cloud) -> Operation:
    return _rebuild_booted(cloud, reimages=True)


def _rebuild_beside_volume(cloud: Cloud) -> Operation:
    return _rebuild_booted(cloud, reimages=False)


def _unshelve_booted(cloud: Cloud) -> Operation:
    server = _booted(cloud)
    cloud.work_off(cloud.heir, cloud.act(server, "shelve"))
    return cloud.act(cloud.world.row(server.uuid), "unshelve")


def _reimage(cloud: Cloud) -> Operation:
    made = _volume(cloud)
    endpoint = VolumeEndpoint(cloud.world.conductor.cloud)
    endpoint.reimage_volume(cloud.world.ctxt, made, IMAGE, reserved=False)
    return _operation_on(cloud, made, VolumeAction.REIMAGE)


def _having_volume(cloud: Cloud) -> Any:
    """A server that has a volume."""
    operation = _attach_volume(cloud)
    cloud.work_off(cloud.heir, operation)
    return cloud.world.row(operation.server_uuid)


def _shelved_with_volume(cloud: Cloud) -> Any:
    server = _having_volume(cloud)
    cloud.work_off(cloud.heir, cloud.act(server, "shelve"))
    return cloud.world.row(server.uuid)


def _unshelve_with_volume(cloud: Cloud) -> Operation:
    """Its own host takes no more: it moves with its volume."""
    operation = cloud.act(_shelved_with_volume(cloud), "unshelve")
    cloud.world.scheduler.hosts.remove("pve1")
    return operation


def _attach_to_shelved(cloud: Cloud) -> Operation:
    server, made = cloud.server(), _volume(cloud)
    cloud.work_off(cloud.heir, cloud.act(server, "shelve"))
    plugs = VolumeAcceptance(cloud.world.conductor.cloud)
    return plugs.attach(cloud.world.ctxt, server.uuid, AttachRequest(made))[0]


def _detach_from_shelved(cloud: Cloud) -> Operation:
    server = _shelved_with_volume(cloud)
    plugs = VolumeAcceptance(cloud.world.conductor.cloud)
    (volume,) = cloud.world.rows(VOLUMES)
    return plugs.detach(cloud.world.ctxt, server.uuid, volume.id)


def _live_with_volume(cloud: Cloud) -> Operation:
    server = _having_volume(cloud)
    return begin_live_migration.accept(
        cloud.world.conductor.cloud, cloud.world.ctxt, server.uuid, None, None
    )


def _drain(cloud: Cloud) -> Operation:
    """Of a server that is stopped: it is moved, and its migration is confirmed."""
    conductor = cloud.world.conductor
    cloud.world.beat()  # the stories of one run take longer than an agent may be silent
    enabled = schema.services.update().values(disabled=False)
    conductor.store.run(lambda c: c.execute(enabled))
    cloud.work_off(cloud.heir, cloud.act(cloud.server(), "stop"))
    return begin_bulk.drain(conductor.cloud, ADMIN, "pve1", 1, live_only=False)


def _rebalance(cloud: Cloud) -> Operation:
    move = bulk_migrations.Move(cloud.server().uuid, "web", "pve1", target="pve2")
    return begin_bulk.rebalance(cloud.world.conductor.cloud, ADMIN, [move], 2)


VOLUME_ENDS: dict[str, dict[str, list[Any]]] = {
    VolumeAction.CREATE: {
        "well": [("available", 2, False), []],
        "in vain": [("error", 2, True), []],
    },
    VolumeAction.DELETE: {"well": [[]]},
    VolumeAction.EXTEND: {
        "well": [("available", 5, False), []],
        "in vain": [("error_extending", 2, False), []],
    },
    VolumeAction.RETYPE: {
        how: [("available", 2, False), []]
        for how in ("well", "badly", "well, though nothing was heard")
    },
    VolumeAction.UPLOAD: {
        how: [("available", 2, False), []] for how in ("well", "badly", "overtaken by a delete")
    },
    VolumeAction.TAKE_SNAPSHOT: {
        "well": [("available", 2, False), []],
        "well, as a copy": [("available", 2, False), []],
        "in vain": [("available", 2, False), []],
        "in vain, as a copy": [("available", 2, False), []],
    },
    VolumeAction.DELETE_SNAPSHOT: {
        "well": [("available", 2, False), []],
        "well, of a copy": [("available", 2, False), []],
        "well, with its volume": [[]],
    },
    VolumeAction.REVERT: {
        "well": [("available", 2, False), []],
        "in vain": [("error", 2, False), []],
    },
    VolumeAction.REIMAGE: {
        "well": [("available", 2, False), []],
        "in vain": [("error", 2, False), []],
    },
    VolumeAction.BACK_UP: {
        "well": [("available", 2, False), []],
        "in vain": [("available", 2, False), []],
    },
    VolumeAction.DELETE_BACKUP: {
        "well": [("available", 2, False), []],
    },
    VolumeAction.RESTORE: {
        "well": [("available", 2, False), []],
        "in vain": [("error_restoring", 2, False), []],
        "overtaken by a delete": [[]],
        "in vain, and overtaken by a delete": [[]],
    },
    VolumeAction.PARK: {"well": [("available", 2, False), []]},
}
#: (status, whether it has a holder of its own) of snapshots
SNAPSHOT_ENDS: dict[tuple[str, str], list[tuple[str, bool]]] = {
    (VolumeAction.TAKE_SNAPSHOT, "well"): [("available", False)],
    (VolumeAction.TAKE_SNAPSHOT, "well, as a copy"): [("available", True)],
    (VolumeAction.TAKE_SNAPSHOT, "in vain"): [("error", False)],
    (VolumeAction.TAKE_SNAPSHOT, "in vain, as a copy"): [("error", False)],
    (VolumeAction.REVERT, "well"): [("available", False)],
    (VolumeAction.REVERT, "in vain"): [("available", False)],
}

#: of builds and deletes with volumes
BOOT_ENDS: dict[tuple[str, str], list[Any]] = {
    ("create", "well, from a volume"): [
        ("in-use", 2, False),
        ("in-use", 3, False),
        ["attached", "attached"],
    ],
    **{
        ("create", how): [("available", 2, False), []]
        for how in (
            "badly, from a volume",
            "badly, from a volume, and cleaned up",
            "badly, its volume not made",
            "badly, the image of its volume gone",
            "overtaken by a delete, from a volume",
        )
    },
    ("delete", "well, of one from a volume"): [("available", 2, False), []],
    **{
        one: [("in-use", 2, False), ("in-use", 3, False), ["attached", "attached"]]
        for one in (
            ("rebuild", "well, its volume made of another image"),
            ("rebuild", "well, its volume as it is"),
            ("rebuild", "badly, its volume not made of another image"),
            ("rebuild", "badly, its volume not named"),
            ("shelve", "well, from a volume"),
            ("unshelve", "well, from a volume"),
        )
    },
}

#: action, and how it goes → begins it
STORIES: dict[tuple[str, str], Callable[[Cloud], Operation]] = {
    ("create", "well"): Cloud.build,
    ("create", "badly"): lambda cloud: _refused(cloud, Build, Cloud.build),
    ("create", "badly, and cleaned up"): lambda cloud: _refused(
        cloud, Build, Cloud.build, cleans_up=True
    ),
    ("create", "badly, before any agent acts"): _without_image,
    ("create", "overtaken by a delete"): _overtaken,
    ("create", "well, from a volume"): _boot,
    ("create", "badly, from a volume"): lambda cloud: _refused(cloud, Build, _boot),
    ("create", "badly, from a volume, and cleaned up"): lambda cloud: _refused(
        cloud, Build, _boot, cleans_up=True
    ),
    ("create", "badly, its volume not made"): lambda cloud: _refused(cloud, MakeVolume, _boot),
    ("create", "badly, the image of its volume gone"): _boot_without_image,
    ("create", "overtaken by a delete, from a volume"): _overtaken_boot,
    ("delete", "well, of one from a volume"): _delete_boot,
    ("delete", "well"): lambda cloud: cloud.act(cloud.server(), "delete"),
    ("stop", "well"): lambda cloud: cloud.act(cloud.server(), "stop"),
    ("start", "well"): _after("stop", "start"),
    ("reboot", "well"): lambda cloud: cloud.act(cloud.server(), "reboot"),
    ("reboot-hard", "well"): lambda cloud: cloud.act(cloud.server(), "reboot-hard"),
    ("pause", "well"): lambda cloud: cloud.act(cloud.server(), "pause"),
    ("unpause", "well"): _after("pause", "unpause"),
    ("suspend", "well"): lambda cloud: cloud.act(cloud.server(), "suspend"),
    ("resume", "well"): _after("suspend", "resume"),
    ("soft-delete", "well"): lambda cloud: cloud.act(cloud.server(), "soft-delete"),
    ("restore", "well"): _after("soft-delete", "restore"),
    ("changePassword", "interrupted"): lambda cloud: cloud.act(cloud.server(), "changePassword"),
    ("attach_interface", "well"): _attach,
    ("attach_interface", "badly"): lambda cloud: _refused(cloud, Plug, _attach),
    ("detach_interface", "well"): _detach,
    ("detach_interface", "badly"): lambda cloud: _unheard(cloud, _detach),
    (volumes.ATTACH, "well"): _attach_volume,
    (volumes.ATTACH, "badly"): lambda cloud: _refused(cloud, PlugVolume, _attach_volume),
    (volumes.DETACH, "well"): _detach_volume,
    (volumes.DETACH, "badly"): lambda cloud: _unheard(cloud, _detach_volume),
    (volumes.ATTACH, "well, to a shelved one"): _attach_to_shelved,
    (volumes.ATTACH, "badly, to a shelved one"): lambda cloud: _refused(
        cloud, PlugVolume, _attach_to_shelved
    ),
    (volumes.DETACH, "well, from a shelved one"): _detach_from_shelved,
    (VolumeAction.CREATE, "well"): _create_volume,
    (VolumeAction.CREATE, "in vain"): lambda cloud: _refused(cloud, MakeVolume, _create_volume),
    (VolumeAction.DELETE, "well"): _delete_volume,
    (VolumeAction.EXTEND, "well"): _extend_volume,
    (VolumeAction.RETYPE, "well"): _retype_volume,
    (VolumeAction.RETYPE, "badly"): lambda cloud: _refused(cloud, RetypeVolume, _retype_volume),
    (VolumeAction.RETYPE, "well, though nothing was heard"): lambda cloud: _retype_volume(
        cloud, silent=True
    ),
    (VolumeAction.UPLOAD, "well"): _upload_volume,
    (VolumeAction.UPLOAD, "badly"): lambda cloud: _refused(cloud, Copy, _upload_volume),
    (VolumeAction.UPLOAD, "overtaken by a delete"): _overtaken_upload,
    (VolumeAction.TAKE_SNAPSHOT, "well"): _snapshot,
    (VolumeAction.TAKE_SNAPSHOT, "well, as a copy"): lambda cloud: _snapshot(cloud, way="copy"),
    (VolumeAction.TAKE_SNAPSHOT, "in vain"): lambda cloud: _refused(cloud, SnapVolume, _snapshot),
    (VolumeAction.TAKE_SNAPSHOT, "in vain, as a copy"): lambda cloud: _refused(
        cloud, MakeVolume, lambda cloud: _snapshot(cloud, way="copy")
    ),
    (VolumeAction.DELETE_SNAPSHOT, "well"): _remove_snapshot,
    (VolumeAction.DELETE_SNAPSHOT, "well, of a copy"): lambda cloud: _remove_snapshot(
        cloud, way="copy"
    ),
    (VolumeAction.DELETE_SNAPSHOT, "well, with its volume"): _cascade,
    (VolumeAction.BACK_UP, "well"): _back_up,
    (VolumeAction.BACK_UP, "in vain"): lambda cloud: _refused(cloud, BackUpVolume, _back_up),
    (VolumeAction.DELETE_BACKUP, "well"): _remove_backup,
    (VolumeAction.RESTORE, "well"): _restore_backup,
    (VolumeAction.RESTORE, "in vain"): lambda cloud: _refused(cloud, MakeVolume, _restore_backup),
    (VolumeAction.RESTORE, "overtaken by a delete"): _overtaken_restore,
    (VolumeAction.RESTORE, "in vain, and overtaken by a delete"): lambda cloud: _refused(
        cloud, MakeVolume, _overtaken_restore
    ),
    (VolumeAction.REVERT, "well"): _revert_volume,
    (VolumeAction.PARK, "well"): _park_volume,
    (VolumeAction.REVERT, "in vain"): lambda cloud: _refused(cloud, SnapVolume, _revert_volume),
    (VolumeAction.EXTEND, "in vain"): lambda cloud: _refused(cloud, GrowVolume, _extend_volume),
    ("resize", "well"): _resize,
    ("resize", "badly"): lambda cloud: _refused(cloud, Shape, _resize),
    ("resize", "badly, without room"): _resize_without_room,
    ("resize", "well, elsewhere"): _resize_elsewhere,
    ("resize", "badly, elsewhere"): lambda cloud: _refused(cloud, Shape, _resize_elsewhere),
    ("confirmResize", "well"): _end_resize("confirmResize"),
    ("confirmResize", "well, elsewhere"): _end_move(_resize_elsewhere, "confirmResize"),
    ("revertResize", "well"): _end_resize("revertResize"),
    ("rebuild", "well"): _rebuild,
    ("rebuild", "badly"): lambda cloud: _refused(cloud, Swap, _rebuild),
    ("rebuild", "badly, without the image"): lambda cloud: cloud.rebuild(cloud.server(), "gone"),
    ("rebuild", "well, its volume made of another image"): _rebuild_volume,
    ("rebuild", "well, its volume as it is"): _rebuild_beside_volume,
    ("rebuild", "badly, its volume not made of another image"): lambda cloud: _refused(
        cloud, MakeVolume, _rebuild_volume
    ),
    ("rebuild", "badly, its volume not named"): lambda cloud: _refused(
        cloud, Swap, _rebuild_volume
    ),
    ("shelve", "well, from a volume"): lambda cloud: cloud.act(_booted(cloud), "shelve"),
    ("unshelve", "well, from a volume"): _unshelve_booted,
    (VolumeAction.REIMAGE, "well"): _reimage,
    (VolumeAction.REIMAGE, "in vain"): lambda cloud: _refused(cloud, MakeVolume, _reimage),
    ("shelve", "well"): lambda cloud: cloud.act(cloud.server(), "shelve"),
    ("shelve", "well, suspended"): _after("suspend", "shelve"),
    ("shelve", "well, with a volume"): lambda cloud: cloud.act(_having_volume(cloud), "shelve"),
    ("unshelve", "well, with a volume, elsewhere"): _unshelve_with_volume,
    ("shelveOffload", "well"): _offload,
    ("unshelve", "well"): _after("shelve", "unshelve"),
    ("unshelve", "badly"): _unshelve_badly,
    ("unshelve", "well, elsewhere"): _unshelve_elsewhere,
    ("unshelve", "badly, without room"): _unshelve_nowhere,
    ("unshelve", "badly, elsewhere"): lambda cloud: _refused(cloud, Power, _unshelve_elsewhere),
    ("unshelve", "overtaken by a delete"): _overtaken_unshelve,
    ("createImage", "well"): _image,
    ("createImage", "badly"): lambda cloud: _refused(cloud, Copy, _image),
    ("createImage", "overtaken by a delete"): _image_overtaken,
    ("createBackup", "well"): _backup,
    ("createBackup", "badly"): lambda cloud: _refused(cloud, Copy, _image_as_backup),
    ("live-migration", "well"): _live,
    ("live-migration", "well, with a volume"): _live_with_volume,
    ("live-migration", "well, though nothing was heard"): lambda cloud: _live(cloud, silent=True),
    ("live-migration", "well, its drive late"): lambda cloud: _live(cloud, drive_fails=4),
    ("live-migration", "badly"): lambda cloud: _refused(cloud, Move, _live),
    ("live-migration", "overtaken by a delete"): _overtaken_live,
    ("live-migration", "badly, it stays"): lambda cloud: _live(cloud, stays=True),
    ("evacuate", "well"): _evacuate,
    ("evacuate", "badly, in error"): lambda cloud: _evacuate(cloud, "error"),
    ("evacuate", "overtaken by a delete"): _overtaken_evacuation,
    ("rescue", "well"): _rescue,
    ("rescue", "badly"): lambda cloud: _refused(cloud, Swap, _rescue),
    ("rescue", "badly, without the image"): lambda cloud: _rescue(cloud, "gone"),
    ("unrescue", "well"): _unrescue,
    ("revertResize", "well, elsewhere"): _end_move(_resize_elsewhere, "revertResize"),
    ("revertResize", "badly"): lambda cloud: _refused(
        cloud, Move, _end_move(_migrate, "revertResize")
    ),
    ("migrate", "well"): _migrate,
    ("migrate", "badly"): lambda cloud: _refused(cloud, Move, _migrate),
    ("migrate", "badly, without room"): _migrate_nowhere,
    ("migrate", "overtaken by a delete"): _overtaken_move,
    ("delete", "well, of a moved one"): _delete_moved,
    ("live-migration", "badly, aborted"): _aborted,
    ("release", "well"): lambda cloud: cloud.act(cloud.server(), "release"),
    ("adopt", "well"): _adopt,
    ("adopt", "badly"): lambda cloud: _refused(cloud, Mark, _adopt),
    (InternalAction.REAP, "well"): _reap,
    (InternalAction.FOLLOW, "well"): _follow,
    (InternalAction.FORGET, "well"): _forget,
    (InternalAction.MARK, "well"): _mark,
    (InternalAction.REMOVE_TEMPLATE, "well"): _remove_template,
    (InternalAction.CACHE_IMAGE, "well"): _cache_image,
    (InternalAction.STORE_IMAGE, "well"): _store_image,
    (InternalAction.STORE_IMAGE, "in vain"): lambda cloud: _refused(
        cloud, StoreImage, _store_image
    ),
    (InternalAction.STORE_IMAGE, "overtaken by a delete"): _overtaken_store,
    (InternalAction.REMOVE_IMAGE, "well"): _remove_image,
    (InternalAction.MAKE_VNET, "well"): _make_vnet,
    (InternalAction.MAKE_VNET, "in vain"): lambda cloud: _refused(cloud, MakeVnet, _make_vnet),
    (InternalAction.MAKE_VNET, "overtaken by a delete"): _overtaken_vnet,
    (InternalAction.REMOVE_VNET, "well"): _remove_vnet,
    (InternalAction.DRAIN, "well"): _drain,
    (InternalAction.REBALANCE, "well"): _rebalance,
}


#: of the long tier: in every run is another story that has their stages
DEAR = frozenset(
    {
        ("create", "badly, from a volume, and cleaned up"),
        ("create", "badly, the image of its volume gone"),
        ("create", "overtaken by a delete, from a volume"),
        ("unshelve", "well, with a volume, elsewhere"),
        (volumes.ATTACH, "badly, to a shelved one"),
        (volumes.DETACH, "well, from a shelved one"),
        (VolumeAction.TAKE_SNAPSHOT, "in vain, as a copy"),
        (VolumeAction.DELETE_SNAPSHOT, "well, of a copy"),
    }
)


def _stories() -> Iterator[Any]:
    """Each with one death at every commit, and in the long tier with both."""
    for one in STORIES:
        marks = pytest.mark.long if one in DEAR else ()
        yield pytest.param(*one, False, marks=marks, id="-".join(one))
        yield pytest.param(*one, True, marks=pytest.mark.long, id="-".join((*one, "both")))


def _deaths(commits: int, *, both: bool) -> list[tuple[int, bool]]:
    """At which commit a conductor dies, and whether before it: otherwise in turn.

    What is committed is the same after one commit and before the next. What was done in between,
    a call or a message, is done for nothing or not at all.
    """
    every = [(at, before) for at in range(1, commits + 1) for before in (True, False)]
    return every if both else [(at, before) for at, before in every if before == (at % 2 == 1)]


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    # Every run begins with what was read at the request, however long the ones before it took.
    monkeypatch.setattr(stage_runner, "JUST_BEGUN", datetime.timedelta(hours=1))
    world = World(tmp_path)
    yield Cloud(world, Mortal(world.conductor.store), world.add_conductor("c2"))
    world.close()


def test_every_flow_has_its_story(cloud: Cloud) -> None:
    known = tables(cloud.world.conductor.cloud)
    assert {action for action, _ in STORIES} == known.keys()
    undone = {action for action, how in STORIES if how == "badly"}
    assert undone == {action for action, table in known.items() if table.undos}


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("action", "how", "both"), list(_stories()))
def test_another_conductor_ends_it_alike(cloud: Cloud, action: str, how: str, both: bool) -> None:
    operation = STORIES[action, how](cloud)
    begun = cloud.remember()
    cloud.mortal.live()
    cloud.work_off(cloud.world.conductor, operation)
    commits, alike = cloud.mortal.commits, cloud.ending(operation)
    assert commits >= 1
    if (action, how) in BOOT_ENDS:
        assert alike["volumes"] == BOOT_ENDS[action, how]
    if "shelved one" in how:
        assert alike["server"][:2] == ("shelved_offloaded", None)
    if how.startswith("well, with a volume"):
        assert alike["volumes"] == [("in-use", 2, False), ["attached"]]
    if action == "live-migration" and how.startswith("overtaken"):
        assert (alike["others"], alike["claim"]) == (0, None)
    elif action == "live-migration":
        assert alike["amounts"] == [{"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}]
        where = "pve1" if how.startswith("badly") else "pve2"
        assert alike["server"] == ("active", None, 1, where, where)
    elif action == "evacuate" and not how.startswith("overtaken"):
        well = how == "well"
        assert alike["amounts"] == [{"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}]
        ended = ("active", "pve2") if well else ("error", "pve1")
        assert (alike["server"][0], alike["server"][3]) == ended
        assert alike["resizes"] == ["completed" if well else "error"]
    elif how == "badly" and action == "revertResize":
        assert alike["server"][0] == "resized"
    elif how.startswith("badly") and action in ("resize", "migrate"):
        assert alike["others"] == 0
        assert alike["server"][3] == "pve1"
        assert alike["size"] == (1, 512, 1, 1)
        assert alike["amounts"] == [{"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}]
    elif how.startswith("badly") and action == "attach_interface":
        assert (alike["ports"], alike["record"][0]) == (1, 1)
    elif how.startswith("badly") and action == "detach_interface":
        assert (alike["ports"], alike["record"][0]) == (0, 0)
    elif how.startswith("badly") and action in (volumes.ATTACH, volumes.DETACH):
        assert alike["volumes"] == [("available", 2, False), []]
    elif how.startswith("badly") and action in ("rebuild", "rescue"):
        assert alike["server"][0] == "error"
        assert alike["made_of"] == (None if "its volume" in how else IMAGE, None)
    elif action in {"shelve", "shelveOffload"} or (
        action == "unshelve" and how.startswith("badly")
    ):
        assert (alike["server"][3], alike["others"]) == ("pve1", 0)
        assert alike["server"][:2] == ("shelved_offloaded", None)
        on_volume = how.endswith("from a volume")
        assert alike["amounts"] == ([] if on_volume else [{"DISK_GB": 1}])
        listed = [status for status, _ in alike["images"]]
        assert listed == ([] if on_volume else ["active"])
    elif action == "unshelve" and how.startswith("overtaken"):
        assert (alike["others"], alike["claim"], alike["images"]) == (0, None, [])
    elif action == "unshelve":
        where = "pve2" if how.endswith("elsewhere") else "pve1"
        assert (alike["server"][0], alike["server"][3]) == ("active", where)
        assert (alike["images"], alike["others"]) == ([], 0)
        disk = {} if how.endswith("from a volume") else {"DISK_GB": 1}
        assert alike["amounts"] == [{"VCPU": 1, "MEMORY_MB": 512, **disk}]
    elif how.startswith("badly") and action in {"createImage", "createBackup"}:
        assert (alike["images"], alike["copies"]) == ([], 0)
        assert alike["server"][:2] == ("active", None)
    elif action == InternalAction.STORE_IMAGE:
        made = {"well": [("active", {"sim1"})], "in vain": [("killed", set())]}
        assert alike["image"] == made.get(how, [])
        removed = [state for one, state in alike["others"] if one == InternalAction.REMOVE_IMAGE]
        assert removed == ([] if how == "well" else ["done"])
    elif action == InternalAction.MAKE_VNET:
        made = {"well": ([("ACTIVE", 5000)], [("active", 5000)])}
        made["in vain"] = ([("ERROR", 5000)], [("error", 5000)])
        mine = [one for one in alike["networks"] if one[1]]
        assert (mine, alike["vnets"]) == made.get(how, ([], []))
    elif action == VolumeAction.RETYPE:
        where, why = ("data", BROKEN.message) if how == "badly" else ("other", None)
        assert alike["volumes"] == VOLUME_ENDS[action][how]
        assert alike["places"] == [(where, where, None, why)]
    elif action == VolumeAction.UPLOAD:
        assert alike["volumes"] == VOLUME_ENDS[action][how]
        assert alike["made"] == ([("active", 2)] if how == "well" else [])
        assert cloud.copies() == (how == "well")
    elif action in VOLUME_ENDS:
        assert alike["volumes"] == VOLUME_ENDS[action][how]
        assert alike["snapshots"] == SNAPSHOT_ENDS.get((action, how), [])
    elif action == InternalAction.REMOVE_VNET:
        assert alike["vnets"] == []
    elif action in bulk_migrations.ACTIONS:
        assert alike["operation"][0] == "done"
        assert {one["server"][3] for one in alike["servers"]} == {"pve2"}
        # One migration for each, whatever happens.
        assert all(len(one["resizes"]) == 1 for one in alike["servers"])
    elif how.startswith("badly"):
        left = {name: alike[name] for name in ("ports", "vmids", "claim")}
        assert left == {"ports": 0, "vmids": [], "claim": None}
    for dies_at, before in _deaths(commits, both=both):
        begun()
        cloud.mortal.live(dies_at, before=before)
        with pytest.raises(Died):
            cloud.work_off(cloud.world.conductor, operation)
        cloud.mortal.live()
        cloud.work_off(cloud.heir)
        assert cloud.ending(operation) == alike, (dies_at, before)
    _clear(cloud, operation)
    _nothing_left(cloud)


def _slow_stories() -> Iterator[Any]:
    """Those that end well in every run, the others, which share most stages, in the long tier.

    So are those that carry out others' stories.
    """
    for action, how in STORIES:
        short = how == "well" and action not in bulk_migrations.ACTIONS
        marks = () if short else pytest.mark.long
        yield pytest.param(action, how, marks=marks, id=f"{action}-{how}")


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("action", "how"), list(_slow_stories()))
def test_one_that_was_slow_changes_nothing(cloud: Cloud, action: str, how: str) -> None:
    operation = STORIES[action, how](cloud)
    begun = cloud.remember()
    cloud.mortal.live()
    cloud.work_off(cloud.world.conductor, operation)
    commits, alike = cloud.mortal.commits, cloud.ending(operation)
    for slow_at in range(1, commits + 1):
        begun()
        cloud.mortal.slow(slow_at, lambda: cloud.work_off(cloud.heir))
        cloud.work_off(cloud.world.conductor, operation)
        assert cloud.ending(operation) == alike, slow_at
        cloud.mortal.live()
    _clear(cloud, operation)
    _nothing_left(cloud)


def _overtakable() -> Iterator[Any]:
    """What a user's server does, and a delete may come between."""
    others = {"delete", "adopt", "release", "soft-delete", *bulk_migrations.ACTIONS}
    for action, how in STORIES:
        of_server = not isinstance(action, InternalAction | VolumeAction)
        if not of_server or action in others or "overtaken" in how:
            continue
        # What ends badly shares its stages, up to there, with what ends well.
        marks = () if how.startswith("well") and (action, how) not in DEAR else pytest.mark.long
        yield pytest.param(action, how, marks=marks, id=f"{action}-{how}")


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("action", "how"), list(_overtakable()))
def test_a_delete_at_any_moment_leaves_nothing(cloud: Cloud, action: str, how: str) -> None:
    """It is accepted right before any commit of what it overtakes."""
    operation = STORIES[action, how](cloud)
    begun = cloud.remember()
    cloud.mortal.live()
    cloud.work_off(cloud.world.conductor, operation)
    uuid = operation.server_uuid
    for at in range(1, cloud.mortal.commits + 1):
        begun()
        deletes: list[Operation] = []

        def overtake(made: list[Operation] = deletes) -> None:
            made.append(cloud.act(cloud.world.row(uuid), "delete"))

        cloud.mortal.slow(at, overtake)
        cloud.work_off(cloud.world.conductor, operation)
        cloud.work_off(cloud.heir)
        assert len(deletes) == 1
        ended = cloud.ending(operation)
        assert ended["server"][0] == "deleted", at
        assert {state for _, state in ended["operations"]} <= {"done", "failed"}, at
        assert not {*ended["resizes"]} & OPEN_MIGRATIONS, at
        left = {name: ended[name] for name in ("ports", "vmids", "claim", "others")}
        assert left == {"ports": 0, "vmids": [], "claim": None, "others": 0}, at
        if (action, how) in BOOT_ENDS:
            assert ended["volumes"] == [("available", 2, False), []], at
        _clear(cloud, operation)
        _nothing_left(cloud)


def _nothing_left(cloud: Cloud) -> None:
    tables = VOLUMES, schema.volume_snapshots, schema.templates
    held = {one.vmid for table in tables for one in cloud.world.rows(table)}
    for one in cloud.world.rows(schema.vmids):
        assert one.vmid in held or one.server_uuid or one.state != "reserved", one.vmid
    assert cloud.world.rows(schema.ports) == []
    assert cloud.world.placement.claims == {}
    assert cloud.vms == set()
    if any(
        one.action in {"createImage", "createBackup"}
        for one in cloud.world.rows(schema.operations)
    ):
        assert cloud.copies() == 0


def _clear(cloud: Cloud, operation: Operation) -> None:
    """Delete the server, if it is still there, so that quota and books are as before."""
    # However long it takes, the agents are alive.
    cloud.world.beat()
    cloud.refused.clear()
    cloud.cleans_up = False
    cloud.goal = "pve2"
    cloud.world.scheduler.hosts[:] = ["pve1", "pve2"]
    # A band of ten VMIDs is enough then.
    cloud.heir.store.run(lambda c: vmids.end_quarantines(c, -3600))
    if isinstance(operation.plan, BulkPlan):
        for move in operation.plan.moves:
            cloud.work_off(cloud.heir, cloud.act(cloud.world.row(move.server_uuid), "delete"))
    if operation.resource_type != ResourceType.SERVER:
        return
    with cloud.world.conductor.store.read() as connection:
        server = servers.get(connection, operation.server_uuid)
    for one in cloud.world.rows(schema.images):
        if one.server_uuid is not None:
            remove_image.delete(cloud.heir.cloud, ADMIN, one.id)
    cloud.work_off(cloud.heir)
    if server.deleted_at is None:
        cloud.work_off(cloud.heir, cloud.act(server, "delete"))
