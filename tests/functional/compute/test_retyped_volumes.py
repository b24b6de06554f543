"""Volumes that move to another storage, and images of volumes: no data lost, and nothing left."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from common import clock, ids
from common.messages.commands import Copy, MakeVolume, Placed, RetypeVolume, VolumeUser
from common.messages.reports import Category
from common.resources.states import ResourceType
from tests.fixtures.root_shell import RootShell
from tests.functional.compute.conftest import (
    CLOUD,
    Cluster,
    Worker,
    a_build,
    a_destroy,
    a_removal,
    a_volume,
    an_attachment,
    as_root,
)
from tests.functional.compute.test_volume_snapshots import (
    KINDS,
    Disks,
    disks,  # noqa: F401
    next_number,
    parked,
)
from tests.functional.simulator_fixture import RunningSimulator

GIB = 1 << 30
PATTERN = "pattern"
#: from a storage of this type to one of that
WAYS = [
    *(("nfs", "lvmthin"), ("lvmthin", "rbd"), ("rbd", "zfspool"), ("zfspool", "lvm")),
    *(("lvm", "nfs"), ("rbd", "nfs"), ("lvm-chain", "btrfs"), ("btrfs", "nfs-chain")),
    *(("nfs-chain", "lvm-chain"), ("nfs", "btrfs"), ("lvmthin", "lvm-chain")),
]


def a_retype(volume: MakeVolume, volid: str, storage: str, **more: Any) -> RetypeVolume:
    command = RetypeVolume(
        next_number(),
        1,
        ResourceType.VOLUME,
        volume.resource_id,
        volume.placed,
        more.pop("deadline", clock.after(60)),
    )
    values = {"volid": volid, "storage": storage, "cloud": CLOUD, **more}
    return dataclasses.replace(command, **values)


class Moves:
    """A volume with a pattern in it, which is to move."""

    def __init__(self, disks: Disks, cluster: Cluster, source: str) -> None:  # noqa: F811
        self.disks, self.cluster = disks, cluster
        self.volume = a_volume(storage=f"of-{source}")
        self.volid = disks.made(self.volume, KINDS[source])
        self.vmid = self.volume.placed.vmid
        disks.write(self.volid, PATTERN)

    def run(self, storage: str, **more: Any) -> Any:
        return self.disks.worker.run(a_retype(self.volume, self.volid, storage, **more))

    def volumes(self) -> list[str]:
        return sorted(self.cluster.volumes(self.vmid))

    def require(self, volid: str, *others: str) -> None:
        """The volume is there with its data, parked, and nothing of it is anywhere else."""
        assert parked(self.cluster, self.vmid, volid)
        assert self.disks.data(volid) == PATTERN
        assert self.volumes() == sorted([volid, *others])

    def remove(self, volid: str) -> None:
        assert self.disks.worker.run(a_removal(self.volume, volid)).gone
        assert self.cluster.is_empty(self.vmid)


def moved_to(outcome: Any, storage: str) -> str:
    assert outcome.ok, outcome
    assert outcome.volume is not None
    assert outcome.volume.volid.startswith(f"{storage}:")
    assert outcome.volume.size_bytes == 2 * GIB
    return outcome.volume.volid


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("source", "target"), WAYS)
def test_it_moves_with_its_data(
    source: str,
    target: str,
    disks: Disks,  # noqa: F811
    cluster: Cluster,
) -> None:
    one = Moves(disks, cluster, source)
    storage = f"of-{target}"
    for _ in range(2):
        outcome = one.run(storage)
        volid = moved_to(outcome, storage)
        assert outcome.volume is not None
        assert outcome.volume.snapshots == KINDS[target]
        one.require(volid)
    settled = one.run(storage, settle=True)
    assert moved_to(settled, storage) == volid
    one.require(volid)
    one.remove(volid)


def test_what_is_only_settled_stays(disks: Disks, cluster: Cluster) -> None:  # noqa: F811
    one = Moves(disks, cluster, "rbd")
    for _ in range(2):
        assert moved_to(one.run("of-nfs", settle=True), "of-rbd") == one.volid
        one.require(one.volid)
    stranger = dataclasses.replace(one.volume, resource_id=ids.new_uuid())
    refused = disks.worker.run(a_retype(stranger, one.volid, "of-nfs"))
    assert refused.failure is not None
    other = one.volid.replace("disk-0", "disk-7")
    assert not disks.worker.run(a_retype(one.volume, other, "of-nfs")).ok
    one.require(one.volid)
    one.remove(one.volid)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", ["config$", "/move_disk$"])
@pytest.mark.parametrize("phase", ["lose-answer", "drop", "fail", "task-fail", "task-kill"])
def test_answers_are_lost_and_tasks_fail(
    phase: str,
    path: str,
    disks: Disks,  # noqa: F811
    cluster: Cluster,
    simulator: RunningSimulator,
) -> None:
    one = Moves(disks, cluster, "lvmthin")
    simulator.fault(action=phase, method="POST", path=path, times=1)
    outcome = one.run("of-nfs")
    simulator.control("DELETE", "faults")
    if not outcome.ok:
        assert moved_to(one.run("of-nfs", settle=True), "of-lvmthin") == one.volid
        one.require(one.volid)
        outcome = one.run("of-nfs")
    volid = moved_to(outcome, "of-nfs")
    one.require(volid)
    one.remove(volid)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", [one for one in KINDS if one != "rbd"])
def test_the_task_is_killed(
    target: str,
    disks: Disks,  # noqa: F811
    cluster: Cluster,
    simulator: RunningSimulator,
) -> None:
    """Its half of a copy is removed, when it is settled and when it is tried again."""
    one, storage = Moves(disks, cluster, "rbd"), f"of-{target}"
    for settle in (True, False):
        simulator.fault(action="task-kill", method="POST", path="/move_disk$", times=0)
        assert not one.run(storage).ok
        simulator.control("DELETE", "faults")
        assert len(one.volumes()) == 2
        outcome = one.run(storage, settle=settle)
        assert moved_to(outcome, "of-rbd" if settle else storage)
        assert outcome.volume is not None
        one.require(outcome.volume.volid)
    one.remove(outcome.volume.volid)


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_time_is_up_while_it_is_copied(
    nth: int,
    disks: Disks,  # noqa: F811
    cluster: Cluster,
    simulator: RunningSimulator,
) -> None:
    """A look after the task's end says where it is: there is no other way to know."""
    one = Moves(disks, cluster, "rbd")
    simulator.fault(action="slow", method="POST", path="/move_disk$", seconds=60 * nth, times=1)
    late = one.run("of-nfs", deadline=clock.after(0.3 * nth))
    settled = late if late.ok else one.run("of-nfs", settle=True)
    assert settled.volume is not None
    one.require(settled.volume.volid)
    volid = moved_to(one.run("of-nfs"), "of-nfs")
    one.require(volid)
    one.remove(volid)


def test_a_volume_of_others_in_the_way_stays(
    disks: Disks,  # noqa: F811
    cluster: Cluster,
    simulator: RunningSimulator,
    shell: RootShell,
) -> None:
    one = Moves(disks, cluster, "rbd")
    theirs = as_root(simulator).nodes("pve1").storage("of-nfs").content
    strange = theirs.post(vmid=one.vmid, filename=f"vm-{one.vmid}-disk-0.raw", size="1G")
    assert moved_to(one.run("of-nfs", settle=True), "of-rbd") == one.volid
    one.require(one.volid, strange)
    refused = one.run("of-nfs")
    assert refused.failure is not None
    assert strange in refused.failure.message
    one.require(one.volid, strange)
    shell.run(str(refused.failure.remedy))
    volid = moved_to(one.run("of-nfs"), "of-nfs")
    one.require(volid)
    one.remove(volid)


def test_it_is_not_moved_while_a_server_names_it(
    disks: Disks,  # noqa: F811
    cluster: Cluster,
) -> None:
    build = a_build()
    assert disks.worker.run(build).ok
    one = Moves(disks, cluster, "rbd")
    assert disks.worker.run(an_attachment(build, one.volume, one.volid)).ok
    user = VolumeUser(build.resource_id, build.placed.node, build.placed.vmid)
    for users in ((user,), ()):
        refused = one.run("of-nfs", users=users)
        assert refused.failure is not None
        assert refused.failure.category is Category.PROTECTED
        assert moved_to(one.run("of-nfs", settle=True), "of-rbd") == one.volid
        one.require(one.volid)
    assert disks.worker.run(a_destroy(build)).gone
    one.remove(one.volid)


def test_a_storage_that_is_not_there(
    disks: Disks,  # noqa: F811
    cluster: Cluster,
) -> None:
    one = Moves(disks, cluster, "rbd")
    refused = one.run("nowhere")
    assert refused.failure is not None
    assert refused.failure.category is Category.CONFIGURATION
    assert not one.run("nowhere", settle=True).ok
    assert moved_to(one.run("of-nfs"), "of-nfs")
    one.remove(one.volid)


def an_upload(volume: MakeVolume, disk: str, **more: Any) -> Copy:
    number = next_number()
    where = Placed("pve1", "c1", "pve1", 160_000 + number)
    command = Copy(number, 1, ResourceType.VOLUME, volume.resource_id, where, clock.after(60))
    values = {
        "source_vmid": volume.placed.vmid,
        "storage": "local",
        "image_id": ids.new_uuid(),
        "image_name": "golden",
        "cloud": CLOUD,
        "volid": disk,
    }
    return dataclasses.replace(command, **(values | more))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
def test_a_volume_becomes_an_image(kind: str, disks: Disks, cluster: Cluster) -> None:  # noqa: F811
    one = Moves(disks, cluster, kind)
    command = an_upload(one.volume, one.volid)
    for again in (command, dataclasses.replace(command, operation_id=next_number())):
        outcome = disks.worker.run(again)
        assert outcome.ok, outcome
        assert outcome.disk is not None
        assert outcome.disk.virtual_size_bytes == 2 * GIB
    assert disks.data(outcome.disk.volid) == PATTERN
    assert cluster.vm(command.placed.vmid)["config"]["template"]
    one.require(one.volid)
    one.remove(one.volid)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("phase", ["lose-answer", "drop", "fail", "task-fail"])
@pytest.mark.parametrize("path", ["qemu$", "/template$"])
def test_an_image_fails_and_nothing_is_left(
    phase: str,
    path: str,
    disks: Disks,  # noqa: F811
    cluster: Cluster,
    simulator: RunningSimulator,
) -> None:
    one = Moves(disks, cluster, "rbd")
    command = an_upload(one.volume, one.volid)
    simulator.fault(action=phase, method="POST", path=path, times=1)
    outcome = disks.worker.run(command)
    simulator.control("DELETE", "faults")
    if not outcome.ok:
        assert outcome.gone, outcome
        assert cluster.is_empty(command.placed.vmid)
    one.require(one.volid)
    one.remove(one.volid)


def test_an_image_of_another_volume_is_refused(
    disks: Disks,  # noqa: F811
    cluster: Cluster,
    worker: Worker,
) -> None:
    one = Moves(disks, cluster, "rbd")
    wrongs: tuple[dict[str, Any], ...] = (
        {"volid": one.volid.replace("disk-0", "disk-9")},
        {"resource_id": ids.new_uuid()},
        {"source_vmid": 199_999},
    )
    for wrong in wrongs:
        command = an_upload(one.volume, one.volid, **wrong)
        refused = worker.run(command)
        assert refused.failure is not None
        assert cluster.is_empty(command.placed.vmid)
    one.require(one.volid)
    one.remove(one.volid)
