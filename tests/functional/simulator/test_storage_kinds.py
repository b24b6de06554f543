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
    with urllib.request.urlopen(request, context=context, timeout=10) as answer:
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
    told = lab.done(api.snapshot.post(snapname="one"))
    assert end in told if end else told == "OK"


def test_formats_that_a_storage_does_not_keep_are_refused(lab: Lab) -> None:
    door(lab, "storage", name="data", type="lvmthin")
    assert "unsupported format 'qcow2'" in lab.create(100, scsi0="data:1,format=qcow2")
    # An image is kept as it can be.
    assert lab.create(101, scsi0="data:0,import-from=shared:import/cirros.qcow2") == "OK"
    assert lab.volumes(101) == ["data:vm-101-disk-0"]
    assert data_of(lab, "data:vm-101-disk-0") == "image cirros.qcow2"
