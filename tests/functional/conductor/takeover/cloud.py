"""A conductor that dies, another conductor, and agents that answer at once."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

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
)
from common.messages.reports import (
    Category,
    CopiedDisk,
    Failure,
    MadeVolume,
    Moved,
    Outcome,
    VolumeSeen,
)
from common.resources.states import OPEN_STATES, ResourceType
from conductor.engine.cases import Cases
from conductor.engine.stages import Table
from conductor.plans import BulkPlan, Plan
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.servers import (
    BlockDevice,
    CreateServers,
    NewServerImage,
    RebuildServer,
    RequestedNetwork,
)
from conductor.servers.disks import begin_image
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.ledger.operations import NewOperation
from conductor.store.networks import networks
from conductor.store.records import Operation
from db import schema
from db.resources import about
from tests.functional.conductor.harness import IMAGE, Conductor, Mortal, World, said

VOLUMES = schema.volumes
ADMIN = RequestContext(user_id="boss", project_id="admin", roles=["admin"], is_admin=True)
_OPEN = sa.select(1).where(schema.operations.c.state.in_(OPEN_STATES)).limit(1)
_SERVER = schema.servers.c.uuid == schema.operations.c.resource_id
LOST = Failure(Category.UNKNOWN_OUTCOME, "The answer was lost.", host="pve1")
BROKEN = Failure(Category.AUTHORIZATION, "Permission check failed", host="pve1")
#: in a node that has no quorum; waiting does not help
OTHERS = Failure(Category.PROTECTED, "VNI 5000 of zone tenants is vnet blue's.")
NO_DRIVE = Failure(Category.AUTHORIZATION, "Permission denied.")


@dataclass
class Cloud:
    """Two conductors without threads, agents that carry out commands, and what they refuse."""

    world: World
    mortal: Mortal
    heir: Conductor
    refused: set[type[Command]] = field(default_factory=set)
    cleans_up: bool = False
    """Whether an agent that refuses removes what it made."""
    stays: bool = False
    """Whether migrations leave VMs where they are."""
    silent: bool = False
    """Whether their answers are lost."""
    snapshot_way: str = "online"
    """How the storage makes snapshots of volumes."""
    drive_fails: int = 0
    """The last attempt that can't put the config drive in where the VM has moved to."""
    nodes: dict[str, str] = field(default_factory=dict)
    """Where VMs are that were to be moved."""
    goal: str = "pve2"
    """The node that moves go to, unless they are undone."""
    made: int = 0
    lost: str = ""
    """The host that is lost for good: nothing that waits for it counts as open."""
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
                assert self.reserved(uuid) == (0, 0), "the claim is released last"
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
        (operation,) = self.world.conductor.creates.create(self.world.ctxt, request)[1]
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
            self.world.beat(lost=self.lost)

        return restore

    # --- conductors

    def work_off(
        self,
        conductor: Conductor,
        first: Operation | None = None,
        actions: Collection[str] | None = None,
    ) -> None:
        """Work on one, and on all that is due, of these actions, until nothing is open."""
        if first is not None:
            self._work(conductor, first, fresh=True)
        actions = actions or conductor.runner._flows.keys()
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
        query = _OPEN
        if self.lost:
            waits = sa.exists().where(_SERVER, schema.servers.c.host == self.lost)
            query = query.where(~waits)
        with self.world.conductor.store.read() as connection:
            return connection.execute(query).first() is not None

    def lose(self, host: str) -> None:
        """Its node is offline, and an administrator says that it is lost; empty: it is back."""
        down = schema.services.update().values(forced_down=schema.services.c.host == host)
        self.lost = host
        self.world.beat(lost=host)
        self.heir.store.run(lambda c: c.execute(down))

    def _work(self, conductor: Conductor, operation: Operation, *, fresh: bool) -> None:
        flow, sent = conductor.runner._flows[operation.action], self.world.compute.sent
        sent.clear()
        try:
            flow.resume(operation, fresh=fresh)
            # Another conductor may have sent some of its own in between.
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
        if isinstance(command, Destroy) and uuid in self.vms and not command.build:
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
        if operation.resource_type == ResourceType.GROUP or self._is_member(operation):
            return self._groups()
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

    def _is_member(self, operation: Operation) -> bool:
        rows = self.world.rows(schema.servers)
        return any(one.uuid == operation.resource_id and one.member_of for one in rows)

    def _groups(self) -> dict[str, Any]:
        """What became of groups and their members, whatever their servers' IDs."""
        servers = [one for one in self.world.rows(schema.servers) if one.deleted_at is None]
        operations = self.world.rows(schema.operations)
        return {
            "groups": [
                (one.desired, one.status, one.rolling, one.failures, one.halted is not None)
                for one in self.world.rows(schema.scaling_groups)
            ],
            "members": sorted(
                (one.member_index or 0, one.state, one.server_uuid is not None)
                for one in self.world.rows(schema.scaling_members)
            ),
            "working": sum(one.vm_state == "active" for one in servers),
            "servers": sorted((one.vm_state, one.task_state or "", one.name) for one in servers),
            "volumes": self.volumes(),
            "ports": self._ports_of_places(),
            "creates": sum(one.action == "create" for one in operations),
            "open": sum(one.state in OPEN_STATES for one in operations),
            "vms": len(self.vms),
            "claims": len(self.world.placement.claims),
        }

    def _ports_of_places(self) -> tuple[list[int], int]:
        """How many ports of places servers have, each its member's; and how many there are."""
        has = {one.id: one.server_uuid for one in self.world.rows(schema.ports) if one.kept}
        members = self.world.rows(schema.scaling_members)
        found = [sum(has.get(port) == one.server_uuid for port in one.ports) for one in members]
        return [number for number in found if number], len(has)

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
