"""More servers asked for than there is room: all of ``min_count``, or none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from common import ids
from common.context import RequestContext
from conductor.rpc.servers.servers import CreateServers, RequestedNetwork
from db import schema
from simulator.state.model import MIB, Node
from tests.chaos.cloud import FLAVOR, IMAGE
from tests.chaos.world import World, world

BOSS = RequestContext(user_id="boss", project_id="p", roles=["admin"], is_admin=True)
ROOM, ASKED = 7, 20


def room_for_seven() -> dict[str, dict[str, str]]:
    """One host, whose RAM is reserved but for seven servers'."""
    memory = Node("", 0, "").memory // MIB
    return {"compute": {"reserved_memory_mib": str(memory - ROOM * FLAVOR.memory_mib)}}


def room(cloud: World) -> int:
    """How many more servers would fit."""
    request = CreateServers(
        "any",
        FLAVOR,
        ids.named("image", IMAGE),
        networks=(RequestedNetwork(ids.named("network", "vmbr0")),),
    )
    return cloud.client.capacity(BOSS, request).total


def claims(cloud: World) -> dict[str, Any]:
    """What servers hold of all hosts."""
    held: dict[str, Any] = {}
    for host in cloud.rows(schema.hosts.select()):
        held |= cloud.placement.provider_allocations(host.uuid)
    return held


def test_with_room_for_seven_none_of_twenty_is_built(tmp_path: Path) -> None:
    """Seven were left running, and thirteen in ERROR."""
    with world(tmp_path, room_for_seven(), nodes=1) as cloud:
        assert room(cloud) == ROOM
        cloud.create("crowd", count=ASKED)
        cloud.until(lambda: len(cloud.alive()) == ASKED and not cloud.open_operations())
        rows = cloud.alive()
        assert {row.vm_state for row in rows} == {"error"}
        assert {(row.host, row.vmid) for row in rows} == {(None, None)}
        assert cloud.simulator.state()["sim1"]["vms"] == []
        assert claims(cloud) == {}
        assert room(cloud) == ROOM
        assert {fault.category for row in rows for fault in cloud.faults(row.uuid)} == {
            "no_valid_host"
        }
        cloud.until(lambda: not cloud.differences())
        assert cloud.audit_problem() == ""
        cloud.delete_all()
        # What was given back is there for those that fit.
        cloud.create("fits", count=ROOM)
        cloud.until(lambda: len(cloud.alive()) == ROOM and not cloud.open_operations())
        assert {row.vm_state for row in cloud.alive()} == {"active"}
