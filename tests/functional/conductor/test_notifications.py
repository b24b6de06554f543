"""Notifications: what the outbox gets with each transaction, and how it is sent."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock
from common.errors import Invalid
from common.messages.reports import Category, Failure
from conductor.notifications import sender as sending
from conductor.notifications.sender import NAME, Sender
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.server_groups import NewServerGroup
from conductor.rpc.servers.servers import RebuildServer
from conductor.servers.move import begin_live_migration, steer_migration
from conductor.servers.record import lock
from conductor.store import change_events
from conductor.store.hosts import registry
from conductor.store.ledger import process_leases
from conductor.store.outbox import notification_outbox as outbox
from conductor.store.servers import server_groups, servers
from db import schema
from tests.fixtures.notifications import differences
from tests.functional.conductor.harness import IMAGE, World
from tests.functional.conductor.notification_bus import (
    UNVERSIONED,
    VERSIONED,
    Bus,
    data,
    send_notifications,
)

BROKEN = Failure(Category.CREATION_FAILED, "storage 'local' does not exist", host="pve1")
LARGER = FlavorSnapshot("2", "m1.larger", 2, 1024, 1)


#: what Ceilometer's event definitions and Designate's handler read of unversioned ones
READ = frozenset(
    {
        *("tenant_id", "user_id", "instance_id", "display_name", "cell_name", "state"),
        *("memory_mb", "disk_gb", "root_gb", "ephemeral_gb", "vcpus"),
        *("instance_type_id", "instance_type", "image_meta", "launched_at", "deleted_at"),
        *("availability_zone", "fixed_ips", "hostname"),
    }
)


@pytest.fixture
def bus() -> Bus:
    return Bus()


@pytest.fixture
def sender(world: World, bus: Bus) -> Sender:
    return send_notifications(world.conductor, bus)


def a_server(world: World) -> str:
    (uuid,) = world.create(key_name="my-key", public_key="ssh-rsa QUJD k", tags=("blue",))
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "active")
    world.until_operation("done")
    return uuid


def outboxed(world: World) -> list[Any]:
    return world.rows(schema.notification_outbox)


def well_formed(bus: Bus) -> None:
    for topic, message in bus.sent:
        if topic == VERSIONED:
            found = differences(message.event_type, message.priority, message.payload)
            assert found == []


def test_a_life_from_create_to_delete(world: World, bus: Bus, sender: Sender) -> None:
    uuid = a_server(world)
    world.resize(uuid, LARGER)
    world.answer(world.compute.wait_for(2), ok=True, power_state=1)
    world.until(uuid, "resized")
    world.end_resize(uuid, "confirmResize")
    world.until(uuid, "active")
    world.act(uuid, "stop")
    world.answer(world.compute.wait_for(3), ok=True, power_state=4)
    world.until(uuid, "stopped")
    lock.lock(world.conductor.cloud, world.ctxt, uuid, "for a while")
    lock.unlock(world.conductor.cloud, world.ctxt, uuid, override=True)
    world.act(uuid, "delete")
    world.answer(world.compute.wait_for(4), ok=True, gone=True)
    world.until(uuid, "deleted")
    world.until_operation(*["done"] * 7)
    sender.send_all()
    assert bus.names() == [
        f"instance.{name}"
        for name in (
            *("create.start", "create.end", "exists"),
            *("resize_prep.start", "resize_prep.end", "resize.start", "resize.end"),
            *("resize_finish.start", "resize_finish.end"),
            *("resize_confirm.start", "resize_confirm.end"),
            *("power_off.start", "power_off.end", "lock", "unlock"),
            *("delete.start", "shutdown.start", "shutdown.end", "delete.end"),
        )
    ]
    assert bus.names(UNVERSIONED) == [
        f"compute.instance.{name}"
        for name in (
            *("create.start", "create.end", "exists"),
            *("resize.prep.start", "resize.prep.end", "resize.start", "resize.end"),
            *("finish_resize.start", "finish_resize.end"),
            *("resize.confirm.start", "resize.confirm.end"),
            *("power_off.start", "power_off.end"),
            *("delete.start", "shutdown.start", "shutdown.end", "delete.end"),
        )
    ]
    well_formed(bus)
    assert outboxed(world) == []
    assert [one for one in world.rows(schema.leases) if not one.name.startswith("sign ")] == []

    start, end = data(bus.last("instance.create.start")), data(bus.last("instance.create.end"))
    assert (start["state"], start["task_state"], start["host"]) == ("building", "scheduling", None)
    assert (start["launched_at"], start["updated_at"]) == (None, None)
    assert (end["state"], end["task_state"], end["host"]) == ("active", None, "pve1")
    assert (end["power_state"], end["uuid"], end["tags"]) == ("running", uuid, ["blue"])
    assert end["launched_at"] is not None
    assert end["request_id"] == world.ctxt.request_id
    assert (end["action_initiator_user"], end["tenant_id"]) == ("u", "p")
    [key] = end["keypairs"]
    assert (
        key["nova_object.data"]["fingerprint"] == "90:2f:bd:d2:b1:df:0c:4f:70:b4:a5:d2:35:25:e9:32"
    )
    older = bus.last("compute.instance.resize.prep.end").payload
    assert (older["instance_type"], older["new_instance_type"]) == ("m1.tiny", "m1.larger")
    assert older["new_instance_type_id"] == "2"
    assert "new_instance_type" not in bus.last("compute.instance.resize.prep.start").payload
    prep = data(bus.last("instance.resize_prep.start"))
    assert prep["new_flavor"]["nova_object.data"]["name"] == "m1.larger"
    assert prep["flavor"]["nova_object.data"]["name"] == "m1.tiny"
    finished = data(bus.last("instance.resize_finish.end"))
    assert finished["flavor"]["nova_object.data"]["name"] == "m1.larger"
    locked = data(bus.last("instance.lock"))
    assert (locked["locked"], locked["locked_reason"]) == (True, "for a while")
    assert data(bus.last("instance.unlock"))["locked"] is False
    before = data(bus.last("instance.exists"))
    assert before["flavor"]["nova_object.data"]["name"] == "m1.tiny"
    until_then = before["audit_period"]["nova_object.data"]
    assert until_then["audit_period_beginning"].endswith("-01T00:00:00Z")
    assert until_then["audit_period_ending"] > end["launched_at"][:10]
    gone = data(bus.last("instance.delete.end"))
    assert (gone["state"], gone["ip_addresses"], gone["power_state"]) == ("deleted", [], "pending")
    assert None not in (gone["deleted_at"], gone["terminated_at"])
    older = bus.last("compute.instance.create.end").payload
    assert (older["instance_id"], older["state"], older["message"]) == (uuid, "active", "Success")
    assert bus.last("instance.create.end").publisher == "nova-compute:pve1"
    assert bus.last("compute.instance.create.end").publisher == "compute.pve1"
    assert bus.last("instance.create.start").publisher == "nova-conductor:c1"
    assert len({message.message_id for _, message in bus.sent}) == len(bus.sent)
    for _, message in bus.sent:
        if message.event_type.startswith("compute."):
            assert message.payload.keys() >= READ
    assert bus.last("instance.create.end").context["user_id"] == "u"


def test_images_of_rebuilds_and_rescues(world: World, bus: Bus, sender: Sender) -> None:
    uuid = a_server(world)
    before = {"image_id": "another", "image_properties": {"os_distro": "old"}}
    world.conductor.store.run(lambda c: c.execute(schema.servers.update().values(before)))
    world.rebuild(uuid, RebuildServer(IMAGE, {"os_distro": "new"}))
    world.answer(world.compute.wait_for(2), ok=True, power_state=1)
    world.answer(world.compute.wait_for(3), ok=True, power_state=1)
    world.until(uuid, "active")
    world.until_operation("done", "done")
    sender.send_all()
    exists = bus.last("compute.instance.exists").payload
    assert exists["image_ref_url"] == "another"
    assert exists["image_meta"] == {"os_distro": "old", "base_image_ref": "another"}
    rebuilt = bus.last("compute.instance.rebuild.end").payload
    assert (rebuilt["image_ref_url"], rebuilt["image_name"]) == (IMAGE, "debian-12")
    assert rebuilt["image_meta"] == {"os_distro": "new", "base_image_ref": IMAGE}
    world.rescue(uuid)
    world.answer(world.compute.wait_for(4), ok=True, power_state=1)
    world.until(uuid, "rescued")
    world.until_operation(*["done"] * 3)
    sender.send_all()
    exists = bus.last("compute.instance.exists").payload
    assert exists["image_ref_url"] == IMAGE
    rescued = bus.last("compute.instance.rescue.end").payload
    assert rescued["rescue_image_name"] == "debian-12"


def test_a_build_that_failed(world: World, bus: Bus, sender: Sender) -> None:
    world.conductor.cloud.conf.set_override("max_attempts", 1, group="conductor")
    (uuid,) = world.create()
    command = world.compute.wait_for(1)
    world.answer(command, ok=False, failure=BROKEN)
    world.until(uuid, "error")
    sender.send_all()
    assert bus.names()[0] == "instance.create.start"
    assert bus.names()[-1] == "instance.create.error"
    well_formed(bus)
    error = bus.last("instance.create.error")
    fault = data(error)["fault"]["nova_object.data"]
    assert error.priority == "ERROR"
    assert "does not exist" in fault["exception_message"]
    older = bus.last("compute.instance.create.error")
    assert "does not exist" in older.payload["message"]


def test_changes_of_state_are_sent_when_wanted(world: World, bus: Bus) -> None:
    sender = send_notifications(
        world.conductor, bus, kind="versioned", on_state_change="vm_and_task_state"
    )
    uuid = a_server(world)
    server_of = lambda c: servers.alive(c, uuid, None)  # noqa: E731
    store = world.conductor.store
    store.run(lambda c: servers.change(c, server_of(c), {"name": "other"}, world.ctxt))
    store.run(lambda c: servers.change(c, server_of(c), {"tags": ["red"]}, world.ctxt))
    store.run(lambda c: servers.change(c, server_of(c), {"held": True}))
    sender.send_all()
    well_formed(bus)
    updates = [data(message) for _, message in bus.sent if message.event_type == "instance.update"]
    states = [one["state_update"]["nova_object.data"] for one in updates]
    assert [(one["old_task_state"], one["new_task_state"]) for one in states][-3:] == [
        ("spawning", None),
        (None, None),
        (None, None),
    ]
    assert (states[-3]["old_state"], states[-3]["state"]) == ("building", "active")
    assert (updates[-2]["old_display_name"], updates[-2]["display_name"]) == ("web", "other")
    assert (updates[-1]["tags"], updates[-1]["action_initiator_user"]) == (["red"], "u")
    assert bus.names(UNVERSIONED) == []


def test_only_tags_are_sent_otherwise(world: World, bus: Bus, sender: Sender) -> None:
    uuid = a_server(world)
    store = world.conductor.store

    def change(connection: sa.Connection) -> None:
        server = servers.alive(connection, uuid, None)
        servers.change(connection, server, {"name": "other"})
        servers.change(connection, server, {"tags": ["red"]})

    store.run(change)
    sender.send_all()
    assert bus.names().count("instance.update") == 1


def test_a_live_migration_is_aborted(world: World, bus: Bus, sender: Sender) -> None:
    uuid = a_server(world)
    conductor, ctxt = world.conductor, world.ctxt
    conductor.runner.submit(begin_live_migration.accept(conductor.cloud, ctxt, uuid, None, None))
    move = world.compute.wait_for(2)
    (migration,) = world.rows(schema.migrations)
    for refused, abort in (("It can't.", False), ("", False), ("", True)):
        world.compute.refuses = refused
        with pytest.raises(Invalid) if refused else contextlib.nullcontext():
            steer_migration.steer(conductor.cloud, ctxt, uuid, migration.id, abort=abort)
    world.answer(move, ok=False, power_state=1, node="pve1", failure=BROKEN)
    undo = world.compute.wait_for(3)
    world.answer(undo, ok=True, power_state=1, node="pve1")
    world.until(uuid, "active")
    world.until_operation("done", "failed")
    sender.send_all()
    well_formed(bus)
    assert bus.names()[2:] == [
        f"instance.{name}"
        for name in (
            *("live_migration_pre.start", "live_migration_force_complete.start"),
            *("live_migration_force_complete.start", "live_migration_force_complete.end"),
            *("live_migration_abort.start", "live_migration_abort.end"),
            *("live_migration_rollback.start", "live_migration_rollback.end"),
        )
    ]
    assert "compute.instance.live.migration.abort.end" in bus.names(UNVERSIONED)
    asked = data(bus.last("instance.live_migration_abort.end"))
    assert (asked["uuid"], asked["action_initiator_user"]) == (uuid, "u")


def test_a_server_without_a_vm_is_not_shut_down(world: World, bus: Bus, sender: Sender) -> None:
    world.scheduler.gate.clear()
    (uuid,) = world.create()
    world.act(uuid, "delete")
    world.scheduler.gate.set()
    world.until(uuid, "deleted")
    sender.send_all()
    assert bus.names()[-2:] == ["instance.delete.start", "instance.delete.end"]


def test_new_services_and_members_of_groups(world: World, bus: Bus, sender: Sender) -> None:
    store = world.conductor.store
    for _ in range(2):
        store.run(lambda c: registry.seen(c, "nova-scheduler", ["s1", "s2"], worker="s1"))
    new = NewServerGroup("p", "u", "g", "anti-affinity", {})
    group = store.run(lambda c: server_groups.create(c, new))
    uuids = world.create(server_group=group)
    sender.send_all()
    well_formed(bus)
    assert bus.names()[:2] == ["service.create"] * 2
    created = data(bus.last("service.create"))
    assert (created["host"], created["topic"], created["disabled"]) == ("s2", "scheduler", False)
    assert data(bus.last("server_group.add_member"))["members"] == uuids


# --- an error never fails an operation


def test_a_recorder_that_breaks_fails_nothing(world: World, bus: Bus, sender: Sender) -> None:
    uuid = a_server(world)
    # What it can't read.
    odd = change_events.Begun(None)  # type: ignore[arg-type]
    world.conductor.store.run(lambda c: change_events.note(c, [odd]))
    # What the database doesn't take.
    with world.conductor.store._writer.begin() as connection:
        connection.execute(sa.text("ALTER TABLE notification_outbox RENAME TO elsewhere"))
    world.act(uuid, "stop")
    world.answer(world.compute.wait_for(2), ok=True, power_state=4)
    world.until(uuid, "stopped")
    with world.conductor.store._writer.begin() as connection:
        connection.execute(sa.text("ALTER TABLE elsewhere RENAME TO notification_outbox"))
    world.act(uuid, "start")
    world.answer(world.compute.wait_for(3), ok=True, power_state=1)
    world.until(uuid, "active")
    sender.send_all()
    assert bus.names()[-2:] == ["instance.power_on.start", "instance.power_on.end"]
    assert "instance.power_off.start" not in bus.names()


def test_one_that_can_t_be_shown_is_set_aside(world: World, bus: Bus, sender: Sender) -> None:
    uuid = a_server(world)
    bad = {"event": "instance.pause.start", "message_id": "m", "server_uuid": uuid}
    rows = [
        # Not a server's; too large; breaking the sender; a good one.
        {**bad, "server_uuid": "nobody", "body": {}},
        {**bad, "body": {"server": {"meta": {"a": "x" * (1 << 20)}}}},
        {**bad, "event": "instance.suspend.start", "body": {}},
        {**bad, "event": "instance.resume.start", "body": {}},
    ]
    bus.breaks = {"instance.suspend.start"}
    more = {"operation_id": None, "at": clock.utcnow()}
    world.conductor.store.run(lambda c: outbox.add(c, [{**row, **more} for row in rows]))
    for _ in range(sending.BREAKS):
        sender.send_all()
    assert bus.names()[-2:] == ["instance.create.end", "instance.resume.start"]
    aside = {row.event: row.reason for row in outboxed(world)}
    assert len(outboxed(world)) == 3
    assert all(row.set_aside_at is not None for row in outboxed(world))
    assert "a bug" in aside["instance.suspend.start"]
    sender.send_all()
    assert bus.names().count("instance.resume.start") == 1
    with world.conductor.store.read() as connection:
        assert outbox.bounds(connection) == outbox.Bounds(0, None)
    bus.down = True
    world.conductor.store.run(lambda c: outbox.add(c, [{**rows[-1], **more}]))
    sender.send_all()
    with world.conductor.store.read() as connection:
        assert outbox.bounds(connection).pending == 1


def test_one_that_the_bus_refuses_is_set_aside_once_it_takes_the_next(
    world: World, bus: Bus, sender: Sender
) -> None:
    bus.refuses = {"instance.create.start"}
    a_server(world)
    for _ in range(sending.SUSPECT):
        assert bus.names() == []
        sender.send_all()
    assert bus.names() == ["instance.create.end"]
    assert [row.event for row in outboxed(world)] == ["instance.create.start"]


# --- the bus is away


def test_while_the_bus_is_away_the_outbox_is_bounded(world: World, bus: Bus) -> None:
    sender = send_notifications(world.conductor, bus, max_pending=3)
    bus.down = True
    uuid = a_server(world)
    sender.send_all()
    for number, (action, state, power) in enumerate(
        [("stop", "stopped", 4), ("start", "active", 1), ("stop", "stopped", 4)], 2
    ):
        world.act(uuid, action)
        world.answer(world.compute.wait_for(number), ok=True, power_state=power)
        world.until(uuid, state)
        sender.bound()
        assert len(outboxed(world)) <= 3
    bus.down = False
    sender.send_all()
    # The newest are kept, in order.
    assert bus.names() == [
        *("instance.power_on.end", "instance.power_off.start", "instance.power_off.end"),
    ]


def test_nothing_is_lost_while_the_bus_is_away_for_a_while(
    world: World, bus: Bus, sender: Sender
) -> None:
    bus.down = True
    a_server(world)
    sender.send_all()
    kept = [row.message_id for row in outboxed(world)]
    bus.down = False
    sender.send_all()
    sent = [message.message_id for topic, message in bus.sent if topic == VERSIONED]
    assert sent == kept


# --- several conductors, and their ends


def test_one_conductor_at_a_time_sends(world: World, bus: Bus, sender: Sender) -> None:
    a_server(world)
    other = world.add_conductor("c2")
    other.store.run(lambda c: process_leases.take(c, NAME, "c2", 60))
    sender.send_all()
    assert bus.names() == []
    other.store.run(lambda c: process_leases.drop(c, NAME, "c2"))
    sender.send_all()
    assert bus.names() == ["instance.create.start", "instance.create.end"]


def test_one_that_was_sent_and_not_removed_comes_again_under_the_same_id(
    world: World, bus: Bus, sender: Sender
) -> None:
    a_server(world)
    with world.conductor.store.read() as connection:
        first = outbox.first(connection, 1)
        subjects = sender._composer.subjects(connection, first)
    for topic, message in sender._composer.messages(first[0], subjects[first[0].id]):
        bus.send(topic, message)
    sender.send_all()
    assert bus.names()[:2] == ["instance.create.start"] * 2
    ids = [message.message_id for topic, message in bus.sent if topic == VERSIONED]
    assert ids[0] == ids[1] != ids[2]


def test_the_thread_sends_as_soon_as_a_transaction_is_committed(
    world: World, bus: Bus, sender: Sender
) -> None:
    sender.start()
    try:
        a_server(world)
        bus.wait_for(4)
        bus.down = True
        world.conductor.accept.act(world.ctxt, world.rows(schema.servers)[0].uuid, "stop")
        bus.down = False
        bus.wait_for(6)
    finally:
        sender.stop()
    assert bus.names()[-1] == "instance.power_off.start"


# --- what it costs


@pytest.fixture
def statements(world: World) -> Iterator[list[str]]:
    """The statements of the conductor's writer."""
    found: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        found.append(statement)

    writer = world.conductor.store._writer
    sa.event.listen(writer, "before_cursor_execute", note)
    sa.event.listen(writer, "begin", lambda connection: found.append("TRANSACTION"))
    yield found
    sa.event.remove(writer, "before_cursor_execute", note)


def test_a_transaction_has_one_insert_more_at_the_most(
    world: World, bus: Bus, statements: list[str]
) -> None:
    def counted() -> list[list[str]]:
        statements.clear()
        begun = len(world.compute.sent)
        (uuid,) = world.create()
        world.answer(world.compute.wait_for(begun + 1), ok=True, power_state=1)
        world.until(uuid, "active")
        text = "\n".join(statements)
        return [part.splitlines() for part in text.split("TRANSACTION") if part.strip()]

    def written(parts: list[list[str]]) -> int:
        """Statements that write: how often is read depends on when something was looked for."""
        writes = ("INSERT", "UPDATE", "DELETE")
        return sum(line.startswith(writes) for part in parts for line in part)

    off = counted()
    assert "notification_outbox" not in str(off)
    send_notifications(world.conductor, bus, on_state_change="vm_and_task_state")
    on = counted()
    inserts = [sum("INSERT INTO notification_outbox" in one for one in part) for part in on]
    assert max(inserts) == 1
    assert written(on) - written(off) <= sum(inserts)
