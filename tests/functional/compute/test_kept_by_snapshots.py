"""Snapshots that a person takes on Proxmox VE: no disk that one names is removed from under it."""

from __future__ import annotations

from typing import Any

import pytest

from common.messages.commands import Build, PowerAction
from common.messages.reports import Category
from common.resources.local_disks import of_server
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.cluster.vmid import Vm
from compute.hypervisor.proxmox.storage import one_volume
from compute.hypervisor.proxmox.vmconfig.marks import server_mark
from tests.fixtures.root_shell import RootShell
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_destroy,
    a_power,
    a_removal,
    a_swap,
    a_volume,
    an_attachment,
    an_end,
    as_root,
)
from tests.functional.compute.test_local_disks import fitted, there
from tests.functional.compute.test_swap import a_rescue, root_of
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually
from tests.unit.compute.fakes import FakeWork


class Person:
    """Somebody who works on Proxmox VE itself."""

    def __init__(self, simulator: RunningSimulator, cluster: Cluster) -> None:
        self._node, self._cluster = as_root(simulator).nodes("pve1"), cluster

    def done(self, upid: str) -> str:
        def ended() -> Any:
            return self._node.tasks(upid).status.get().get("exitstatus")

        eventually(lambda: ended() is not None, 20)
        return str(ended())

    def snap(self, vmid: int, name: str = "byhand") -> None:
        assert self.done(self._node.qemu(vmid).snapshot.post(snapname=name)) == "OK"

    def back(self, vmid: int, name: str = "byhand") -> None:
        assert self.done(self._node.qemu(vmid).snapshot(name).rollback.post()) == "OK"

    def forget(self, vmid: int, name: str = "byhand") -> None:
        assert self.done(self._node.qemu(vmid).snapshot(name).delete()) == "OK"


@pytest.fixture
def person(simulator: RunningSimulator, cluster: Cluster) -> Person:
    return Person(simulator, cluster)


def unused(cluster: Cluster, build: Build) -> set[str]:
    config = cluster.vm(build.placed.vmid)["config"]
    return {str(text) for key, text in config.items() if key.startswith("unused")}


def test_a_rebuild_leaves_the_disk_of_a_snapshot(
    worker: Worker, cluster: Cluster, person: Person
) -> None:
    build = a_build()
    assert worker.run(build).ok
    vmid, olds = build.placed.vmid, set()
    for name in ("first", "second"):
        assert worker.run(a_power(build, PowerAction.STOP)).ok
        person.snap(vmid, name)
        olds.add(root_of(cluster, build))
        for _ in "twice":
            assert worker.run(a_swap(build, running=False)).ok
        for _ in "twice":
            ended = worker.run(an_end(build, keep=True, running=False))
            assert ended.ok, ended
        assert unused(cluster, build) == olds
        assert "before=" not in cluster.vm(vmid)["config"]["description"]
    # What the person wants back is there.
    person.back(vmid, "first")
    assert root_of(cluster, build) in olds
    assert worker.run(a_power(build, PowerAction.START)).ok
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(vmid)


def test_a_rebuild_that_fails_gives_back_the_disk_of_a_snapshot(
    worker: Worker, cluster: Cluster, person: Person
) -> None:
    build = a_build()
    assert worker.run(build).ok
    was = root_of(cluster, build)
    person.snap(build.placed.vmid)
    assert worker.run(a_swap(build)).ok
    person.snap(build.placed.vmid, "between")
    new = root_of(cluster, build)
    back = worker.run(an_end(build, keep=False))
    assert back.ok, back
    assert (root_of(cluster, build), unused(cluster, build)) == (was, {new})
    assert worker.run(a_swap(build)).ok
    assert worker.run(an_end(build, keep=True)).ok
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)


def test_a_rescue_ends_though_a_snapshot_names_its_disk(
    worker: Worker, cluster: Cluster, person: Person
) -> None:
    build = a_build()
    assert worker.run(build).ok
    was = root_of(cluster, build)
    for name in ("first", "second"):
        assert worker.run(a_rescue(build)).ok
        made = str(cluster.vm(build.placed.vmid)["config"]["scsi15"]).partition(",")[0]
        person.snap(build.placed.vmid, name)
        ended = worker.run(an_end(build, keep=False, rescued=True))
        assert ended.ok, ended
        assert made in unused(cluster, build)
        assert root_of(cluster, build) == was
    assert len(unused(cluster, build)) == 2
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)


@pytest.mark.parametrize("running", [True, False])
def test_a_swap_disk_that_a_snapshot_names_stays_unused(
    worker: Worker, cluster: Cluster, person: Person, running: bool
) -> None:
    build = a_build(local_disks=of_server(0, 512))
    assert worker.run(build).ok
    if not running:
        assert worker.run(a_power(build, PowerAction.STOP)).ok
    person.snap(build.placed.vmid)
    was = there(cluster, build)["scsi30"].partition(",")[0]
    for _ in "twice":
        outcome = worker.run(fitted(build, of_server(0, 256)))
        assert outcome.ok, outcome
        assert "size=256M" in there(cluster, build)["scsi30"]
        assert unused(cluster, build) == {was}
    assert worker.run(fitted(build, ())).ok
    assert there(cluster, build) == {}
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)


@pytest.mark.parametrize("attached", [True, False])
def test_a_volume_in_a_snapshot_of_its_server_is_not_removed(
    worker: Worker, cluster: Cluster, person: Person, attached: bool
) -> None:
    build, volume = a_build(), a_volume()
    assert worker.run(build).ok
    assert worker.run(a_power(build, PowerAction.STOP)).ok
    made = worker.run(volume)
    assert made.volume is not None, made
    volid = made.volume.volid
    assert worker.run(an_attachment(build, volume, volid)).ok
    vmid = build.placed.vmid
    person.snap(vmid, "older")
    person.forget(vmid, "older")
    person.snap(vmid)
    if not attached:
        assert worker.run(an_attachment(build, volume, volid, on=False)).ok
    # Whether or not the record says which server had it last.
    for users in ((build,), ()):
        refused = worker.run(a_removal(volume, volid, *users))
        assert not refused.gone
        assert refused.failure is not None
        assert refused.failure.category is Category.PROTECTED
        if not attached:
            assert f"Snapshot byhand of VM {vmid}".lower() in refused.failure.message.lower()
        assert volid in cluster.volumes(volume.placed.vmid)
    if attached:
        assert worker.run(an_attachment(build, volume, volid, on=False)).ok
    # It can still be rolled back to, and deleted; then nothing protects the volume any more.
    person.back(vmid)
    assert str(cluster.vm(vmid)["config"]["scsi1"]).startswith(f"{volid},")
    assert worker.run(an_attachment(build, volume, volid, on=False)).ok
    person.forget(vmid)
    assert cluster.vm(vmid)["config"]["unused0"] == volid
    assert worker.run(an_attachment(build, volume, volid)).ok
    assert worker.run(an_attachment(build, volume, volid, on=False)).ok
    assert worker.run(a_removal(volume, volid, build)).gone
    assert cluster.is_empty(volume.placed.vmid)
    assert worker.run(a_destroy(build)).gone


def test_a_volume_is_removed_with_its_server_s_snapshots(
    worker: Worker, cluster: Cluster, person: Person
) -> None:
    build, volume = a_build(), a_volume()
    assert worker.run(build).ok
    made = worker.run(volume)
    assert made.volume is not None, made
    assert worker.run(an_attachment(build, volume, made.volume.volid)).ok
    assert worker.run(a_power(build, PowerAction.STOP)).ok
    person.snap(build.placed.vmid)
    assert worker.run(a_destroy(build)).gone
    assert worker.run(a_removal(volume, made.volume.volid, build)).gone
    assert cluster.is_empty(volume.placed.vmid)


def test_a_disk_in_a_snapshot_of_its_own_vm_is_not_deleted_by_name(
    worker: Worker, cluster: Cluster, person: Person, shell: RootShell
) -> None:
    build = a_build()
    assert worker.run(build).ok
    person.snap(build.placed.vmid)
    driver: Any = worker.hypervisors[0]
    vm = Vm(
        driver.shared,
        FakeWork(build),
        build.placed.vmid,
        "pve1",
        server_mark(build.resource_id, build.cloud),
    )
    disk = root_of(cluster, build)
    with pytest.raises(HypervisorError, match="Snapshot byhand of VM") as refused:
        one_volume.delete(vm, "pve1", disk.partition(":")[0], disk)
    assert refused.value.category is Category.PROTECTED
    assert f"qm delsnapshot {build.placed.vmid} byhand" in str(refused.value.remedy)
    assert cluster.calls("DELETE", f"/content/{disk}") == []
    assert disk in cluster.volumes(build.placed.vmid)
    shell.run(str(refused.value.remedy))
    assert cluster.vm(build.placed.vmid)["snapshots"] == {}
    assert worker.run(a_destroy(build)).gone
