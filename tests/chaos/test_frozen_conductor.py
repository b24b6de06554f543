"""One of two conductors stands still for longer than its operations may take, and continues.

As a machine that is paused, or swaps: it has its old connections, messages and beliefs, and
its clock has jumped. The other one has seen to what was due; nothing is removed because of a
deadline that only the frozen one missed, and nothing is left open.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from common import ids
from conductor.rpc.servers.servers import RebuildServer
from tests.chaos.cloud import IMAGE
from tests.chaos.stage import Plan, Stage, stage

pytestmark = [pytest.mark.timeout(2400), pytest.mark.long]

TIMEOUT_SECONDS = 20
FROZEN_SECONDS = 35
SHORT = {
    "conductor": {
        "build_timeout_seconds": str(TIMEOUT_SECONDS),
        "action_timeout_seconds": str(TIMEOUT_SECONDS),
    },
}
COUNT = 4


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    plan = Plan(conductors=2, options=SHORT)
    with stage(tmp_path_factory.mktemp("frozen"), plan) as running:
        yield running


def stand_still(cloud: Stage, *names: str) -> None:
    """Freeze these processes across the deadlines of what is under way, then let them go on."""
    for name in names:
        cloud.pause(name)
    try:
        threading.Event().wait(FROZEN_SECONDS)
    finally:
        for name in names:
            cloud.pause(name, paused=False)


@pytest.mark.parametrize("call", ["/status/start$", "/(clone|qemu)$"], ids=["start", "clone"])
@pytest.mark.parametrize("frozen", ["conductor-1", "conductor-2"])
def test_builds_end_well(cloud: Stage, frozen: str, call: str) -> None:
    """Whether the VMs are made, or still to be started: each is ACTIVE, and none is lost."""
    name = f"{frozen}-{'start' if 'start' in call else 'clone'}"
    order = cloud.simulator.fault(action="hold", method="POST", path=call)
    try:
        cloud.create(name, count=COUNT)
        cloud.simulator.await_strike(order, 60)
        before = set(cloud.simulator.cluster().vms)
        cloud.pause(frozen)
    finally:
        cloud.simulator.take_back(order)
    stand_still(cloud, frozen)
    mine = [row.uuid for row in cloud.alive() if row.name.startswith(name)]
    assert len(mine) == COUNT
    cloud.until(lambda: not cloud.open_operations())
    states = {uuid: cloud.server(uuid).vm_state for uuid in mine}
    faults = [(one.category, one.message) for uuid in mine for one in cloud.faults(uuid)]
    assert set(states.values()) == {"active"}, (states, faults)
    assert before <= set(cloud.simulator.cluster().vms)
    for uuid in mine:
        vm = cloud.simulator.cluster().vms[cloud.server(uuid).vmid]
        assert vm.status == "running"


#: where a rebuild is when its cloud stands still: its VM is stopped, gets its disk, or is started
AT = {"stop": "/status/(stop|shutdown)$", "swap": r"/qemu/\d+/config$", "start": "/status/start$"}
ALL = ("conductor-1", "conductor-2", "compute-1")


@pytest.mark.parametrize("at", AT)
@pytest.mark.parametrize("frozen", [ALL[:1], ALL[:2], ALL], ids=["one", "both", "all"])
def test_a_rebuild_agrees_with_its_vm(cloud: Stage, frozen: tuple[str, ...], at: str) -> None:
    row = cloud.built(f"{at}-{len(frozen)}")
    disk = root_of(cloud, row)
    order = cloud.simulator.fault(action="hold", method="POST", path=AT[at])
    try:
        other = RebuildServer(ids.named("image", IMAGE), {"os_type": "linux"})
        cloud.client.rebuild_server(cloud.context(), row.uuid, other)
        cloud.simulator.await_strike(order, 60)
        for name in frozen:
            cloud.pause(name)
    finally:
        cloud.simulator.take_back(order)
    stand_still(cloud, *frozen)
    cloud.until(lambda: not cloud.open_operations())
    now, vm = cloud.server(row.uuid), cloud.simulator.cluster().vms[row.vmid]
    has_new = root_of(cloud, row) != disk
    assert (now.image_properties == {"os_type": "linux"}) == has_new, cloud.progress()
    if now.vm_state == "active":
        assert (vm.status, has_new, cloud.faults(row.uuid)) == ("running", True, [])
        return
    # Without any conductor an agent's lease ends, too: on a slow machine before it is done.
    assert set(frozen) >= set(ALL[:2])
    # Nothing was removed, and the remedy works.
    assert (now.vm_state, now.task_state) == ("error", None)
    assert disk in str(vm.config)
    assert cloud.faults(row.uuid)[-1].remedy == "the action again"
    cloud.client.rebuild_server(cloud.context(), row.uuid, other)
    cloud.until(lambda: not cloud.open_operations())
    assert cloud.server(row.uuid).vm_state == "active"
    assert not [name for name in vm.config if name.startswith("unused")]


def root_of(cloud: Stage, row: Any) -> str:
    """The volume of a server's root disk."""
    config = cloud.simulator.cluster().vms[row.vmid].config
    return str(config["scsi0"]).partition(",")[0]
