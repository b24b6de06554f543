"""Some tests of VMs that agents report, of their owners, and of bulk moves, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.functional.conductor import test_bulk_migrations as bulk
from tests.functional.conductor import test_custody as custody
from tests.functional.conductor import test_follow as follow
from tests.functional.conductor.harness import World
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401

SCENARIOS: tuple[Callable[[World], None], ...] = (
    follow.test_a_server_that_somebody_stops_and_starts_follows,
    follow.test_a_vm_that_vanished_is_reported_and_shown_again_when_it_is_back,
    follow.test_a_full_host_gets_the_allocation_when_it_has_room,
    custody.test_a_held_server_is_not_tried_again_until_it_is_released,
    custody.test_release_is_the_reverse,
    custody.test_a_delete_that_never_ends_is_ended_by_forgetting,
    bulk.test_every_server_leaves_and_the_host_stays_disabled,
    bulk.test_what_can_not_be_moved_stays_with_its_reason,
    bulk.test_paused_resumed_and_cancelled,
    bulk.test_a_rebalance_goes_where_it_was_planned,
)


@pytest.fixture
def world(tmp_path: Path, postgres_url: str) -> Iterator[World]:  # noqa: F811
    made = World(tmp_path, url=postgres_url, settle_seconds=0.0)
    made.compute.vms[500] = custody.VM
    made.conductor.runner.start()
    yield made
    made.close()
    for conductor in made.conductors:
        conductor.store._writer.dispose()
        conductor.store._reader.dispose()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
def test_on_postgresql(world: World, scenario: Callable[[World], None]) -> None:
    scenario(world)
