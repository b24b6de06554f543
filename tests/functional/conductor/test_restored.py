"""A database that was restored: nothing is destroyed before an operator has decided."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock
from common.messages.commands import Build, Destroy
from common.messages.facts import LAST, NicFacts, OtherVm, OwnerMark, VmFacts, VmStates
from common.messages.reports import Working
from common.resources.states import OperationState, ResourceType
from conductor.audit.heal import GIVES_UP
from conductor.audit.proof import RefusedError
from conductor.endpoints.networks.ports import PortEndpoint
from conductor.plans import CreatePlan
from conductor.restore_guard import Held, comparing
from conductor.rpc.networks.ports import NewPort
from conductor.store import restored
from conductor.store.audits.findings import Kept
from conductor.store.ledger import operations as ledger
from conductor.store.networks import networks, unknown_vms
from conductor.store.records import Operation
from conductor.store.restored import Marked
from conductor.store.transactions import Transaction
from db import schema
from db.reads.cloud import sentence
from tests.functional.conductor.harness import World
from tests.functional.waiting import eventually

LOST = "5a3c1b7e-0000-4000-8000-000000000001"
CLOUD = "5a3c1b7e-0000-4000-8000-0000000000c1"
HIGH = 1000


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    row = {"id": 1, "cloud_id": CLOUD}
    made.conductor.store.run(lambda c: c.execute(schema.cloud_identity.insert(), row))
    yield made
    made.close()


def mark(world: World, epoch: int = HIGH, vmid: int = 555, **changed: Any) -> OwnerMark:
    cloud = world.conductor.cloud.id
    return OwnerMark(
        **{
            **{"cloud": cloud, "resource_type": ResourceType.SERVER, "resource_id": LOST},
            **{"epoch": epoch, "vmid": vmid},
            **changed,
        }
    )


def seen(world: World, *others: OtherVm) -> None:
    """Report all VMs of the cluster: those of the record, and others."""
    world.compute.others.update({one.vmid: one for one in others})
    mine = [
        VmFacts(row.vmid, row.node, row.power_state)
        for row in world.rows(schema.servers)
        if row.vmid and row.deleted_at is None
    ]
    vms = (*mine, *(VmFacts(one.vmid, one.node, 1) for one in others))
    now = clock.utcnow()
    world.conductor.followed.take(
        VmStates("w1", "sim1", now, ("pve1",), True, vms, (), low=0, high=LAST)
    )
    eventually(lambda: all(row.read_at for row in world.rows(schema.other_vms)))


def record(world: World) -> restored.Record:
    with world.conductor.store.read() as connection:
        return restored.read(connection)


def sent(world: World, kind: type[Any]) -> list[Any]:
    return [one for _, one in world.compute.sent if isinstance(one, kind)]


def active(world: World) -> str:
    """Return a server that runs."""
    [uuid] = world.create()
    world.answer(world.compute.wait_for(1))
    world.until(uuid, "active")
    return uuid


def operation(world: World, action: str) -> Any:
    return [one for one in world.rows(schema.operations) if one.action == action][-1]


def hold(world: World, **changed: Any) -> None:
    marked = Marked("sim1", 555, mark(world, **changed))
    assert world.conductor.store.run(lambda c: restored.look(c, [marked]))
    world.conductor.cloud.guard.was_held()


def release(world: World) -> None:
    world.conductor.store.run(lambda c: restored.release(c, HIGH))
    world.conductor.cloud.guard.expire()
    world.make_due()


def test_a_mark_newer_than_the_record_holds_a_delete(world: World) -> None:
    world.conductor.runner.start()
    server = active(world)
    seen(world, OtherVm(555, "pve1", mark=mark(world)))
    held = record(world)
    assert held.held_at is not None
    assert "VM 555 of cluster sim1" in sentence(held.held_because or {})
    world.act(server, "delete")
    eventually(lambda: "micronova restore" in str(operation(world, "delete").message))
    assert not sent(world, Destroy)
    assert world.row(server).task_state == "deleting"
    release(world)
    eventually(lambda: sent(world, Destroy))
    # What is made from now on has epochs above all that were seen.
    assert world.conductor.cloud.guard.epoch(operation(world, "delete").id + 1) > HIGH
    assert record(world).held_at is None
    world.answer(sent(world, Destroy)[0], gone=True)
    world.until(server, "deleted")


def test_marks_that_prove_nothing(world: World) -> None:
    world.conductor.runner.start()
    server = active(world)
    [build] = sent(world, Build)
    epoch = world.conductor.cloud.guard.epoch(build.operation_id)
    known = {"epoch": epoch, "resource_id": server}
    others = (
        mark(world, cloud="another"),
        mark(world, vmid=554),
        # The VM was left to a person: the journal gave the server its VMID.
        mark(world, vmid=build.placed.vmid, **known),
    )
    for one in others:
        seen_at = one.vmid if one is others[-1] else 555
        with world.conductor.store.read() as connection:
            assert not restored.unknown(connection, [Marked("sim1", seen_at, one)])
    # The same operation, and a VMID that it has not reserved yet: it has done more than it knows.
    with world.conductor.store.read() as connection:
        assert restored.unknown(connection, [Marked("sim1", 555, mark(world, **known))])
        assert restored.unknown(connection, [Marked("sim1", 555, mark(world, epoch=epoch))])


def test_a_released_record_is_not_held_again_by_the_same_marks(world: World) -> None:
    active_ones = [Marked("sim1", 555, mark(world)), Marked("sim1", 556, mark(world, vmid=556))]
    hold(world)
    release(world)
    assert not world.conductor.store.run(lambda c: restored.look(c, active_ones))
    newest = world.conductor.cloud.guard.epoch(1)
    later = Marked("sim1", 557, mark(world, epoch=newest + 7, vmid=557))
    assert world.conductor.store.run(lambda c: restored.look(c, [later]))


def test_another_conductor_s_marks_right_after_the_release_prove_nothing(world: World) -> None:
    """It has read the base of epochs before."""
    world.conductor.runner.start()
    active(world)
    second = world.add_conductor("c2")
    assert second.cloud.guard.epoch(1) == 1
    hold(world, epoch=3)
    world.conductor.store.run(lambda c: restored.release(c, 3))
    world.conductor.cloud.guard.expire()
    for count in range(2, 5):
        world.create()
        world.compute.wait_for(count)
    last = world.rows(schema.operations)[-1]
    epoch = second.cloud.guard.epoch(last.id)
    named = mark(world, epoch, world.row(last.resource_id).vmid, resource_id=last.resource_id)
    with world.conductor.store.read() as connection:
        assert not restored.unknown(connection, [Marked("sim1", named.vmid, named)])


def test_open_operations_of_a_restored_record_only_look(world: World) -> None:
    world.conductor.runner.start()
    [uuid] = world.create()
    command = world.compute.wait_for(1)
    world.conductor.store.run(lambda c: restored.begin_to_compare(c, "c1"))
    world.conductor.cloud.guard.expire()
    hold(world)
    assert operation(world, "create").overslept
    # The agent, or its machine, is gone; another conductor takes it up.
    world.make_due()
    world.conductor.runner.wake()
    eventually(lambda: world.compute.looks)
    assert world.compute.looks[0].placed == command.placed
    assert not sent(world, Destroy)
    world.answer(world.compute.looks[0])
    world.until(uuid, "active")


def test_a_build_that_the_record_has_lost_is_not_started(world: World) -> None:
    """Its agent notes that only the start is missing."""
    world.conductor.runner.start()
    [_] = world.create()
    build = world.compute.wait_for(1)
    mine = Working(build.operation_id, 1, build.placed.host)
    lost = Working(build.operation_id + 1_000, 1, build.placed.host)
    reports = world.conductor.reports
    answer = reports.may_start("w1", [lost, mine])
    assert answer == [mine, lost.as_lost()]
    # An agent of 1.0.0 leaves out that field, and starts what comes back as it was asked.
    assert lost not in [dataclasses.replace(one, lost=False) for one in answer]
    # Another worker's is not lost.
    assert reports.may_start("w2", [mine]) == []
    world.answer(build)
    world.until(build.resource_id, "active")


def test_what_was_open_waits_until_all_clusters_were_compared(world: World) -> None:
    """The first seconds after a start, if no other conductor ran."""
    server = active_before_start(world)
    world.conductor.store.run(lambda c: restored.begin_to_compare(c, "c1"))
    world.conductor.cloud.guard.expire()
    world.act(server, "delete")
    world.conductor.runner.start()
    world.make_due()
    world.conductor.runner.wake()
    eventually(lambda: operation(world, "delete").not_before is not None)
    assert not sent(world, Destroy)
    assert world.conductor.cloud.guard.held == comparing(["sim1"])
    seen(world)
    world.make_due()
    world.conductor.runner.wake()
    eventually(lambda: sent(world, Destroy))


def active_before_start(world: World) -> str:
    """Return a server of a cluster whose VMs were compared with the record once."""
    world.conductor.runner.start()
    server = active(world)
    seen(world)
    world.conductor.runner.stop()
    world.conductor = world.add_conductor("c2")
    return server


def test_a_restart_beside_another_conductor_waits_for_nothing(world: World) -> None:
    world.conductor.runner.start()
    eventually(lambda: any(one.name == "sign c1" for one in world.rows(schema.leases)))
    world.conductor.store.run(lambda c: restored.begin_to_compare(c, "c2"))
    assert record(world).compare_since is None


@pytest.mark.parametrize("verb", sorted(GIVES_UP))
def test_the_audit_removes_and_releases_nothing_while_the_record_is_held(
    world: World, verb: str
) -> None:
    hold(world)
    finding = Kept(
        **{
            one.name: None
            for one in dataclasses.fields(Kept)
            if one.name not in {"id", "kind", "subject", "heal", "evidence", "heals"}
        },
        id=1,
        kind="vm_not_recorded",
        subject="sim1/555",
        heal=verb,
        evidence={},
        heals=0,
    )
    with pytest.raises(RefusedError, match="micronova restore"):
        world.conductor.audits._healer.heal(finding, asked=True)
    assert not world.compute.sent


def test_an_unwinding_build_of_a_restored_record_removes_nothing(world: World) -> None:
    """A later attempt may have made the VM that the record still wants removed."""
    world.conductor.runner.start()
    world.create()
    command = world.compute.wait_for(1)
    world.conductor.store.run(
        lambda c: c.execute(
            schema.operations.update().values(
                state=OperationState.UNWINDING, lease_owner=None, lease_expires_at=None
            )
        )
    )
    world.conductor.store.run(lambda c: restored.begin_to_compare(c, "c1"))
    world.conductor.cloud.guard.expire()
    hold(world)
    world.make_due()
    world.conductor.runner.wake()
    eventually(lambda: any(isinstance(one, Destroy) for one in world.compute.looks))
    assert all(one in world.compute.looks for one in sent(world, Destroy))
    assert sent(world, Destroy)[0].placed == command.placed


def test_nobody_gets_the_addresses_that_servers_of_the_record_got_since(world: World) -> None:
    """Their VMs have interfaces that the record lacks: they are read before any port is made."""
    subnet = networks.parse_subnet("vmbr0=10.0.0.0/24;pool=10.0.0.50-10.0.0.53")
    world.conductor.store.run(lambda c: networks.ensure_subnet(c, subnet))
    world.conductor.runner.start()
    server = active(world)
    endpoint = PortEndpoint(world.conductor.cloud, world.conductor.runner)
    vmid = world.row(server).vmid
    [network] = [one.id for one in world.rows(schema.networks) if one.bridge == "vmbr0"]
    got = NicFacts("bc:24:11:00:00:07", "vmbr0", None, ("10.0.0.50",))
    seen(world)
    world.compute.others[vmid] = OtherVm(vmid, "pve1", nics=(got,))
    hold(world)
    assert [(one.vmid, one.node) for one in world.rows(schema.other_vms)] == [(vmid, "pve1")]
    [made] = endpoint.create_ports(world.ctxt, [NewPort("p", network)])
    [row] = [one for one in world.rows(schema.ports) if one.id == made]
    assert row.ip != "10.0.0.50"
    # They are remembered while nothing is decided, and are the record's alone again afterwards.
    seen(world)
    world.compute.others[vmid] = OtherVm(vmid, "pve1", nics=(got,))
    assert [one.vmid for one in world.rows(schema.other_vms)] == [vmid]
    release(world)
    seen(world)
    assert world.rows(schema.other_vms) == world.rows(schema.other_nics) == []


def test_the_first_start_on_a_backup_reads_the_servers_of_the_record(world: World) -> None:
    world.conductor.runner.start()
    vmid = world.row(active(world)).vmid

    def put_back(connection: Transaction) -> None:
        because = {"made_at": "2026-01-01T00:00:00", "epoch": 3}
        held = {"held_at": clock.utcnow(), "held_because": because}
        connection.execute(schema.cloud_identity.update().values(**held))
        connection.execute(schema.leases.delete())
        restored.begin_to_compare(connection, "c1")
        unread = connection.execute(sa.select(schema.other_vms)).all()
        assert [(one.vmid, one.read_at) for one in unread] == [(vmid, None)]

    world.conductor.store.run(put_back)


def test_a_volume_that_may_have_got_a_server_since_is_attached_to_no_other(world: World) -> None:
    hold(world)
    guard = world.conductor.cloud.guard
    world.conductor.runner.start()
    server = active(world)
    plain = operation(world, "create")
    with_volumes = dataclasses.replace(
        stored(world, plain.id),
        plan=dataclasses.replace(stored(world, plain.id).planned(CreatePlan), has_volumes=True),
    )
    guard.require(stored(world, plain.id))
    attach = dataclasses.replace(stored(world, plain.id), action="attach_volume")
    for one in (with_volumes, attach):
        with pytest.raises(Held, match="micronova restore"):
            guard.require(one)
    release(world)
    for one in (with_volumes, attach):
        guard.require(one)
    assert world.row(server).vm_state == "active"


def test_a_server_with_volumes_waits_until_all_clusters_were_compared(world: World) -> None:
    active_before_start(world)
    guard = world.conductor.cloud.guard
    made = stored(world, operation(world, "create").id)
    plan = dataclasses.replace(made.planned(CreatePlan), has_volumes=True)
    later = dataclasses.replace(made, id=made.id + 1, plan=plan)
    guard.require(later)
    world.conductor.store.run(lambda c: restored.begin_to_compare(c, "c1"))
    guard.expire()
    with pytest.raises(Held, match="being compared"):
        guard.require(later)
    guard.require(dataclasses.replace(later, plan=made.plan))


def test_what_destroys_waits_for_a_cluster_that_answers_later(world: World) -> None:
    world.clusters = {"pve2": "sim2"}
    world.beat()
    active_before_start(world)
    looked = schema.clusters.update().values(looked_at=clock.utcnow())
    world.conductor.store.run(lambda c: c.execute(looked))
    world.conductor.store.run(lambda c: restored.begin_to_compare(c, "c1"))
    guard = world.conductor.cloud.guard
    guard.expire()
    world.silence("pve2")
    delete = dataclasses.replace(stored(world, operation(world, "create").id), action="delete")
    with pytest.raises(Held, match="being compared"):
        guard.require(delete)
    seen(world)
    guard.require(delete)
    # VMs that come later are none of it.
    world.conductor.store.run(
        lambda c: c.execute(
            schema.other_vms.insert().values(cluster="sim1", vmid=7, node="pve1", kind="VM")
        )
    )
    guard.require(delete)
    world.beat()
    with pytest.raises(Held, match="being compared"):
        guard.require(delete)
    world.conductor.store.run(lambda c: unknown_vms.looked(c, "sim2", clock.utcnow()))
    guard.require(delete)
    assert guard.held is None


def stored(world: World, number: int) -> Operation:
    with world.conductor.store.read() as connection:
        found = ledger.get(connection, number)
    assert found is not None
    return found
