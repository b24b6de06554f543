"""What a person does to guests while they are somebody else's: backups, moves, many at once."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.state.model import Volume
from tests.functional.simulator.conftest import Lab, connect, refusal, until

DISK = "shared:0,import-from=shared:import/debian-12.qcow2"


@pytest.fixture
def root(lab: Lab) -> Lab:
    """The same simulator, asked by a person with all privileges."""
    api = connect(lab.simulator, user="root@pam", password=lab.simulator.password)
    return Lab(lab.simulator, api)


def _backup(root: Lab, vmid: int = 100, **options: Any) -> str:
    options = {"storage": "local", "compress": "zstd", **options}
    return str(root.api.nodes("pve1").vzdump.post(vmid=vmid, **options))


def _archives(root: Lab) -> list[dict[str, Any]]:
    return list(root.api.nodes("pve1").storage("local").content.get(content="backup"))


def _disk_of(root: Lab, vmid: int) -> Volume:
    config = root.api.nodes("pve1").qemu(vmid).config.get()
    volume = root.simulator.cluster().volume(config["scsi0"].partition(",")[0], "pve1")
    assert volume is not None
    return volume


@pytest.fixture
def saved(root: Lab) -> str:
    """VM 100 and an archive of it."""
    assert root.create(name="one", net0="virtio,bridge=vmbr0") == "OK"
    assert root.done(_backup(root)) == "OK"
    return str(_archives(root)[0]["volid"])


def test_a_backup_holds_its_lock_while_it_runs(root: Lab) -> None:
    vm = root.api.nodes("pve1").qemu(100)
    assert root.create(scsi0=DISK) == "OK"
    assert root.done(vm.status.start.post()) == "OK"
    root.simulator.engine.set_speed(10)
    upid = _backup(root)
    until(lambda: root.lock_of(100) == "backup")
    assert refusal(lambda: vm.config.put(description="x")) == (500, "VM is locked (backup)")
    assert root.done(vm.status.stop.post()) == "VM is locked (backup)"
    assert vm.status.current.get()["lock"] == "backup"
    root.simulator.engine.set_speed(200)
    assert root.done(upid) == "OK"
    assert root.lock_of(100) == ""
    vm.config.put(description="x")


def test_a_killed_backup_leaves_its_lock(root: Lab) -> None:
    assert root.create(scsi0=DISK) == "OK"
    root.simulator.engine.set_speed(10)
    upid = _backup(root)
    until(lambda: root.lock_of(100) == "backup")
    cluster = root.simulator.cluster()
    with cluster.turn():
        cluster.tasks.kill(upid)
    assert root.done(upid) == "unexpected status"
    assert root.lock_of(100) == "backup"


def test_a_stopped_backup_gives_its_lock_back(root: Lab) -> None:
    assert root.create(scsi0=DISK) == "OK"
    root.simulator.engine.set_speed(10)
    upid = _backup(root)
    until(lambda: root.api.nodes("pve1").qemu(100).status.current.get()["status"] == "running")
    root.api.nodes("pve1").tasks(upid).delete()
    assert root.done(upid) == "job errors"
    assert root.lock_of(100) == ""
    assert root.api.nodes("pve1").qemu(100).status.current.get()["status"] == "stopped"
    assert _archives(root) == []


def test_a_node_makes_one_backup_at_a_time(root: Lab) -> None:
    for vmid in (100, 101):
        assert root.create(vmid, scsi0=DISK) == "OK"
    root.simulator.engine.set_speed(20)
    upids = [_backup(root, vmid) for vmid in (100, 101)]
    until(lambda: root.lock_of(100) == "backup")
    assert root.lock_of(101) == ""
    root.simulator.engine.set_speed(200)
    assert [root.done(upid) for upid in upids] == ["OK", "OK"]
    log = [line["t"] for line in root.api.nodes("pve1").tasks(upids[1]).log.get()]
    assert "INFO: trying to get global lock - waiting..." in log


def test_an_archive_outlives_its_vm_and_makes_another(root: Lab, saved: str) -> None:
    node = root.api.nodes("pve1")
    before = node.qemu(100).config.get()
    assert root.done(node.qemu(100).delete(purge=1, **{"destroy-unreferenced-disks": 1})) == "OK"
    assert [one["volid"] for one in _archives(root)] == [saved]
    assert root.done(node.qemu.post(vmid=101, archive=saved, unique=1, storage="shared")) == "OK"
    after = node.qemu(101).config.get()
    assert after["scsi0"] == before["scsi0"].replace("100", "101")
    assert after["net0"] != before["net0"]
    assert after["smbios1"] != before["smbios1"]
    assert root.volumes(101) == ["shared:101/vm-101-disk-0.qcow2"]
    text = node.vzdump.extractconfig.get(volume=saved)
    assert "name: one\n" in text
    assert text.endswith("#qmdump#map:scsi0:drive-scsi0:shared:qcow2:\n")


def test_a_forced_restore_takes_the_place_of_the_vm(root: Lab, saved: str) -> None:
    node = root.api.nodes("pve1")
    assert refusal(lambda: node.qemu.post(vmid=100, archive=saved))[1] == (
        "unable to restore VM 100 - VM 100 already exists on node 'pve1'"
    )
    node.qemu(100).config.put(scsi1="shared:1", name="two")
    assert root.done(node.qemu.post(vmid=100, archive=saved, force=1)) == "OK"
    config = node.qemu(100).config.get()
    assert config["name"] == "one"
    assert "scsi1" not in config
    assert root.volumes(100) == ["shared:100/vm-100-disk-0.qcow2"]


def test_a_restore_that_fails_leaves_an_empty_vm(root: Lab, saved: str) -> None:
    node = root.api.nodes("pve1")
    upid = node.qemu.post(vmid=101, archive=saved, storage="nope")
    assert root.done(upid) == "storage 'nope' does not exist"
    assert root.lock_of(101) == ""
    assert root.volumes(101) == []
    assert not node.qemu(101).config.get().keys() - {"digest", "vmgenid", "smbios1"}


def test_a_restore_has_what_was_saved(root: Lab) -> None:
    node = root.api.nodes("pve1")
    assert root.create() == "OK"
    said = "two\nlines"
    node.qemu(100).config.put(description=said, unused3="shared:1")
    _disk_of(root, 100).data = "a pattern"
    assert root.done(_backup(root)) == "OK"
    archive = _archives(root)[0]["volid"]
    changes = {"description": "another", "name": "three"}
    upid = node.qemu.post(vmid=101, archive=archive, unique=1, storage="local", **changes)
    assert root.done(upid) == "OK"
    config = node.qemu(101).config.get()
    assert (config["description"], config["name"]) == ("another", "three")
    assert _disk_of(root, 101).data == "a pattern"


def test_a_protected_archive_is_kept(root: Lab, saved: str) -> None:
    storage = root.api.nodes("pve1").storage("local")
    storage.content(saved).put(notes="by hand", protected=1)
    shown = _archives(root)[0]
    assert (shown["notes"], shown["protected"], shown["vmid"]) == ("by hand", 1, 100)
    assert storage.prunebackups.get()[0]["mark"] == "protected"
    assert root.done(storage.content(saved).delete()).startswith("cannot remove protected volume")
    storage.content(saved).put(protected=0)
    assert root.done(storage.content(saved).delete()) == "OK"
    assert _archives(root) == []


def test_a_disk_goes_to_another_storage(root: Lab) -> None:
    vm = root.api.nodes("pve1").qemu(100)
    assert root.create() == "OK"
    assert root.done(vm.move_disk.post(disk="scsi0", storage="local")) == "OK"
    config = vm.config.get()
    assert config["scsi0"].startswith("local:100/vm-100-disk-0.qcow2")
    assert config["unused0"] == "shared:100/vm-100-disk-0.qcow2"
    assert root.done(vm.status.start.post()) == "OK"
    assert root.done(vm.move_disk.post(disk="scsi0", storage="shared", delete=1)) == "OK"
    assert root.volumes(100) == [
        "shared:100/vm-100-disk-0.qcow2",
        "shared:100/vm-100-disk-1.qcow2",
    ]


def test_a_disk_without_room_stays_where_it_is(root: Lab) -> None:
    vm = root.api.nodes("pve1").qemu(100)
    assert root.create() == "OK"
    root.simulator.fault(action="storage-full", storage="local")
    ended = root.done(vm.move_disk.post(disk="scsi0", storage="local", delete=1))
    assert ended.startswith("storage migration failed: unable to create image")
    assert root.volumes(100) == ["shared:100/vm-100-disk-0.qcow2"]
    assert vm.config.get()["scsi0"].startswith("shared:100/vm-100-disk-0.qcow2")


def test_a_disk_goes_to_another_vm(root: Lab) -> None:
    node = root.api.nodes("pve1")
    for vmid in (100, 101):
        assert root.create(vmid) == "OK"
    given = {"disk": "scsi0", "target-vmid": 101, "target-disk": "scsi3"}
    assert root.done(node.qemu(100).move_disk.post(**given)) == "OK"
    assert "scsi0" not in node.qemu(100).config.get()
    assert node.qemu(101).config.get()["scsi3"].startswith("shared:101/vm-101-disk-1.qcow2")
    assert root.volumes(100) == []
    assert len(root.volumes(101)) == 2


def _statuses(root: Lab) -> set[str]:
    """Return the status of both guests as their nodes know it; the cluster's list is older."""
    return {
        root.api.nodes(node).qemu(vmid).status.current.get()["status"]
        for node, vmid in (("pve1", 100), ("pve2", 101))
    }


def test_guests_start_and_stop_together(root: Lab) -> None:
    for vmid in (100, 101):
        assert root.create(vmid, "pve1" if vmid == 100 else "pve2") == "OK"
    guest = root.api.cluster("bulk-action").guest
    assert root.done(guest.start.post(vms="100,101,999")) == "OK"
    assert _statuses(root) == {"running"}
    assert root.done(guest.shutdown.post(vms="100,101")) == "OK"
    assert _statuses(root) == {"stopped"}
    root.api.nodes("pve2").qemu(101).config.put(net0="virtio,bridge=nope")
    assert root.done(guest.start.post(vms="100,101")) == "Some guests failed to start: 101"


def test_a_node_starts_what_starts_with_it(root: Lab) -> None:
    assert root.create(100, onboot=1) == "OK"
    assert root.create(101) == "OK"
    node = root.api.nodes("pve1")
    assert root.done(node.startall.post()) == "OK"
    assert node.qemu(100).status.current.get()["status"] == "running"
    assert node.qemu(101).status.current.get()["status"] == "stopped"
    workers = {"max-workers": 1}
    assert root.done(node.migrateall.post(target="pve2", **workers)) == "OK"
    assert [one["vmid"] for one in node.qemu.get()] == []
    assert root.api.nodes("pve2").qemu(100).status.current.get()["status"] == "running"


@pytest.mark.parametrize("action", ["migrate", "relocate"])
def test_the_manager_moves_what_it_is_asked_for(root: Lab, action: str) -> None:
    assert root.create(100) == "OK"
    assert root.done(root.api.nodes("pve1").qemu(100).status.start.post()) == "OK"
    manager = root.api.cluster.ha
    manager.resources.post(sid="vm:100", state="started")
    asked = getattr(manager.resources("vm:100"), action).post(node="pve2")
    assert asked == {"sid": "vm:100", "requested-node": "pve2"}

    def service() -> dict[str, Any]:
        return next(one for one in manager.status.current.get() if one["type"] == "service")

    assert service()["node"] == "pve1"
    until(lambda: service()["node"] == "pve2" and service()["state"] == "started")


def test_a_managed_vm_is_moved_by_the_manager(root: Lab) -> None:
    assert root.create(100) == "OK"
    root.api.cluster.ha.resources.post(sid="vm:100", state="stopped")
    root.simulator.engine.set_speed(20)
    upid = root.api.nodes("pve1").qemu(100).migrate.post(target="pve2")
    assert upid.split(":")[5] == "hamigrate"
    assert root.done(upid) == "OK"
    assert [one["vmid"] for one in root.api.nodes("pve1").qemu.get()] == [100]
    root.simulator.engine.set_speed(200)
    until(lambda: [one["vmid"] for one in root.api.nodes("pve2").qemu.get()] == [100])


def test_memory_is_plugged_and_cores_wait(root: Lab) -> None:
    vm = root.api.nodes("pve1").qemu(100)
    hotplug = "disk,network,usb,memory,cpu"
    given = {"memory": 1024, "cores": 2, "vcpus": 1, "numa": 1, "hotplug": hotplug}
    assert root.create(**given) == "OK"
    assert root.done(vm.status.start.post()) == "OK"
    vm.config.put(memory=2048, vcpus=2, cores=4)
    present = vm.config.get(current=1)
    assert (present["memory"], present["vcpus"], present["cores"]) == ("2048", 2, 2)
    assert refusal(lambda: vm.config.put(memory=512))[0] == 400
    assert vm.config.get(current=1)["memory"] == "2048"
    assert root.done(vm.status.stop.post()) == "OK"
    assert (vm.config.get()["memory"], vm.config.get()["cores"]) == ("512", 4)
