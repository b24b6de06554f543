"""Adoption, release, hold and forgetting: whose a VM is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from common import clock
from common.context import RequestContext
from common.errors import Conflict, Invalid, NotFound, QuotaExceeded, ServerNotFound
from common.messages.commands import Command, Destroy, Mark
from common.messages.facts import Inspection, NicFacts
from common.messages.reports import Category, Failure
from conductor.endpoints.networks.ports import PortEndpoint
from conductor.rpc.networks.ports import NewPort
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.manage import Adoption
from conductor.store.networks import networks
from db import schema
from tests.functional.conductor.harness import World

OWN = "6b0f9c5e-55a5-4bb1-8f0c-9e2c3fbb0a01"
ADMIN = RequestContext(user_id="boss", project_id="admin", roles=["admin"], is_admin=True)
VM = Inspection(
    500,
    True,
    "pve1",
    name="db",
    power_state=1,
    vcpus=2,
    memory_mib=2048,
    disk_gib=10,
    smbios_uuid=OWN,
    nics=(NicFacts("aa:bb:cc:00:00:01", "vmbr0"), NicFacts("aa:bb:cc:00:00:02", "vmbr0", 7)),
)
ASKED = Adoption("sim1", 500, "p", "u")
BUSY = Failure(Category.LOCK, "VM is locked", host="pve1")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, settle_seconds=0.0)
    made.compute.vms[500] = VM
    made.conductor.runner.start()
    yield made
    made.close()


def adopt(world: World, asked: Adoption = ASKED) -> Any:
    return world.conductor.custody.adopt(ADMIN, asked)


def adopted(world: World) -> Any:
    uuid = adopt(world).server_uuid
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    return world.until(uuid, "active")


def vmid_row(world: World, vmid: int) -> Any:
    return next((row for row in world.rows(schema.vmids) if row.vmid == vmid), None)


def test_an_adopted_vm_is_a_server(world: World) -> None:
    uuid = adopt(world).server_uuid
    assert uuid == OWN
    row = world.row(uuid)
    assert (row.vm_state, row.task_state) == ("building", "adopting")
    command = world.compute.wait_for(1)
    assert isinstance(command, Mark)
    assert (command.on, command.smbios_uuid, command.placed.vmid) == (True, OWN, 500)
    assert world.placement.claims == {uuid: "uuid-pve1"}
    world.answer(command, ok=True, power_state=1)
    row = world.until(uuid, "active")
    assert (row.name, row.host, row.node, row.project_id) == ("db", "pve1", "pve1", "p")
    assert (row.vcpus, row.memory_mib, row.disk_gib) == (2, 2048, 10)
    assert row.flavor["name"] == "adopted-2-2048-10"
    assert row.launched_at is not None
    assert vmid_row(world, 500).server_uuid == uuid
    (port,) = world.rows(schema.ports)
    assert (port.mac, port.server_uuid, port.ip) == ("aa:bb:cc:00:00:01", uuid, None)
    event = world.rows(schema.operation_events)[0]
    assert event.detail["unknown_networks"] == ["vmbr0"]


def test_what_is_asked_for_counts(world: World) -> None:
    world.compute.vms[500] = replace(VM, power_state=4)
    flavor = FlavorSnapshot("9", "big", 4, 4096, 20)
    uuid = adopt(world, replace(ASKED, name="mail", flavor=flavor)).server_uuid
    world.answer(world.compute.wait_for(1), ok=True, power_state=4)
    row = world.until(uuid, "stopped")
    assert (row.name, row.vcpus, row.flavor["name"]) == ("mail", 4, "big")


def test_refusals_leave_nothing(world: World) -> None:
    flavor = FlavorSnapshot("9", "tiny", 1, 512, 1)
    for found, asked, error in (
        (Inspection(500), ASKED, NotFound),
        (replace(VM, kind="template"), ASKED, Conflict),
        (replace(VM, lock="clone"), ASKED, Conflict),
        (replace(VM, marked_by="x"), ASKED, Conflict),
        (VM, replace(ASKED, cluster="nowhere"), NotFound),
        (VM, replace(ASKED, flavor=flavor), Conflict),
        (replace(VM, vcpus=21), ASKED, QuotaExceeded),
        (replace(VM, node="pve9"), ASKED, Conflict),
    ):
        world.compute.vms[500] = found
        with pytest.raises(error):
            adopt(world, asked)
    for table in (schema.servers, schema.operations, schema.vmids, schema.ports):
        assert world.rows(table) == []


def test_a_vm_is_adopted_once_and_a_used_uuid_not_taken(world: World) -> None:
    first = adopted(world)
    with pytest.raises(Conflict, match=f"reserved for server {first.uuid}"):
        adopt(world)
    world.compute.vms[501] = replace(VM, vmid=501, nics=())
    second = adopt(world, replace(ASKED, vmid=501))
    assert second.server_uuid != first.uuid
    world.compute.vms[502] = replace(VM, vmid=502)
    with pytest.raises(Conflict, match="MAC address"):
        adopt(world, replace(ASKED, vmid=502))


def test_without_room_the_record_goes_again(world: World) -> None:
    world.placement.full = {"uuid-pve1"}
    uuid = adopt(world).server_uuid
    row = world.until(uuid, "deleted")
    assert row.deleted_at is not None
    assert world.rows(schema.ports) == []
    assert vmid_row(world, 500) is None
    assert "no room" in world.rows(schema.faults)[0].message
    assert world.compute.sent == []


def test_the_addresses_of_a_vm_that_was_left_are_given_to_nobody(world: World) -> None:
    """Before it is seen again as a VM that the record doesn't know."""
    parsed = networks.parse_subnet("vmbr0=10.0.0.0/24;pool=10.0.0.50-10.0.0.53")
    world.conductor.store.run(lambda c: networks.ensure_subnet(c, parsed))
    nic = replace(VM.nics[0], ips=("10.0.0.50",))
    world.compute.vms[500] = replace(VM, nics=(nic,))
    world.placement.full = {"uuid-pve1"}
    world.until(adopt(world).server_uuid, "deleted")
    endpoint = PortEndpoint(world.conductor.cloud, world.conductor.runner)
    [network] = [one.id for one in world.rows(schema.networks) if one.bridge == "vmbr0"]
    endpoint.create_ports(world.ctxt, [NewPort("p", network)])
    [port] = world.rows(schema.ports)
    assert port.ip != "10.0.0.50"
    # And it can be adopted with it.
    world.placement.full = set()
    row = adopted(world)
    assert [one["ip"] for one in row.addresses] == ["10.0.0.50"]
    world.act(row.uuid, "release")
    world.answer(world.compute.wait_for(2), ok=True, gone=True)
    world.until(row.uuid, "deleted")
    assert [(one.vmid, one.ip) for one in world.rows(schema.other_nics)] == [(500, "10.0.0.50")]


def test_a_mark_that_cant_be_set_is_seen_off(world: World) -> None:
    uuid = adopt(world).server_uuid
    world.answer(world.compute.wait_for(1), ok=False, failure=BUSY)
    off = world.compute.wait_for(2)
    assert isinstance(off, Mark)
    assert not off.on
    world.answer(off, ok=False, failure=BUSY)
    world.until_faults(2)
    world.make_due()
    world.answer(world.compute.wait_for(3), ok=True, gone=True)
    world.until(uuid, "deleted")
    world.until_operation("failed")
    assert world.placement.claims == {}
    assert vmid_row(world, 500) is None


# --- release


def test_release_is_the_reverse(world: World) -> None:
    server = adopted(world)
    world.act(server.uuid, "release")
    world.until(server.uuid, "active", "releasing")
    command = world.compute.wait_for(2)
    assert isinstance(command, Mark)
    assert not command.on
    world.answer(command, ok=True, gone=True)
    row = world.until(server.uuid, "deleted")
    assert row.deleted_at is not None
    assert world.placement.claims == {}
    assert world.rows(schema.ports) == []
    assert vmid_row(world, 500) is None
    assert [type(sent).__name__ for _, sent in world.compute.sent] == ["Mark", "Mark"]


def test_a_released_vm_of_our_band_keeps_its_vmid_from_others(world: World) -> None:
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    server = world.until(uuid, "active")
    world.act(uuid, "release")
    world.answer(world.compute.wait_for(2), ok=True, gone=True)
    world.until(uuid, "deleted")
    row = vmid_row(world, server.vmid)
    assert (row.state, row.server_uuid) == ("quarantined", None)


def test_a_release_that_fails_leaves_the_server_as_it_was(world: World) -> None:
    server = adopted(world)
    world.act(server.uuid, "release")
    denied = Failure(Category.AUTHORIZATION, "no", host="pve1")
    world.answer(world.compute.wait_for(2), ok=False, failure=denied)
    world.until(server.uuid, "active")
    world.until_operation("done", "failed")
    assert world.placement.claims == {server.uuid: "uuid-pve1"}


# --- hold


def hold(world: World, uuid: str, *, held: bool) -> None:
    world.conductor.custody.hold_server(world.ctxt, uuid, held=held)


def failed_delete(world: World) -> tuple[str, Command]:
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "active")
    world.act(uuid, "delete")
    return uuid, world.compute.wait_for(2)


def test_a_held_server_is_not_tried_again_until_it_is_released(world: World) -> None:
    uuid, destroy = failed_delete(world)
    hold(world, uuid, held=True)
    world.answer(destroy, ok=False, failure=BUSY)
    world.until_faults(1)
    world.make_due()
    world.conductor.runner.look()
    assert len(world.compute.sent) == 2
    assert world.row(uuid).held
    hold(world, uuid, held=False)
    world.answer(world.compute.wait_for(3), ok=True, gone=True)
    world.until(uuid, "deleted")
    actions = [row.action for row in world.rows(schema.operations)]
    assert actions == ["create", "delete", "hold", "release-hold"]


def test_a_new_request_for_a_held_server_begins(world: World) -> None:
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "active")
    hold(world, uuid, held=True)
    hold(world, uuid, held=True)
    world.act(uuid, "delete")
    world.answer(world.compute.wait_for(2), ok=True, gone=True)
    world.until(uuid, "deleted")


def test_what_was_held_past_its_time_has_time_again(world: World) -> None:
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=False, failure=BUSY, gone=True)
    world.until_faults(1)
    hold(world, uuid, held=True)
    world.conductor.store.run(
        lambda c: c.execute(schema.operations.update().values(deadline=clock.after(-1)))
    )
    hold(world, uuid, held=False)
    world.answer(world.compute.wait_for(2), ok=True, power_state=1)
    world.until(uuid, "active")


def test_another_projects_server_cant_be_held(world: World) -> None:
    (uuid,) = world.create()
    stranger = RequestContext(user_id="x", project_id="other", roles=["member"])
    with pytest.raises(ServerNotFound):
        world.conductor.custody.hold_server(stranger, uuid, held=True)


# --- forget


def forget(world: World, uuid: str, reason: str | None = None, *, force: bool = False) -> None:
    world.conductor.custody.abandon(ADMIN, uuid, reason, force=force)


def test_a_delete_that_never_ends_is_ended_by_forgetting(world: World) -> None:
    uuid, destroy = failed_delete(world)
    vmid = destroy.placed.vmid
    foreign = Failure(Category.STORAGE_CONFLICT, "not ours", left=("VM",))
    world.answer(destroy, ok=False, failure=foreign)
    world.until_faults(1)
    world.compute.vms[vmid] = replace(VM, vmid=vmid, ours=False)
    forget(world, uuid)
    row = world.until(uuid, "deleted")
    assert row.deleted_at is not None
    drive = world.compute.wait_for(3)
    assert isinstance(drive, Destroy)
    assert (drive.drive_only, drive.placed) == (True, destroy.placed)
    used = Failure(Category.UNKNOWN_OUTCOME, "the VM uses it", left=("config drive",))
    world.answer(drive, ok=False, failure=used)
    world.until_operation("done", "failed", "done")
    assert world.rows(schema.faults)[-1].left == ["config drive"]
    assert world.placement.claims == {}
    assert world.rows(schema.ports) == []
    row = vmid_row(world, vmid)
    assert row.state == "quarantined"
    assert "not this server's" in row.reason
    event = world.rows(schema.operation_events)[-1]
    assert (event.name, event.detail["vmid"]) == ("conductor_forget_server", vmid)
    # What the agent says of it later changes nothing.
    world.answer(destroy, ok=True, gone=True)
    assert world.row(uuid).vm_state == "deleted"


def test_what_is_ours_is_never_forgotten(world: World) -> None:
    server = adopted(world)
    world.compute.vms[500] = replace(VM, ours=True, marked_by=server.uuid)
    for force in (False, True):
        with pytest.raises(Conflict, match="by all its marks"):
            forget(world, server.uuid, "because", force=force)
    assert world.row(server.uuid).deleted_at is None


def test_a_cluster_that_is_gone_takes_force_and_a_reason(world: World) -> None:
    server = adopted(world)
    world.compute.deaf = True
    with pytest.raises(Conflict, match="gone for good"):
        forget(world, server.uuid, "burnt")
    with pytest.raises(Invalid, match="reason"):
        forget(world, server.uuid, force=True)
    world.placement.down = True
    forget(world, server.uuid, "burnt down", force=True)
    world.until(server.uuid, "deleted")
    world.placement.down = False
    world.make_due()
    world.until_operation("done", "done")
    assert world.placement.claims == {}
    assert "burnt down" in vmid_row(world, 500).reason


# --- a mark that was edited


def test_a_mark_is_written_again_by_an_operator(world: World) -> None:
    row = adopted(world)
    world.conductor.custody.mark_server(ADMIN, row.uuid)
    command = world.compute.wait_for(2)
    assert isinstance(command, Mark)
    assert (command.again, command.placed.vmid) == (True, 500)
    world.answer(command, ok=True, power_state=1)
    world.until_operation("done", "done")
    assert world.row(row.uuid).vm_state == "active"
    assert world.row(row.uuid).operation_id == row.operation_id, "it takes no server"


def test_a_mark_that_was_not_proven_is_not_tried_again(world: World) -> None:
    row = adopted(world)
    world.conductor.custody.mark_server(ADMIN, row.uuid)
    foreign = Failure(Category.STORAGE_CONFLICT, "VM 500 is not proven the server's")
    world.answer(world.compute.wait_for(2), ok=False, failure=foreign)
    world.until_operation("done", "failed")
    (fault,) = world.rows(schema.faults)
    assert "not proven" in fault.message
    assert world.row(row.uuid).vm_state == "active"


def test_what_waits_for_a_mark_goes_on_once_it_is_there(world: World) -> None:
    row = adopted(world)
    world.act(row.uuid, "delete")
    foreign = Failure(Category.STORAGE_CONFLICT, "VM 500 is not ours")
    world.answer(world.compute.wait_for(2), ok=False, failure=foreign)
    world.until_faults(1)
    delete = world.rows(schema.operations)[-1].id
    world.conductor.custody.mark_server(ADMIN, row.uuid)
    mark = world.compute.wait_for(3)
    assert isinstance(mark, Mark)
    world.answer(mark, ok=True, power_state=1)
    again = world.compute.wait_for(4)
    assert isinstance(again, Destroy)
    assert again.operation_id == delete
    world.answer(again, ok=True, gone=True)
    world.until(row.uuid, "deleted")


def test_no_mark_for_what_the_journal_does_not_know(world: World) -> None:
    row = adopted(world)
    world.conductor.store.run(
        lambda c: c.execute(schema.vmid_journal.update().values(refused=True))
    )
    with pytest.raises(Conflict, match="journal never gave"):
        world.conductor.custody.mark_server(ADMIN, row.uuid)
    world.conductor.store.run(
        lambda c: c.execute(schema.vmid_journal.update().values(refused=False))
    )
