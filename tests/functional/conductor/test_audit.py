"""The audit of one database: what came late, who may run one, what is believed and what healed."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock
from common.errors import Conflict, NotFound
from common.messages.commands import Command, Destroy
from common.messages.inventory import ClusterInventory, SeenVm, SeenVolume
from common.messages.reports import Category, Failure
from conductor.audit.auditor import LEASE, Auditor
from conductor.audit.came_back import LATE
from conductor.audit.facts import Facts
from conductor.audit.gather import Gatherer
from conductor.audit.heal import Healer
from conductor.audit.restoring.restorer import Restorer
from conductor.engine.periodic import LEASE_SECONDS
from conductor.store.audits.findings import request
from conductor.store.ledger import process_leases
from db import schema
from tests.functional.conductor.harness import World
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401
from tests.functional.waiting import eventually

BOOM = Failure(Category.CREATION_FAILED, "boom", host="pve1")


class Cluster:
    """The VMs and volumes of the cluster; an agent that does what a reap asks."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.vms: list[SeenVm] = []
        self.volumes: list[SeenVolume] = []
        self.destroyed: list[tuple[int, str]] = []
        self.stopped_on: list[str | None] = []
        self.unrestored_since: list[Any] = []
        self.failure: Failure | None = None
        world.compute.answering = self._answer

    def show(self, **more: Any) -> None:
        """What a census shows from now on."""
        inventory = ClusterInventory("sim1", tuple(self.vms), tuple(self.volumes), **more)
        self._world.compute.seen["sim1"] = inventory

    def add(self, vmid: int, server: str, node: str = "pve1", **more: Any) -> None:
        """A VM with all the marks of a server."""
        values: dict[str, Any] = {"status": "running", "vcpus": 1, "memory_mib": 512}
        values |= {"read": True, "server_uuid": server, "proven": True}
        self.vms.append(SeenVm(vmid, node, **(values | more)))
        self.show()

    def _answer(self, command: Command) -> None:
        """What an agent makes of a Destroy that an audit asks for."""
        if not isinstance(command, Destroy) or not self._is_reap(command):
            return
        self.destroyed.append((command.placed.vmid, command.resource_id))
        self.stopped_on.append(command.stopped_on)
        self.unrestored_since.append(command.unrestored_since)
        if self.failure is not None:
            self._world.answer(command, ok=False, failure=self.failure)
            return
        here = command.placed.vmid
        self.vms = [one for one in self.vms if one.vmid != here]
        self.volumes = [one for one in self.volumes if one.vmid != here]
        self.show()
        self._world.answer(command, ok=True, gone=True)

    def _is_reap(self, command: Command) -> bool:
        rows = self._world.rows(schema.operations)
        return next(one.action for one in rows if one.id == command.operation_id) == "reap"


@pytest.fixture
def cluster(world: World) -> Cluster:
    made = Cluster(world)
    made.show()
    return made


def audit(world: World) -> dict[str, Any]:
    return world.conductor.auditor.audit()


def active(world: World, cluster: Cluster) -> str:
    """A server with its VM."""
    (uuid,) = world.create()
    command = world.compute.wait_for(len(world.compute.sent) or 1)
    while command.resource_id != uuid:
        command = world.compute.wait_for(len(world.compute.sent) + 1)
    cluster.add(command.placed.vmid, uuid, command.placed.node)
    world.answer(command, ok=True, power_state=1)
    world.until(uuid, "active")
    return uuid


def gone(world: World, cluster: Cluster, uuid: str) -> int:
    """Delete a server, VM and all; returns the VMID that it had."""
    vmid = int(world.row(uuid).vmid)
    sent = len(world.compute.sent)
    world.act(uuid, "delete")
    cluster.vms = [one for one in cluster.vms if one.vmid != vmid]
    cluster.show()
    world.answer(world.compute.wait_for(sent + 1), ok=True, gone=True)
    world.until(uuid, "deleted")
    return vmid


def findings(world: World) -> dict[str, Any]:
    return {row.kind: row for row in world.rows(schema.findings)}


# --- what comes late


def test_a_late_ok_of_an_old_attempt_leaves_no_second_vm(world: World, cluster: Cluster) -> None:
    (uuid,) = world.create()
    first = world.compute.wait_for(1)
    world.answer(first, ok=False, failure=BOOM, gone=True)
    second = world.compute.wait_for(2)
    assert (first.placed.host, second.placed.host) == ("pve1", "pve2")
    cluster.add(second.placed.vmid, uuid, "pve2")
    world.answer(second, ok=True, power_state=1)
    world.until(uuid, "active")
    # The first agent was restarted, still had the command in its queue, and carried it out.
    cluster.add(first.placed.vmid, uuid, "pve1")
    world.answer(first, ok=True, power_state=1)
    report = audit(world)
    assert report["clean"]
    assert report["healed"] == 1
    assert cluster.destroyed == [(first.placed.vmid, uuid)]
    assert [one.vmid for one in cluster.vms] == [second.placed.vmid]
    assert world.row(uuid).vm_state == "active"
    found = findings(world)["vm_not_recorded"]
    assert found.healed_by == "destroy"
    assert found.healed_at is not None
    assert {row.vmid for row in world.rows(schema.vmids) if row.server_uuid} == {
        second.placed.vmid
    }


def test_a_late_ok_after_the_server_was_deleted_leaves_no_vm(
    world: World, cluster: Cluster
) -> None:
    uuid = active(world, cluster)
    vmid = gone(world, cluster, uuid)
    cluster.add(vmid, uuid)
    assert audit(world)["clean"]
    assert cluster.destroyed == [(vmid, uuid)]
    assert [row.action for row in world.rows(schema.operations)] == ["create", "delete", "reap"]
    assert world.rows(schema.operations)[-1].state == "done"


def test_a_vm_of_a_build_that_ended_in_error_goes(world: World, cluster: Cluster) -> None:
    world.scheduler.hosts = ["pve1"]
    (uuid,) = world.create()
    command = world.compute.wait_for(1)
    fatal = Failure(Category.IMAGE_CORRUPT, "damaged", host="pve1")
    world.answer(command, ok=False, failure=fatal, gone=True)
    world.until(uuid, "error")
    world.until_operation("failed")
    cluster.add(command.placed.vmid, uuid)
    assert audit(world)["clean"]
    assert cluster.destroyed == [(command.placed.vmid, uuid)]


@pytest.mark.parametrize("deleted", [False, True])
def test_a_claim_that_was_on_the_wire_is_released(
    world: World, cluster: Cluster, deleted: bool
) -> None:
    world.scheduler.hosts = []
    (uuid,) = world.create()
    world.until(uuid, "error")
    world.until_operation("failed")
    if deleted:
        world.act(uuid, "delete")
        world.until(uuid, "deleted")
    # The scheduler's answer was not waited for; its claim came through afterwards.
    world.placement.claims[uuid] = "pve1"
    assert audit(world)["healed"] == 1
    assert world.placement.claims == {}
    assert findings(world)["allocation_without_server"].healed_by == "release"


def test_every_verb_on_postgresql(tmp_path: Path, postgres_url: str) -> None:  # noqa: F811
    world = World(tmp_path, url=postgres_url)
    world.conductor.runner.start()
    try:
        cluster = Cluster(world)
        cluster.show()
        uuid = active(world, cluster)
        kept = active(world, cluster)
        vmid = gone(world, cluster, uuid)
        cluster.add(vmid, uuid)
        world.placement.claims[uuid] = "pve1"
        del world.placement.claims[kept]
        now = clock.utcnow()
        port = {"id": "old", "network_id": "n", "server_uuid": uuid, "project_id": "p"}
        leak = {"cluster": "sim1", "vmid": 100_009, "state": "reserved", "server_uuid": uuid}

        def plant(connection: sa.Connection) -> None:
            values = {"position": 0, "mac": "fa:16:3e:00:00:00", "created_at": now}
            connection.execute(schema.ports.insert().values(**port, **values))
            place = {"server_uuid": uuid, "group_uuid": "group", "host": "pve1", "slot": 0}
            connection.execute(schema.server_group_places.insert().values(**place))
            grouped = schema.servers.update().where(schema.servers.c.uuid == uuid)
            connection.execute(grouped.values(server_group_uuid="group"))
            vmids = schema.vmids
            connection.execute(vmids.delete().where(vmids.c.server_uuid == kept))
            connection.execute(vmids.insert().values(since=now, **leak))
            stuck = schema.servers.update().where(schema.servers.c.uuid == kept)
            connection.execute(stuck.values(task_state="powering-off"))

        world.conductor.store.run(plant)
        report = audit(world)
        assert report["clean"], world.rows(schema.findings)
        assert {kind: row.healed_by for kind, row in findings(world).items()} == {
            "vm_of_deleted_server": "destroy",
            "allocation_without_server": "release",
            "server_without_allocation": "allocate",
            "port_without_server": "delete_ports",
            "group_place_without_server": "free_place",
            "vmid_without_owner": "free_vmid",
            "vmid_not_reserved": "reserve_vmid",
            "server_abandoned": "fail",
        }
        assert world.row(kept).vm_state == "error"
        world.conductor.auditor.turn()
        assert [row.state for row in world.rows(schema.audits)] == ["done"]
    finally:
        world.close()
        world.conductor.store._writer.dispose()
        world.conductor.store._reader.dispose()


# --- what is believed


def test_what_is_seen_once_only_is_not_believed(world: World, cluster: Cluster) -> None:
    uuid = active(world, cluster)
    vmid = gone(world, cluster, uuid)
    cluster.add(vmid, uuid)
    looks: list[ClusterInventory] = [world.compute.seen["sim1"], ClusterInventory("sim1")]

    class Once(dict[str, ClusterInventory]):
        def get(self, key: str, default: Any = None) -> Any:
            return looks.pop(0) if looks else ClusterInventory("sim1")

    world.compute.seen = Once()
    assert audit(world)["clean"]
    assert cluster.destroyed == []
    assert findings(world) == {}


def test_what_is_worked_on_is_left_alone(world: World, cluster: Cluster) -> None:
    (uuid,) = world.create()
    command = world.compute.wait_for(1)
    cluster.add(command.placed.vmid, uuid, lock="create", proven=False, server_uuid=None)
    report = audit(world)
    assert report["clean"]
    assert report["in_flux"] == 1
    world.answer(command, ok=True, power_state=1)
    world.until(uuid, "active")


def test_without_a_journal_nothing_is_removed(world: World, cluster: Cluster) -> None:
    uuid = active(world, cluster)
    vmid = gone(world, cluster, uuid)
    cluster.add(vmid + 5, uuid)
    report = audit(world)
    assert report["open"] == {"vm_of_deleted_server": 1}
    assert findings(world)["vm_of_deleted_server"].heal is None
    assert cluster.destroyed == []


def test_what_could_not_be_looked_at_stays_as_it_was(world: World, cluster: Cluster) -> None:
    cluster.vms = [SeenVm(100_005, "pve1", name="by hand", read=True)]
    cluster.show()
    assert audit(world)["open"] == {"vm_foreign": 1}
    world.compute.deaf = True
    report = audit(world)
    assert not report["complete"]
    assert report["open"] == {"vm_foreign": 1}
    world.compute.deaf, cluster.vms = False, []
    cluster.show(unseen=("Node pve1 is offline.",), unseen_nodes=("pve1",))
    assert audit(world)["open"] == {"vm_foreign": 1}
    cluster.show()
    assert audit(world)["clean"]
    assert findings(world)["vm_foreign"].healed_by is None


def test_placement_and_agents_that_do_not_answer_are_reported(
    world: World, cluster: Cluster
) -> None:
    uuid = active(world, cluster)
    world.placement.down = True
    world.silence()
    report = audit(world)
    assert not report["complete"]
    assert report["clean"]
    assert report["unseen"] == [
        "No agent of cluster sim1 answers.",
        "Placement can't be looked at: Placement can't be reached.",
    ]
    world.placement.down = False
    assert world.row(uuid).vm_state == "active"


def test_age_is_known_and_what_comes_back_is_new(world: World, cluster: Cluster) -> None:
    cluster.vms = [SeenVm(100_005, "pve1", read=True)]
    cluster.show()
    audit(world)
    first = findings(world)["vm_foreign"]
    audit(world)
    again = findings(world)["vm_foreign"]
    assert again.first_seen_at == first.first_seen_at
    assert again.last_seen_at > first.last_seen_at
    cluster.vms = []
    cluster.show()
    audit(world)
    cluster.vms = [SeenVm(100_005, "pve1", read=True)]
    cluster.show()
    audit(world)
    assert len(world.rows(schema.findings)) == 2


# --- healing


def test_a_reap_that_fails_is_reported_and_tried_again(world: World, cluster: Cluster) -> None:
    uuid = active(world, cluster)
    vmid = gone(world, cluster, uuid)
    cluster.add(vmid, uuid)
    cluster.failure = Failure(Category.LOCK, "VM is locked (backup)", host="pve1", clean=False)
    assert audit(world)["open"] == {"vm_of_deleted_server": 1}
    assert world.rows(schema.operations)[-1].state == "failed"
    assert world.rows(schema.faults)[-1].message == "VM is locked (backup)"
    assert findings(world)["vm_of_deleted_server"].answer == "VM is locked (backup)"
    [row] = [one for one in world.rows(schema.vmids) if one.vmid == vmid]
    assert row.state == "quarantined"
    # The periodic audit waits before it tries again; who asks for one asks for a try.
    assert not world.conductor.auditor.audit(asked=False)["clean"]
    assert len(cluster.destroyed) == 1
    cluster.failure = None
    assert audit(world)["clean"]
    assert findings(world)["vm_of_deleted_server"].heals == 2
    assert [one for one in world.rows(schema.vmids) if one.vmid == vmid] == []


def deleted_long_ago(world: World, uuid: str) -> None:
    long_ago = clock.utcnow() - 2 * LATE
    mine = schema.servers.update().where(schema.servers.c.uuid == uuid)
    world.conductor.store.run(lambda c: c.execute(mine.values(deleted_at=long_ago)))


def test_what_somebody_has_restored_only_a_person_removes(world: World, cluster: Cluster) -> None:
    """The removal of its config drive would be that of the VM, also while the VM isn't read."""
    uuid = active(world, cluster)
    vmid = gone(world, cluster, uuid)
    deleted_long_ago(world, uuid)
    volid = f"shared:iso/micronova-{vmid}-{uuid}.iso"
    cluster.volumes.append(SeenVolume(volid, "shared", "pve1", vmid, server_uuid=uuid))
    for more in ({}, {"read": False, "server_uuid": None, "proven": False}):
        cluster.vms = []
        cluster.add(vmid, uuid, status="stopped", **more)
        for asked in (True, False):
            report = world.conductor.auditor.audit(asked=asked)
            assert report["open"]["config_drive_without_server"] == 1
        assert cluster.destroyed == []
    cluster.vms = []
    cluster.add(vmid, uuid, status="stopped")
    audit(world)
    found = findings(world)["vm_of_deleted_server"]
    assert "it was restored" in found.cause
    world.conductor.audits.heal_finding(world.ctxt, found.id, force=False)
    world.until_operation("done", "done", "done")
    assert cluster.destroyed == [(vmid, uuid)]
    assert cluster.unrestored_since == [None]
    assert audit(world)["clean"]


def test_a_leftover_is_removed_however_late_it_is_looked_at(
    world: World, cluster: Cluster
) -> None:
    """What counts is when it was first seen."""
    uuid = active(world, cluster)
    vmid = gone(world, cluster, uuid)
    deleted_long_ago(world, uuid)
    row = {"cluster": "sim1", "vmid": vmid, "state": "taken", "reason": "A VM."}
    since = clock.utcnow() - 2 * LATE
    world.conductor.store.run(
        lambda c: c.execute(schema.vmids.insert().values(since=since, **row))
    )
    cluster.add(vmid, uuid)
    assert audit(world)["clean"]
    assert cluster.destroyed == [(vmid, uuid)]
    # The agent looks for a restore all the same.
    assert cluster.unrestored_since == [world.row(uuid).launched_at]


def test_a_reap_that_cannot_be_sent_ends_in_time(world: World, cluster: Cluster) -> None:
    uuid = active(world, cluster)
    vmid = gone(world, cluster, uuid)
    cluster.add(vmid, uuid)
    cluster.failure = BOOM
    audit(world)
    found = findings(world)["vm_of_deleted_server"]
    world.silence()
    begun = world.conductor.audits.heal_finding(world.ctxt, found.id, force=True)
    eventually(lambda: world.rows(schema.operations)[-1].not_before, 10)
    overdue = schema.operations.update().values(
        deadline=clock.after(-1), not_before=None, lease_expires_at=None
    )
    world.conductor.store.run(
        lambda c: c.execute(overdue.where(schema.operations.c.id == begun.operation_id))
    )
    world.conductor.runner.wake()
    world.until_operation("done", "done", "failed", "failed")
    assert world.rows(schema.faults)[-1].category == "task_timeout"


def test_a_vmid_that_another_server_has_by_now_is_not_reaped(
    world: World, cluster: Cluster
) -> None:
    uuid = active(world, cluster)
    vmid = gone(world, cluster, uuid)
    cluster.add(vmid, uuid)
    row = {"cluster": "sim1", "vmid": vmid, "state": "reserved", "server_uuid": "another"}
    world.conductor.store.run(
        lambda c: c.execute(schema.vmids.insert().values(since=clock.utcnow(), **row))
    )
    audit(world)
    world.leaves = {"vmid_without_owner"}
    assert cluster.destroyed == []
    assert "reserved for another server" in findings(world)["vm_of_deleted_server"].answer


def test_an_audit_that_only_reports(tmp_path: Path) -> None:
    world = World(tmp_path, audit_heals=False)
    world.conductor.runner.start()
    try:
        cluster = Cluster(world)
        cluster.show()
        uuid = active(world, cluster)
        vmid = gone(world, cluster, uuid)
        cluster.add(vmid, uuid)
        assert not audit(world)["clean"]
        found = findings(world)["vm_of_deleted_server"]
        heal = world.conductor.audits.heal_finding
        with pytest.raises(Conflict, match="not stopped"):
            heal(world.ctxt, found.id, force=False)
        assert cluster.destroyed == []
        heal(world.ctxt, found.id, force=True)
        world.until_operation("done", "done", "done")
        assert cluster.destroyed == [(vmid, uuid)]
        assert audit(world)["clean"]
        with pytest.raises(NotFound):
            heal(world.ctxt, found.id, force=True)
    finally:
        world.close()


def test_a_vm_that_was_seen_stopped_is_removed_as_long_as_it_is(
    world: World, cluster: Cluster
) -> None:
    for status, wanted in (("stopped", "pve2"), ("running", None)):
        uuid = active(world, cluster)
        vmid = gone(world, cluster, uuid)
        cluster.add(vmid, uuid, "pve2", status=status)
        assert audit(world)["clean"]
        assert cluster.stopped_on[-1] == wanted


def test_force_does_not_pass_the_fence(world: World, cluster: Cluster) -> None:
    cluster.add(100_005, "e5d8c6a0-0000-4000-8000-000000000000")
    assert audit(world)["open"] == {"vm_without_server": 1}
    found = findings(world)["vm_without_server"]
    with pytest.raises(Conflict, match="never touched"):
        world.conductor.audits.heal_finding(world.ctxt, found.id, force=True)
    assert cluster.destroyed == []


def test_a_vm_that_was_let_go_is_never_removed(world: World, cluster: Cluster) -> None:
    uuid = active(world, cluster)
    vmid = gone(world, cluster, uuid)
    cluster.add(vmid, uuid)
    released = schema.operations.update().where(schema.operations.c.action == "delete")
    world.conductor.store.run(lambda c: c.execute(released.values(action="release")))
    assert audit(world)["open"] == {"vm_of_deleted_server": 1}
    assert cluster.destroyed == []


# --- who runs it


def lease(world: World, owner: str, seconds: float) -> None:
    values = {"name": LEASE, "owner": owner, "expires_at": clock.after(seconds)}
    world.conductor.store.run(lambda c: c.execute(schema.leases.insert().values(**values)))


def test_one_conductor_at_a_time(world: World, cluster: Cluster) -> None:
    lease(world, "another", LEASE_SECONDS)
    audit_id = world.conductor.audits.begin_audit(world.ctxt)
    assert world.conductor.audits.begin_audit(world.ctxt) == audit_id
    world.conductor.auditor.turn()
    assert [row.state for row in world.rows(schema.audits)] == ["queued"]
    world.conductor.store.run(lambda c: process_leases.drop(c, LEASE, "another"))
    world.conductor.auditor.turn()
    [row] = world.rows(schema.audits)
    assert (row.state, row.conductor) == ("done", "c1")
    assert row.report["clean"]
    assert LEASE not in {one.name for one in world.rows(schema.leases)}


def test_an_audit_whose_conductor_died_is_ended_by_the_next(
    world: World, cluster: Cluster
) -> None:
    lease(world, "another", -1)
    world.conductor.audits.begin_audit(world.ctxt)
    running = schema.audits.update().values(state="running", started_at=clock.after(-10))
    world.conductor.store.run(lambda c: c.execute(running))
    world.conductor.audits.begin_audit(world.ctxt)
    world.conductor.auditor.turn()
    assert [row.state for row in world.rows(schema.audits)] == ["failed", "done"]


@pytest.mark.parametrize("state", ["queued", "running"])
def test_an_audit_that_was_requested_of_a_conductor_that_died_is_not_forgotten(
    world: World, cluster: Cluster, state: str
) -> None:
    cloud, runner = world.conductor.cloud, world.conductor.runner
    gatherer = Gatherer(cloud)
    restorer = Restorer(cloud, gatherer, runner)
    other = Auditor(cloud, gatherer, Healer(cloud, runner), restorer, look_seconds=0.05)
    world.conductor.store.run(lambda c: request(c, "req-1"))
    begun = schema.audits.update().values(state=state, started_at=clock.after(-1))
    world.conductor.store.run(lambda c: c.execute(begun))
    lease(world, "dead", 0.2)
    other.start()
    try:
        ends = ["done"] if state == "queued" else ["failed", "done"]
        eventually(lambda: [row.state for row in world.rows(schema.audits)] == ends, 10)
    finally:
        other.stop()


def test_the_auditor_runs_what_is_asked_and_what_is_due(world: World, cluster: Cluster) -> None:
    auditor = world.conductor.auditor
    auditor.turn()
    assert len(world.rows(schema.audits)) == 1  # none was ever run: it is due
    auditor.turn()
    assert len(world.rows(schema.audits)) == 1
    earlier = schema.audits.update().values(started_at=clock.after(-300))
    world.conductor.store.run(lambda c: c.execute(earlier))
    auditor.turn()
    assert len(world.rows(schema.audits)) == 2
    auditor.start()
    try:
        auditor.ask("req-1")
        eventually(lambda: [row.state for row in world.rows(schema.audits)] == ["done"] * 3, 10)
    finally:
        auditor.stop()


class Broken(Gatherer):
    """Can't look."""

    def look(self) -> Facts:
        raise KeyError("x")


def test_an_audit_that_breaks_says_so(world: World, cluster: Cluster) -> None:
    cloud = world.conductor.cloud
    runner, broken = world.conductor.runner, Broken(cloud)
    auditor = Auditor(cloud, broken, Healer(cloud, runner), Restorer(cloud, broken, runner))
    auditor.ask("req-1")
    with pytest.raises(KeyError):
        auditor.turn()
    [row] = world.rows(schema.audits)
    assert (row.state, row.report) == ("failed", {"error": "KeyError"})
    assert LEASE not in {one.name for one in world.rows(schema.leases)}


def test_an_agent_that_breaks_is_not_looked_at(world: World, cluster: Cluster) -> None:
    world.compute.seen = None  # type: ignore[assignment]
    report = audit(world)
    assert report["unseen"] == ["Cluster sim1 can't be looked at: AttributeError; see the log."]


def test_what_is_old_is_forgotten(world: World, cluster: Cluster) -> None:
    cluster.vms = [SeenVm(100_005, "pve1", read=True)]
    cluster.show()
    world.conductor.auditor.turn()
    past = clock.after(-40 * 86_400)

    def work(connection: sa.Connection) -> None:
        connection.execute(schema.audits.update().values(finished_at=past, started_at=past))
        connection.execute(schema.findings.update().values(healed_at=past))

    world.conductor.store.run(work)
    cluster.vms = []
    cluster.show()
    world.conductor.auditor.turn()
    assert len(world.rows(schema.audits)) == 1
    assert world.rows(schema.findings) == []


def test_two_clusters_are_two_places(world: World, cluster: Cluster) -> None:
    """A VMID of one cluster says nothing of the same one in another."""
    uuid = active(world, cluster)
    vmid = world.row(uuid).vmid
    other = dataclasses.replace(world.compute.seen["sim1"], cluster="sim2")
    world.compute.seen["sim2"] = other
    host = schema.hosts.insert().from_select(
        ["uuid", "host", "cluster", "node", "worker", "facts", "created_at", "updated_at"],
        sa.select(
            sa.literal("uuid-x"), sa.literal("x"), sa.literal("sim2"), sa.literal("x"),
            schema.hosts.c.worker, schema.hosts.c.facts, schema.hosts.c.created_at,
            schema.hosts.c.updated_at,
        ).where(schema.hosts.c.host == "pve1"),
    )  # fmt: skip
    world.conductor.store.run(lambda c: c.execute(host))
    assert audit(world)["open"] == {"vm_not_recorded": 1}
    found = findings(world)["vm_not_recorded"]
    assert (found.subject, found.heal) == (f"sim2/{vmid}", None)
    assert cluster.destroyed == []


# --- descriptions, read in turns


def test_descriptions_are_read_in_turns_and_no_more_than_a_bounded_number(
    world: World, cluster: Cluster
) -> None:
    uuids = [active(world, cluster) for _ in range(3)]
    vmids = {int(world.row(uuid).vmid) for uuid in uuids}
    reserved = vmids | {row.vmid for row in world.rows(schema.templates)}
    world.conductor.auditor._gatherer._reads = 2
    rounds = []
    for _ in range(len(reserved)):
        world.compute.read.clear()
        assert audit(world)["clean"]
        assert {len(one) for one in world.compute.read} == {2}
        rounds.append(world.compute.read[0])
    assert frozenset().union(*rounds) == reserved
    assert rounds[0] != rounds[1]


def test_a_doubt_stays_until_the_description_is_read_again(world: World, cluster: Cluster) -> None:
    uuid = active(world, cluster)
    vmid = int(world.row(uuid).vmid)
    marked = cluster.vms[-1]
    cluster.vms = [dataclasses.replace(marked, server_uuid=None, proven=False, smbios_uuid=uuid)]
    cluster.show()
    assert audit(world)["open"] == {"mark_lost": 1}
    found = findings(world)["mark_lost"]
    assert (found.remedy, found.heal) == (f"micronova server mark {uuid}", None)
    # Nobody read it: that says nothing.
    cluster.vms = [dataclasses.replace(marked, read=False, server_uuid=None, proven=False)]
    cluster.show()
    assert audit(world)["open"] == {"mark_lost": 1}
    # A VM in doubt is read first.
    world.conductor.auditor._gatherer._reads = 1
    world.compute.read.clear()
    cluster.vms = [marked]
    cluster.show()
    assert audit(world)["clean"]
    assert world.compute.read[0] == {vmid}


def test_what_a_token_is_not_shown_is_not_taken_for_healed(world: World, cluster: Cluster) -> None:
    uuid = active(world, cluster)
    marked = cluster.vms[-1]
    cluster.vms = [dataclasses.replace(marked, server_uuid=None, proven=False)]
    cluster.volumes = [SeenVolume("local:100009/vm-100009-disk-0.raw", "local", "pve1", 100_009)]
    cluster.show()
    assert audit(world)["open"] == {"vm_replaced": 1, "volume_foreign": 1}
    cluster.vms = []
    cluster.show(short=True, unseen=("The token does not see what is under /vms.",))
    report = audit(world)
    assert report["open"] == {"vm_replaced": 1, "volume_foreign": 1}
    assert not report["complete"]
    cluster.vms, cluster.volumes = [marked], []
    cluster.show()
    assert audit(world)["clean"]
    assert world.row(uuid).vm_state == "active"


def test_of_a_cluster_that_was_given_up_nothing_is_left_open(
    world: World, cluster: Cluster
) -> None:
    uuid = active(world, cluster)
    cluster.vms.append(SeenVm(100_007, "pve1", name="theirs", read=True))
    cluster.show()
    assert audit(world)["open"] == {"vm_foreign": 1}
    kept = [dict(row._mapping) for row in world.rows(schema.hosts)]
    world.conductor.store.run(lambda c: c.execute(schema.hosts.delete()))
    # A server is there by the record: that nobody can look is said.
    report = audit(world)
    assert "No host of cluster sim1 is known." in report["unseen"]
    assert report["open"] == {"vm_foreign": 1}
    world.conductor.store.run(lambda c: c.execute(schema.hosts.insert(), kept))
    gone(world, cluster, uuid)
    world.conductor.store.run(lambda c: c.execute(schema.hosts.delete()))
    report = audit(world)
    assert (report["open"], report["unseen"]) == ({}, [])
    world.conductor.store.run(lambda c: c.execute(schema.hosts.insert(), kept))
    cluster.vms = []
    cluster.show()
