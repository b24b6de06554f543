"""The form of a flow of one command, on a real database: what all such flows have of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock
from common.context import internal
from common.messages.commands import RemoveImage
from common.messages.reports import Category, Failure, Removed
from common.resources.states import InternalAction, ResourceType
from conductor.engine import start
from conductor.engine.command_end import End
from conductor.engine.one_command import OneCommand
from conductor.engine.removal import AGAIN_SECONDS, MOST_TRIES, Removal
from conductor.engine.stage_runner import StageRunner
from conductor.engine.stages import Stage, Undo, Work
from conductor.engine.unwound_command import UnwoundCommand
from conductor.plans import CommandPlan, Place
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation
from conductor.store.transactions import Transaction
from db import schema
from tests.functional.conductor.harness import World

FULL = Failure(Category.STORAGE_FULL, "It is full.")
BUSY = Failure(Category.LOCK, "Somebody has locked it.")
FOREIGN = Failure(Category.PROTECTED, "It is somebody else's.")
ROW = "the row"


class Flow(OneCommand[Work, Removed]):
    """Notes what it would write; its record is ``row``."""

    stage = "act"
    sends = RemoveImage
    unseen = "It was not seen there."
    late = "It did not end in time."
    row: str | None = ROW
    why: str | None = None

    def load(self, connection: Transaction, operation: Operation) -> Work:
        return Work(operation)

    def unwanted(self, task: Work) -> str | None:
        return self.why

    def lock(self, connection: Transaction, task: Work) -> str | None:
        self.trail.append("lock")
        return self.row

    def write_done(self, connection: Transaction, end: End[Work, Removed]) -> None:
        assert state_of(connection, end.operation) == "done"
        self.trail.append("done")
        self.ends.append(end)

    def write_failed(self, connection: Transaction, end: End[Work, Removed]) -> None:
        assert state_of(connection, end.operation) == "failed"
        self.trail.append("failed")
        self.ends.append(end)

    def watched(self) -> Flow:
        """The same, with nothing written yet."""
        self.trail: list[str] = []
        self.ends: list[End[Work, Removed]] = []
        return self


class Stubborn(Flow):
    """Repeated unless that is hopeless."""

    hopeless = frozenset({Category.PROTECTED})


class Removing(Removal[Work], Flow):
    """A removal."""

    late = None


class Unwound(UnwoundCommand[Work, Removed], Flow):
    """A command that leaves something."""

    def stages(self) -> tuple[Stage[Work], ...]:
        (stage,) = super().stages()
        return (dataclasses.replace(stage, undo=Undo("undo", self._undo)),)

    def _undo(self, task: Work) -> bool:
        self.trail.append("undo")
        return True


def state_of(connection: Transaction, operation: Operation) -> str:
    now = ledger.get(connection, operation.id)
    assert now is not None
    return now.state


class Play:
    """A flow, one operation of it, and what becomes of that."""

    def __init__(self, world: World, kind: type[Flow]) -> None:
        self.world, self.woken = world, 0
        cloud = dataclasses.replace(world.conductor.cloud, wake=self._wake)
        self.flow = kind(cloud).watched()
        self.runner = StageRunner(cloud.store, self.flow.table(), cloud.name)
        plan = CommandPlan(Place("pve1", None, "c1", "pve1"), RemoveImage(volid="v"))
        item = start.new(cloud, InternalAction.REMOVE_IMAGE, (ResourceType.IMAGE, "i1"), "", plan)
        self.begun = cloud.store.run(lambda c: start.begin_later(c, internal(), item))

    def _wake(self) -> None:
        self.woken += 1

    @property
    def now(self) -> Operation:
        """The operation by the record."""
        with self.world.conductor.store.read() as connection:
            found = ledger.get(connection, self.begun.id)
        assert found is not None
        return found

    @property
    def faults(self) -> list[tuple[str, str]]:
        """Category and message of each."""
        return [(one.category, one.message) for one in self.world.rows(schema.faults)]

    def change(self, **values: Any) -> None:
        """Change the operation's record."""
        mine = schema.operations.c.id == self.begun.id
        update = sa.update(schema.operations).where(mine).values(**values)
        self.world.conductor.store.run(lambda c: c.execute(update))

    def go(self) -> None:
        """Have it carried out as far as possible."""
        self.runner.resume(self.now, fresh=False)

    def answer(self, failure: Failure | None = None, **seen: Any) -> None:
        """Have the agent say how it ended."""
        outcome = Removed(failure is None, failure)
        self.runner.finished(self.now, dataclasses.replace(outcome, **seen))


Begin = Callable[[type[Flow]], Play]


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Begin]:
    """Begins one, in a cloud whose agents only listen."""
    world = World(tmp_path)
    world.beat()
    yield lambda kind: Play(world, kind)
    world.close()


def test_its_command_says_which_operation_it_is_of_and_where(play: Begin) -> None:
    one = play(Flow)
    one.go()
    ((worker, command),) = one.world.compute.sent
    assert (worker, command.operation_id, command.attempt) == ("w1", one.begun.id, 1)
    assert (command.resource_id, command.placed.host, command.placed.vmid) == ("i1", "pve1", 0)
    assert command.deadline == one.begun.deadline
    assert one.flow.trail == []


def test_what_is_done_is_locked_closed_and_written(play: Begin) -> None:
    one = play(Flow)
    one.go()
    one.answer()
    assert one.flow.trail == ["lock", "done"]
    assert one.flow.ends[0].row == ROW
    assert (one.now.state, one.woken) == ("done", 1)


def test_a_second_outcome_writes_nothing(play: Begin) -> None:
    one = play(Flow)
    one.go()
    before = one.now
    one.answer()
    one.runner.finished(one.now, Removed(ok=True))
    # Two conductors read it while it was open.
    task = Work(before)
    one.flow.on_outcome(task, Removed(ok=True))
    one.flow.on_outcome(task, Removed(False, FULL))
    assert [step for step in one.flow.trail if step != "lock"] == ["done"]
    assert (one.now.state, one.faults) == ("done", [])


def test_a_record_that_is_gone_is_written_of_as_none(play: Begin) -> None:
    one = play(Flow)
    one.flow.row = None
    one.go()
    one.answer()
    assert [end.row for end in one.flow.ends] == [None]
    assert one.now.state == "done"


def test_a_refused_command_fails_with_what_its_agent_saw(play: Begin) -> None:
    one = play(Flow)
    one.go()
    one.answer(FULL, gone=True)
    assert one.flow.trail == ["lock", "failed"]
    (end,) = one.flow.ends
    assert (end.failure, end.outcome.gone) == (FULL, True)
    assert (one.now.state, one.now.message) == ("failed", FULL.message)
    assert one.faults == [(FULL.category, FULL.message)]


def test_an_outcome_without_its_failure_says_what_was_not_seen(play: Begin) -> None:
    one = play(Flow)
    one.change(attempt=100)
    one.go()
    one.runner.finished(one.now, Removed(ok=False))
    assert one.faults == [(Category.UNKNOWN_OUTCOME, Flow.unseen)]
    assert one.now.state == "failed"


def test_what_may_pass_is_tried_again_as_often_as_configured(play: Begin) -> None:
    one = play(Flow)
    one.go()
    one.answer(BUSY)
    assert (one.now.attempt, one.now.state) == (2, "queued")
    assert one.flow.trail == []
    most = one.world.conductor.cloud.conf.conductor.max_waits
    one.change(attempt=most + 1)
    one.answer(BUSY)
    assert (one.now.attempt, one.now.state) == (most + 1, "failed")


def test_without_an_agent_it_fails(play: Begin) -> None:
    one = play(Flow)
    one.world.silence()
    one.go()
    assert (one.now.state, one.world.compute.sent) == ("failed", [])
    assert one.faults == [(Category.NODE_UNHEALTHY, "The agent of host pve1 does not answer.")]
    assert not one.flow.ends[0].outcome.gone


def test_at_its_deadline_it_fails_and_says_what_it_waited_for(play: Begin) -> None:
    one = play(Flow)
    one.change(deadline=clock.after(-1))
    one.go()
    assert (one.now.state, one.now.message) == ("failed", Flow.late)
    assert one.flow.trail == ["lock", "failed"]
    other = play(Flow)
    other.change(deadline=clock.after(-1), message="The band is full.")
    other.go()
    assert other.now.message == f"{Flow.late} It waited: The band is full."


def test_what_is_not_wanted_any_more_is_not_sent(play: Begin) -> None:
    one = play(Flow)
    one.flow.why = "It was deleted."
    one.go()
    assert (one.now.state, one.now.message) == ("failed", "It was deleted.")
    assert one.world.compute.sent == []


def test_with_hopeless_failures_all_others_are_tried_again(play: Begin) -> None:
    one = play(Stubborn)
    one.change(attempt=100)
    one.answer(FULL)
    assert (one.now.attempt, one.now.state) == (101, "queued")
    one.flow.why = "It was deleted."
    one.answer(FULL)
    assert one.now.state == "failed"
    other = play(Stubborn)
    other.answer(FOREIGN)
    assert other.now.state == "failed"


def test_a_removal_ends_only_once_it_was_seen_gone(play: Begin) -> None:
    one = play(Removing)
    one.go()
    one.answer(ok=True)
    assert (one.now.state, one.now.attempt) == ("queued", 2)
    assert one.faults == [(Category.UNKNOWN_OUTCOME, Flow.unseen)]
    one.answer(gone=True)
    assert one.now.state == "done"


def test_a_removal_waits_for_its_agent_in_the_same_attempt(play: Begin) -> None:
    one = play(Removing)
    one.world.silence()
    one.change(deadline=clock.after(-1))
    one.go()
    assert (one.now.state, one.now.attempt) == ("queued", 1)
    assert one.faults == []


class Unhurried(Removing):
    """Nobody waits for it."""

    quick = False


@pytest.mark.parametrize("flow", [Removing, Unhurried])
def test_a_removal_pauses_for_long_after_some_tries(play: Begin, flow: type[Removing]) -> None:
    one = play(flow)
    most = one.world.conductor.cloud.conf.conductor.max_waits
    for attempt in (1, most + 1):
        one.change(attempt=attempt)
        before = clock.utcnow()
        one.answer(FULL)
        (row,) = one.world.rows(schema.operations)
        pause = (row.not_before - before).total_seconds()
        assert (pause >= AGAIN_SECONDS) is (attempt > most or not flow.quick)
        assert (row.deadline - before).total_seconds() > AGAIN_SECONDS


@pytest.mark.parametrize(("failure", "attempt"), [(FOREIGN, 1), (FULL, MOST_TRIES)])
def test_a_removal_is_given_up_where_that_is_hopeless(
    play: Begin, failure: Failure, attempt: int
) -> None:
    one = play(Removing)
    one.change(attempt=attempt)
    one.answer(failure)
    assert (one.now.state, one.flow.trail) == ("failed", ["lock", "failed"])


def test_what_leaves_something_is_undone_before_it_is_written(play: Begin) -> None:
    one = play(Unwound)
    one.go()
    one.answer(FULL)
    assert (one.now.state, one.flow.trail) == ("unwinding", [])
    one.go()
    assert one.flow.trail == ["undo", "lock", "failed"]
    assert (one.now.state, one.flow.ends[0].failure.message) == ("failed", FULL.message)
    assert one.faults == [(FULL.category, FULL.message)]
