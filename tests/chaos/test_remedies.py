"""Each remedy that a fault prints is carried out, and the action that failed succeeds after it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
import sqlalchemy as sa

from common import ids
from common.context import RequestContext
from common.failures import RULES
from common.messages.reports import Category
from conductor.rpc.servers.servers import RebuildServer
from db import schema
from tests.chaos.cloud import IMAGE
from tests.chaos.world import World, world
from tests.fixtures.root_shell import RootShell

ADMIN = RequestContext(user_id="boss", project_id="admin", roles=["admin"], is_admin=True)
OTHER = ids.named("server", "other")
_OURS = re.compile(r"^(?:micronova|openstack) server (\w+) (?:--hard )?(\S+)$")


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as running:
        yield running


class Operator:
    """Reads the last fault of a server, and does what its remedy says and nothing else."""

    def __init__(self, cloud: World, folder: Path) -> None:
        self._cloud = cloud
        state = cloud.simulator.options.state_dir
        url = cloud.simulator.endpoints[0]["url"]
        self._shell = RootShell(url, state / "ca.pem", state / "root-password", folder / "bin")

    def run(self, line: str) -> str:
        """As root on a node."""
        return self._shell.run(line)

    def follow(self, remedy: str) -> None:
        """Carry a remedy out, with a shell on the node or with our own commands."""
        ours = _OURS.match(remedy)
        if ours is None:
            self._shell.run(remedy)
            return
        verb, uuid = ours[1], ours[2]
        client = self._cloud.client
        if verb == "mark":
            client.mark_server(ADMIN, uuid)
        elif verb == "forget":
            client.abandon(ADMIN, uuid, "it is gone", force=False)
        elif verb == "rebuild":
            request = RebuildServer(ids.named("image", IMAGE))
            client.rebuild_server(self._cloud.context(), uuid, request)
        else:
            self._cloud.act(uuid, verb)


@pytest.fixture
def operator(cloud: World, tmp_path: Path) -> Operator:
    return Operator(cloud, tmp_path)


def refused(cloud: World, uuid: str, action: str) -> Any:
    """Have an action fail, and end; its fault."""
    before = len(cloud.faults(uuid))
    cloud.act(uuid, action)
    cloud.until(lambda: len(cloud.faults(uuid)) > before and cloud.server(uuid).task_state is None)
    assert not cloud.server(uuid).deleted_at
    return cloud.faults(uuid)[-1]


def succeeds(cloud: World, uuid: str, action: str) -> None:
    """The same again, which works now."""
    if action == "delete":
        cloud.delete(uuid)
        return
    cloud.act(uuid, action)
    wanted = {"stop": "stopped", "start": "active"}[action]
    cloud.until(lambda: cloud.server(uuid).vm_state == wanted)
    cloud.delete(uuid)


NOTES = {
    "replaced": "--description 'Kunde: Meier, Rechnung 4711'",
    "emptied": "--delete description",
    "of another server": f"--description 'micronova: server={OTHER}'",
}


@pytest.mark.parametrize("action", ["stop", "delete"])
@pytest.mark.parametrize("notes", NOTES.values(), ids=NOTES)
def test_notes_that_were_edited(cloud: World, operator: Operator, notes: str, action: str) -> None:
    row = cloud.built("db")
    operator.run(f"qm set {row.vmid} {notes}")
    fault = refused(cloud, row.uuid, action)
    assert (fault.category, fault.remedy) == ("mark_lost", f"micronova server mark {row.uuid}")
    assert cloud.server(row.uuid).vm_state == "active", "it is as it was"
    operator.follow(fault.remedy)
    cloud.until(lambda: marked(cloud, row))
    succeeds(cloud, row.uuid, action)


def marked(cloud: World, row: Any) -> bool:
    config = cloud.simulator.cluster().vms[row.vmid].config
    return f"micronova: server={row.uuid}" in config.get("description", "").splitlines()


@pytest.mark.parametrize("action", ["stop", "delete"])
def test_an_smbios_uuid_that_was_edited(cloud: World, operator: Operator, action: str) -> None:
    row = cloud.built("db")
    operator.run(f"qm set {row.vmid} --smbios1 uuid={OTHER}")
    fault = refused(cloud, row.uuid, action)
    assert fault.category == "mark_lost"
    assert fault.remedy.startswith(f"if it is the server's, as root on {row.node}: qm set ")
    operator.follow(fault.remedy)
    succeeds(cloud, row.uuid, action)


@pytest.mark.parametrize("action", ["stop", "delete"])
def test_a_vm_that_lost_all_its_marks(cloud: World, operator: Operator, action: str) -> None:
    row = cloud.built("db")
    operator.run(f"qm set {row.vmid} --description mine --smbios1 uuid={OTHER}")
    fault = refused(cloud, row.uuid, action)
    assert (fault.category, fault.remedy) == ("foreign", f"micronova server forget {row.uuid}")
    operator.follow(fault.remedy)
    cloud.until(lambda: cloud.server(row.uuid).deleted_at)
    assert row.vmid in cloud.simulator.cluster().vms, "it is not ours to remove"
    config = cloud.simulator.cluster().vms[row.vmid].config
    drive = next(value for value in config.values() if ":iso/" in value).partition(",")[0]
    operator.run(f"qm stop {row.vmid}")
    cloud.until(lambda: stopped(cloud, row))
    operator.run(f"qm destroy {row.vmid} --purge")
    cloud.until(lambda: row.vmid not in cloud.simulator.cluster().vms)
    operator.run(f"pvesm free {drive}")


def kept(cloud: World, operator: Operator, row: Any) -> None:
    """Taken off the VM, where it is left unused."""
    operator.run(f"qm set {row.vmid} --delete scsi0")


def removed(cloud: World, operator: Operator, row: Any) -> None:
    """Taken off the VM, and removed."""
    operator.run(f"qm set {row.vmid} --delete scsi0")
    operator.run(f"qm set {row.vmid} --delete unused0")


def freed(cloud: World, operator: Operator, row: Any) -> None:
    """Removed on the storage, as `rm` or `lvremove` does; the VM still names it."""
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        volid = cluster.vms[row.vmid].config["scsi0"].partition(",")[0]
        volume = cluster.volume(volid, row.node)
        assert volume is not None
        cluster.remove_volume(volume)


@pytest.mark.parametrize("action", ["start", "reboot-hard"])
@pytest.mark.parametrize("how", [kept, removed, freed])
def test_a_root_disk_that_was_removed(
    cloud: World,
    operator: Operator,
    how: Callable[[World, Operator, Any], None],
    action: str,
) -> None:
    row = cloud.built("db")
    cloud.act(row.uuid, "stop")
    cloud.until(lambda: cloud.server(row.uuid).vm_state == "stopped")
    how(cloud, operator, row)
    assert set(findings(cloud)) == {"disk_missing"}
    fault = refused(cloud, row.uuid, action)
    assert fault.category == "disk_lost"
    assert cloud.server(row.uuid).vm_state == "stopped", "it is never started without"
    if how is not kept:
        assert fault.remedy == f"openstack server rebuild {row.uuid}"
    operator.follow(fault.remedy)
    cloud.until(lambda: cloud.server(row.uuid).task_state is None and has_root(cloud, row))
    assert not cloud.faults(row.uuid)[1:]
    assert findings(cloud) == {}
    succeeds(cloud, row.uuid, "start")


def has_root(cloud: World, row: Any) -> bool:
    cluster = cloud.simulator.cluster()
    config = cluster.vms[row.vmid].config
    volid = config.get("scsi0", "").partition(",")[0]
    return bool(volid) and cluster.volume(volid, row.node) is not None


def findings(cloud: World) -> dict[str, Any]:
    """What the audit says once the VM was read."""
    cloud.audited()
    query = sa.select(schema.findings).where(schema.findings.c.healed_at.is_(None))
    return {one.kind: one for one in cloud.rows(query)}


def test_a_protected_vm(cloud: World, operator: Operator) -> None:
    row = cloud.built("db")
    operator.run(f"qm set {row.vmid} --protection 1")
    fault = refused(cloud, row.uuid, "delete")
    assert fault.category == "protected"
    operator.follow(fault.remedy)
    succeeds(cloud, row.uuid, "delete")


def test_a_vm_that_is_gone(cloud: World, operator: Operator) -> None:
    row = cloud.built("db")
    operator.run(f"qm stop {row.vmid}")
    cloud.until(lambda: stopped(cloud, row))
    operator.run(f"qm destroy {row.vmid} --purge")
    cloud.until(lambda: row.vmid not in cloud.simulator.cluster().vms)
    fault = refused(cloud, row.uuid, "reboot-hard")
    assert fault.category == "vanished"
    operator.follow(fault.remedy)
    cloud.until(lambda: cloud.server(row.uuid).deleted_at)


def stopped(cloud: World, row: Any) -> bool:
    return bool(cloud.simulator.cluster().vms[row.vmid].status == "stopped")


@pytest.mark.parametrize("action", ["stop", "delete"])
def test_a_privilege_that_was_taken(cloud: World, operator: Operator, action: str) -> None:
    row = cloud.built("db")
    role = cloud.simulator.cluster().access.roles["Micronova"]
    operator.run(
        f"pveum role modify Micronova --privs '{','.join(sorted(role - {'VM.PowerMgmt'}))}'"
    )
    cloud.act(row.uuid, action)
    fault = cloud.until(lambda: cloud.faults(row.uuid))[-1]
    assert fault.category == "authorization"
    assert "pveum role modify Micronova --append 1 --privs 'VM.PowerMgmt'" in fault.remedy
    operator.follow(fault.remedy)
    succeeds(cloud, row.uuid, action)


def test_a_task_that_failed_is_explained_and_not_only_repeated(
    cloud: World, operator: Operator
) -> None:
    row = cloud.built("db")
    operator.run(f"qm stop {row.vmid}")
    cloud.until(lambda: cloud.server(row.uuid).vm_state == "stopped")
    text = "start failed: QEMU exited with code 1"
    cloud.simulator.fault(
        action="task-fail", method="POST", path="/status/start$", text=text, times=9
    )
    fault = refused(cloud, row.uuid, "start")
    assert fault.category == "creation_failed"
    log, _, again = fault.remedy.partition("; mend what it says, then: ")
    assert log == f"as root on a node of the cluster: pvenode task log {quote(fault.upid)}"
    assert text in operator.run(log)
    cloud.simulator.clear_faults()
    assert again == f"openstack server start {row.uuid}"
    succeeds(cloud, row.uuid, "start")


@pytest.mark.parametrize("category", Category)
def test_every_category_has_a_remedy(category: Category) -> None:
    text = RULES[category].remedy
    # The decision says what would have worked; a protected VM always has the line.
    assert text or category in {Category.NO_VALID_HOST, Category.PROTECTED}
    passing = {Category.LOCK, Category.TASK_TIMEOUT, Category.UNKNOWN_OUTCOME}
    filled = text.format(server="SERVER", again="AGAIN", log="LOG", where="WHERE")
    assert filled != "AGAIN" or category in passing, "only what passes by itself is just repeated"
    assert "explain" not in text, "that is where it is read"
