"""Each remedy that a finding prints is carried out as it is printed: the finding is gone.

Commands of Proxmox VE run in a shell of root on a node (``tests.fixtures.root_shell``), ours and
OpenStack's in the same one, as an operator would paste them.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from openstack.exceptions import ForbiddenException

from common.failures import RULES
from common.messages.reports import Category
from common.resources.image_files import cloud_in_name
from conductor.audit.kinds import KINDS
from tests.fixtures.root_shell import RootShell
from tests.functional.audit.leaks import (
    CLUSTER,
    Proxmox,
    a_server,
    a_stranger,
    database,
    delete,
    marks,
    row,
)
from tests.functional.audits import Audits
from tests.functional.cloud import EmbeddedCloud, embedded_cloud
from tests.functional.waiting import eventually

SECONDS = 60.0
PROGRAMS = ("qm", "pvesm", "pvesh", "pveum", "ha-manager", "openstack", "micronova")
#: a command in a sentence: up to what ends the sentence, or continues with another command
_COMMAND = re.compile(
    rf"(?<![\w/'-])(?:{'|'.join(PROGRAMS)}) [a-z].*?(?=\.? If |\. |\.$|; |, then|, or: |, with |$)"
)


def commands(remedy: str) -> list[str]:
    """Return the commands that a remedy has among its words."""
    return _COMMAND.findall(remedy)


@dataclass
class Stage:
    """A cloud, and an operator who reads what it prints."""

    cloud: EmbeddedCloud
    root: RootShell
    pve: Proxmox
    audits: Audits
    undo: list[Callable[[], Any]] = field(default_factory=list)
    """What leaves nothing of a test."""

    def shell(self, text: str) -> str:
        """Run commands of all programs; return what they print."""
        environment = self.cloud.environment("micronova-admin")
        ours = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        roots = self.root.environment
        environment |= {**roots, "PATH": f"{roots['PATH']}:{ours}", "PVE_NODE": ""}
        done = subprocess.run(
            ["bash", "-ec", text],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        return done.stdout

    def found(self, kind: str) -> Any:
        """Return the one finding of a kind, once an audit reports it."""

        def there() -> Any:
            self.audits.run()
            listed = self.audits.open(kind)
            return listed[0] if listed else None

        return eventually(there, SECONDS)

    def volume(self) -> Any:
        """Return the record of a new volume."""
        storage = self.cloud.connection().block_storage
        made = storage.create_volume(name="data", size=1)
        storage.wait_for_status(made, "available", wait=60)
        self.undo.append(lambda: self._remove_volume(made.id))
        return self.record("volumes", made.id)

    def record(self, table: str, which: str) -> Any:
        """Return a row by its ID."""
        with database(self.cloud) as connection:
            query = f"SELECT * FROM {table} WHERE id = ?"
            return dict(connection.execute(query, (which,)).fetchone())

    def _remove_volume(self, volume_id: str) -> None:
        storage = self.cloud.connection("micronova-admin").block_storage
        with contextlib.suppress(Exception):
            storage.delete_volume(volume_id, force=True)
        eventually(
            lambda: volume_id not in {one.id for one in storage.volumes(all_projects=True)}, 60
        )

    def server(self, name: str = "web") -> Any:
        """Return the record of a new server."""
        made = a_server(self.cloud, name)
        self.undo.append(lambda: self._remove_server(made["uuid"]))
        return made

    def _remove_server(self, server_uuid: str) -> None:
        if row(self.cloud, server_uuid)["vm_state"] != "deleted":
            delete(self.cloud, server_uuid)

    def attached(self) -> tuple[Any, Any]:
        """Return a server and a volume that it has."""
        volume, server = self.volume(), self.server()
        connection = self.cloud.connection()
        connection.compute.create_volume_attachment(server["uuid"], volume_id=volume["id"])
        connection.block_storage.wait_for_status(
            connection.block_storage.get_volume(volume["id"]), "in-use", wait=60
        )
        return server, self.record("volumes", volume["id"])

    def port(self, server: Any) -> Any:
        """Return the one port of a server."""
        [one] = self.cloud.connection().network.ports(device_id=server["uuid"])
        return one


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCloud]:
    folder = tmp_path_factory.mktemp("remedies")
    options: dict[str, Any] = {"driver": "proxmox", "nodes": 2, "speed": 100}
    options["set"] = "proxmox:sim1.vm_storage=shared"
    with embedded_cloud(folder, audited=False, **options) as running:
        yield running


@pytest.fixture
def stage(cloud: EmbeddedCloud, tmp_path: Path) -> Iterator[Stage]:
    """At its end nothing is left, and an audit finds nothing."""
    pve, state = Proxmox(cloud), cloud.simulator
    root = RootShell(pve.address, state / "ca.pem", state / "root-password", tmp_path / "bin")
    made = Stage(cloud, root, pve, Audits(cloud))
    yield made
    cloud.control("DELETE", "faults")
    for one in reversed(made.undo):
        one()
    made.audits.assert_clean(SECONDS)


# --- what is planted


def _lock_stuck(stage: Stage) -> None:
    vmid = stage.server()["vmid"]
    stage.cloud.control("POST", "faults", action="config-lock", vmid=vmid, lock="backup")


def _half_made(stage: Stage) -> None:
    vmid = stage.server("gone")["vmid"]
    stage.undo.pop()()
    stage.pve.make_vm(vmid, "pve1", name="half")
    stage.cloud.control("POST", "faults", action="config-lock", vmid=vmid, lock="create")


def _mark_lost(stage: Stage) -> None:
    stage.shell(f"qm set {stage.server()['vmid']} --description mine")


def _smbios_edited(stage: Stage) -> None:
    stage.shell(f"qm set {stage.server()['vmid']} --smbios1 uuid={a_stranger()}")


def _replaced(stage: Stage) -> int:
    vmid = int(stage.server()["vmid"])
    stage.shell(f"qm set {vmid} --smbios1 uuid={a_stranger()} --description mine")
    return vmid


def _not_ours(stage: Stage) -> None:
    vmid = _replaced(stage)
    # What the cloud has forgotten is nobody's but root's.
    stage.undo[:] = [lambda: _removed(stage, vmid)]


def _template(stage: Stage) -> int:
    server = stage.server()
    with database(stage.cloud) as connection:
        rows = connection.execute("SELECT vmid FROM templates").fetchall()
    vmid = int(rows[-1][0])
    assert stage.pve.vm(vmid), server
    return vmid


def _template_unmarked(stage: Stage) -> None:
    stage.shell(f"qm set {_template(stage)} --description mine")


def _disk_missing(stage: Stage) -> None:
    vmid = stage.server()["vmid"]
    stage.shell(
        f"qm stop {vmid} && qm set {vmid} --delete scsi0 && qm set {vmid} --delete unused0"
    )


def _of_another_task(stage: Stage) -> None:
    """A disk with the VMID of a server that is deleted, which no task on record made."""
    server = stage.server("gone")
    stage.undo.pop()()
    volid = f"local:{server['vmid']}/vm-{server['vmid']}-disk-5.qcow2"
    # Of a day before: a task that ended just now could have made a newer one.
    since = int(time.time()) - 86_400
    stage.cloud.control("POST", "volume", volid=volid, node=server["node"], ctime=since)


def _holder_without_volume(stage: Stage) -> None:
    volume = stage.volume()
    stage.undo.clear()
    with database(stage.cloud) as connection:
        connection.execute("DELETE FROM volumes WHERE id = ?", (volume["id"],))


def _holder_replaced(stage: Stage) -> None:
    stage.shell(f"qm set {stage.volume()['vmid']} --description mine")


def _volume_missing(stage: Stage) -> None:
    vmid = stage.volume()["vmid"]
    stage.undo.clear()
    stage.shell(f"qm set {vmid} --protection 0 && qm destroy {vmid} --purge")
    volumes = stage.pve.volumes(vmid)
    stage.shell(" && ".join(f"pvesm free {one}" for one in volumes) or "true")


def _backup(stage: Stage) -> Any:
    volume = stage.volume()
    storage = stage.cloud.connection().block_storage
    made = storage.create_backup(name="kept", volume_id=volume["id"])
    storage.wait_for_status(made, "available", failures=["error"], wait=90)

    def remove() -> None:
        with contextlib.suppress(Exception):
            storage.delete_backup(made.id)
        eventually(lambda: made.id not in {one.id for one in storage.backups()}, 60)

    stage.undo.append(remove)
    return stage.record("volume_backups", made.id)


def _backup_without_record(stage: Stage) -> None:
    made = _backup(stage)
    stage.undo.pop()
    with database(stage.cloud) as connection:
        connection.execute("DELETE FROM volume_backups WHERE id = ?", (made["id"],))


def _archive_path(made: Any) -> str:
    storage = made["archive"].partition(":")[0]
    return f"/nodes/{made['node']}/storage/{storage}/content/{made['archive']}"


def _backup_missing(stage: Stage) -> None:
    made = _backup(stage)
    stage.shell(f"pvesh set {_archive_path(made)} --protected 0 && pvesm free {made['archive']}")


def _backup_notes(stage: Stage) -> None:
    stage.shell(f"pvesh set {_archive_path(_backup(stage))} --notes mine")


def _elsewhere(stage: Stage) -> None:
    volume, other = stage.volume(), stage.server("other")
    stage.shell(f"qm set {other['vmid']} --scsi5 {volume['volid']}")


def _not_referenced(stage: Stage) -> None:
    server, volume = stage.attached()
    config = stage.pve.vm(server["vmid"])["config"]
    [slot] = [name for name, value in config.items() if str(value).startswith(volume["volid"])]
    stage.shell(f"qm set {server['vmid']} --delete {slot}")


def _in_vm_snapshot(stage: Stage) -> None:
    server, _ = stage.attached()
    stage.shell(f"qm stop {server['vmid']} && qm snapshot {server['vmid']} byhand")


def plugged(stage: Stage, volume: Any, command: str) -> None:
    """Run a command while a volume's disk is plugged into its holder."""
    vmid = volume["vmid"]
    stage.shell(
        f"qm set {vmid} --protection 0 --scsi0 {volume['volid']} && {command} "
        f"&& qm set {vmid} --delete scsi0 --protection 1"
    )


def _snapshot_without_record(stage: Stage) -> None:
    volume = stage.volume()
    plugged(stage, volume, f"qm snapshot {volume['vmid']} byhand")


def _snapshot(stage: Stage) -> tuple[Any, Any]:
    volume = stage.volume()
    storage = stage.cloud.connection().block_storage
    made = storage.create_snapshot(volume_id=volume["id"], name="s")
    storage.wait_for_status(made, "available", failures=["error"], wait=60)

    def remove() -> None:
        with contextlib.suppress(Exception):
            storage.delete_snapshot(made.id)
        eventually(lambda: made.id not in {one.id for one in storage.snapshots()}, 60)

    stage.undo.append(remove)
    return volume, stage.record("volume_snapshots", made.id)


def _snapshot_missing(stage: Stage) -> None:
    volume, made = _snapshot(stage)
    plugged(stage, volume, f"qm delsnapshot {volume['vmid']} {made['snapname']}")


def _size_differs(stage: Stage) -> None:
    volume = stage.volume()
    plugged(stage, volume, f"qm resize {volume['vmid']} scsi0 +1G")


def _without_nic(stage: Stage) -> None:
    stage.shell(f"qm set {stage.server()['vmid']} --delete net0")


def _nic_elsewhere(stage: Stage) -> None:
    server = stage.server()
    net = stage.pve.vm(server["vmid"])["config"]["net0"]
    stage.shell(f"qm set {server['vmid']} --net0 {net},tag=5")


def _allocation_unknown(stage: Stage) -> None:
    placement = stage.cloud.connection("micronova-admin").placement
    [provider, *_] = placement.get("/resource_providers").json()["resource_providers"]
    held = {provider["uuid"]: {"resources": {"VCPU": 1}}}
    body = {"allocations": held, "project_id": "p", "user_id": "u", "consumer_generation": None}
    answer = placement.put(
        f"/allocations/{uuid.uuid4()}",
        json=body,
        headers={"OpenStack-API-Version": "placement 1.28"},
    )
    assert answer.status_code == 204, answer.text


def _of_deleted_server(stage: Stage) -> None:
    """A build that was late, which the audit may not remove by itself."""
    server = stage.server("late")
    stage.undo.pop()()
    known = marks(server["uuid"], stage.cloud)
    refusal = {"status": 403, "text": "Permission check failed", "times": 0}
    stage.cloud.control("POST", "faults", action="fail", method="DELETE", path="/qemu/", **refusal)
    stage.pve.make_vm(server["vmid"], server["node"], name="late", **known)


def _calm(stage: Stage) -> None:
    stage.cloud.control("DELETE", "faults")


def _left_behind(stage: Stage) -> None:
    server = stage.server()
    [other] = {"pve1", "pve2"} - {server["node"]}
    volid = f"local:{server['vmid']}/vm-{server['vmid']}-disk-7.qcow2"
    stage.cloud.control("POST", "volume", volid=volid, node=other)


def _image_file(stage: Stage) -> None:
    """A file with the cloud's name, of an image that the record never had."""
    with database(stage.cloud) as connection:
        whose = connection.execute("SELECT cloud_id FROM cloud_identity").fetchone()[0]
    name = f"mn-{cloud_in_name(whose)}-{uuid.uuid4()}-0123456789abcdef.raw"
    stage.cloud.control("POST", "volume", volid=f"local:import/{name}", node="pve1")


def _without_server(stage: Stage) -> None:
    other = marks(a_stranger(), None)
    lines = other["description"].splitlines()
    stage.pve.make_vm(
        100_900, "pve1", name="strange", smbios1=other["smbios1"], description=lines[0]
    )


def _drop_marks(stage: Stage) -> None:
    """What the remedy asks of a person before its command: the lines of no cloud go."""
    stage.shell("qm set 100900 --delete description")


def _delete_adopted(stage: Stage) -> None:
    """Delete what was adopted as the server that it is now."""
    compute = stage.cloud.connection("micronova-admin").compute
    [one] = list(compute.servers(all_projects=True))
    compute.delete_server(one.id)
    eventually(lambda: list(compute.servers(all_projects=True)) == [], 60)


def _removed(stage: Stage, vmid: int) -> None:
    """Remove a VM that isn't ours any more, and its drives, as its owner would."""
    if stage.pve.vm(vmid) is not None:
        stage.shell(f"qm stop {vmid} && qm destroy {vmid} --purge")
    for volid in stage.pve.volumes(vmid):
        stage.shell(f"pvesm free {volid}")


@dataclass(frozen=True)
class Case:
    """What is planted, and which of the printed commands are run (others are alternatives)."""

    plant: Callable[[Stage], object]
    run: slice = field(default_factory=lambda: slice(None))
    values: Mapping[str, str] = field(default_factory=dict)
    """What stands for something that only the reader knows."""
    kind: str = ""
    """Where it isn't the case's own name."""
    first: Callable[[Stage], object] | None = None
    """What a person does before, as the remedy says in words."""
    after: Callable[[Stage], object] | None = None


CASES: Mapping[str, Case] = {
    "vm_of_deleted_server": Case(_of_deleted_server, first=_calm),
    "vm_without_server": Case(
        _without_server,
        values={"…": "demo"},
        first=_drop_marks,
        after=_delete_adopted,
    ),
    "volume_left_behind": Case(_left_behind),
    "image_file_without_image": Case(_image_file),
    "vm_half_made": Case(_half_made),
    "lock_stuck": Case(_lock_stuck),
    "mark_lost": Case(_mark_lost),
    "smbios_edited": Case(_smbios_edited),
    "vm_replaced": Case(_replaced, slice(0, 2)),
    "vm_replaced, by another": Case(_not_ours, slice(2, 3), kind="vm_replaced"),
    "template_unmarked": Case(_template_unmarked),
    "disk_missing": Case(_disk_missing, slice(1, None)),
    "volume_without_vm": Case(_of_another_task),
    "holder_without_volume": Case(_holder_without_volume),
    "holder_replaced": Case(_holder_replaced),
    "volume_missing": Case(_volume_missing),
    "backup_without_record": Case(_backup_without_record),
    "backup_missing": Case(_backup_missing, slice(0, 1)),
    "backup_missing, its notes": Case(_backup_notes, slice(1, 2), kind="backup_missing"),
    "volume_referenced_elsewhere": Case(_elsewhere),
    "volume_not_referenced": Case(_not_referenced),
    "volume_in_vm_snapshot": Case(_in_vm_snapshot),
    "snapshot_without_record": Case(_snapshot_without_record),
    "snapshot_missing": Case(_snapshot_missing),
    "volume_size_differs": Case(_size_differs, values={"<GiB>": "3"}),
    "port_without_nic": Case(_without_nic),
    "nic_elsewhere": Case(_nic_elsewhere),
    "allocation_unknown": Case(_allocation_unknown),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_printed_mends_it(stage: Stage, name: str) -> None:
    case = CASES[name]
    kind = case.kind or name
    case.plant(stage)
    found = stage.found(kind)
    printed = commands(found["remedy"])[case.run]
    assert printed, found["remedy"]
    if case.first is not None:
        case.first(stage)
    for line in printed:
        known = re.sub("<.*?>|…", lambda one: case.values[one[0]], line)
        # It asks on a terminal.
        stage.shell(f"{known} --yes" if known == "micronova orphan reap" else known)
        eventually(lambda: settled(stage.cloud), SECONDS)

    def gone() -> bool:
        stage.audits.run()
        return stage.audits.open(kind) == []

    eventually(gone, SECONDS)
    if case.after is not None:
        case.after(stage)


def test_a_quota_that_is_used_up(stage: Stage) -> None:
    admin = stage.cloud.connection("micronova-admin")
    project = stage.cloud.connection().current_project_id
    admin.compute.update_quota_set(project, instances=0)
    with pytest.raises(ForbiddenException, match="Quota exceeded"):
        stage.server()
    for line in RULES[Category.QUOTA_EXCEEDED].remedy.split("; "):
        stage.shell(line.replace("<project>", project).replace("<number>", "10"))
    stage.server()


def settled(cloud: EmbeddedCloud) -> bool:
    """Whether nothing is under way."""
    with database(cloud) as connection:
        query = "SELECT count(*) FROM operations WHERE finished_at IS NULL"
        return bool(connection.execute(query).fetchone()[0] == 0)


def test_every_case_is_a_kind() -> None:
    assert {case.kind or name for name, case in CASES.items()} <= KINDS.keys()
    assert CLUSTER
