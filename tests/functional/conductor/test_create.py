from __future__ import annotations

from pathlib import Path

import pytest

from common import ids
from common.context import RequestContext
from common.errors import Conflict, Invalid, QuotaExceeded
from common.messages.commands import Build, Destroy
from common.messages.reports import Category, Failure
from conductor.endpoints.servers.keypairs import KeyPairEndpoint
from conductor.endpoints.servers.servers import ServerEndpoint
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.keypairs import NewKeyPair
from conductor.rpc.servers.servers import CreateServers, RequestedNetwork
from conductor.store.networks import networks
from conductor.store.quotas import quotas
from conductor.store.records import Operation
from conductor.store.servers import servers
from db import schema
from tests.functional.conductor.harness import IMAGE, World


def network_id(world: World, bridge: str = "vmbr0") -> str:
    return next(row.id for row in world.rows(schema.networks) if row.bridge == bridge)


def test_the_disk_configuration_that_was_asked_for_is_kept(world: World) -> None:
    (automatic,) = world.create(auto_disk_config=True)
    (manual,) = world.create()
    assert world.row(automatic).auto_disk_config
    assert not world.row(manual).auto_disk_config
    doors = ServerEndpoint(world.conductor.cloud, world.conductor.runner, lambda operations: [])
    doors.update_server(RequestContext(is_admin=True), manual, {"auto_disk_config": True})
    assert world.row(manual).auto_disk_config


def accepted(world: World) -> Operation:
    """The operation of a server that was accepted, and not begun."""
    flavor = FlavorSnapshot("1", "m1.tiny", 1, 512, 1)
    request = CreateServers("web", flavor, IMAGE, networks=(), tags=("a",), metadata={"b": "c"})
    _, (operation,) = world.conductor.creates.create(world.ctxt, request)
    return operation


def test_a_build_begins_on_the_record_that_was_written(world: World) -> None:
    operation = accepted(world)
    with world.conductor.store.read() as connection:
        assert operation.begun_on == servers.get(connection, operation.server_uuid)
    world.conductor.runner.submit(operation)
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(operation.server_uuid, "active")


def test_a_delete_begins_on_the_record_that_was_written(world: World) -> None:
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "active")
    operation = world.conductor.deletes.delete(world.ctxt, uuid)
    assert operation is not None
    with world.conductor.store.read() as connection:
        assert operation.begun_on == servers.get(connection, uuid)
    world.conductor.runner.submit(operation)
    world.answer(world.compute.wait_for(2), ok=True, gone=True)
    world.until(uuid, "deleted")


def test_a_server_deleted_before_its_build_begins_reaches_no_agent(world: World) -> None:
    operation = accepted(world)
    world.act(operation.server_uuid, "delete")
    world.until(operation.server_uuid, "deleted")
    world.conductor.runner.submit(operation)
    world.until_operation("failed", "done")
    assert world.compute.sent == []


def test_a_build_walks_every_state_and_ends_active(world: World) -> None:
    world.conductor.store.run(
        lambda c: networks.ensure_subnet(c, networks.parse_subnet("vmbr0=10.0.0.0/24"))
    )
    (uuid,) = world.create(networks=(RequestedNetwork(network_id(world)),), public_key="ssh-rsa A")
    command = world.compute.wait_for(1)
    assert isinstance(command, Build)
    assert command.placed.vmid == 100_000
    assert command.template is not None
    assert command.template.vmid == 100_001
    assert [(nic.bridge, nic.ip) for nic in command.nics] == [("vmbr0", "10.0.0.2")]
    assert command.config_drive is not None
    assert command.config_drive.meta_data["public_keys"] == {"key": "ssh-rsa A"}
    assert world.row(uuid).task_state == "spawning"
    world.answer(command, ok=True, power_state=1)
    row = world.until(uuid, "active")
    assert (row.host, row.vmid, row.power_state) == ("pve1", 100_000, 1)
    assert row.addresses[0]["ip"] == "10.0.0.2"
    walked = [(t.from_task_state, t.to_task_state) for t in world.rows(schema.transitions)]
    assert walked == [
        (None, "scheduling"),
        ("scheduling", "networking"),
        ("networking", "block_device_mapping"),
        ("block_device_mapping", "spawning"),
        ("spawning", None),
    ]
    (operation,) = world.rows(schema.operations)
    assert (operation.state, operation.params, operation.lease_owner) == ("done", {}, None)


def test_a_batch_shares_one_transaction_and_numbers_its_names(world: World) -> None:
    uuids = world.create(min_count=2, max_count=3)
    assert sorted(world.row(uuid).name for uuid in uuids) == ["web-1", "web-2", "web-3"]
    world.compute.wait_for(3)
    assert len({command.placed.vmid for _, command in world.compute.sent}) == 3


def test_quota_refuses_what_is_over_and_changes_nothing(world: World) -> None:
    with pytest.raises(QuotaExceeded) as refused:
        world.create(min_count=11, max_count=11)
    assert "Requested 11, but already used 0 of 10 instances" in refused.value.message
    assert world.rows(schema.servers) == []
    assert len(world.create(min_count=1, max_count=50)) == 10


def test_a_refusal_names_all_that_is_over(world: World) -> None:
    world.create(min_count=8, max_count=8)
    with pytest.raises(QuotaExceeded) as refused:
        world.create(min_count=1, max_count=200, flavor=FlavorSnapshot("2", "l", 20, 512, 1))
    assert refused.value.message == (
        "Quota exceeded for cores, instances, ram: Requested 4000, 1-200, 102400, "
        "but already used 8, 8, 4096 of 20, 10, 51200 cores, instances, ram"
    )
    assert refused.value.details == {
        "resource": ["cores", "instances", "ram"],
        "limit": [20, 10, 51200],
        "used": [8, 8, 4096],
        "requested": [4000, 200, 102400],
    }
    with pytest.raises(QuotaExceeded, match="for cores, instances: Requested 40, 4"):
        world.create(min_count=4, max_count=4, flavor=FlavorSnapshot("2", "l", 10, 512, 1))


def test_metadata_has_the_projects_limit(world: World) -> None:
    items = {f"k{number}": "v" for number in range(129)}
    with pytest.raises(QuotaExceeded, match=r"^Maximum number of metadata items exceeds 128$"):
        world.create(metadata=items)
    assert world.rows(schema.servers) == []
    world.conductor.store.run(lambda c: quotas.set_limits(c, "p", {"metadata_items": 2}))
    with pytest.raises(QuotaExceeded, match=r"^Maximum number of metadata items exceeds 2$"):
        world.create(metadata={"a": "1", "b": "2", "c": "3"})
    (uuid,) = world.create(metadata={"a": "1", "b": "2"})
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "active")
    doors = ServerEndpoint(world.conductor.cloud, world.conductor.runner, lambda operations: [])
    with pytest.raises(QuotaExceeded, match=r"^Maximum number of metadata items exceeds 2$"):
        doors.set_server_metadata(world.ctxt, uuid, {"c": "3"}, replace=False, delete=[])
    doors.set_server_metadata(world.ctxt, uuid, {"c": "3"}, replace=False, delete=["a"])


def test_key_pairs_have_the_projects_limit(world: World) -> None:
    doors = KeyPairEndpoint(world.conductor.cloud)
    world.conductor.store.run(lambda c: quotas.set_limits(c, "p", {"key_pairs": 2}))

    def create(name: str, user: str = "u") -> None:
        pair = NewKeyPair(user, name, "ssh", "f", "ssh-rsa A")
        doors.create_keypair(world.ctxt, pair)

    create("a")
    create("b")
    with pytest.raises(QuotaExceeded, match=r"^Quota exceeded, too many key pairs\.$"):
        create("c")
    create("c", "another user")
    world.conductor.store.run(lambda c: quotas.delete_limits(c, "p", ["key_pairs"]))
    create("c")


def test_no_host_ends_in_error_with_the_reason(world: World) -> None:
    world.scheduler.hosts = []
    (uuid,) = world.create()
    world.until(uuid, "error")
    (fault,) = world.rows(schema.faults)
    assert (fault.category, fault.request_id) == ("no_valid_host", world.ctxt.request_id)
    world.until_operation("failed")
    assert world.placement.claims == {}
    steps = {step.name: step.result for step in world.rows(schema.operation_events)}
    assert steps == {"conductor_take_quota": "Success", "conductor_schedule": "Error"}


def test_a_clean_failure_goes_to_the_next_host(world: World) -> None:
    (uuid,) = world.create()
    first = world.compute.wait_for(1)
    failure = Failure(Category.CREATION_FAILED, "boom", host="pve1", upid="UPID:x")
    world.answer(first, ok=False, failure=failure, gone=True)
    second = world.compute.wait_for(2)
    assert (first.placed.host, second.placed.host) == ("pve1", "pve2")
    assert second.attempt == 2
    assert world.scheduler.failures == ["pve1"]
    world.answer(second, ok=True, power_state=1)
    world.until(uuid, "active")
    assert [row.vmid for row in world.rows(schema.vmids) if row.server_uuid] == [
        second.placed.vmid
    ]
    assert world.placement.claims == {uuid: "pve2"}


def test_attempts_are_bounded_and_every_fault_is_kept(world: World) -> None:
    (uuid,) = world.create()
    for attempt in (1, 2):
        command = world.compute.wait_for(attempt)
        failure = Failure(Category.STORAGE_FULL, f"full {attempt}")
        world.answer(command, ok=False, failure=failure, gone=True)
    world.until(uuid, "error")
    assert [row.category for row in world.rows(schema.faults)] == [
        "storage_full",
        "storage_full",
        "no_valid_host",
    ]
    world.until_operation("failed")
    assert world.placement.claims == {}
    assert [row for row in world.rows(schema.vmids) if row.server_uuid] == []


def test_what_is_left_keeps_the_operation_open_until_it_is_gone(world: World) -> None:
    (uuid,) = world.create()
    command = world.compute.wait_for(1)
    failure = Failure(Category.TASK_TIMEOUT, "slow", clean=False, left=("VM 100000",))
    world.answer(command, ok=False, failure=failure, gone=False)
    world.until(uuid, "error")
    assert world.placement.claims == {uuid: "pve1"}
    assert world.rows(schema.operations)[0].state == "unwinding"
    world.make_due()
    destroy = world.compute.wait_for(2)
    assert isinstance(destroy, Destroy)
    assert destroy.placed == command.placed
    world.answer(destroy, ok=True, gone=True)
    world.until_operation("failed")
    assert world.placement.claims == {}
    assert [row for row in world.rows(schema.vmids) if row.server_uuid] == []


def test_two_networks_and_none_named_is_ambiguous(world: World) -> None:
    with pytest.raises(Conflict, match="Multiple possible networks"):
        world.create(auto_network=True)


def test_the_network_that_is_configured_is_taken_where_none_is_named(world: World) -> None:
    world.conductor.cloud.conf.set_override("auto", "vmbr1", group="networks")
    world.create(auto_network=True)
    command = world.compute.wait_for(1)
    assert isinstance(command, Build)
    assert [nic.bridge for nic in command.nics] == ["vmbr1"]
    world.conductor.cloud.conf.set_override("auto", "vmbr9", group="networks")
    with pytest.raises(Invalid, match="this cloud has no bridge vmbr9"):
        world.create(auto_network=True)


@pytest.mark.parametrize("word", [{}, {"needs_network": True}])
def test_the_one_network_is_taken_where_none_is_named(
    tmp_path: Path, word: dict[str, bool]
) -> None:
    world = World(tmp_path, bridges=("vmbr0",))
    world.create(auto_network=True, **word)
    command = world.compute.wait_for(1)
    assert isinstance(command, Build)
    assert [nic.bridge for nic in command.nics] == ["vmbr0"]
    world.close()


def test_a_cloud_without_networks_gives_none_but_not_to_who_asks_for_one(tmp_path: Path) -> None:
    world = World(tmp_path, bridges=())
    with pytest.raises(Invalid, match="Unable to automatically allocate a network"):
        world.create(auto_network=True, needs_network=True)
    world.create(auto_network=True)
    command = world.compute.wait_for(1)
    assert isinstance(command, Build)
    assert command.nics == ()
    world.close()


def test_a_fixed_address_in_use_is_refused(world: World) -> None:
    world.conductor.store.run(
        lambda c: networks.ensure_subnet(c, networks.parse_subnet("vmbr0=10.0.0.0/24"))
    )
    wish = RequestedNetwork(network_id(world), "10.0.0.9")
    world.create(networks=(wish,))
    world.compute.wait_for(1)
    with pytest.raises(Invalid, match=r"Fixed IP 10\.0\.0\.9 is already in use\."):
        world.create(networks=(wish,))


def test_the_scheduler_learns_where_the_servers_of_hints_are(world: World) -> None:
    (there,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(there, "active")
    hints = {"same_host": [there, "gone"], "different_host": there}
    world.create(scheduler_hints=hints, min_count=2, max_count=2)
    world.compute.wait_for(3)
    assert [asked.server_hosts for asked in world.scheduler.asked] == [
        {},
        {there: "pve1"},
        {there: "pve1"},
    ]


def test_another_projects_server_in_a_hint_is_as_one_that_does_not_exist(world: World) -> None:
    (there,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(there, "active")
    world.ctxt = RequestContext(user_id="u2", project_id="p2", roles=["member"])
    for named in (there, ids.new_uuid()):
        world.create(scheduler_hints={"same_host": [named], "different_host": [named]})
    world.create(scheduler_hints={"different_host": there}, min_count=2, max_count=2)
    world.compute.wait_for(5)
    assert [asked.server_hosts for asked in world.scheduler.asked[1:]] == [{}] * 4
    world.ctxt = RequestContext(user_id="a", project_id="p2", roles=["admin"], is_admin=True)
    world.create(scheduler_hints={"different_host": there})
    world.compute.wait_for(6)
    assert world.scheduler.asked[-1].server_hosts == {there: "pve1"}


def test_the_vlan_of_a_network_is_asked_of_the_host_and_reported_to_the_agent(
    world: World,
) -> None:
    world.conductor.store.run(lambda c: networks.set_vlans(c, {"vmbr1": 7}))
    wishes = tuple(RequestedNetwork(network_id(world, bridge)) for bridge in ("vmbr0", "vmbr1"))
    world.create(networks=wishes)
    command = world.compute.wait_for(1)
    assert isinstance(command, Build)
    assert [nic.vlan for nic in command.nics] == [None, 7]
    assert world.scheduler.asked[-1].vlans == (("vmbr1", 7),)
    world.conductor.store.run(lambda c: networks.set_vlans(c, {}))
    assert {row.vlan for row in world.rows(schema.networks)} == {None}


def test_a_33rd_interface_is_refused_before_anything(world: World) -> None:
    """Proxmox VE has net0 to net31."""
    networks = (RequestedNetwork(ids.named("network", "vmbr0")),) * 33
    with pytest.raises(Invalid, match="more than 32 interfaces"):
        world.create(networks=networks)
    assert world.rows(schema.servers) == []
    assert world.rows(schema.operations) == []
