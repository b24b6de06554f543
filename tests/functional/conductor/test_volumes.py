"""Volumes by the record: made, extended, attached, removed; races, quota, failures."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common import ids
from common.context import RequestContext
from common.errors import (
    Conflict,
    Invalid,
    MicronovaError,
    NotFound,
    QuotaExceeded,
    StaleTransition,
    VolumeNotFound,
)
from common.messages.commands import (
    Build,
    Destroy,
    GrowVolume,
    MakeVolume,
    PlugVolume,
    RemoveVolume,
    SnapVolume,
)
from common.messages.facts import StorageFacts
from common.messages.reports import Category, Failure, MadeVolume, Plugged
from common.resources.states import PowerState
from conductor.endpoints.quotas import QuotaEndpoint
from conductor.endpoints.servers.server_volumes import ServerVolumeEndpoint
from conductor.endpoints.volumes.types import VolumeTypeEndpoint
from conductor.endpoints.volumes.volumes import VolumeEndpoint
from conductor.rpc.servers.server_volumes import AttachRequest
from conductor.rpc.volumes.types import VolumeTypeEdit
from conductor.rpc.volumes.volumes import NewVolume, VolumeEdit
from conductor.servers.move import begin_live_migration
from conductor.store.ledger import operations as ledger
from conductor.volumes.volume_types import VolumeTypes
from db import schema
from tests.functional.conductor.harness import IMAGE, World
from tests.functional.conductor.test_security_groups import at_once
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401
from tests.functional.waiting import eventually

pytestmark = pytest.mark.sampled(2)

LOST = Failure(Category.NODE_UNHEALTHY, "The node is offline.", host="pve1")
SILENT = Failure(Category.UNKNOWN_OUTCOME, "The answer was lost.", host="pve1")
KEPT = Failure(Category.CONFIGURATION, "The guest does not let go.", verdict="fatal")
FULL = Failure(Category.STORAGE_FULL, "It is full.", host="pve1", verdict="fatal")
USED = Failure(Category.PROTECTED, "VM 7 on pve1 uses it.", host="pve1")


DATA = StorageFacts("data", "rbd", True, True, 1000, 900, ("images",))
LOCAL = StorageFacts("own", "lvmthin", False, True, 1000, 900, ("images",))


class Site:
    """A conductor whose agents the test plays."""

    def __init__(self, world: World) -> None:
        self.world = world
        cloud = world.conductor.cloud
        self.volumes = VolumeEndpoint(cloud)
        self.plugs = ServerVolumeEndpoint(cloud, world.conductor.runner)
        self.ctxt = world.ctxt

    def new(self, gib: int = 2, **more: Any) -> str:
        project = str(self.ctxt.project_id)
        return self.volumes.create_volume(self.ctxt, NewVolume(project, gib, **more))

    def row(self, volume_id: str) -> Any:
        return next((one for one in self.world.rows(schema.volumes) if one.id == volume_id), None)

    def becomes(self, volume_id: str, status: str | None) -> Any:
        eventually(lambda: getattr(self.row(volume_id), "status", None) == status)
        return self.row(volume_id)

    def last(self, kind: type[Any], uuid: str, count: int = 1) -> Any:
        """The last command of a kind about a volume or a server, once there are so many."""

        def found() -> Any:
            sent = [one for _, one in self.world.compute.sent if type(one) is kind]
            mine = [one for one in sent if one.resource_id == uuid]
            return mine[-1] if len(mine) >= count else None

        eventually(found)
        return found()

    def sent(self, kind: type[Any]) -> list[Any]:
        return [one for _, one in self.world.compute.sent if type(one) is kind]

    def made(self, gib: int = 2, **more: Any) -> str:
        volume_id = self.new(gib, **more)
        command = self.last(MakeVolume, volume_id)
        volid = f"data:vm-{command.placed.vmid}-disk-0"
        self.world.answer(command, ok=True, volume=MadeVolume(volid, gib << 30))
        self.becomes(volume_id, "available")
        return volume_id

    def attach(self, server: str, volume_id: str, **more: Any) -> Any:
        return self.plugs.attach_volume(self.ctxt, server, AttachRequest(volume_id, **more))

    def attached(self, server: str, volume_id: str, **more: Any) -> Any:
        count = sum(type(one) is PlugVolume for _, one in self.world.compute.sent)
        self.attach(server, volume_id, **more)
        command = self.last(PlugVolume, server)
        eventually(lambda: sum(type(o) is PlugVolume for _, o in self.world.compute.sent) > count)
        command = self.last(PlugVolume, server)
        self.world.answer(command, ok=True, power_state=PowerState.RUNNING)
        self.becomes(volume_id, "in-use")
        return command


@pytest.fixture(params=["sqlite", "postgresql"])
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    world = World(tmp_path, url=url)
    world.storages.append(DATA)
    world.beat()
    world.conductor.runner.start()
    yield Site(world)
    world.close()
    for pool in (world.conductor.store._writer, world.conductor.store._reader):
        pool.dispose()


def actions(site: Site, server: str) -> list[tuple[str, str]]:
    """The actions of a server, with their states."""
    rows = site.world.rows(schema.operations)
    return [(one.action, one.state) for one in rows if one.resource_id == server]


def test_an_extension_is_an_action_of_the_server_that_has_the_volume(site: Site) -> None:
    """As in Nova, once it is done; under the ID of the request."""
    server, volume_id = a_server(site), site.made()
    site.volumes.extend_volume(site.ctxt, volume_id, 3, in_use=True)
    site.world.answer(site.last(GrowVolume, volume_id), ok=True)
    site.becomes(volume_id, "available")
    site.attached(server, volume_id)
    before = actions(site, server)
    site.volumes.extend_volume(site.ctxt, volume_id, 4, in_use=True)
    assert actions(site, server) == before
    site.world.answer(site.last(GrowVolume, volume_id, 2), ok=True)
    site.becomes(volume_id, "in-use")
    assert actions(site, server) == [*before, ("extend_volume", "done")]
    mine = [one for one in site.world.rows(schema.operations) if one.action == "extend_volume"]
    assert [one.request_id for one in mine] == [site.ctxt.request_id]
    site.volumes.extend_volume(site.ctxt, volume_id, 5, in_use=True)
    site.world.answer(site.last(GrowVolume, volume_id, 3), ok=False, failure=FULL)
    site.becomes(volume_id, "error_extending")
    assert actions(site, server) == [*before, ("extend_volume", "done")]


@pytest.fixture
def server(site: Site) -> str:
    return a_server(site)


def a_server(site: Site) -> str:
    [uuid] = site.world.create()
    site.world.answer(site.last(Build, uuid), ok=True, power_state=PowerState.RUNNING)
    site.world.until(uuid, "active")
    return uuid


def vmids(site: Site) -> int:
    return len(site.world.rows(schema.vmids))


def test_a_volume_is_made_extended_and_removed(site: Site) -> None:
    before = vmids(site)
    volume_id = site.new(2, name="data")
    assert site.row(volume_id).status == "creating"
    command = site.last(MakeVolume, volume_id)
    assert (command.size_gib, command.storage, command.source) == (2, "data", None)
    assert vmids(site) == before + 1
    with pytest.raises(Invalid, match="Volume status must be available"):
        site.volumes.delete_volume(site.ctxt, volume_id, force=False)
    volid = f"data:vm-{command.placed.vmid}-disk-0"
    for _ in range(2):
        site.world.answer(command, ok=True, volume=MadeVolume(volid, 2 << 30))
    row = site.becomes(volume_id, "available")
    assert (row.volid, row.vmid, row.host) == (volid, command.placed.vmid, command.placed.host)
    site.volumes.extend_volume(site.ctxt, volume_id, 5, in_use=False)
    assert site.row(volume_id).status == "extending"
    grow = site.last(GrowVolume, volume_id)
    assert (grow.size_gib, grow.user, grow.volid) == (5, None, volid)
    site.world.answer(grow, ok=True, volume=MadeVolume(volid, 5 << 30))
    assert site.becomes(volume_id, "available").size_gib == 5
    site.volumes.delete_volume(site.ctxt, volume_id, force=False)
    removal = site.last(RemoveVolume, volume_id)
    assert (removal.volid, removal.users) == (volid, ())
    assert site.row(volume_id).status == "deleting"
    for _ in range(2):
        site.world.answer(removal, ok=True, gone=True)
    site.becomes(volume_id, None)
    assert vmids(site) == before


def test_what_fails_is_in_error_and_leaves_nothing(site: Site) -> None:
    before = vmids(site)
    clean, unclean = site.new(), site.new()
    site.world.answer(site.last(MakeVolume, clean), ok=False, failure=FULL, gone=True)
    row = site.becomes(clean, "error")
    assert (row.fault, row.vmid) == ("It is full.", None)
    # What may be left is removed, and the VMID is kept until then.
    site.world.answer(site.last(MakeVolume, unclean), ok=False, failure=FULL)
    site.becomes(unclean, "error")
    assert vmids(site) == before + 1
    removal = site.last(RemoveVolume, unclean)
    site.volumes.delete_volume(site.ctxt, clean, force=False)
    assert site.row(clean) is None
    site.world.answer(removal, ok=True, gone=True)
    eventually(lambda: vmids(site) == before)
    assert site.row(unclean).status == "error"
    # A volume that can't be extended.
    volume_id = site.made()
    site.volumes.extend_volume(site.ctxt, volume_id, 3, in_use=False)
    site.world.answer(site.last(GrowVolume, volume_id), ok=False, failure=FULL)
    assert site.becomes(volume_id, "error_extending").size_gib == 2
    # It is seen parked first, as its disk may be plugged still.
    site.volumes.delete_volume(site.ctxt, volume_id, force=False)
    site.world.answer(site.last(SnapVolume, volume_id), ok=True)
    site.world.answer(site.last(RemoveVolume, volume_id), ok=False, failure=USED)
    assert site.becomes(volume_id, "error_deleting").fault == "VM 7 on pve1 uses it."
    site.volumes.delete_volume(site.ctxt, volume_id, force=False)
    site.world.answer(site.last(RemoveVolume, volume_id, 2), ok=True, gone=True)
    site.becomes(volume_id, None)


def test_one_whose_remains_could_not_be_removed_can_still_be_deleted(site: Site) -> None:
    volume_id = site.new()
    site.world.answer(site.last(MakeVolume, volume_id), ok=False, failure=FULL)
    site.becomes(volume_id, "error")
    site.world.answer(site.last(RemoveVolume, volume_id), ok=False, failure=USED)
    eventually(lambda: {one.state for one in site.world.rows(schema.operations)} == {"failed"})
    site.volumes.delete_volume(site.ctxt, volume_id, force=False)
    site.world.answer(site.last(RemoveVolume, volume_id, 2), ok=True, gone=True)
    site.becomes(volume_id, None)


def test_a_status_is_not_reset_while_an_operation_is_open(site: Site) -> None:
    volume_id = site.made()
    site.volumes.extend_volume(site.ctxt, volume_id, 3, in_use=False)
    with pytest.raises(Conflict, match="under way"):
        site.volumes.reset_volume(site.ctxt, volume_id, "available")
    grow = site.last(GrowVolume, volume_id)
    site.world.answer(grow, ok=True, volume=MadeVolume(grow.volid, 3 << 30))
    site.becomes(volume_id, "available")
    site.volumes.reset_volume(site.ctxt, volume_id, "error")
    site.volumes.delete_volume(site.ctxt, volume_id, force=False)
    with pytest.raises(Conflict, match="under way"):
        site.volumes.reset_volume(site.ctxt, volume_id, "available")
    site.world.answer(site.last(RemoveVolume, volume_id), ok=True, gone=True)
    site.becomes(volume_id, None)


def test_without_a_place_it_says_why(site: Site) -> None:
    site.world.conductor.cloud.conf.set_override("gigabytes", -1, "quota")
    volume_id = site.new(5000)
    row = site.row(volume_id)
    assert row.status == "error"
    assert "5000 GiB left" in row.fault
    assert site.row(site.new(availability_zone="moon")).status == "error"
    with pytest.raises(NotFound):
        site.new(type_id=ids.new_uuid())
    with pytest.raises(NotFound):
        site.new(image_id=ids.new_uuid())
    for source in ("source_volume_id", "snapshot_id"):
        with pytest.raises(NotFound):
            site.new(**{source: ids.new_uuid()})
    site.volumes.delete_volume(site.ctxt, volume_id, force=False)
    assert site.row(volume_id) is None


def test_a_volume_of_an_image(site: Site) -> None:
    volume_id = site.new(3, image_id=IMAGE)
    row = site.row(volume_id)
    assert (row.status, row.bootable) == ("downloading", True)
    command = site.last(MakeVolume, volume_id)
    assert command.source is not None
    assert command.source.volid == "shared:import/debian-12.qcow2"


def test_types_follow_the_storages(site: Site) -> None:
    types = VolumeTypes(site.world.conductor.cloud)
    at_once(types.follow, types.follow)
    types.follow()
    (found,) = site.world.rows(schema.volume_types)
    assert (found.name, found.storage, found.is_public) == ("data", "data", True)
    assert found.extra_specs["volume_backend_name"] == "data"
    volume_id = site.made(type_id=found.id)
    assert site.row(volume_id).type_id == found.id


def test_limits_of_a_type_follow_its_name(site: Site) -> None:
    """Also where it is as long as a name may be."""
    cloud, ctxt = site.world.conductor.cloud, site.ctxt
    types, quotas = VolumeTypeEndpoint(cloud), QuotaEndpoint(cloud)
    specs = {"volume_backend_name": "data"}
    type_id = types.create_volume_type(ctxt, VolumeTypeEdit("gold", extra_specs=specs))
    project, name = str(ctxt.project_id), "g" * 255
    quotas.set_quota(ctxt, project, {"volumes": 9, "volumes_gold": 1}, force=True)
    quotas.set_quota_class(ctxt, "default", {"gigabytes_gold": 2})
    # Of a type of that name that is gone.
    quotas.set_quota(ctxt, project, {f"volumes_{name}": 5}, force=True)
    types.edit_volume_type(ctxt, type_id, VolumeTypeEdit(name))
    limits = {one.resource: one.hard_limit for one in site.world.rows(schema.quota_limits)}
    assert limits == {"volumes": 9, f"volumes_{name}": 1}
    with pytest.raises(QuotaExceeded, match=r"allowed gigabytes_ggg.* quota is 2G"):
        site.new(3, type_id=type_id)
    site.new(2, type_id=type_id)
    with pytest.raises(QuotaExceeded, match=r"volumes allowed \(1\) exceeded"):
        site.new(0, type_id=type_id)


def test_the_quota_is_never_exceeded(site: Site) -> None:
    conf = site.world.conductor.cloud.conf
    conf.set_override("volumes", 3, "quota")
    conf.set_override("per_volume_gigabytes", 50, "quota")
    made, refused = [], []

    def one() -> None:
        try:
            made.append(site.new())
        except QuotaExceeded as error:
            refused.append(error)

    at_once(*[one] * 8)
    assert (len(made), len(refused)) == (3, 5)
    assert "Maximum number of volumes allowed (3) exceeded" in refused[0].message
    conf.set_override("volumes", 10, "quota")
    conf.set_override("gigabytes", 10, "quota")
    with pytest.raises(QuotaExceeded, match="quota is 10G and 6G has been consumed"):
        site.new(5)
    with pytest.raises(QuotaExceeded, match="larger than maximum allowed limit 50"):
        site.new(60)


def test_a_server_gets_it_and_loses_it(site: Site, server: str) -> None:
    volume_id = site.made()
    begun = site.attach(server, volume_id, tag="data")
    assert begun.slot == 1
    assert site.row(volume_id).status == "attaching"
    command = site.last(PlugVolume, server)
    assert (command.on, command.slot, command.serial) == (True, 1, volume_id[:20])
    assert command.holder is not None
    assert command.holder.vmid == site.row(volume_id).vmid
    assert site.world.row(server).task_state is None
    for _ in range(2):
        site.world.answer(command, ok=True, power_state=PowerState.RUNNING)
    site.becomes(volume_id, "in-use")
    (attached,) = site.world.rows(schema.volume_attachments)
    assert (attached.status, attached.tag) == ("attached", "data")
    with pytest.raises(Invalid, match="already attached"):
        site.attach(server, volume_id)
    with pytest.raises(Invalid, match="Volume status must be"):
        site.volumes.delete_volume(site.ctxt, volume_id, force=True)
    with pytest.raises(Invalid):
        site.volumes.extend_volume(site.ctxt, volume_id, 3, in_use=False)
    site.volumes.extend_volume(site.ctxt, volume_id, 3, in_use=True)
    grow = site.last(GrowVolume, volume_id)
    assert grow.user.server_uuid == server
    site.world.answer(grow, ok=True, volume=MadeVolume(command.volid, 3 << 30))
    site.becomes(volume_id, "in-use")
    # A second one is beside it.
    other = site.made()
    assert site.attached(server, other).slot == 2
    site.plugs.detach_volume(site.ctxt, server, volume_id)
    off = site.last(PlugVolume, server, 3)
    assert (off.on, off.volid) == (False, command.volid)
    site.world.answer(off, ok=True, power_state=PowerState.RUNNING)
    row = site.becomes(volume_id, "available")
    assert row.last_user["server_uuid"] == server
    assert [one.volume_id for one in site.world.rows(schema.volume_attachments)] == [other]
    site.volumes.delete_volume(site.ctxt, volume_id, force=False)
    assert [one.server_uuid for one in site.last(RemoveVolume, volume_id).users] == [server]


def test_one_whose_slot_something_else_has_gets_another(site: Site, server: str) -> None:
    first, second = site.made(), site.made()
    assert [site.attach(server, one).slot for one in (first, second)] == [1, 2]
    eventually(lambda: len(site.sent(PlugVolume)) == 2)
    commands = {one.volume_id: one for one in site.sent(PlugVolume)}
    # What was written after the first one's command was sent isn't in that.
    assert commands[second].others[:3] == (3, 4, 5)
    site.world.answer(commands[first], ok=True, power_state=PowerState.RUNNING, slot=2)
    site.becomes(first, "in-use")
    found = {one.volume_id: one.slot for one in site.world.rows(schema.volume_attachments)}
    assert found == {first: 2, second: 1}
    site.world.answer(commands[second], ok=True, power_state=PowerState.RUNNING, slot=3)
    site.becomes(second, "in-use")
    found = {one.volume_id: one.slot for one in site.world.rows(schema.volume_attachments)}
    assert found == {first: 2, second: 3}
    assert site.attach(server, site.made()).slot == 1


def test_a_refused_attachment_is_taken_back(site: Site, server: str) -> None:
    volume_id = site.made()
    site.attach(server, volume_id)
    site.world.answer(site.last(PlugVolume, server), ok=False, failure=FULL)
    back = site.last(PlugVolume, server, 2)
    assert back.on is False
    assert site.row(volume_id).status == "attaching"
    site.world.answer(back, ok=True, power_state=PowerState.RUNNING)
    site.becomes(volume_id, "available")
    assert site.world.rows(schema.volume_attachments) == []
    # A volume that the guest does not release remains attached.
    site.attached(server, volume_id)
    site.plugs.detach_volume(site.ctxt, server, volume_id)
    eventually(lambda: len([1 for _, o in site.world.compute.sent if type(o) is PlugVolume]) == 4)
    site.world.answer(site.last(PlugVolume, server), ok=False, failure=FULL)
    site.becomes(volume_id, "in-use")
    (attached,) = site.world.rows(schema.volume_attachments)
    assert attached.status == "attached"


@pytest.mark.parametrize("out", [True, False])
def test_where_the_node_falls_silent_the_volume_is_detached_until_it_is_seen(
    site: Site, server: str, out: bool
) -> None:
    volume_id = site.made()
    site.attached(server, volume_id)
    site.plugs.detach_volume(site.ctxt, server, volume_id)
    # Nobody knows whether the VM names it.
    site.world.answer(site.last(PlugVolume, server, 2), ok=False, failure=SILENT)
    site.world.answer(site.last(PlugVolume, server, 3), ok=False, failure=SILENT)
    site.world.until_paused()
    assert site.row(volume_id).status == "detaching"
    site.world.make_due()
    again = site.last(PlugVolume, server, 4)
    assert again.on is False
    if out:
        site.world.answer(again, ok=True, power_state=PowerState.RUNNING)
        site.becomes(volume_id, "available")
        assert site.world.rows(schema.volume_attachments) == []
    else:
        site.world.answer(again, ok=False, failure=KEPT)
        site.becomes(volume_id, "in-use")
        (attached,) = site.world.rows(schema.volume_attachments)
        assert attached.status == "attached"
    (operation,) = [
        one for one in site.world.rows(schema.operations) if one.action == "detach_volume"
    ]
    assert operation.state == ("done" if out else "failed")


def test_one_volume_goes_to_one_server(site: Site) -> None:
    servers = [a_server(site) for _ in range(4)]
    volume_id = site.made()
    lost: list[MicronovaError] = []

    def one(server: str) -> None:
        try:
            site.attach(server, volume_id)
        except MicronovaError as error:
            lost.append(error)

    at_once(*[functools.partial(one, server) for server in servers])
    assert len(lost) == 3, lost
    assert len(site.world.rows(schema.volume_attachments)) == 1


def test_others_volumes_are_not_there(site: Site, server: str) -> None:
    volume_id = site.made()
    other = RequestContext(user_id="x", project_id="other", roles=["member"])
    for refused in (
        lambda: site.volumes.delete_volume(other, volume_id, force=False),
        lambda: site.volumes.edit_volume(other, volume_id, VolumeEdit(name="mine")),
        lambda: site.volumes.extend_volume(other, volume_id, 9, in_use=False),
        lambda: site.plugs.attach_volume(site.ctxt, server, AttachRequest(ids.new_uuid())),
    ):
        with pytest.raises(VolumeNotFound):
            refused()
    assert site.row(volume_id).status == "available"


def test_a_server_that_goes_lets_go_of_its_volumes(site: Site, server: str) -> None:
    kept, gone, begun = site.made(), site.made(), site.made()
    site.attached(server, kept)
    site.attached(server, gone, delete_on_termination=True)
    site.attach(server, begun)
    late = site.last(PlugVolume, server, 3)
    site.world.act(server, "delete")
    destroy = site.last(Destroy, server)
    assert site.row(kept).status == "in-use"
    site.world.answer(destroy, ok=True, gone=True)
    site.becomes(kept, "available")
    site.becomes(begun, "available")
    assert site.row(gone).status == "deleting"
    assert site.world.rows(schema.volume_attachments) == []
    site.world.answer(late, ok=True, power_state=PowerState.RUNNING)
    site.world.answer(site.last(RemoveVolume, gone), ok=True, gone=True)
    site.becomes(gone, None)
    assert site.row(begun).status == "available"


@pytest.mark.parametrize("on", [True, False])
def test_what_a_delete_interrupts_goes_on_where_that_is_refused(
    site: Site, server: str, on: bool
) -> None:
    volume_id = plugging(site, server, on=on)
    count = 1 if on else 2
    command = site.last(PlugVolume, server, count)
    site.world.act(server, "delete")
    destroy = site.last(Destroy, server)
    # It was carried out, or was given up for the delete: the record says nothing yet.
    failure = None if on else FULL
    site.world.answer(command, ok=on, power_state=PowerState.RUNNING, failure=failure)
    eventually(lambda: plug_of(site).not_before is not None)
    refused = Failure(Category.PROTECTED, "It is protected.", host="pve1")
    site.world.answer(destroy, ok=False, failure=refused)
    site.world.until(server, "active")
    assert site.row(volume_id).status == ("attaching" if on else "detaching")
    site.world.make_due()
    again = site.last(PlugVolume, server, count + 1)
    assert again.on is on
    site.world.answer(again, ok=True, power_state=PowerState.RUNNING)
    site.becomes(volume_id, "in-use" if on else "available")
    assert plug_of(site).state == "done"


@pytest.mark.parametrize("on", [True, False])
def test_a_status_is_not_set_while_a_server_gets_it_or_loses_it(
    site: Site, server: str, on: bool
) -> None:
    volume_id = plugging(site, server, on=on)
    for status in ("in-use", "error"):
        with pytest.raises(Conflict, match="an operation is under way"):
            site.volumes.reset_volume(site.ctxt, volume_id, status)
    assert site.row(volume_id).status == ("attaching" if on else "detaching")


def test_a_late_outcome_of_an_undo_leaves_a_newer_attachment_alone(
    site: Site, server: str
) -> None:
    """Two outcomes of one undo, as its command came again; the second was read before the end."""
    volume_id = site.made()
    site.attach(server, volume_id)
    site.world.answer(site.last(PlugVolume, server), ok=False, failure=FULL)
    back = site.last(PlugVolume, server, 2)
    with site.world.conductor.store.read() as connection:
        read = ledger.get(connection, back.operation_id)
    assert read is not None
    site.world.answer(back, ok=True, power_state=PowerState.RUNNING)
    site.becomes(volume_id, "available")
    site.attach(server, volume_id)
    runner = site.world.conductor.runner._flows["attach_volume"]
    with pytest.raises(StaleTransition):
        runner.finished(read, Plugged(True, power_state=PowerState.RUNNING))
    assert site.row(volume_id).status == "attaching"
    assert len(site.world.rows(schema.volume_attachments)) == 1


@pytest.mark.parametrize("status", ["error", "error_extending", "extending"])
def test_what_goes_with_its_server_goes_in_any_state(site: Site, server: str, status: str) -> None:
    volume_id = site.made()
    site.attached(server, volume_id, delete_on_termination=True)
    if status == "error":
        site.volumes.reset_volume(site.ctxt, volume_id, status)
    else:
        site.volumes.extend_volume(site.ctxt, volume_id, 3, in_use=True)
        grow = site.last(GrowVolume, volume_id)
    if status == "error_extending":
        site.world.answer(grow, ok=False, failure=FULL)
        site.becomes(volume_id, status)
    site.world.act(server, "delete")
    site.world.answer(site.last(Destroy, server), ok=True, gone=True)
    site.becomes(volume_id, "deleting")
    if status == "extending":
        site.world.answer(grow, ok=True, volume=MadeVolume(grow.volid, 3 << 30))
    elif status == "error_extending":
        site.world.answer(site.last(SnapVolume, volume_id), ok=True)
    site.world.answer(site.last(RemoveVolume, volume_id), ok=True, gone=True)
    site.becomes(volume_id, None)


def plugging(site: Site, server: str, *, on: bool) -> str:
    """Return a volume that the server is getting, or losing."""
    volume_id = site.made()
    if on:
        site.attach(server, volume_id)
    else:
        site.attached(server, volume_id)
        site.plugs.detach_volume(site.ctxt, server, volume_id)
    return volume_id


def plug_of(site: Site) -> Any:
    """Return the last operation that attaches or detaches."""
    return [one for one in site.world.rows(schema.operations) if "tach" in one.action][-1]


def test_a_local_volume_pins_its_server(site: Site, server: str) -> None:
    site.world.storages[:] = [LOCAL]
    site.world.beat()
    near = site.made(local_to_server=server)
    assert site.row(near).node == site.world.row(server).node
    site.attached(server, near)
    cloud = site.world.conductor.cloud
    for move in (
        lambda: begin_live_migration.accept(cloud, site.ctxt, server, None, None),
        lambda: site.world.migrate(server),
    ):
        with pytest.raises(Invalid, match="which only node"):
            move()
    other = next(one for one in ("pve1", "pve2") if one != site.world.row(server).host)
    far = site.made()
    change = schema.volumes.update().where(schema.volumes.c.id == far)
    cloud.store.run(lambda c: c.execute(change.values(host=other, node=other)))
    with pytest.raises(Invalid, match="which only node"):
        site.attach(server, far)
    assert site.row(far).status == "available"
