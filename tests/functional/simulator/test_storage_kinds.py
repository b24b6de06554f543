"""What storages of each type can do: snapshots, copies of them, and rolling back."""

from __future__ import annotations

import json
import ssl
import urllib.request
from typing import Any

import pytest

from tests.functional.simulator.conftest import Lab, refusal


def door(lab: Lab, door_name: str, /, **given: Any) -> Any:
    url = f"{lab.simulator.endpoints[0]['url']}/_sim/{door_name}"
    request = urllib.request.Request(url, json.dumps(given).encode(), method="POST")
    context = ssl.create_default_context(cafile=lab.simulator.options.state_dir / "ca.pem")
    with urllib.request.urlopen(request, context=context, timeout=60) as answer:
        return json.load(answer)


def data_of(lab: Lab, volid: str) -> str:
    (found,) = [one for one in lab.simulator.state()["sim1"]["volumes"] if one["volid"] == volid]
    return str(found["data"])


def vm(lab: Lab, storage: str, vmid: int = 100) -> tuple[Any, str]:
    assert lab.create(vmid, scsi0=f"{storage}:1") == "OK"
    api = lab.api.nodes("pve1").qemu(vmid)
    return api, str(api.config.get()["scsi0"]).partition(",")[0]


@pytest.mark.parametrize("kind", ["lvmthin", "rbd", "nfs"])
def test_a_snapshot_is_copied_and_rolled_back(lab: Lab, kind: str) -> None:
    door(lab, "storage", name="data", type=kind, shared=kind != "lvmthin")
    assert lab.create(100, scsi0="data:1" + (",format=qcow2" if kind == "nfs" else "")) == "OK"
    api = lab.api.nodes("pve1").qemu(100)
    volid = str(api.config.get()["scsi0"]).partition(",")[0]
    assert volid == ("data:100/vm-100-disk-0.qcow2" if kind == "nfs" else "data:vm-100-disk-0")
    door(lab, "write", volid=volid, data="before")
    assert api.feature.get(feature="snapshot")["hasFeature"] == 1
    assert lab.done(api.snapshot.post(snapname="one")) == "OK"
    door(lab, "write", volid=volid, data="after")

    assert lab.done(api.clone.post(newid=101, snapname="one", full=1)) == "OK"
    copy = str(lab.api.nodes("pve1").qemu(101).config.get()["scsi0"]).partition(",")[0]
    assert data_of(lab, copy) == "before"
    assert lab.done(api.snapshot("one").rollback.post()) == "OK"
    assert data_of(lab, volid) == "before"
    assert lab.done(api.snapshot("one").delete()) == "OK"
    assert lab.volumes(100) == [volid]


def test_of_a_zfs_snapshot_there_is_no_copy_and_only_the_last_is_rolled_back_to(lab: Lab) -> None:
    door(lab, "storage", name="data", type="zfspool")
    api, volid = vm(lab, "data")
    assert lab.done(api.snapshot.post(snapname="one")) == "OK"
    assert lab.done(api.snapshot.post(snapname="two")) == "OK"
    assert api.feature.get(feature="copy", snapname="one")["hasFeature"] == 0
    refused = refusal(lambda: api.clone.post(newid=101, snapname="one", full=1))
    assert refused == (500, f"Full clone feature is not supported for '{volid}' (scsi0)")
    assert lab.done(api.snapshot("one").rollback.post()).startswith("can't rollback, 'one' is not")


def test_a_thick_volume_has_no_snapshots(lab: Lab) -> None:
    door(lab, "storage", name="data", type="lvm")
    api, _ = vm(lab, "data")
    assert api.feature.get(feature="snapshot")["hasFeature"] == 0
    assert lab.done(api.snapshot.post(snapname="one")) == "snapshot feature is not available"


@pytest.mark.parametrize(("kind", "end"), [("nfs", "lock"), ("lvmthin", "")])
def test_a_file_that_a_running_vm_has_open_is_not_snapped(lab: Lab, kind: str, end: str) -> None:
    door(lab, "storage", name="data", type=kind)
    assert lab.create(100, scsi0="data:1" + (",format=qcow2" if kind == "nfs" else "")) == "OK"
    api = lab.api.nodes("pve1").qemu(100)
    volid = str(api.config.get()["scsi0"]).partition(",")[0]
    assert lab.create(101, scsi0="shared:1", scsi1=volid) == "OK"
    assert lab.done(lab.api.nodes("pve1").qemu(101).status.start.post()) == "OK"
    result = lab.done(api.snapshot.post(snapname="one"))
    assert end in result if end else result == "OK"


def test_formats_that_a_storage_does_not_keep_are_refused(lab: Lab) -> None:
    door(lab, "storage", name="data", type="lvmthin")
    assert "unsupported format 'qcow2'" in lab.create(100, scsi0="data:1,format=qcow2")
    # An image is kept as it can be.
    assert lab.create(101, scsi0="data:0,import-from=shared:import/cirros.qcow2") == "OK"
    assert lab.volumes(101) == ["data:vm-101-disk-0"]
    assert data_of(lab, "data:vm-101-disk-0") == "image cirros.qcow2"


#: kind → what a snapshot, a rollback and a resize end with on a full one; empty: they succeed
FULL = {
    "nfs": (
        "command '/usr/bin/qemu-img snapshot -c two",
        "command '/usr/bin/qemu-img snapshot -a one",
        "command '/usr/bin/qemu-img resize",
    ),
    "btrfs": ("command 'btrfs subvolume snapshot", "command 'btrfs subvolume snapshot", ""),
    "lvmthin": ("lvcreate snapshot '", "lvm rollback '", ""),
    "zfspool": (
        "zfs error: cannot create snapshot '",
        "zfs error: cannot rollback '",
        "zfs error: cannot set property for '",
    ),
    "rbd": (
        "rbd snapshot 'vm-100-disk-0' error: rbd: failed to create snapshot: (28)",
        "rbd snapshot vm-100-disk-0 to 'one' error: rbd: rollback failed: (28)",
        "rbd resize 'vm-100-disk-0' error: rbd: resize error: (28)",
    ),
}


@pytest.mark.parametrize("kind", FULL)
def test_without_room_each_tool_says_so_in_its_own_words(lab: Lab, kind: str) -> None:
    door(lab, "storage", name="data", type=kind)
    disk = "data:1" + (",format=qcow2" if kind == "nfs" else "")
    assert lab.create(100, scsi0=disk) == "OK"
    api = lab.api.nodes("pve1").qemu(100)
    volid = str(api.config.get()["scsi0"]).partition(",")[0]
    door(lab, "write", volid=volid, data="before")
    assert lab.done(api.snapshot.post(snapname="one")) == "OK"
    door(lab, "write", volid=volid, data="after")
    lab.simulator.fault(action="storage-full", storage="data")
    asked = (
        lambda: api.snapshot.post(snapname="two"),
        lambda: api.resize.put(disk="scsi0", size="2G"),
    )
    snapshot, rollback, resize = FULL[kind]
    for call, words in zip(asked, (snapshot, resize), strict=True):
        assert lab.done(call()).startswith(words or "OK")
    assert data_of(lab, volid) == "after"
    assert lab.done(api.snapshot("one").rollback.post()).startswith(rollback)
    assert api.config.get()["lock"] == "rollback"
    # LVM-thin has removed the disk before it is made of the snapshot.
    assert (volid in lab.volumes(100)) == (kind != "lvmthin")


def test_a_thick_volume_does_not_grow_without_room(lab: Lab) -> None:
    door(lab, "storage", name="data", type="lvm")
    api, _ = vm(lab, "data")
    lab.simulator.fault(action="storage-full", storage="data")
    said = lab.done(api.resize.put(disk="scsi0", size="2G"))
    assert said.endswith("Insufficient free space: 256 extents needed, but only 0 available")
    assert "size=1G" in api.config.get()["scsi0"]


def test_an_archive_that_has_no_room_is_not_kept_nor_restored(lab: Lab) -> None:
    door(lab, "storage", name="data", type="lvmthin")
    vm(lab, "data")
    node = lab.api.nodes("pve1")
    full = lab.simulator.fault(action="storage-full", storage="local")
    for compress, words in (("zstd", "Broken pipe"), ("0", "No space left on device")):
        task = node.vzdump.post(vmid=100, storage="local", compress=compress)
        assert lab.done(task) == "job errors"
        log = [line["t"] for line in node.tasks(task).log.get()]
        assert f"ERROR: Backup of VM 100 failed - vma_queue_write: write error - {words}" in log
        assert any("No space left on device" in line for line in log)
    assert node.storage("local").content.get(content="backup") == []
    lab.simulator.take_back(full)
    assert lab.done(node.vzdump.post(vmid=100, storage="local", compress="zstd")) == "OK"
    (archive,) = node.storage("local").content.get(content="backup")
    lab.simulator.fault(action="storage-full", storage="data")
    task = node.qemu.post(vmid=101, archive=archive["volid"], storage="data")
    assert "Cannot create new thin volume" in lab.done(task)
    assert lab.volumes(101) == []
