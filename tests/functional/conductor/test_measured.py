"""What a conductor counts is counted once it is committed, and only then."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from prometheus_client import REGISTRY

from common.errors import Unavailable
from common.messages.commands import Build
from common.messages.reports import Built, Category, Failure
from common.metrics import exposition
from common.resources.states import OperationState
from conductor.record_metrics import RecordMetrics
from conductor.store.ledger import operations as ledger
from conductor.store.transactions import Transaction, after_commit
from tests.functional.conductor.harness import World
from tests.functional.conductor.test_outcomes import report
from tests.functional.waiting import eventually


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def rise(name: str, **labels: str) -> Callable[[], float]:
    before = value(name, **labels)
    return lambda: value(name, **labels) - before


def test_a_build_is_counted_when_it_has_ended(world: World) -> None:
    done = rise("micronova_operations_ended_total", action="create", state="done")
    seconds = rise("micronova_operation_seconds_count", action="create", state="done")
    spawned = rise("micronova_stages_total", action="create", stage="spawn", result="paused")
    world.create()
    command = world.compute.wait_for(1)
    assert isinstance(command, Build)
    assert done() == 0
    world.conductor.reports.take([report(command, Built(True, power_state=1))])
    eventually(lambda: done() == 1)
    assert seconds() == 1
    assert spawned() == 1


def test_each_failed_attempt_is_counted_by_category(world: World) -> None:
    faults = rise("micronova_operation_faults_total", action="create", category="lock")
    retries = rise("micronova_operation_retries_total", action="create")
    world.create()
    command = world.compute.wait_for(1)
    failure = Failure(Category.LOCK, "VM is locked (backup)", host=command.placed.host)
    world.conductor.reports.take([report(command, Built(False, failure))])
    eventually(lambda: faults() == 1)
    assert retries() == 1


def test_what_is_rolled_back_is_not_counted(world: World) -> None:
    store, called = world.conductor.store, []

    def fails(connection: Transaction) -> None:
        after_commit(connection, lambda: called.append("never"))
        raise Unavailable("no")

    with pytest.raises(Unavailable):
        store.run(fails)
    store.run(lambda connection: after_commit(connection, lambda: called.append("once")))
    store.run(lambda connection: None)
    assert called == ["once"]


def test_an_operation_that_ended_already_is_not_counted_again(world: World) -> None:
    done = rise("micronova_operations_ended_total", action="create", state="done")
    world.create()
    command = world.compute.wait_for(1)
    world.conductor.reports.take([report(command, Built(True, power_state=1))])
    eventually(lambda: done() == 1)
    number = command.operation_id
    world.conductor.store.run(lambda c: ledger.close(c, number, OperationState.DONE))
    assert done() == 1


def test_a_scrape_has_the_record_read_again_when_it_is_old(world: World) -> None:
    shown = RecordMetrics(world.conductor.store, 0.2, 60.0)
    assert b"micronova_held_servers 0.0" in exposition.text()

    def active() -> bool:
        text = exposition.text().decode()
        return 'micronova_servers{vm_state="building"} 1.0' in text

    assert not active()
    world.create()
    eventually(active)
    del shown
