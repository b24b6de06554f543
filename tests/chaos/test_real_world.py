"""What a real Proxmox VE did to servers, as stories that end well here."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock
from common.context import RequestContext
from db import schema
from tests.chaos.cloud import BOUND_SECONDS
from tests.chaos.world import World, world


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[World]:
    """A cloud of its own for each story."""
    with world(tmp_path) as running:
        yield running


def vm_of(cloud: World, row: Any) -> Any:
    """The server's VM in Proxmox VE; None: it is gone."""
    vms = cloud.simulator.state()["sim1"]["vms"]
    return next((vm for vm in vms if vm["vmid"] == row.vmid), None)


def configure(cloud: World, row: Any, **values: str) -> None:
    """What a person at the cluster changes of a VM."""
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        cluster.edit(cluster.vms[row.vmid]).config.update(values)


def at_rest(cloud: World, uuid: str) -> Any:
    """The server's row once nothing is being done to it."""
    return cloud.until(lambda: (row := cloud.server(uuid)).task_state is None and row)


def last_operation(cloud: World, uuid: str) -> Any:
    """What was asked last of a server."""
    columns = schema.operations.c
    query = sa.select(schema.operations).where(columns.resource_id == uuid)
    return cloud.rows(query.order_by(columns.id))[-1]


def test_a_protected_server_is_not_stopped_by_its_delete(cloud: World) -> None:
    """The VM was stopped, then Proxmox VE refused to destroy it: a server down, and not deleted.

    Here the delete ends at once, the server is as it was, and the fault names the line that lifts
    the protection; then it can be deleted.
    """
    row = cloud.built("precious")
    configure(cloud, row, protection="1")
    before = vm_of(cloud, row)
    cloud.act(row.uuid, "delete")
    after = at_rest(cloud, row.uuid)
    assert (after.vm_state, after.deleted_at) == ("active", None)
    assert vm_of(cloud, row)["pid"] == before["pid"]
    operation = last_operation(cloud, row.uuid)
    assert (operation.action, operation.state, operation.attempt) == ("delete", "failed", 1)
    fault = cloud.faults(row.uuid)[-1]
    assert fault.category == "protected"
    assert fault.remedy == f"as root on {row.node}: qm set {row.vmid} --protection 0"
    cloud.follow_remedies()
    assert fault.remedy in cloud.followed
    cloud.delete(row.uuid)
    assert vm_of(cloud, row) is None


def pid_of(cloud: World, row: Any) -> int:
    """Of the server's QEMU."""
    return int(vm_of(cloud, row)["pid"])


def failed_tasks(cloud: World, row: Any) -> list[str]:
    """How the node's tasks on the VM ended that did not end well."""
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        ended = [one for one in cluster.tasks.archive(row.node) if one.id == str(row.vmid)]
    return [one.exitstatus for one in ended if one.exitstatus != "OK"]


def test_a_backup_delays_a_hard_reboot_and_fails_nothing(cloud: World) -> None:
    """A hard reboot met the lock of a backup: ERROR for good, and the server ran.

    Here it waits until the VM is unlocked; the server shows until then that it is being rebooted.
    """
    row = cloud.built("backed-up")
    order = cloud.simulator.fault(action="config-lock", vmid=row.vmid, lock="backup")
    cloud.act(row.uuid, "reboot-hard")
    cloud.until(lambda: cloud.faults(row.uuid))
    waiting = cloud.server(row.uuid)
    assert (waiting.vm_state, waiting.task_state) == ("active", "rebooting_hard")
    fault = cloud.faults(row.uuid)[0]
    assert (fault.category, "backup" in fault.message) == ("lock", True)
    cloud.simulator.take_back(order)
    after = at_rest(cloud, row.uuid)
    assert after.vm_state == "active"
    assert last_operation(cloud, row.uuid).state == "done"


@pytest.mark.parametrize("action", ["reboot-hard", "reboot", "stop"])
def test_a_power_action_that_is_forbidden_leaves_a_running_server_active(
    cloud: World, action: str
) -> None:
    """A 403 left it in ERROR for good. Here the action has failed, and the server runs."""
    row = cloud.built("forbidden")
    before = pid_of(cloud, row)
    cloud.simulator.fault(
        action="fail",
        status=403,
        method="POST",
        path=r"/status/\w+$",
        text=f"Permission check failed (/vms/{row.vmid}, VM.PowerMgmt)",
        times=0,
    )
    cloud.act(row.uuid, action)
    after = at_rest(cloud, row.uuid)
    assert (after.vm_state, after.power_state) == ("active", 1)
    assert pid_of(cloud, row) == before
    assert last_operation(cloud, row.uuid).state == "failed"
    fault = cloud.faults(row.uuid)[-1]
    assert fault.category == "authorization"
    assert "--privs 'VM.PowerMgmt'" in fault.remedy
    cloud.calm()
    cloud.act(row.uuid, "stop")
    assert at_rest(cloud, row.uuid).vm_state == "stopped"


def test_a_node_whose_daemons_restart_delays_a_hard_reboot(cloud: World) -> None:
    """A 595 left the server in ERROR for good. Here the node is waited for."""
    row = cloud.built("unlucky")
    cloud.simulator.fault(action="daemon-down", node=row.node)
    cloud.act(row.uuid, "reboot-hard")
    cloud.until(lambda: cloud.faults(row.uuid))
    assert cloud.server(row.uuid).vm_state == "active"
    cloud.calm()
    assert at_rest(cloud, row.uuid).vm_state == "active"
    assert last_operation(cloud, row.uuid).state == "done"


def test_hard_reboots_and_a_delete_in_a_row_keep_nobody_waiting(cloud: World) -> None:
    """After a stop and a start the node holds the VM's lock for 30 s: the second hard reboot, and
    the delete after it, stopped the VM three times in vain. Here it is reset."""
    row = cloud.built("restless")
    before = pid_of(cloud, row)
    for _ in range(2):
        cloud.act(row.uuid, "reboot-hard")
        assert at_rest(cloud, row.uuid).vm_state == "active"
    assert pid_of(cloud, row) == before
    cloud.delete(row.uuid)
    assert failed_tasks(cloud, row) == []


def until_shown(cloud: World, check: Any) -> Any:
    """Return the first true answer; unlike ``until`` it ends no pause."""
    deadline, pause = time.monotonic() + BOUND_SECONDS, threading.Event()
    while not (answer := check()):
        assert time.monotonic() < deadline, cloud.progress()
        pause.wait(0.1)
    return answer


def let_it_wait(cloud: World, uuid: str) -> None:
    """Return when the last operation has met its first fault; it waits for an hour then."""
    until_shown(cloud, lambda: cloud.faults(uuid))
    until_shown(cloud, lambda: last_operation(cloud, uuid).not_before)
    mine = schema.operations.c.id == last_operation(cloud, uuid).id
    with cloud.engine.begin() as connection:
        later = schema.operations.update().where(mine).values(not_before=clock.after(3600))
        connection.execute(later)


def test_an_unlocked_vm_is_deleted_within_seconds(cloud: World) -> None:
    """A delete that had met a lock waited out its pause, up to ten minutes, after it was gone."""
    row = cloud.built("unlocked")
    order = cloud.simulator.fault(action="config-lock", vmid=row.vmid, lock="backup")
    cloud.act(row.uuid, "delete")
    let_it_wait(cloud, row.uuid)
    # Looks have seen the lock by then.
    seen = len(cloud.simulator.recorder.since(0))
    looks = "/cluster/resources"
    until_shown(cloud, lambda: count(cloud, looks, seen) >= 2)
    cloud.simulator.take_back(order)
    until_shown(cloud, lambda: cloud.server(row.uuid).deleted_at)
    assert len(cloud.faults(row.uuid)) == 1


def count(cloud: World, path: str, since: int = 0) -> int:
    """Requests whose path ends so."""
    return sum(one["path"].endswith(path) for one in cloud.simulator.recorder.since(since))


def test_privileges_that_are_given_back_are_seen_at_once(cloud: World) -> None:
    """They were seen a minute later, and what waited for them waited up to ten minutes more."""
    row = cloud.built("forbidden")
    access = cloud.simulator.cluster().access
    with cloud.simulator.cluster().turn():
        taken = [grant for grant in access.grants if "/vms" in grant.path or grant.path == "/"]
        access.grants = [grant for grant in access.grants if grant not in taken]
        access.changed()
    cloud.act(row.uuid, "delete")
    let_it_wait(cloud, row.uuid)
    columns = schema.hosts.c
    unwell = sa.select(columns.facts).where(columns.host == row.host)
    until_shown(cloud, lambda: not cloud.rows(unwell)[0][0]["healthy"])
    with cloud.simulator.cluster().turn():
        access.grants = [*access.grants, *taken]
        access.changed()
    until_shown(cloud, lambda: cloud.server(row.uuid).deleted_at)


def test_an_operator_hurries_what_waits_and_brings_a_well_server_back(cloud: World) -> None:
    """There was no way to have a delete tried again, and none out of ERROR for a server whose VM
    is well."""
    row = cloud.built("hurried")
    with cloud.engine.begin() as connection:
        connection.execute(
            schema.servers.update()
            .where(schema.servers.c.uuid == row.uuid)
            .values(vm_state="error")
        )
    admin = RequestContext(user_id="boss", project_id="p", roles=["admin"], is_admin=True)
    cloud.client.retry_server(admin, row.uuid)
    cloud.until(lambda: cloud.server(row.uuid).vm_state == "active")
    cloud.simulator.fault(
        action="fail",
        status=500,
        method="DELETE",
        path=rf"/qemu/{row.vmid}$",
        text=f"can't lock file '/var/lock/qemu-server/lock-{row.vmid}.conf' - got timeout",
        times=4,
    )
    cloud.act(row.uuid, "delete")
    let_it_wait(cloud, row.uuid)
    cloud.client.retry_server(admin, row.uuid)
    until_shown(cloud, lambda: cloud.server(row.uuid).deleted_at)


def test_a_build_waits_for_the_only_host_that_does_not_answer(tmp_path: Path) -> None:
    """A 595 from the only host that could take it was ERROR after four seconds."""
    with world(tmp_path, nodes=1) as cloud:
        cloud.simulator.fault(
            action="fail", status=595, text="Connection refused", path=r"/upload$", times=0
        )
        cloud.create("patient")
        row = cloud.until(lambda: cloud.named("patient"))
        cloud.until(lambda: cloud.faults(row.uuid))
        assert cloud.faults(row.uuid)[0].category == "node_unhealthy"
        assert cloud.server(row.uuid).vm_state == "building"
        cloud.calm()
        assert at_rest(cloud, row.uuid).vm_state == "active"


def test_a_build_whose_node_falls_silent_half_way_is_gone_on_with(cloud: World) -> None:
    """What was made can't be removed while the node is silent, so it is used."""
    cloud.simulator.fault(
        action="fail", status=595, text="Connection refused", path="/status/start$", times=3
    )
    row = cloud.built("half-way")
    assert row.vm_state == "active"
    assert {fault.category for fault in cloud.faults(row.uuid)} == {"node_unhealthy"}
