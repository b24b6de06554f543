"""openstacksdk's block storage proxy and its cloud layer, as a project's member."""

from __future__ import annotations

from typing import Any

import openstack.exceptions
import pytest

from tests.compat.conftest import Site
from tests.functional.waiting import eventually


@pytest.fixture
def member(site: Site) -> Any:
    return site.cloud.connection("micronova-demo")


@pytest.fixture
def admin(site: Site) -> Any:
    return site.cloud.connection("micronova-admin")


def available(storage: Any, one: Any) -> Any:
    return storage.wait_for_status(one, "available", ["error"], 0.1, 30)


def test_volumes(member: Any, admin: Any, name: str) -> None:
    storage = member.block_storage
    volume = storage.create_volume(size=1, name=name, metadata={"a": "b"})
    available(storage, volume)
    assert [one.id for one in storage.volumes(name=name)] == [volume.id]
    assert volume.id in {one.id for one in storage.volumes(details=False, limit=1)}
    assert volume.id in {one.id for one in admin.block_storage.volumes(all_projects=True)}
    storage.update_volume(volume, description="data")
    storage.set_volume_metadata(volume, c="d")
    storage.delete_volume_metadata(storage.get_volume(volume.id), ["a"])
    assert storage.get_volume(volume.id).metadata == {"c": "d"}
    storage.set_volume_image_metadata(volume, os_distro="debian")
    storage.delete_volume_image_metadata(volume, ["os_distro"])
    storage.set_volume_bootable_status(volume, True)
    storage.set_volume_readonly(volume, False)
    storage.reserve_volume(volume)
    assert storage.get_volume(volume.id).status == "attaching"
    storage.unreserve_volume(volume)
    storage.extend_volume(volume, 2)
    available(storage, storage.get_volume(volume.id))
    shown = storage.get_volume(volume.id)
    assert (shown.size, shown.is_bootable, shown.description) == (2, True, "data")
    admin.block_storage.reset_volume_status(volume.id, "error", None, None)
    with pytest.raises(openstack.exceptions.ForbiddenException):
        storage.reset_volume_status(volume.id, "available", None, None)
    for refused in (
        lambda: storage.begin_volume_detaching(volume),
        lambda: storage.init_volume_attachment(volume, {}),
        lambda: admin.block_storage.migrate_volume(volume.id, "pve2"),
        lambda: storage.create_attachment(volume, instance_id=volume.id),
    ):
        with pytest.raises(openstack.exceptions.BadRequestException):
            refused()
    storage.delete_volume(volume)
    storage.wait_for_delete(volume, 0.1, 30)


def test_snapshots(member: Any, admin: Any, name: str) -> None:
    storage = member.block_storage
    volume = storage.create_volume(size=1, name=name)
    available(storage, volume)
    snapshot = storage.create_snapshot(volume_id=volume.id, name=name, metadata={"a": "b"})
    available(storage, snapshot)
    assert [one.id for one in storage.snapshots(name=name)] == [snapshot.id]
    storage.update_snapshot(snapshot, description="before")
    storage.set_snapshot_metadata(snapshot, c="d")
    storage.delete_snapshot_metadata(storage.get_snapshot(snapshot.id), ["a"])
    assert storage.get_snapshot_metadata(snapshot).metadata == {"c": "d"}
    admin.block_storage.reset_snapshot_status(snapshot, "error")
    admin.block_storage.reset_snapshot_status(snapshot, "available")
    copy = storage.create_volume(size=1, snapshot_id=snapshot.id, name=f"{name}-copy")
    available(storage, copy)
    storage.revert_volume_to_snapshot(volume, snapshot)
    available(storage, storage.get_volume(volume.id))
    storage.delete_snapshot(snapshot)
    storage.wait_for_delete(snapshot, 0.1, 30)
    for one in (copy, volume):
        storage.delete_volume(one)
        storage.wait_for_delete(one, 0.1, 30)


def test_types_limits_and_services(member: Any, admin: Any, name: str) -> None:
    storage, theirs = member.block_storage, admin.block_storage
    made = theirs.create_type(name=name, **{"os-volume-type-access:is_public": False})
    try:
        theirs.update_type(made, description="fast")
        theirs.update_type_extra_specs(made, tier="gold")
        theirs.delete_type_extra_specs(made, ["tier"])
        assert name not in {one.name for one in storage.types()}
        theirs.add_type_access(made, member.current_project_id)
        assert name in {one.name for one in storage.types()}
        assert len(theirs.get_type_access(made)) == 1
        theirs.remove_type_access(made, member.current_project_id)
        with pytest.raises(openstack.exceptions.BadRequestException, match="not encrypted"):
            theirs.create_type_encryption(made, provider="luks")
    finally:
        theirs.delete_type(made)
    project = member.current_project_id
    theirs.update_quota_set(project, volumes=7)
    assert theirs.get_limits(project).absolute.max_total_volumes == 7
    assert storage.get_limits().absolute.max_total_volumes == 7
    assert storage.get_quota_set(project, usage=True).usage.keys() >= {"volumes", "gigabytes"}
    theirs.revert_quota_set(project)
    assert storage.get_quota_set(project).volumes == 10
    theirs.update_quota_class_set("default", volumes=10)
    assert theirs.get_quota_class_set().volumes == 10
    service = next(one for one in theirs.services() if one.binary == "cinder-volume")
    try:
        assert theirs.disable_service(service).status == "disabled"
    finally:
        assert theirs.enable_service(service).status == "enabled"
    assert theirs.get_capabilities(service.host).vendor_name == "Proxmox VE"
    for found in (
        storage.resource_filters(),
        storage.extensions(),
        storage.availability_zones(),
        theirs.backend_pools(),
    ):
        assert list(found)
    for none in (storage.groups(), storage.group_types(), storage.attachments()):
        assert list(none) == []


def test_the_cloud_layer(member: Any, name: str) -> None:
    server = member.create_server(
        name, image="cirros", flavor="m1.tiny", network="vmbr0", wait=True, timeout=120
    )
    hints = {"local_to_instance": server.id}
    volume = member.create_volume(1, name=name, scheduler_hints=hints, wait=True, timeout=60)
    try:
        member.attach_volume(server, volume, wait=True, timeout=60)
        volume = member.get_volume(volume.id)
        assert member.get_volume_attach_device(volume, server.id) == "/dev/sdb"
        with pytest.raises(openstack.exceptions.SDKException, match="already attached"):
            member.attach_volume(server, volume)
        member.detach_volume(server, volume, wait=True, timeout=60)
        snapshot = member.create_volume_snapshot(volume.id, name=name, wait=True, timeout=60)
        assert [one.id for one in member.search_volume_snapshots(name)] == [snapshot.id]
        assert member.delete_volume_snapshot(snapshot.id, wait=True, timeout=60)
    finally:
        member.delete_server(server.id, wait=True, timeout=60)
        assert member.delete_volume(volume.id, wait=True, timeout=60)
    assert member.delete_volume(name) is False


def test_a_server_of_a_volume_and_another_volume(member: Any, name: str) -> None:
    data = member.create_volume(1, name=f"{name}-data", wait=True, timeout=60)
    server = member.create_server(
        name,
        image="cirros",
        flavor="m1.small",
        network="vmbr0",
        boot_from_volume=True,
        volume_size=1,
        volumes=[data.id],
        terminate_volume=True,
        wait=True,
        timeout=120,
    )
    attached = {one.volume_id: one for one in member.compute.volume_attachments(server)}
    assert len(attached) == 2
    assert attached[data.id].device == "/dev/sdb"
    assert member.delete_server(server.id, wait=True, timeout=60)
    # The SDK asks to delete the boot volume only.
    storage = member.block_storage
    boot = next(one for one in attached if one != data.id)
    eventually(lambda: storage.find_volume(boot) is None, 30, 0.2)
    assert storage.get_volume(data.id).status == "available"
    assert member.delete_volume(data.id, wait=True, timeout=60)
