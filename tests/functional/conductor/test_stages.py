"""A flow of many stages, on a real database: nothing committed is done again or undone twice.

The table has what those of moves need: several stages under one task_state, commands to agents
between them, undos by agents, by the conductor and within the database, and a point of no return.
Its conductor dies at every commit, once right before and once right after; another one continues.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock
from common.errors import StaleTransition
from common.messages.reports import Category, Failure, Outcome, Removed
from common.resources.states import TaskState, VmState
from conductor.engine import close, unwinding
from conductor.engine.stage_runner import StageRunner
from conductor.engine.stages import Stage, Table, Task, Undo
from conductor.store.ledger import leases, transitions
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation, Server
from conductor.store.servers import servers
from db import schema
from tests.functional.conductor.harness import Conductor, Died, Mortal, World

SHOWN = TaskState.POWERING_OFF
FULL = Failure(Category.STORAGE_FULL, "It is full.")
WELL = ["claim", "stop", "copy", "switch", "clean_up"]
BACK = ["remove_copy", "start", "release_claim"]


class Story:
    """A server, an agent that obeys at once, and what was done in order."""

    def __init__(self, world: World) -> None:
        self.world, self.mortal = world, Mortal(world.conductor.store)
        self.trail: list[str] = []
        self.sent: list[str] = []
        self.refuses = self.late_after = ""
        (self.uuid,) = world.create()
        world.answer(world.compute.wait_for(1), ok=True, power_state=1)
        world.until(self.uuid, "active")
        self.first, self.second = world.conductor, world.add_conductor("c2")

    def begin(self) -> Operation:
        """Ask for it again, of a server that is active."""
        change = schema.servers.update().values(vm_state=VmState.ACTIVE)
        self.second.store.run(lambda c: c.execute(change))
        self.trail.clear()
        operation = self.second.accept.act(self.world.ctxt, self.uuid, "stop")
        assert operation is not None
        return operation

    def work_off(self, conductor: Conductor, operation: Operation) -> None:
        """Take it up as often as need be."""
        runner = StageRunner(conductor.store, Move(conductor, self).table())
        while (now := self.read(operation)).state not in {"done", "failed"}:
            assert len(self.trail) < 20, self.trail
            self.world.make_due()
            name = conductor.cloud.name
            conductor.store.run(lambda c, name=name: leases.due(c, name, 60, 10, {"stop"}))
            runner.resume(self.read(now), fresh=False)
            while self.sent:
                self._act(runner, self.sent.pop(), now)

    def _act(self, runner: StageRunner, name: str, operation: Operation) -> None:
        self.trail.append(name)
        if name == self.late_after:
            ended = schema.operations.update().values(deadline=clock.after(-1))
            self.second.store.run(lambda c: c.execute(ended))
        outcome = Removed(True, gone=name in BACK)
        if name == self.refuses:
            outcome = Removed(False, FULL)
        at_outcome = self.read(operation)
        runner.finished(at_outcome, outcome)
        # What comes twice, or of an agent that was given up, changes nothing.
        with contextlib.suppress(StaleTransition):
            runner.finished(at_outcome, outcome)

    def server(self) -> Server:
        """The server as it is now."""
        with self.second.store.read() as connection:
            return servers.get(connection, self.uuid)

    def read(self, operation: Operation) -> Operation:
        """The operation as it is now."""
        with self.second.store.read() as connection:
            now = ledger.get(connection, operation.id)
        assert now is not None
        return now


class Move:
    """The flow of the table; ``story`` records what it does."""

    def __init__(self, conductor: Conductor, story: Story) -> None:
        self._cloud, self._story = conductor.cloud, story

    def table(self) -> Table[Task]:
        """Of a cold migration, as it might be."""
        release = Undo("release_claim", self._release)
        start = Undo("start", self._ask("start"), self._gone)
        remove = Undo("remove_copy", self._ask("remove_copy"), self._gone)
        note = Undo("note", write=self._note)
        return Table(
            (
                Stage("claim", self._decide("claim", "stop"), None, SHOWN, release),
                Stage("stop", self._ask("stop"), self._on_outcome("copy"), SHOWN, start),
                Stage("copy", self._ask("copy"), self._on_outcome("switch"), SHOWN, remove),
                Stage("switch", self._decide("switch", "clean_up"), None, SHOWN, note),
                Stage("clean_up", self._clean_up, shown=SHOWN, final=True),
            ),
            on_superseded=lambda task: close.overtaken(self._cloud, task),
            on_deadline=self._unwind,
            undone=self._undone,
        )

    def _decide(self, name: str, following: str) -> Callable[[Task], Task]:
        def do(task: Task) -> Task:
            self._story.trail.append(name)
            operation, owner = task.operation, self._cloud.name
            self._cloud.store.run(
                lambda c: leases.advance(c, operation, operation.plan, following, owner)
            )
            return task.at(following)

        return do

    def _ask(self, name: str) -> Callable[[Task], bool]:
        def do(task: Task) -> None:
            self._cloud.store.run(lambda c: leases.hand_over(c, task.operation, "w1", 60))
            self._story.sent.append(name)

        return do  # type: ignore[return-value]

    def _on_outcome(self, following: str) -> Callable[[Task, Outcome], Task | None]:
        def on_outcome(task: Task, outcome: Outcome) -> Task | None:
            if not outcome.ok:
                self._unwind(task)
                return None
            operation = task.operation

            def work(connection: sa.Connection) -> None:
                leases.reach(connection, operation, operation.plan, following)
                ledger.save(connection, operation.id, **leases.owned(self._cloud.name, 60))

            self._cloud.store.run(work)
            return task.at(following)

        return on_outcome

    def _unwind(self, task: Task) -> None:
        unwinding.begin(self._cloud, self.table(), task, FULL)

    def _gone(self, _: Task, outcome: Any) -> bool:
        return outcome.gone

    def _note(self, _: sa.Connection, task: Task, __: Failure | None) -> Task:
        self._story.trail.append("note")
        return task

    def _release(self, _: Task) -> bool:
        self._story.trail.append("release_claim")
        return True

    def _undone(self, connection: sa.Connection, task: Task) -> None:
        number = task.operation.id
        transitions.move(
            connection, task.server, operation_id=number, vm_state=VmState.ACTIVE, task_state=None
        )
        close.close_failed(connection, task.operation, FULL)

    def _clean_up(self, task: Task) -> None:
        self._story.trail.append("clean_up")
        close.done(self._cloud, task, VmState.STOPPED)


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    world = World(tmp_path)
    yield Story(world)
    world.close()


@pytest.mark.parametrize(
    ("refuses", "late_after", "trail"),
    [
        ("", "", WELL),
        ("copy", "", [*WELL[:3], *BACK]),
        ("", "copy", [*WELL[:3], "note", *BACK]),
    ],
    ids=["well", "undone", "late"],
)
def test_what_is_committed_is_not_done_again(
    story: Story, refuses: str, late_after: str, trail: list[str]
) -> None:
    story.refuses, story.late_after = refuses, late_after
    operation = story.begin()
    story.mortal.live()
    story.work_off(story.first, operation)
    commits = story.mortal.commits
    assert story.trail == trail
    not_reached = 0
    for dies_at, before in itertools.product(range(1, commits + 1), (True, False)):
        operation = story.begin()
        story.mortal.live(dies_at, before=before)
        with pytest.raises(Died):
            story.work_off(story.first, operation)
        story.mortal.live()
        story.sent.clear()
        story.work_off(story.second, operation)
        # What its conductor died in is done once more, and nothing else.
        wanted = trail
        if late_after and "note" not in story.trail:
            # It was late before the stage was committed as reached that is noted.
            wanted = [name for name in trail if name != "note"]
            not_reached += 1
        assert [name for name, _ in itertools.groupby(story.trail)] == wanted, (dies_at, before)
        assert len(story.trail) <= len(trail) + 1
    assert not_reached <= 1


def test_past_the_point_of_no_return_no_deadline_ends_it(story: Story) -> None:
    operation = story.begin()
    story.second.store.run(
        lambda c: ledger.save(c, operation.id, stage="clean_up", deadline=clock.after(-1))
    )
    story.work_off(story.first, operation)
    assert story.trail == ["clean_up"]
    assert story.world.row(story.uuid).vm_state == "stopped"


def test_only_who_has_the_lease_decides(story: Story) -> None:
    operation = story.begin()
    with pytest.raises(StaleTransition):
        story.first.store.run(lambda c: leases.advance(c, operation, operation.plan, "copy", "c1"))
    assert story.read(operation).stage is None
    story.work_off(story.second, operation)
    assert story.trail == WELL


def test_an_attempt_begins_once(story: Story) -> None:
    operation = story.begin()
    story.first.store.run(lambda c: leases.next_attempt(c, operation))
    with pytest.raises(StaleTransition):
        story.second.store.run(lambda c: leases.next_attempt(c, operation))
    story.work_off(story.second, operation)


def reached(story: Story, stage: str | None, owner: str = "c1") -> Task:
    """A task that its conductor has taken up, and which it read at this stage."""
    operation = story.begin()
    values = {"stage": stage, "lease_owner": owner}
    story.second.store.run(lambda c: ledger.save(c, operation.id, **values))
    return Task(story.read(operation), story.server())


def unwind(story: Story, task: Task, after: str | None = None) -> Task:
    """Begin to unwind as conductor c1, with one update."""
    table = Move(story.first, story).table()
    done = next((undo for undo in table.undos if undo.name == after), None)
    updates: list[str] = []

    def note(_: sa.Connection, __: object, statement: str, *___: object) -> None:
        updates.extend(statement.split()[1:2] if statement.startswith("UPDATE") else ())

    def work(connection: sa.Connection) -> Task:
        sa.event.listen(connection, "before_cursor_execute", note)
        now = unwinding.write(connection, table, task, FULL, owner="c1", after=done)
        sa.event.remove(connection, "before_cursor_execute", note)
        return now

    now = story.first.store.run(work)
    assert updates == ["operations"]
    return now


@pytest.mark.parametrize(
    ("stage", "after", "undo", "attempt"),
    [
        (None, None, "release_claim", 1),
        ("claim", None, "release_claim", 1),
        ("copy", None, "remove_copy", 2),
        ("copy", "remove_copy", "start", 1),
        ("switch", None, "note", 1),
    ],
)
def test_unwinding_begins_with_the_stage_reached(
    story: Story, stage: str | None, after: str | None, undo: str, attempt: int
) -> None:
    task = reached(story, stage)
    now = unwind(story, task, after)
    row = story.read(task.operation)
    assert (row.state, row.stage, row.attempt) == ("unwinding", undo, attempt)
    assert (row.message, row.lease_owner) == (FULL.message, None)
    assert (now.operation.stage, now.operation.attempt) == (undo, attempt)


@pytest.mark.parametrize(
    ("stage", "changes"),
    [
        ("claim", {"lease_owner": "c2"}),
        ("claim", {"stage": "stop"}),
        ("copy", {"attempt": 2}),
        ("copy", {"stage": "switch"}),
        ("copy", {"stage": "start", "state": "unwinding"}),
        ("copy", {"state": "done"}),
    ],
    ids=["other owner", "further", "next attempt", "heard", "unwinding", "ended"],
)
def test_what_another_one_has_gone_on_with_does_not_unwind(
    story: Story, stage: str, changes: dict[str, object]
) -> None:
    task = reached(story, stage)
    story.second.store.run(lambda c: ledger.save(c, task.operation.id, **changes))
    before = story.read(task.operation)
    with pytest.raises(StaleTransition):
        unwind(story, task)
    assert story.read(task.operation) == before
    # So that the audit finds it open.
    story.second.store.run(lambda c: ledger.save(c, task.operation.id, state="running"))
