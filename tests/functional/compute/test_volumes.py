"""Volumes: made, grown, attached, detached and removed; whose they are is proven each time."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from common import clock, ids
from common.messages.commands import (
    GrowVolume,
    MakeVolume,
    Placed,
    PowerAction,
    VolumeSource,
    VolumeUser,
)
from common.messages.reports import Category, Plugged
from common.resources.states import PowerState, ResourceType
from tests.functional.compute.conftest import (
    CLOUD,
    Cluster,
    Worker,
    a_build,
    a_destroy,
    a_power,
    a_removal,
    a_volume,
    an_attachment,
    as_root,
)
from tests.functional.simulator_fixture import RunningSimulator

GIB = 1 << 30


def config(cluster: Cluster, vmid: int) -> Any:
    return cluster.vm(vmid)["config"]


def made(worker: Worker, command: MakeVolume) -> str:
    outcome = worker.run(command)
    assert outcome.ok, outcome
    assert outcome.volume is not None
    assert outcome.volume.size_bytes == command.size_gib * GIB
    return outcome.volume.volid


def a_growth(volume: MakeVolume, volid: str, gib: int, user: Any = None) -> GrowVolume:
    had = None
    if user is not None:
        had = VolumeUser(user.resource_id, user.placed.node, user.placed.vmid)
    placed, late = volume.placed, clock.after(60)
    grow = GrowVolume(
        volume.operation_id + 10**6, 1, ResourceType.VOLUME, volume.resource_id, placed, late
    )
    return dataclasses.replace(grow, volid=volid, size_gib=gib, user=had, cloud=CLOUD)


def test_a_volume_is_made_parked_grown_and_removed(worker: Worker, cluster: Cluster) -> None:
    volume = a_volume()
    volid = made(worker, volume)
    vmid = volume.placed.vmid
    holder = config(cluster, vmid)
    assert holder["unused0"] == volid
    assert "scsi0" not in holder
    assert (str(holder["protection"]), str(holder["memory"])) == ("1", "16")
    assert holder["smbios1"] == f"uuid={volume.resource_id}"
    assert f"micronova: volume={volume.resource_id}" in holder["description"]
    assert not [key for key in holder if key.startswith("net")]
    # The same again: it is there.
    assert made(worker, dataclasses.replace(volume, operation_id=10**7)) == volid
    for gib in (5, 5, 3):
        outcome = worker.run(a_growth(volume, volid, gib))
        assert outcome.ok, outcome
        assert outcome.volume is not None
        assert outcome.volume.size_bytes == 5 * GIB
        assert config(cluster, vmid)["unused0"] == volid
    for _ in range(2):
        outcome = worker.run(a_removal(volume, volid))
        assert (outcome.ok, outcome.gone) == (True, True), outcome
    assert cluster.is_empty(vmid)


def test_a_growth_is_seen_without_a_change(
    worker: Worker, cluster: Cluster, disk_kind: str
) -> None:
    """But for a storage that lists no size of what isn't plugged."""
    volume = a_volume()
    volid = made(worker, volume)
    growth = a_growth(volume, volid, 5)
    before = config(cluster, volume.placed.vmid)
    assert not worker.look(growth).ok
    assert config(cluster, volume.placed.vmid) == before
    assert worker.run(growth).ok
    grown = config(cluster, volume.placed.vmid)
    seen = worker.look(growth)
    assert seen.ok is (disk_kind != "lvm-chain")
    assert seen.volume is None or seen.volume.size_bytes == 5 * GIB
    assert config(cluster, volume.placed.vmid) == grown
    assert worker.run(a_removal(volume, volid)).gone


def test_one_of_an_image_is_as_large_as_asked(worker: Worker, cluster: Cluster) -> None:
    volume = a_volume(source=VolumeSource("shared:import/cirros.qcow2"), size_gib=3)
    volid = made(worker, volume)
    assert config(cluster, volume.placed.vmid)["unused0"] == volid
    assert worker.run(a_removal(volume, volid)).gone


def test_a_server_gets_it_and_loses_it(worker: Worker, cluster: Cluster) -> None:
    build, volume = a_build(), a_volume()
    assert worker.run(build).ok
    volid = made(worker, volume)
    attach = an_attachment(build, volume, volid)
    for _ in range(2):
        assert worker.run(attach) == Plugged(True, None, PowerState.RUNNING)
        attach = dataclasses.replace(attach, operation_id=attach.operation_id + 10**6)
    value = config(cluster, build.placed.vmid)["scsi1"]
    assert value.startswith(f"{volid},")
    assert f"serial={volume.resource_id[:20]}" in value
    assert {"backup=0", "replicate=0"} <= set(value.split(","))
    assert config(cluster, volume.placed.vmid)["unused0"] == volid
    # While it is attached it can be grown, but not removed.
    grown = worker.run(a_growth(volume, volid, 4, build))
    assert grown.volume is not None, grown
    assert grown.volume.size_bytes == 4 * GIB
    assert "size=4G" in config(cluster, build.placed.vmid)["scsi1"]
    for users in ((build,), ()):
        refused = worker.run(a_removal(volume, volid, *users))
        assert refused.failure is not None
        assert refused.failure.category is Category.PROTECTED
    other = a_build()
    assert worker.run(other).ok
    detach = an_attachment(build, volume, volid, on=False)
    for _ in range(2):
        assert worker.run(detach) == Plugged(True, None, PowerState.RUNNING)
        detach = dataclasses.replace(detach, operation_id=detach.operation_id + 10**6)
    after = config(cluster, build.placed.vmid)
    assert not [key for key in after if key.startswith("unused")]
    assert worker.run(a_power(other, PowerAction.STOP)).ok
    assert worker.run(an_attachment(other, volume, volid)) == Plugged(
        True, None, PowerState.SHUTDOWN
    )
    # The deletion of a server leaves it where it is.
    assert worker.run(a_destroy(other)).gone
    assert config(cluster, volume.placed.vmid)["unused0"] == volid
    assert worker.run(a_removal(volume, volid, build, other)).gone
    assert worker.run(a_destroy(build)).gone


def test_the_slot_and_the_holder_must_be_as_said(worker: Worker, cluster: Cluster) -> None:
    build, volume, second = a_build(), a_volume(), a_volume()
    assert worker.run(build).ok
    volid, other = made(worker, volume), made(worker, second)
    assert worker.run(an_attachment(build, volume, volid)).ok
    taken = worker.run(an_attachment(build, second, other))
    assert taken.failure is not None
    assert "scsi1 is taken" in taken.failure.message
    # An adopted VM has disks of its own.
    elsewhere = worker.run(an_attachment(build, second, other, others=(1, 3)))
    assert elsewhere == Plugged(True, None, PowerState.RUNNING, 3)
    assert config(cluster, build.placed.vmid)["scsi3"].startswith(f"{other},")
    # The same again, and then it is detached.
    assert worker.run(an_attachment(build, second, other, others=(2,))).slot == 3
    assert worker.run(an_attachment(build, second, other, on=False)).ok
    wrongs: tuple[dict[str, Any], ...] = (
        {"volume_id": ids.new_uuid(), "slot": 2},
        {"volid": volid.replace("disk-0", "disk-9"), "slot": 2},
        {"holder": Placed("pve1", "c1", "pve1", 199_999), "slot": 2},
        {"holder": volume.placed, "slot": 2},
    )
    for wrong in wrongs:
        asked = dataclasses.replace(an_attachment(build, second, other), **wrong)
        refused = worker.run(asked)
        assert not refused.ok, wrong
    assert "scsi2" not in config(cluster, build.placed.vmid)
    assert worker.run(a_destroy(build)).gone
    for one, disk in ((volume, volid), (second, other)):
        assert worker.run(a_removal(one, disk)).gone


def test_a_holder_s_number_that_others_have_is_left_alone(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    volume = a_volume()
    vmid = volume.placed.vmid
    as_root(simulator).nodes("pve1").qemu.post(vmid=vmid, name="theirs", scsi0="local:1")
    refused = worker.run(volume)
    assert (refused.ok, refused.gone) == (False, False)
    assert worker.run(a_removal(volume, None)).failure is not None
    assert config(cluster, vmid)["name"] == "theirs"
    as_root(simulator).nodes("pve1").qemu(vmid).delete()


@pytest.mark.parametrize("action", ["lose-answer", "task-fail", "fail"])
@pytest.mark.parametrize("path", ["qemu$", "config$", "resize$"])
def test_what_fails_on_the_way_leaves_nothing(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, action: str, path: str
) -> None:
    method = "PUT" if path == "resize$" else "POST"
    volume = a_volume(source=VolumeSource("shared:import/cirros.qcow2"), size_gib=3)
    simulator.control("POST", "faults", {"action": action, "method": method, "path": path})
    outcome = worker.run(volume)
    simulator.control("DELETE", "faults")
    if not outcome.ok:
        assert outcome.gone, outcome
        assert cluster.is_empty(volume.placed.vmid)
        return
    assert outcome.volume is not None
    assert worker.run(a_removal(volume, outcome.volume.volid)).gone
