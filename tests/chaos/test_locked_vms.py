"""Somebody's lock is on a server's VM, before an action or in the middle of it.

The action ends, or waits to be undone; its fault names the lock and the one command that mends it,
which never removes what has the user's data. Then the action succeeds, and nothing is left.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from db import schema
from tests.chaos.actions import ACTIONS, MOVABLE, Scenario, ask, delete_images
from tests.chaos.renewed import Renewed
from tests.chaos.world import World, world
from tests.fixtures.root_shell import RootShell

#: what Proxmox VE's `qm config` may show
LOCKS = (
    *("backup", "clone", "create", "disk", "migrate", "rollback", "snapshot", "snapshot-delete"),
    *("suspended", "suspending"),
)
SCENARIOS = {
    **{name: one for name, one in ACTIONS.items() if "CD" not in name},
    "delete": Scenario("active", "deleted"),
}
#: attempts after which what still isn't over waits for the operator
PATIENCE = 8
BEFORE, MIDDLE = "before", "in the middle"


@pytest.fixture(scope="module")
def clouds(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[bool], World]]:
    """A cloud whose servers move, or one of linked clones."""

    def make(moves: bool) -> AbstractContextManager[World]:
        options = {"proxmox:sim1": MOVABLE} if moves else {}
        return world(tmp_path_factory.mktemp("cloud") / "world", options)

    clouds = Renewed(request.session, make)
    yield clouds
    clouds.close()


def put(cloud: World, vmid: int, lock: str) -> None:
    """Lock a VM as another tool's task does."""
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        cluster.edit(cluster.vms[vmid]).config["lock"] = lock


def lock_of(cloud: World, vmid: int) -> str:
    """The lock that a VM has; empty: none, or there is no VM."""
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        return cluster.vms[vmid].lock if vmid in cluster.vms else ""


def put_in_the_middle(cloud: World, vmid: int, lock: str, begin: Callable[[], None]) -> None:
    """Lock a VM when the first write of what ``begin`` begins comes to it, before it is served."""
    path = rf"/qemu/{vmid}($|/)"
    orders = [
        cloud.simulator.fault(action="hold", method=method, path=path)
        for method in ("POST", "PUT", "DELETE")
    ]
    try:
        begin()
        cloud.until(
            lambda: (
                not cloud.open_operations()
                or any(cloud.simulator.await_strike(one, 0) for one in orders)
            )
        )
        if cloud.open_operations() and vmid in cloud.simulator.cluster().vms:
            put(cloud, vmid, lock)
    finally:
        for one in orders:
            cloud.simulator.take_back(one)


def operations(cloud: World, uuid: str) -> list[Any]:
    """All operations of a server, the first one first."""
    columns = schema.operations.c
    query = sa.select(schema.operations).where(columns.resource_id == uuid)
    return cloud.rows(query.order_by(columns.id))


def prepared(cloud: World, name: str, title: str) -> Any:
    """A server as an action finds it."""
    row = cloud.built(title)
    assert row.vm_state == "active", [one.message for one in cloud.faults(row.uuid)]
    for action, vm_state in SCENARIOS[name].before:
        ask_for(cloud, row.uuid, action)
        cloud.until(lambda: not cloud.open_operations())
        assert cloud.server(row.uuid).vm_state == vm_state
    return cloud.server(row.uuid)


def ask_for(cloud: World, uuid: str, name: str) -> None:
    """Ask for an action."""
    if name in ACTIONS:
        ask(cloud, uuid, name)
    else:
        cloud.act(uuid, name)


def rested(cloud: World, uuid: str, known: int) -> Any:
    """The new operation, once it has ended or is seen to wait for the operator."""

    def rest() -> Any:
        new = operations(cloud, uuid)[known:]
        if new and all(one.state in ("done", "failed") or one.attempt > PATIENCE for one in new):
            return new[-1]
        return None

    return cloud.until(rest)


CASES = list(itertools.product(SCENARIOS, LOCKS, (BEFORE, MIDDLE)))
#: a suspended VM has a lock already, which excludes others
CASES = [one for one in CASES if SCENARIOS[one[0]].was != "suspended" or one[1] == "suspended"]
#: so that the clouds change once
CASES.sort(key=lambda one: bool(SCENARIOS[one[0]].options))


@pytest.mark.sampled(18)
@pytest.mark.parametrize(("name", "lock", "when"), CASES)
def test_the_remedy_works(
    clouds: Callable[[bool], World], tmp_path: Path, name: str, lock: str, when: str
) -> None:
    scenario = SCENARIOS[name]
    cloud = clouds(bool(scenario.options))
    row = prepared(cloud, name, re.sub(r"\W+", "-", f"{name}-{lock}-{when}"))
    disk = cloud.simulator.cluster().vms[row.vmid].config.get("scsi0", "").partition(",")[0]
    known, before = len(operations(cloud, row.uuid)), len(cloud.faults(row.uuid))
    if when == BEFORE:
        put(cloud, row.vmid, lock)
        ask_for(cloud, row.uuid, name)
    else:
        put_in_the_middle(cloud, row.vmid, lock, lambda: ask_for(cloud, row.uuid, name))
    operation = rested(cloud, row.uuid, known)
    if operation.state == "done":
        unlock_what_is_left(cloud, tmp_path, row)
    else:
        fault = cloud.faults(row.uuid)[before:][-1]
        explained(cloud, row, fault, lock)
        shell(cloud, tmp_path).run(fault.remedy)
        assert lock_of(cloud, row.vmid) == ""
    cloud.until(lambda: not cloud.open_operations())
    now = cloud.server(row.uuid)
    if operations(cloud, row.uuid)[known:][-1].state == "failed":
        failed = {scenario.was, "error"} if name in ("rebuild", "rescue") else {scenario.was}
        assert now.vm_state in failed, cloud.progress()
        kept(cloud, row, disk)
        ask_for(cloud, row.uuid, name)
        cloud.until(lambda: not cloud.open_operations())
        now = cloud.server(row.uuid)
    assert now.vm_state == scenario.becomes, [one.message for one in cloud.faults(row.uuid)]
    delete_images(cloud, row.uuid)
    cloud.delete(row.uuid)
    cloud.until(lambda: not cloud.differences(), 20)


def explained(cloud: World, row: Any, fault: Any, lock: str) -> None:
    """The fault names the lock to operator and owner, and one remedy that unlocks."""
    assert fault.category == "lock", fault
    assert re.search(rf"lock '{lock}'|locked \({lock}\)", fault.message), fault.message
    node = cloud.simulator.cluster().vms[row.vmid].node
    assert fault.remedy == f"as root on {node}: qm unlock {row.vmid}"
    assert f"locked ({lock})" in fault.owner_message
    assert node not in fault.owner_message


def kept(cloud: World, row: Any, disk: str) -> None:
    """The VM has the disk that it had."""
    config = cloud.simulator.cluster().vms[row.vmid].config
    assert any(str(value).startswith(f"{disk},") for value in config.values()), config


def unlock_what_is_left(cloud: World, folder: Path, row: Any) -> None:
    """Take a lock off that nothing of the action minded."""
    now = cloud.server(row.uuid)
    if lock_of(cloud, row.vmid) and now.vm_state != "suspended":
        shell(cloud, folder).run(f"qm unlock {row.vmid}")


def shell(cloud: World, folder: Path) -> RootShell:
    """Root's, on a node."""
    state = cloud.simulator.options.state_dir
    url = cloud.simulator.endpoints[0]["url"]
    return RootShell(url, state / "ca.pem", state / "root-password", folder / "bin")
