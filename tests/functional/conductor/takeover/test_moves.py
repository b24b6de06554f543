"""Moves: resizes, migrations, evacuations, and bulk migrations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from common.messages.commands import (
    Move,
    Shape,
)
from common.messages.facts import HaService, Inspection
from common.resources import bulk_migrations
from common.resources.states import InternalAction
from conductor.servers.bulk import begin_bulk
from conductor.servers.move import begin_evacuation, begin_live_migration, steer_migration
from conductor.store.records import Operation
from db import schema
from tests.functional.conductor.takeover.begin import (
    Story,
    having_volume,
    refused,
)
from tests.functional.conductor.takeover.cloud import ADMIN, Cloud
from tests.functional.conductor.takeover.deaths import ServerTakeover


def _resize(cloud: Cloud) -> Operation:
    return cloud.resize(cloud.server())


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


def _evacuate(cloud: Cloud, ends_as: str = "started") -> Operation:
    """The HA manager fences its node; then the VM runs elsewhere, or is in error."""
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


def _live_with_volume(cloud: Cloud) -> Operation:
    server = having_volume(cloud)
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


SIZE = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}

STORIES: Mapping[tuple[str, str], Story] = {
    ("resize", "well"): _resize,
    ("resize", "badly"): lambda cloud: refused(cloud, Shape, _resize),
    ("resize", "badly, without room"): _resize_without_room,
    ("resize", "well, elsewhere"): _resize_elsewhere,
    ("resize", "badly, elsewhere"): lambda cloud: refused(cloud, Shape, _resize_elsewhere),
    ("confirmResize", "well"): _end_resize("confirmResize"),
    ("confirmResize", "well, elsewhere"): _end_move(_resize_elsewhere, "confirmResize"),
    ("revertResize", "well"): _end_resize("revertResize"),
    ("live-migration", "well"): _live,
    ("live-migration", "well, with a volume"): _live_with_volume,
    ("live-migration", "well, though the answer was lost"): lambda cloud: _live(
        cloud, silent=True
    ),
    ("live-migration", "well, its drive late"): lambda cloud: _live(cloud, drive_fails=4),
    ("live-migration", "badly"): lambda cloud: refused(cloud, Move, _live),
    ("live-migration", "overtaken by a delete"): _overtaken_live,
    ("live-migration", "badly, not moved"): lambda cloud: _live(cloud, stays=True),
    ("evacuate", "well"): _evacuate,
    ("evacuate", "badly, in error"): lambda cloud: _evacuate(cloud, "error"),
    ("evacuate", "overtaken by a delete"): _overtaken_evacuation,
    ("revertResize", "well, elsewhere"): _end_move(_resize_elsewhere, "revertResize"),
    ("revertResize", "badly"): lambda cloud: refused(
        cloud, Move, _end_move(_migrate, "revertResize")
    ),
    ("migrate", "well"): _migrate,
    ("migrate", "badly"): lambda cloud: refused(cloud, Move, _migrate),
    ("migrate", "badly, without room"): _migrate_nowhere,
    ("migrate", "overtaken by a delete"): _overtaken_move,
    ("delete", "well, of a moved one"): _delete_moved,
    ("live-migration", "badly, aborted"): _aborted,
    (InternalAction.DRAIN, "well"): _drain,
    (InternalAction.REBALANCE, "well"): _rebalance,
}


class TestMoves(ServerTakeover):
    stories = STORIES

    def expect(self, cloud: Cloud, action: str, how: str, ends: Mapping[str, Any]) -> None:
        if how.startswith("well, with a volume"):
            assert ends["volumes"] == [("in-use", 2, False), ["attached"]]
        badly, overtaken = how.startswith("badly"), how.startswith("overtaken")
        if action == "live-migration" and overtaken:
            assert (ends["others"], ends["claim"]) == (0, None)
        elif action == "live-migration":
            assert ends["amounts"] == [SIZE]
            where = "pve1" if badly else "pve2"
            assert ends["server"] == ("active", None, 1, where, where)
        elif action == "evacuate" and not overtaken:
            assert ends["amounts"] == [SIZE]
            ended = ("error", "pve1") if badly else ("active", "pve2")
            assert (ends["server"][0], ends["server"][3]) == ended
            assert ends["resizes"] == ["error" if badly else "completed"]
        elif badly and action == "revertResize":
            assert ends["server"][0] == "resized"
        elif badly and action in ("resize", "migrate"):
            assert ends["others"] == 0
            assert ends["server"][3] == "pve1"
            assert ends["size"] == (1, 512, 1, 1)
            assert ends["amounts"] == [SIZE]
        elif action in bulk_migrations.ACTIONS:
            assert ends["operation"][0] == "done"
            assert {one["server"][3] for one in ends["servers"]} == {"pve2"}
            # One migration for each, whatever happens.
            assert all(len(one["resizes"]) == 1 for one in ends["servers"])
