"""A volume that a snapshot names is not freed, and to a missing one nothing is rolled back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fixtures.storages import NATIVE, STORAGES
from tests.functional.simulator.conftest import Lab, refusal
from tests.functional.simulator.test_storage_kinds import data_of, door

IN_USE = "unable to delete '{}' - volume is still in use (snapshot?)"


def snapped(lab: Lab, kind: str, **more: Any) -> tuple[Any, str]:
    """A VM with a disk of that type, in the snapshot `one`."""
    one = STORAGES[kind]
    door(lab, "storage", name="data", type=one.type, options=one.options)
    form = ",format=qcow2" if one.suffix == ".qcow2" else ""
    assert lab.create(100, scsi0="shared:1,format=qcow2", scsi1=f"data:1{form}", **more) == "OK"
    api = lab.api.nodes("pve1").qemu(100)
    volid = one.volid("data", 100)
    assert str(api.config.get()["scsi1"]).partition(",")[0] == volid
    assert lab.done(api.snapshot.post(snapname="one")) == "OK"
    return api, volid


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", NATIVE)
def test_a_disk_in_a_snapshot_is_not_freed(lab: Lab, kind: str) -> None:
    api, volid = snapped(lab, kind)
    api.config.put(delete="scsi1")
    assert api.config.get()["unused0"] == volid
    text = IN_USE.format(volid)
    assert refusal(lambda: api.config.put(delete="unused0")) == (500, text)
    assert lab.done(api.config.post(delete="unused0")) == text
    assert refusal(lambda: api.unlink.put(idlist="unused0")) == (500, text)
    assert volid in lab.volumes(100)
    # The snapshot that named it is gone: it may be freed.
    assert lab.done(api.snapshot("one").delete()) == "OK"
    api.config.put(delete="unused0")
    assert volid not in lab.volumes(100)


def test_a_disk_that_another_drive_names_is_not_freed(lab: Lab) -> None:
    assert lab.create(100) == "OK"
    api = lab.api.nodes("pve1").qemu(100)
    volid = str(api.config.get()["scsi0"]).partition(",")[0]
    api.config.put(scsi1=volid)
    status, text = refusal(lambda: api.unlink.put(idlist="scsi1", force=1))
    assert (status, text) == (400, "Parameter verification failed.")
    assert volid in lab.volumes(100)


@pytest.mark.parametrize("running", [False, True])
def test_a_disk_in_a_snapshot_is_not_freed_by_force(lab: Lab, running: bool) -> None:
    api, volid = snapped(lab, "nfs")
    if running:
        assert lab.done(api.status.start.post()) == "OK"
    assert refusal(lambda: api.config.put(delete="scsi1", force=1))[0] == 400
    waits = next(one for one in api.pending.get() if one["key"] == "scsi1")
    assert (waits["value"].partition(",")[0], waits["delete"]) == (volid, 2)
    if running:
        assert lab.done(api.status.stop.post()) == "OK"
    assert volid in lab.volumes(100)
    assert str(api.config.get(current=1)["scsi1"]).partition(",")[0] == volid


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", NATIVE)
def test_a_missing_volume_is_neither_rolled_back_to_nor_its_snapshot_deleted(
    lab: Lab, kind: str
) -> None:
    api, volid = snapped(lab, kind)
    api.config.put(delete="scsi1")
    # Nothing protects it from a removal by name, which takes the snapshots along.
    assert lab.done(lab.api.nodes("pve1").storage("data").content(volid).delete()) == "OK"
    assert volid not in lab.volumes(100)
    end = lab.done(api.snapshot("one").rollback.post())
    assert end != "OK"
    chained = "chain" in kind
    # What is checked before leaves no lock.
    assert lab.lock_of(100) == ("" if chained else "rollback")
    if chained:
        assert lab.done(api.snapshot("one").delete()) != "OK"
        assert lab.lock_of(100) == "snapshot-delete"
        assert api.snapshot("one").config.get()["snapstate"] == "delete"
        assert lab.done(api.snapshot("one").rollback.post()) != "OK"


def test_a_roll_back_of_a_template_and_to_what_is_half_deleted_is_refused(lab: Lab) -> None:
    api, volid = snapped(lab, "lvmthin")
    api.config.put(delete="scsi1")
    assert lab.done(lab.api.nodes("pve1").storage("data").content(volid).delete()) == "OK"
    assert "lvremove snapshot 'data/snap_" in lab.done(api.snapshot("one").delete())
    end = lab.done(api.snapshot("one").rollback.post())
    assert end == "unable to rollback to incomplete snapshot (snapstate = delete)"
    assert lab.done(api.snapshot("one").delete(force=1)) == "VM is locked (snapshot-delete)"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", NATIVE)
def test_what_was_attached_since_becomes_unused_even_of_another_vm(lab: Lab, kind: str) -> None:
    api, volid = snapped(lab, kind)
    assert lab.create(101, scsi0="shared:1") == "OK"
    other = str(lab.api.nodes("pve1").qemu(101).config.get()["scsi0"]).partition(",")[0]
    api.config.put(scsi2=other)
    door(lab, "write", volid=volid, data="after")
    assert lab.done(api.snapshot("one").rollback.post()) == "OK"
    config = api.config.get()
    assert (config["unused0"], "scsi2" in config) == (other, False)
    assert data_of(lab, volid) == ""
    # Of another VM's volume only the line is deleted.
    api.config.put(delete="unused0")
    assert lab.volumes(101) == [other]


def test_a_snapshot_as_a_volume_needs_nobody_who_has_the_disk_open(lab: Lab) -> None:
    """Its disk is renamed while a VM has the disk open: what is written then is lost."""
    door(lab, "storage", name="data", type="lvm", options=STORAGES["lvm-chain"].options)
    assert lab.create(100, scsi0="data:1") == "OK"
    api = lab.api.nodes("pve1").qemu(100)
    volid = str(api.config.get()["scsi0"]).partition(",")[0]
    door(lab, "write", volid=volid, data="before")
    assert lab.create(101, scsi0="shared:1", scsi1=volid) == "OK"
    other = lab.api.nodes("pve1").qemu(101)
    assert lab.done(other.status.start.post()) == "OK"
    assert lab.done(api.snapshot.post(snapname="one")) == "OK"
    assert data_of(lab, volid) == "torn before"
    assert lab.done(api.snapshot.post(snapname="two")) == "OK"
    end = lab.done(api.snapshot("one").rollback.post())
    name = volid.partition(":")[2]
    assert end == f"can't rollback, 'one' is not most recent snapshot on '{name}'"


def test_a_chained_volume_that_nobody_has_open_has_no_size(lab: Lab) -> None:
    door(lab, "storage", name="data", type="lvm", options=STORAGES["lvm-chain"].options)
    assert lab.create(100, scsi0="data:1") == "OK"
    node = lab.api.nodes("pve1")
    (listed,) = node.storage("data").content.get(vmid=100)
    assert listed["volid"] == "data:vm-100-disk-0.qcow2"
    assert "size" not in listed
    assert listed["approximate-size"] > 1 << 30
    status, text = refusal(lambda: node.storage("data").content(listed["volid"]).get())
    assert (status, text) == (500, f"volume_size_info on '{listed['volid']}' failed - no format")
    assert lab.done(node.qemu(100).status.start.post()) == "OK"
    (listed,) = node.storage("data").content.get(vmid=100)
    assert listed["size"] == 1 << 30
    assert node.storage("data").content(listed["volid"]).get()["format"] == "qcow2"


def test_a_snapshot_of_a_thick_volume_takes_its_whole_size(lab: Lab) -> None:
    door(lab, "storage", name="data", type="lvm", options=STORAGES["lvm-chain"].options)
    assert lab.create(100, scsi0="data:400") == "OK"
    api = lab.api.nodes("pve1").qemu(100)
    assert lab.done(api.snapshot.post(snapname="one")) == "OK"
    end = lab.done(api.snapshot.post(snapname="two"))
    assert end.startswith("lvcreate 'data/vm-100-disk-0.qcow2' error:   Volume group \"data\" has")
    assert lab.lock_of(100) == ""
    assert lab.done(api.snapshot("one").delete()) == "OK"
    assert lab.done(api.snapshot.post(snapname="two")) == "OK"
