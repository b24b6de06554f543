"""Rows of conductors and schedulers whose processes were replaced under other names."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from common import clock
from conductor.store.hosts import registry
from conductor.store.hosts.registry import REPLACED_SECONDS
from db import schema
from tests.functional.conductor.harness import World

BINARY = "nova-scheduler"


def begin(world: World, name: str, seconds_ago: float = 0.0, **changes: Any) -> None:
    """A scheduler has begun, and gave its last sign of life so long ago."""
    at = clock.after(-seconds_ago)
    world.conductor.store.run(lambda c: registry.seen(c, BINARY, [name], worker=name))
    mine = schema.services.c.host == name
    values = {"created_at": at, "last_seen_at": at, **changes}
    world.conductor.store.run(
        lambda c: c.execute(sa.update(schema.services).where(mine).values(values))
    )


def left(world: World) -> set[str]:
    world.conductor.store.run(registry.delete_replaced)
    return {row.host for row in world.rows(schema.services) if row.binary == BINARY}


SILENT = REPLACED_SECONDS + 10


def test_a_process_that_came_again_under_another_name_replaces_one(world: World) -> None:
    begin(world, "a-1", SILENT + 20)
    begin(world, "a-2", SILENT)
    begin(world, "b")
    for _ in range(2):
        assert left(world) == {"a-2", "b"}, "it replaces one"
    begin(world, "c")
    assert left(world) == {"b", "c"}


def test_who_is_silent_and_was_not_replaced_is_listed_on(world: World) -> None:
    begin(world, "a", SILENT)
    begin(world, "old", 0.0, created_at=clock.after(-9 * SILENT))
    assert left(world) == {"a", "old"}


def test_who_was_silent_for_a_moment_is_listed_on(world: World) -> None:
    begin(world, "a", 60.0)
    begin(world, "b")
    assert left(world) == {"a", "b"}


def test_what_an_administrator_set_is_left(world: World) -> None:
    begin(world, "a", SILENT, disabled=True)
    begin(world, "b", SILENT, forced_down=True)
    begin(world, "c")
    begin(world, "d")
    assert left(world) == {"a", "b", "c", "d"}
