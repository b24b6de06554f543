"""Volumes that get another type, and images of volumes, by the record."""

from __future__ import annotations

from typing import Any

import pytest

from common import ids
from common.context import RequestContext
from common.errors import Invalid, NotFound, QuotaExceeded, VolumeNotFound
from common.messages.commands import Copy, MakeVolume, RetireTemplate, RetypeVolume
from common.messages.facts import StorageFacts
from common.messages.reports import Category, CopiedDisk, Failure, MadeVolume
from conductor.endpoints.quotas import QuotaEndpoint
from conductor.endpoints.volumes.types import VolumeTypeEndpoint
from conductor.images import remove_image
from conductor.rpc.volumes.types import VolumeTypeEdit
from conductor.rpc.volumes.volumes import NewVolumeImage
from conductor.store.volumes import backends
from conductor.volumes.volume_types import VolumeTypes
from db import schema
from db.reads.volumes import volume_usage
from tests.functional.conductor.test_security_groups import at_once
from tests.functional.conductor.test_volume_snapshots import Shots
from tests.functional.conductor.test_volumes import (
    FULL,
    LOCAL,
    Site,
    a_server,
    postgres_server,  # noqa: F401
    postgres_url,  # noqa: F401
    site,  # noqa: F401
    vmids,
)
from tests.functional.waiting import eventually

pytestmark = pytest.mark.sampled(2)

FAR = StorageFacts("far", "zfspool", False, True, 1000, 900, ("import",))
SMALL = StorageFacts("small", "lvm", False, True, 5, 4, ("images",))
OWN = ids.named("volume_type", "own")
DATA_TYPE = ids.named("volume_type", "data")
BUSY = Failure(Category.LOCK, "It is locked.", host="pve1")


@pytest.fixture(autouse=True)
def types(site: Site) -> None:  # noqa: F811
    site.world.storages.extend([LOCAL, SMALL, FAR])
    site.world.beat()
    VolumeTypes(site.world.conductor.cloud).follow()


def a_volume(site: Site, gib: int = 2) -> str:  # noqa: F811
    return site.made(gib, type_id=DATA_TYPE)


def retype(site: Site, volume_id: str, type_id: str = OWN, *, may_move: bool = True) -> None:  # noqa: F811
    site.volumes.retype_volume(site.ctxt, volume_id, type_id, may_move=may_move)


def used(site: Site) -> dict[str, int]:  # noqa: F811
    with site.world.conductor.store.read() as connection:
        return volume_usage.usage(connection, str(site.ctxt.project_id))


def promised(site: Site) -> dict[str, int]:  # noqa: F811
    with site.world.conductor.store.read() as connection:
        found = backends.promised(connection)
    return {storage: gib for (_, storage, _), gib in found.items() if gib}


def of_types(site: Site) -> dict[str, int]:  # noqa: F811
    return {name: used(site).get(f"gigabytes_{name}", 0) for name in ("data", "own")}


def states(site: Site, action: str) -> list[str]:  # noqa: F811
    rows = site.world.rows(schema.operations)
    return [one.state for one in rows if one.action == action]


def moved(site: Site, command: RetypeVolume, storage: str, **more: Any) -> None:  # noqa: F811
    volid = f"{storage}:{command.volid.partition(':')[2]}"
    site.world.answer(command, ok=True, volume=MadeVolume(volid, 2 << 30, **more))


def test_it_gets_the_storage_of_its_type(site: Site) -> None:  # noqa: F811
    volume_id = a_volume(site)
    before = site.row(volume_id)
    retype(site, volume_id)
    row = site.row(volume_id)
    assert (row.status, row.previous_status, row.type_id) == ("retyping", "available", DATA_TYPE)
    # Both count until it is known where it is.
    assert of_types(site) == {"data": 2, "own": 2}
    assert (used(site)["volumes"], used(site)["gigabytes"]) == (1, 2)
    assert promised(site) == {"data": 2, "own": 2}
    for again in (lambda: retype(site, volume_id), lambda: retype(site, volume_id, DATA_TYPE)):
        with pytest.raises(Invalid, match="Retype needs volume to be in available"):
            again()
    with pytest.raises(Invalid):
        site.volumes.delete_volume(site.ctxt, volume_id, force=True)
    with pytest.raises(Invalid, match="deletion is not allowed"):
        VolumeTypeEndpoint(site.world.conductor.cloud).delete_volume_type(site.ctxt, OWN)
    command = site.last(RetypeVolume, volume_id)
    assert (command.volid, command.storage, command.settle) == (before.volid, "own", False)
    assert command.placed.vmid == before.vmid
    for _ in range(2):
        moved(site, command, "own", snapshots="online")
    row = site.becomes(volume_id, "available")
    assert (row.storage, row.shared, row.type_id) == ("own", False, OWN)
    assert (row.volid.partition(":")[0], row.snapshot_way, row.fault) == ("own", "online", None)
    assert (row.node, row.vmid, row.new_type_id) == (before.node, before.vmid, None)
    assert of_types(site) == {"data": 0, "own": 2}
    assert promised(site) == {"own": 2}
    (own,) = [one for one in site.world.rows(schema.volume_types) if one.id == OWN]
    assert own.extra_specs["storage:snapshots"] == "online"
    # And back.
    retype(site, volume_id, DATA_TYPE)
    moved(site, site.last(RetypeVolume, volume_id, 2), "data")
    row = site.becomes(volume_id, "available")
    assert (row.storage, row.shared, row.type_id) == ("data", True, DATA_TYPE)


def _attempts(site: Site) -> list[int]:  # noqa: F811
    rows = site.world.rows(schema.operations)
    return [one.attempt for one in rows if one.action == "retype-volume"]


@pytest.mark.parametrize("after_all", [False, True])
def test_what_fails_is_settled(site: Site, after_all: bool) -> None:  # noqa: F811
    volume_id = a_volume(site)
    retype(site, volume_id)
    site.world.answer(site.last(RetypeVolume, volume_id), ok=False, failure=FULL)
    settle = site.last(RetypeVolume, volume_id, 2)
    assert (settle.settle, settle.storage) == (True, "own")
    assert site.row(volume_id).status == "retyping"
    # Until an agent knows, it is asked again.
    site.world.answer(settle, ok=False, failure=BUSY)
    eventually(lambda: _attempts(site) == [3])
    assert states(site, "retype-volume") == ["unwinding"]
    site.world.make_due()
    site.world.conductor.runner.wake()
    settle = site.last(RetypeVolume, volume_id, 3)
    assert settle.settle
    moved(site, settle, "own" if after_all else "data")
    row = site.becomes(volume_id, "available")
    storage = "own" if after_all else "data"
    assert (row.storage, row.volid.partition(":")[0]) == (storage, storage)
    assert row.fault == (None if after_all else "It is full.")
    assert (row.new_type_id, row.new_storage, row.new_shared) == (None, None, None)
    assert states(site, "retype-volume") == ["done" if after_all else "failed"]
    assert of_types(site) == {"data": 0, "own": 0} | {storage: 2}
    assert promised(site) == {storage: 2}


def test_what_can_not_be_says_why(site: Site) -> None:  # noqa: F811
    """As Cinder: it is accepted, and nothing comes of it but a message."""
    volume_id = a_volume(site, 5)
    silver = _type(site, "silver", "nowhere")
    with_snapshot = a_volume(site)
    shots = Shots(site)
    site.world.conductor.store.run(
        lambda c: c.execute(schema.volumes.update().values(snapshot_way="online"))
    )
    snapshot_id = shots.take(with_snapshot)
    with pytest.raises(Invalid, match="a snapshot of it is made"):
        retype(site, with_snapshot)
    site.world.answer(shots.sent(with_snapshot, "take"), ok=True)
    shots.becomes(snapshot_id, "available")
    eventually(lambda: states(site, "create-snapshot") == ["done"])
    for one, type_id, may_move, why in (
        (volume_id, OWN, False, "its migration is not allowed"),
        (volume_id, silver, True, "there is no storage that is nowhere"),
        (volume_id, ids.named("volume_type", "small"), True, "5 GiB left"),
        (with_snapshot, OWN, True, "must not have snapshots"),
    ):
        retype(site, one, type_id, may_move=may_move)
        row = site.row(one)
        assert (row.status, row.storage, row.type_id) == ("available", "data", DATA_TYPE)
        assert why in row.fault, row.fault
    assert set(states(site, "retype-volume")) == {"failed"}
    assert not [one for _, one in site.world.compute.sent if isinstance(one, RetypeVolume)]
    assert of_types(site)["own"] == 0


def _type(site: Site, name: str, storage: str) -> str:  # noqa: F811
    edit = VolumeTypeEdit(name=name, extra_specs={"volume_backend_name": storage})
    return VolumeTypeEndpoint(site.world.conductor.cloud).create_volume_type(site.ctxt, edit)


def test_a_type_of_its_own_storage_is_had_at_once(site: Site) -> None:  # noqa: F811
    volume_id = a_volume(site)
    for name, storage in (("gold", "data"), ("any", "")):
        retype(site, volume_id, _type(site, name, storage), may_move=False)
        row = site.row(volume_id)
        assert (row.status, row.storage, row.fault) == ("available", "data", None)
        assert used(site)[f"volumes_{name}"] == 1
    assert states(site, "retype-volume") == ["done", "done"]


def test_who_may_not(site: Site) -> None:  # noqa: F811
    volume_id, server = a_volume(site), a_server(site)
    with pytest.raises(NotFound, match="Volume type"):
        retype(site, volume_id, ids.new_uuid())
    other = RequestContext(user_id="x", project_id="x", roles=["member"])
    with pytest.raises(VolumeNotFound):
        site.volumes.retype_volume(other, volume_id, OWN, may_move=True)
    site.attached(server, volume_id)
    with pytest.raises(Invalid, match="is in-use"):
        retype(site, volume_id)
    assert site.row(volume_id).status == "in-use"


def test_the_quota_of_a_type_is_never_exceeded(site: Site) -> None:  # noqa: F811
    volume_ids = [a_volume(site) for _ in range(4)]
    project = str(site.ctxt.project_id)
    quota = QuotaEndpoint(site.world.conductor.cloud)
    quota.set_quota(site.ctxt, project, {"gigabytes_own": 5}, force=True)
    refused: list[QuotaExceeded] = []

    def one(volume_id: str) -> None:
        try:
            retype(site, volume_id)
        except QuotaExceeded as error:
            refused.append(error)

    at_once(*[lambda volume_id=volume_id: one(volume_id) for volume_id in volume_ids])  # type: ignore[misc]
    assert len(refused) == 2
    assert "gigabytes_own" in refused[0].message
    assert of_types(site) == {"data": 8, "own": 4}
    assert [one.status for one in site.world.rows(schema.volumes)].count("retyping") == 2


# --- images


def upload(site: Site, volume_id: str, **more: Any) -> str:  # noqa: F811
    return site.volumes.upload_volume(site.ctxt, volume_id, NewVolumeImage("golden", **more))


def image(site: Site, image_id: str) -> Any:  # noqa: F811
    return next((one for one in site.world.rows(schema.images) if one.id == image_id), None)


def test_a_volume_becomes_an_image(site: Site) -> None:  # noqa: F811
    volume_id, before = a_volume(site, 3), vmids(site)
    kept = {"os_distro": "debian", "min_disk": "1", "checksum": "x", "os_glance_import": "y"}
    kept |= {"owner": "other", "visibility": "public", "status": "active", "location": "file:///"}
    change = schema.volumes.update().values(image_metadata=kept)
    site.world.conductor.store.run(lambda c: c.execute(change))
    image_id = upload(site, volume_id, visibility="private", protected=True)
    assert site.row(volume_id).status == "uploading"
    with pytest.raises(Invalid, match="status must be available"):
        upload(site, volume_id)
    command = site.last(Copy, volume_id)
    row = site.row(volume_id)
    assert (command.source_vmid, command.volid) == (row.vmid, row.volid)
    assert (command.image_id, command.storage) == (image_id, "local")
    assert command.placed.vmid not in (None, row.vmid)
    assert (image(site, image_id).status, vmids(site)) == ("saving", before + 1)
    copied = CopiedDisk(f"local:base-{command.placed.vmid}-disk-0", "qcow2", 5, 3 << 30)
    for _ in range(2):
        site.world.answer(command, ok=True, disk=copied)
    site.becomes(volume_id, "available")
    made = image(site, image_id)
    assert (made.status, made.min_disk_gib, made.disk_format) == ("active", 3, "raw")
    assert (made.visibility, made.protected, made.server_uuid) == ("private", True, None)
    assert made.properties == {"os_distro": "debian"}
    assert made.project_id == site.ctxt.project_id
    # A volume can be made of it, where its template is.
    again = site.new(3, image_id=image_id)
    source = site.last(MakeVolume, again).source
    assert source is not None
    assert source.volid == copied.volid


def test_an_image_that_fails_is_removed(site: Site) -> None:  # noqa: F811
    volume_id, before = a_volume(site), vmids(site)
    image_id = upload(site, volume_id)
    site.world.answer(site.last(Copy, volume_id), ok=False, failure=FULL, gone=True)
    row = site.becomes(volume_id, "available")
    assert (row.fault, image(site, image_id)) == ("It is full.", None)
    retire = _retired(site)
    site.world.answer(retire, ok=True, gone=True)
    eventually(lambda: vmids(site) == before)
    assert states(site, "upload-volume") == ["failed"]


def _retired(site: Site) -> RetireTemplate:  # noqa: F811
    def found() -> Any:
        sent = [one for _, one in site.world.compute.sent if isinstance(one, RetireTemplate)]
        return sent[-1] if sent else None

    eventually(found)
    command = found()
    assert isinstance(command, RetireTemplate)
    return command


def test_an_image_that_is_deleted_while_it_is_made(site: Site) -> None:  # noqa: F811
    volume_id, before = a_volume(site), vmids(site)
    image_id = upload(site, volume_id)
    command = site.last(Copy, volume_id)
    remove_image.delete(site.world.conductor.cloud, site.ctxt, image_id)
    copied = CopiedDisk(f"local:base-{command.placed.vmid}-disk-0", "raw", 5, 2 << 30)
    site.world.answer(command, ok=True, disk=copied)
    row = site.becomes(volume_id, "available")
    assert (row.fault, image(site, image_id)) == (None, None)
    site.world.answer(_retired(site), ok=True, gone=True)
    eventually(lambda: vmids(site) == before)


def test_of_which_no_image_is_made(site: Site) -> None:  # noqa: F811
    volume_id, server = a_volume(site), a_server(site)
    site.attached(server, volume_id)
    with pytest.raises(Invalid, match="status must be available"):
        upload(site, volume_id)
    other = RequestContext(user_id="x", project_id="x", roles=["member"])
    with pytest.raises(VolumeNotFound):
        site.volumes.upload_volume(other, volume_id, NewVolumeImage("golden"))
    assert not [one for one in site.world.rows(schema.images) if one.project_id is not None]
