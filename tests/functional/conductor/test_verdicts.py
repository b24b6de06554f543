"""What a failed attempt leads to: wait, another host, cluster or VMID, or the end."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock
from common.failures import BACKOFF_SECONDS, JITTER, Verdict
from common.messages.facts import ClusterFacts, Heartbeat, HostFacts, ImageFacts, VmFacts
from common.messages.reports import Category, Failure
from conductor.store.hosts import registry
from conductor.store.servers import vmids
from db import schema
from tests.functional.conductor.harness import IMAGE, World

#: [conductor] max_attempts
MAX_ATTEMPTS = 3
LOCKED = Failure(Category.LOCK, "can't lock file - got timeout", host="pve1")


def operation(world: World) -> Any:
    return world.rows(schema.operations)[0]


def host_in_another_cluster(world: World, name: str) -> None:
    with world.conductor.store.read() as connection:
        facts, _ = registry.host(connection, "pve1")
    other = dataclasses.replace(facts, host=name, node=name, cluster="sim2", uuid=f"uuid-{name}")
    image = ImageFacts(IMAGE, "debian-12", "shared:import/debian-12.qcow2", 1, "qcow2", "s")
    cluster = ClusterFacts("sim2", "9.2", True, (image,), 200_000, 200_009)
    hosts: tuple[HostFacts, ...] = (other,)
    world.conductor.reports.heartbeat(Heartbeat("w2", clock.utcnow(), (name,), hosts, (cluster,)))


def test_pauses_grow_with_jitter_and_are_bounded(world: World) -> None:
    world.create()
    for count, seconds in enumerate(BACKOFF_SECONDS, 1):
        command = world.compute.wait_for(count)
        before = clock.utcnow()
        world.answer(command, ok=False, failure=LOCKED, gone=True)
        world.until_faults(count)
        pause = (operation(world).not_before - before).total_seconds()
        assert seconds * (1 - JITTER) <= pause <= seconds * (1 + JITTER) + 5
        world.make_due()
    # Waiting is bounded too: then the host counts as failed, and another one is taken.
    command = world.compute.wait_for(len(BACKOFF_SECONDS) + 1)
    assert command.placed.host == "pve1"
    assert world.scheduler.failures == []
    world.answer(command, ok=False, failure=LOCKED, gone=True)
    assert world.compute.wait_for(len(BACKOFF_SECONDS) + 2).placed.host == "pve2"
    assert len(world.rows(schema.faults)) == len(BACKOFF_SECONDS) + 1


def test_a_restart_begins_no_pause_again(world: World) -> None:
    world.create()
    world.answer(world.compute.wait_for(1), ok=False, failure=LOCKED, gone=True)
    world.until_faults(1)
    before = operation(world).not_before
    world.conductor.runner.stop()
    second = world.add_conductor("c2")
    second.runner.start()
    second.runner.look()
    after = operation(world)
    assert (after.not_before, after.lease_owner, after.attempt) == (before, None, 2)
    assert len(world.compute.sent) == 1
    # The count of pauses is kept as well: the next one is the second.
    world.conductor = second
    world.make_due()
    command = world.compute.wait_for(2)
    began = clock.utcnow()
    world.answer(command, ok=False, failure=LOCKED, gone=True)
    world.until_faults(2)
    pause = (operation(world).not_before - began).total_seconds()
    assert pause >= BACKOFF_SECONDS[1] * (1 - JITTER)


def test_what_a_whole_cluster_lacks_is_tried_in_another_cluster(world: World) -> None:
    host_in_another_cluster(world, "far1")
    world.scheduler.hosts = ["pve1", "pve2", "far1"]
    (uuid,) = world.create()
    failure = Failure(Category.AUTHORIZATION, "Permission check failed (/vms/100, VM.Clone)")
    world.answer(world.compute.wait_for(1), ok=False, failure=failure, gone=True)
    second = world.compute.wait_for(2)
    assert (second.placed.host, second.placed.cluster) == ("far1", "sim2")
    assert world.scheduler.asked[-1].ignore_hosts == ("pve1", "pve2")
    world.answer(second, ok=True, power_state=1)
    world.until(uuid, "active")


@pytest.mark.parametrize(
    ("failure", "category"),
    [
        (Failure(Category.AUTHORIZATION, "Permission check failed"), "authorization"),
        (
            Failure(Category.NODE_UNHEALTHY, "no quorum?", verdict=Verdict.OTHER_CLUSTER.value),
            "node_unhealthy",
        ),
        (Failure(Category.TEMPLATE_LOCKED, "locked (create)"), "template_locked"),
        (Failure(Category.IMAGE_NOT_FOUND, "failed to stat"), "image_not_found"),
    ],
)
def test_where_no_other_host_helps_the_build_ends_at_once_with_the_cause(
    world: World, failure: Failure, category: str
) -> None:
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=False, failure=failure, gone=True)
    world.until(uuid, "error")
    world.until_operation("failed")
    assert [row.category for row in world.rows(schema.faults)] == [category]
    assert len(world.compute.sent) == 1
    assert world.placement.claims == {}
    assert [row for row in world.rows(schema.vmids) if row.server_uuid] == []


@pytest.mark.parametrize(
    ("failure", "blamed"),
    [
        (Failure(Category.IMAGE_CORRUPT, "Image is not in qcow2 format"), []),
        (Failure(Category.IMAGE_NOT_FOUND, "failed to stat"), []),
        (Failure(Category.TEMPLATE_LOCKED, "locked (create)"), []),
        (Failure(Category.CONFIGURATION, "can't be had", verdict=Verdict.FATAL.value), []),
        (Failure(Category.STORAGE_CONFLICT, "VM 100000 already exists"), []),
        (Failure(Category.CREATION_FAILED, "the task failed"), ["pve1"]),
        (Failure(Category.NODE_UNHEALTHY, "offline"), ["pve1"]),
    ],
)
def test_a_host_is_blamed_for_its_own_faults_alone(
    world: World, failure: Failure, blamed: list[str]
) -> None:
    world.create()
    world.answer(world.compute.wait_for(1), ok=False, failure=failure, gone=True)
    world.until_faults(1)
    assert world.scheduler.failures == blamed


def test_a_verdict_of_a_later_release_is_the_categorys(world: World) -> None:
    world.create()
    failure = Failure(Category.STORAGE_FULL, "full", verdict="pray")
    world.answer(world.compute.wait_for(1), ok=False, failure=failure, gone=True)
    assert world.compute.wait_for(2).placed.host == "pve2"


def test_a_vmid_in_doubt_is_quarantined_with_the_reason_and_another_is_taken(
    world: World,
) -> None:
    (uuid,) = world.create()
    first = world.compute.wait_for(1)
    text = "VMID 100000 has no VM, but volumes: local:100000/vm-100000-cloudinit.qcow2."
    failure = Failure(Category.STORAGE_CONFLICT, text, left=("volume …",))
    world.answer(first, ok=False, failure=failure, gone=True)
    second = world.compute.wait_for(2)
    assert second.placed.host == first.placed.host
    assert second.placed.vmid != first.placed.vmid
    with world.conductor.store.read() as connection:
        row = connection.execute(
            sa.select(schema.vmids).where(schema.vmids.c.vmid == first.placed.vmid)
        ).one()
    assert (row.state, row.reason, row.server_uuid) == ("quarantined", text, None)
    world.answer(second, ok=True, power_state=1)
    world.until(uuid, "active")


def test_a_band_that_is_used_up_ends_the_build_with_who_has_the_vmids(world: World) -> None:
    def narrow(connection: sa.Connection) -> None:
        vmids.set_band(connection, "sim1", 100_000, 100_001)
        vmids.take_notice(connection, "sim1", {100_000: VmFacts(100_000, "pve1", 1)}, ())
        vmids.reserve(connection, "sim1", None, None)
        vmids.quarantine(connection, "sim1", 100_001, "a volume")

    world.conductor.store.run(narrow)
    (uuid,) = world.create()
    world.until(uuid, "error")
    world.until_operation("failed")
    (fault,) = world.rows(schema.faults)
    assert fault.category == "configuration"
    assert fault.message.startswith(
        "The band of VMIDs of cluster sim1, 100000 to 100001, is used up: 1 quarantined, "
        "1 taken by VMs that are not this cloud's."
    )
    assert "vmid_high" in fault.remedy
    assert world.compute.sent == []
    assert world.placement.claims == {}


def test_a_band_that_is_used_up_sends_the_build_to_another_cluster(world: World) -> None:
    host_in_another_cluster(world, "far1")
    world.scheduler.hosts = ["pve1", "pve2", "far1"]
    world.conductor.store.run(
        lambda c: c.execute(
            schema.vmid_bands.update()
            .where(schema.vmid_bands.c.cluster == "sim1")
            .values(low=100_000, high=99_999)
        )
    )
    (uuid,) = world.create()
    command = world.compute.wait_for(1)
    assert (command.placed.host, command.placed.cluster) == ("far1", "sim2")
    world.answer(command, ok=True, power_state=1)
    world.until(uuid, "active")


REFUSED = Failure(
    Category.STORAGE_CONFLICT, "VM 100000 is not ours", left=("VM 100000",), refused=True
)


def test_a_vmid_that_others_had_is_no_attempt_and_was_never_the_servers(world: World) -> None:
    (uuid,) = world.create()
    most = MAX_ATTEMPTS + 2
    refused = []
    for count in range(1, most + 1):
        command = world.compute.wait_for(count)
        refused.append(command.placed.vmid)
        world.answer(command, ok=False, failure=REFUSED, gone=True)
    last = world.compute.wait_for(most + 1)
    assert len({*refused, last.placed.vmid}) == most + 1
    assert {command.placed.host for _, command in world.compute.sent} == {"pve1"}
    world.answer(last, ok=True, power_state=1)
    world.until(uuid, "active")
    assert world.scheduler.failures == []
    journal = {row.vmid: row.refused for row in world.rows(schema.vmid_journal)}
    assert {vmid: journal[vmid] for vmid in refused} == dict.fromkeys(refused, True)
    assert not journal[last.placed.vmid]
    with world.conductor.store.read() as connection:
        assert not vmids.was_of(connection, "sim1", refused[0], uuid)
        assert vmids.was_of(connection, "sim1", last.placed.vmid, uuid)


def test_refusals_end_with_the_band(world: World) -> None:
    world.conductor.store.run(lambda c: vmids.set_band(c, "sim1", 100_000, 100_002))
    (uuid,) = world.create()
    # One of the three is the template's.
    for count in range(1, 3):
        world.answer(world.compute.wait_for(count), ok=False, failure=REFUSED, gone=True)
    world.until(uuid, "error")
    world.until_operation("failed")
    fault = world.rows(schema.faults)[-1]
    assert fault.category == "configuration"
    assert "2 quarantined" in fault.message
    assert "The failure with the last VMID: VM 100000 is not ours" in fault.message
    states = {row.vmid: row.state for row in world.rows(schema.vmids)}
    assert states == {100_000: "quarantined", 100_001: "reserved", 100_002: "quarantined"}
    mine = [row for row in world.rows(schema.vmid_journal) if row.server_uuid]
    assert all(row.refused for row in mine)


def test_what_a_build_left_half_made_itself_counts_as_an_attempt(world: World) -> None:
    (uuid,) = world.create()
    most = MAX_ATTEMPTS
    left = dataclasses.replace(
        LOCKED, verdict=Verdict.QUARANTINE.value, left=("VM 100000: locked (create)",)
    )
    for count in range(1, most + 1):
        world.answer(world.compute.wait_for(count), ok=False, failure=left, gone=True)
    world.until(uuid, "error")
    assert not any(row.refused for row in world.rows(schema.vmid_journal))


@pytest.mark.parametrize("verdict", [None, Verdict.QUARANTINE])
def test_only_a_lock_that_somebody_holds_is_waited_for(
    world: World, verdict: Verdict | None
) -> None:
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "active")
    world.act(uuid, "stop")
    stop = world.compute.wait_for(2)
    failure = dataclasses.replace(LOCKED, verdict=verdict, remedy="as root on pve1: qm unlock 1")
    world.answer(stop, ok=False, failure=failure)
    world.until_faults(1)
    if verdict is None:
        assert world.row(uuid).task_state == "powering-off"
        assert world.rows(schema.operations)[1].not_before is not None
    else:
        world.until(uuid, "active")
        assert world.rows(schema.faults)[0].remedy == failure.remedy
        assert world.rows(schema.operations)[1].state == "failed"


@pytest.mark.parametrize("vm_state", ["active", "building"])
def test_a_delete_that_is_refused_leaves_the_server_as_it_was(world: World, vm_state: str) -> None:
    (uuid,) = world.create()
    build = world.compute.wait_for(1)
    if vm_state == "active":
        world.answer(build, ok=True, power_state=1)
        world.until(uuid, "active")
    world.act(uuid, "delete")
    line = "as root on pve1: qm set 100000 --protection 0"
    refused = Failure(Category.PROTECTED, "It is protected.", remedy=line)
    world.answer(world.compute.wait_for(2), ok=False, failure=refused)
    # A build that was given up is over.
    row = world.until(uuid, {"building": "error"}.get(vm_state, vm_state))
    assert (row.deleted_at, row.vmid) == (None, build.placed.vmid)
    assert world.rows(schema.operations)[1].state == "failed"
    assert world.rows(schema.faults)[-1].remedy == line
    world.act(uuid, "delete")
    world.answer(world.compute.wait_for(3), ok=True, gone=True)
    world.until(uuid, "deleted")


SILENT = Failure(Category.NODE_UNHEALTHY, "Connection refused", verdict=Verdict.AWAIT_HOST)


def refuse(world: World, count: int, **more: Any) -> Any:
    """The count-th command met a node that doesn't answer."""
    command = world.compute.wait_for(count)
    world.answer(command, ok=False, failure=SILENT, **{"gone": True, **more})
    world.until_faults(count)
    return command


def test_another_host_is_taken_first_then_those_that_did_not_answer_are_waited_for(
    world: World,
) -> None:
    (uuid,) = world.create()
    for count, host in enumerate(["pve1", "pve2"] * 3, 1):
        assert refuse(world, count).placed.host == host
        if host == "pve2":
            world.until_paused(5)
            row = world.row(uuid)
            assert (row.vm_state, row.task_state, row.host) == ("building", "scheduling", None)
            world.make_due()
    last = world.compute.wait_for(7)
    world.answer(last, ok=True, power_state=1)
    world.until(uuid, "active")


def test_the_only_host_is_waited_for_and_the_pauses_grow(tmp_path: Path) -> None:
    world = World(tmp_path, hosts=("pve1",))
    world.conductor.runner.start()
    (uuid,) = world.create()
    for count, seconds in enumerate(BACKOFF_SECONDS, 1):
        before = clock.utcnow()
        refuse(world, count)
        world.until_paused(5)
        pause = (operation(world).not_before - before).total_seconds()
        assert seconds * (1 - JITTER) <= pause <= seconds * (1 + JITTER) + 5
        assert operation(world).message == SILENT.message
        world.make_due()
    # Not for ever.
    refuse(world, len(BACKOFF_SECONDS) + 1)
    world.until(uuid, "error")
    world.make_due()
    world.until_operation("failed")
    world.close()


def test_what_a_silent_node_kept_from_being_removed_is_gone_on_with(world: World) -> None:
    (uuid,) = world.create()
    first = refuse(world, 1, gone=False)
    world.until_paused(5)
    row = world.row(uuid)
    assert (row.vm_state, row.task_state) == ("building", "spawning")
    world.make_due()
    second = world.compute.wait_for(2)
    assert (second.placed, second.attempt) == (first.placed, 2)
    world.answer(second, ok=True, power_state=1)
    world.until(uuid, "active")


def test_a_host_that_failed_otherwise_is_not_tried_again_when_another_is_awaited(
    world: World,
) -> None:
    (uuid,) = world.create()
    broken = Failure(Category.CREATION_FAILED, "boom", host="pve1")
    world.answer(world.compute.wait_for(1), ok=False, failure=broken, gone=True)
    for count in (2, 3):
        assert refuse(world, count).placed.host == "pve2"
        world.until_paused(5)
        world.make_due()
    world.answer(world.compute.wait_for(4), ok=True, power_state=1)
    assert world.until(uuid, "active").host == "pve2"
