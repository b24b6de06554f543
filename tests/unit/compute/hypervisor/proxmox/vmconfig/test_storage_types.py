"""What storages of each type can do, against the simulator's table of Proxmox VE's plugins."""

from __future__ import annotations

import pytest

from common import clock
from common.messages.commands import Move
from common.resources.states import ResourceType
from common.resources.volumes import SnapshotWay
from compute.hypervisor.proxmox.observe.snapshot import Storage
from compute.hypervisor.proxmox.vmconfig import disks, movable, storage_types
from compute.hypervisor.proxmox.vmconfig.movable import Situation
from compute.hypervisor.proxmox.vmconfig.storage_types import TYPES
from simulator.state import model
from simulator.state.storage_kinds import BASE, CHAIN, CHAINS, CURRENT, KINDS, SNAP, kind
from tests.unit.compute.fakes import a_build

SIMULATED = sorted({*KINDS, "lvm-chain"} - {"cephfs"})


def simulated(name: str) -> model.Storage:
    chain = {CHAIN: "1"} if name == "lvm-chain" else {}
    return model.Storage("s", name.removesuffix("-chain"), "/s", [], False, 1, options=chain)


@pytest.mark.parametrize("name", SIMULATED)
def test_as_proxmox_ve_s_plugins_say(name: str) -> None:
    ours, theirs = TYPES[name], kind(simulated(name))
    form = ours.form or theirs.formats[0]
    assert ours.files == theirs.files
    assert ours.linked == (
        theirs.has("template", CURRENT, form) and theirs.has("clone", BASE, form)
    )
    assert ours.snaps_vms == theirs.has("snapshot", CURRENT, form)
    copied = theirs.has("snapshot", CURRENT, form) and theirs.has("copy", SNAP, form)
    closed = form in theirs.closed or theirs.chained
    way = SnapshotWay.OFFLINE if closed else SnapshotWay.ONLINE
    assert ours.snapshots == (way if copied else SnapshotWay.COPY)
    assert ours.thin == theirs.thin
    assert form in (*theirs.formats, *theirs.more_formats)


def test_each_chained_type_is_known() -> None:
    assert {*CHAINS} == {"dir", "nfs", "cifs", "lvm"}
    chained = Storage("s", "lvm", True, True, 1, 0, frozenset({"images"}), chained=True)
    assert chained.kind == "lvm-chain"
    # Of files the form and what is refused are the same.
    assert Storage("s", "dir", True, True, 1, 0, frozenset(), chained=True).kind == "dir"
    assert storage_types.of("pbs") == storage_types.StorageType()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nfs", "s:2,format=qcow2"),
        ("btrfs", "s:2,format=raw"),
        ("lvm-chain", "s:2,format=qcow2"),
        ("lvm", "s:2"),
        ("lvmthin", "s:2"),
        ("cephfs", "s:2"),
    ],
)
def test_the_form_of_a_disk(name: str, value: str) -> None:
    assert disks.blank("s", name, 2) == value


@pytest.mark.parametrize(
    ("name", "live", "snapshots", "why"),
    [
        ("lvmthin", False, False, None),
        ("lvmthin", False, True, "those on a storage of type lvmthin can't be copied"),
        ("btrfs", False, True, None),
        ("zfspool", False, True, None),
        ("dir", False, True, None),
        ("lvm-chain", True, False, None),
        ("lvm-chain", False, False, "of type lvm-chain, which can't be copied"),
        ("rbd", False, False, "of type rbd, which can't be copied"),
    ],
)
def test_what_a_move_takes_along(name: str, live: bool, snapshots: bool, why: str | None) -> None:
    build = a_build()
    vmid = build.placed.vmid
    move = Move(
        1,
        1,
        ResourceType.SERVER,
        build.resource_id,
        build.placed,
        clock.after(60),
        target_node="n2",
        live=live,
    )
    volid = f"s:vm-{vmid}-disk-0"
    config = {"scsi0": f"{volid},size=2G", **({"parent": "byhand"} if snapshots else {})}
    found = {
        "running": int(live),
        "local_disks": [{"volid": volid, "cdrom": 0}],
        "allowed_nodes": ["n2"],
    }
    now = Situation(vmid, found, config, {"s": name}, None)
    refused = movable.refusal(now, move)
    assert refused is None if why is None else why in str(refused)


def test_the_owner_in_a_name() -> None:
    for volid in ("s:vm-100-disk-0", "s:100/vm-100-disk-0.raw", "s:base-9-disk-0/vm-100-disk-1"):
        assert disks.owner(volid) == 100
    for volid in ("s:iso/micronova-100-x.iso", "s:import/vm.qcow2", "none"):
        assert disks.owner(volid) is None
