"""Cached templates by the record: one per image and place, there as long as they are needed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock, ids
from common.messages.commands import Command, RetireTemplate
from common.messages.facts import ClusterFacts, Heartbeat, ImageFacts, StorageFacts
from common.messages.reports import Built, Category, Failure, Outcome, Removed, Report
from conductor.images import cache_image
from conductor.images.templates import TemplateKeeper
from conductor.store.hosts import registry
from conductor.store.images import templates
from db import migrate, schema
from db.engine import writer
from tests.functional.conductor.harness import World

OTHER_IMAGE = ImageFacts(
    ids.named("image", "other"), "other", "shared:import/other.qcow2", 1, "qcow2", "s"
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, template_grace_seconds=60)
    yield made
    made.close()


@pytest.fixture
def keeper(world: World) -> TemplateKeeper:
    return TemplateKeeper(world.conductor.cloud)


def beat(world: World, *, images: bool = True, shared: bool = False) -> None:
    """The agents report the cluster: with the image or another, on local or shared storage."""
    now = clock.utcnow()
    storage = StorageFacts("local", "dir", shared, True, 1000, 900)
    with world.conductor.store.read() as connection:
        known = [registry.host(connection, name)[0] for name in ("pve1", "pve2")]
    facts = tuple(dataclasses.replace(one, storages=(storage,)) for one in known)
    there = ImageFacts(
        facts[0].images[0], "debian-12", "shared:import/debian-12.qcow2", 1, "qcow2", "s"
    )
    reported = (there if images else OTHER_IMAGE,)
    cluster = ClusterFacts("sim1", "9.2", True, reported, 100_000, 100_009)
    world.conductor.reports.heartbeat(Heartbeat("w1", now, ("pve1", "pve2"), facts, (cluster,)))


def active(world: World) -> tuple[str, Any]:
    world.conductor.runner.start()
    (uuid,) = world.create()
    command = world.compute.wait_for(1)
    world.answer(command, ok=True, power_state=1)
    world.until(uuid, "active")
    return uuid, command


def template_row(world: World) -> Any:
    (row,) = [row for row in world.rows(schema.vmids) if row.server_uuid is None]
    return row


def long_ago(world: World) -> None:
    past = clock.after(-3600)
    world.conductor.store.run(lambda c: c.execute(schema.vmids.update().values(since=past)))


def retirements(world: World) -> list[RetireTemplate]:
    return [one for _, one in world.compute.sent if isinstance(one, RetireTemplate)]


def deleted(world: World, uuid: str) -> None:
    """Only the record says so: what else a delete does is of no account here."""
    world.leaves |= {"allocation_without_server", "vmid_without_owner"}
    world.conductor.store.run(
        lambda c: c.execute(
            schema.servers.update()
            .where(schema.servers.c.uuid == uuid)
            .values(deleted_at=clock.utcnow(), vm_state="deleted")
        )
    )


def retiring(world: World, keeper: TemplateKeeper) -> RetireTemplate:
    """A template whose image and server are gone for longer than its grace."""
    uuid, _ = active(world)
    beat(world, images=False)
    deleted(world, uuid)
    keeper.tidy()
    long_ago(world)
    keeper.tidy()
    command = world.compute.wait_for(2)
    assert isinstance(command, RetireTemplate)
    return command


def report(command: Command, outcome: Outcome) -> Report:
    return Report(
        command.operation_id,
        command.attempt,
        command.resource_type,
        command.resource_id,
        command.placed.host,
        outcome=outcome,
    )


def answer(command: RetireTemplate, outcome: Outcome, host: str = "pve1") -> Report:
    return Report(
        command.operation_id,
        command.attempt,
        command.resource_type,
        command.resource_id,
        host,
        outcome=outcome,
    )


@pytest.mark.parametrize(("shared", "count"), [(False, 2), (True, 1)])
def test_there_is_one_per_node_or_per_shared_storage(
    world: World, shared: bool, count: int
) -> None:
    beat(world, shared=shared)

    def work(connection: sa.Connection) -> list[Any]:
        hosts = [registry.host(connection, name)[0] for name in ("pve1", "pve2", "pve1")]
        return [templates.reserve(connection, facts, "an-image") for facts in hosts]

    found = world.conductor.store.run(work)
    assert len({one.vmid for one in found}) == count
    assert found[0] == found[2]
    assert [row.image_id for row in world.rows(schema.templates)] == ["an-image"] * count


def test_a_template_stays_while_its_image_or_a_server_of_it_does(
    world: World, keeper: TemplateKeeper
) -> None:
    uuid, _ = active(world)
    keeper.tidy()
    assert template_row(world).reason is None
    beat(world, images=False)
    keeper.tidy()
    assert template_row(world).reason is None
    deleted(world, uuid)
    keeper.tidy()
    assert template_row(world).reason == templates.IDLE
    assert retirements(world) == []


def test_an_image_that_comes_back_in_time_keeps_its_template(
    world: World, keeper: TemplateKeeper
) -> None:
    uuid, _ = active(world)
    beat(world, images=False)
    deleted(world, uuid)
    keeper.tidy()
    beat(world)
    long_ago(world)
    keeper.tidy()
    assert template_row(world).reason is None
    assert retirements(world) == []


def test_what_nobody_needs_is_removed_after_its_grace_and_forgotten_once_gone(
    world: World, keeper: TemplateKeeper
) -> None:
    command = retiring(world, keeper)
    row = template_row(world)
    assert (row.vmid, row.reason) == (command.placed.vmid, templates.RETIRING)
    assert command.placed.cluster == "sim1"
    assert command.operation_id
    # Begun once; what isn't reported is asked for again.
    long_ago(world)
    keeper.tidy()
    assert len(retirements(world)) == 1
    world.make_due()
    world.compute.wait_for(3)
    hanging = Failure(Category.LOCK, "Template 100001 is still needed.", clean=False)
    world.conductor.reports.take([answer(command, Removed(False, hanging))])
    world.until_faults(1)
    world.until_paused()
    row = template_row(world)
    assert row.reason == (
        "The template is being removed. The last try failed: lock on pve1: "
        "Template 100001 is still needed."
    )
    # It is tried again as ever, with the reason until then.
    world.make_due()
    again = world.compute.wait_for(4)
    assert isinstance(again, RetireTemplate)
    assert (again.operation_id, again.attempt) == (command.operation_id, 2)
    assert template_row(world).reason == templates.RETIRING
    # A stranger's word counts for nothing, and an earlier attempt's neither.
    world.conductor.reports.take([answer(again, Removed(True, gone=True), host="pve2")])
    world.conductor.reports.take([answer(command, Removed(True, gone=True))])
    world.conductor.reports.take([answer(again, Removed(False, hanging))])
    world.until_faults(2)
    world.until_paused()
    assert [row.server_uuid for row in world.rows(schema.faults)] == ["", ""]
    world.make_due()
    command = world.compute.wait_for(5)
    assert isinstance(command, RetireTemplate)
    world.conductor.reports.take([answer(command, Removed(True, gone=True))])
    world.until_operation("done", "done")
    assert world.rows(schema.templates) == []
    assert [row for row in world.rows(schema.vmids) if row.server_uuid is None] == []
    # Reported twice, when somebody else may have the VMID.
    world.conductor.reports.take([answer(command, Removed(True, gone=True))])


def test_why_an_image_could_not_be_made_ready_is_reported_until_it_is(
    world: World, keeper: TemplateKeeper
) -> None:
    uuid, build = active(world)
    since = template_row(world).since

    def reason_after(outcome: Outcome, host: str = "pve1") -> str | None:
        """The reason once an agent has said how making it ready went."""
        run, count = world.conductor.store.run, len(world.rows(schema.operations))
        image = build.image
        assert image is not None
        cloud = world.conductor.cloud
        with world.conductor.store.read() as connection:
            facts, _ = registry.host(connection, "pve1")
        operation = run(lambda c: cache_image.begin(c, cloud, world.ctxt, facts, image))
        assert operation is not None
        sent = len(world.compute.sent)
        world.conductor.runner.wake()
        command = world.compute.wait_for(sent + 1)
        world.conductor.reports.take([dataclasses.replace(report(command, outcome), host=host)])
        if host != "pve1":
            world.conductor.reports.take([report(command, Built(True))])
        world.until_operation(
            *(row.state for row in world.rows(schema.operations)[:count]),
            "done" if outcome.ok or host != "pve1" else "failed",
        )
        reason: str | None = template_row(world).reason
        return reason

    full = Built(False, Failure(Category.STORAGE_FULL, "No room.", remedy="add a disk"))
    assert reason_after(full, host="a-stranger") is None
    why = "The image could not be made ready ahead of a build. storage_full on pve1: No room."
    assert reason_after(full) == f"{why} Remedy: add a disk."
    assert template_row(world).since == since
    keeper.tidy()
    assert template_row(world).reason is not None
    assert reason_after(Built(True)) is None
    # A build has made it since then: the agents see it.
    assert reason_after(full) is not None
    with world.conductor.store.read() as connection:
        facts, _ = registry.host(connection, "pve1")
    facts = dataclasses.replace(facts, cached_images=(world.row(uuid).image_id,))
    world.conductor.reports.heartbeat(Heartbeat("w1", clock.utcnow(), ("pve1",), (facts,)))
    keeper.tidy()
    assert template_row(world).reason is None


def test_nobody_builds_from_a_template_that_is_being_removed(
    world: World, keeper: TemplateKeeper
) -> None:
    command = retiring(world, keeper)
    beat(world)
    facts_of = registry.host
    reserve = templates.reserve
    run = world.conductor.store.run
    assert run(lambda c: reserve(c, facts_of(c, command.placed.node)[0], command.image_id)) is None
    world.conductor.reports.take([answer(command, Removed(True, gone=True))])
    world.until_operation("done", "done")
    again = run(lambda c: reserve(c, facts_of(c, command.placed.node)[0], command.image_id))
    assert again is not None


def test_the_migrations_give_a_cloud_an_id_of_its_own(tmp_path: Path) -> None:
    found = set()
    for name in ("one", "two"):
        url = f"sqlite:///{tmp_path}/{name}.sqlite"
        migrate.upgrade(url)
        migrate.upgrade(url)
        engine = writer(url)
        with engine.begin() as connection:
            found.add(connection.execute(sa.select(schema.cloud_identity.c.cloud_id)).scalar_one())
        engine.dispose()
    assert len(found) == 2
