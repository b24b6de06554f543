"""The stages that move a stopped server to another host of its cluster, and give it its size.

A migration, a resize to another host and a reversion of either are the same: power off, move,
shape, power on, settle. They differ in the direction, and in what is recorded at the end. A parked
server that is unshelved elsewhere has the move alone.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from common.messages.commands import Command, Move, Power, PowerAction, Shape
from common.messages.facts import HostFacts
from common.messages.reports import Failure, Outcome
from common.resources.states import TaskState, VmState
from conductor.cloud import Cloud, failure_of, silent
from conductor.engine import close
from conductor.engine.stages import Stage, Task, Undo, answer
from conductor.plans import Place, ResizePlan
from conductor.servers.move import destination, move_command, shaping
from conductor.servers.move.destination import Chosen
from conductor.store.hosts import registry
from conductor.store.ledger import leases
from conductor.store.transactions import Transaction

SAME_HOST, OTHER_HOST = "same_host", "other_host"


def case(task: Task) -> str:
    """Return which table carries a resize out, by its plan. Pure."""
    return task.operation.planned(ResizePlan).case


def decided_move(
    connection: Transaction, plan: ResizePlan, chosen: Chosen, held: Mapping[str, int]
) -> tuple[ResizePlan, dict[str, Any]]:
    """Return the plan of a move from its target until now to the chosen host, and the columns of
    its migration; ``held`` is what the server holds of its own host until it is there."""
    here, _ = registry.host(connection, str(plan.target.host))
    there = chosen.facts
    return moved_to(plan, here, there, chosen.place), {
        "dest_host": there.host,
        "dest_node": there.node,
        "dest_address": there.host_ip or None,
        "claim": dict(held),
    }


def moved_to(plan: ResizePlan, here: HostFacts, there: HostFacts, target: Place) -> ResizePlan:
    """Return the plan of a move from its target until now to a place on another host. Pure."""
    return dataclasses.replace(
        plan,
        source=plan.target,
        target=target,
        case=OTHER_HOST,
        command=Move(target_node=there.node, target_storage=destination.storage(here, there)),
        back_storage=destination.storage(there, here),
    )


@dataclass(frozen=True)
class Direction:
    """Whether the new size is given, or the old one again; and the task_states on the way."""

    forward: bool
    moving: TaskState
    finishing: TaskState


FORWARD = Direction(
    forward=True, moving=TaskState.RESIZE_MIGRATING, finishing=TaskState.RESIZE_FINISH
)
BACK = Direction(
    forward=False, moving=TaskState.RESIZE_REVERTING, finishing=TaskState.RESIZE_REVERTING
)
UNSHELVING = Direction(forward=True, moving=TaskState.UNSHELVING, finishing=TaskState.UNSHELVING)


class ColdMove:
    """The stages from the plan's source to its target, once that is claimed."""

    def __init__(
        self,
        cloud: Cloud,
        direction: Direction,
        unwind: Callable[[Task, Failure], None],
        settle: Callable[[Task], None],
    ) -> None:
        """``unwind`` begins the undos; ``settle`` records that it is done."""
        self._cloud, self._direction = cloud, direction
        self._unwind, self._settle = unwind, settle
        self._undone = functools.partial(close.again_unless_ok, cloud)

    def stages(self) -> tuple[Stage[Task], ...]:
        """Return them; until ``settle`` all can be undone."""
        moving, finishing = self._direction.moving, self._direction.finishing
        return (
            Stage(
                "power_off",
                self._power_off,
                self._after(Power, "move"),
                moving,
                Undo("power_on_again", self._power_on_again, self._undone),
            ),
            self.stage("shape"),
            Stage(
                "shape",
                self._shape,
                self._after(Shape, "power_on"),
                finishing,
                Undo("shape_back", self._shape_back, self._undone),
            ),
            Stage(
                "power_on",
                self._power_on,
                self._after(Power, "settle"),
                finishing,
                Undo("power_off_again", self._power_off_again, self._undone),
            ),
            Stage("settle", self._settle, shown=finishing, final=True),
        )

    def stage(self, following: str) -> Stage[Task]:
        """Return the stage of the move itself, and of its way back."""
        return Stage(
            "move",
            self._move,
            self._after(Move, following),
            self._direction.moving,
            Undo("move_back", self._move_back, self._undone),
        )

    # --- forward

    def _power_off(self, task: Task) -> Task | None:
        plan = task.operation.planned(ResizePlan)
        return self._power(task, plan.source, PowerAction.STOP)

    def _move(self, task: Task) -> None:
        plan = task.operation.planned(ResizePlan)
        if not move_command.send(self._cloud, task, plan.source, task.operation.ordered(Move)):
            self._no_agent(task, plan.source)

    def _shape(self, task: Task) -> Task | None:
        if not _changes(task):
            return task
        forward = self._direction.forward
        if not shaping.send(self._cloud, task, forward=forward, starts=False):
            self._no_agent(task, task.operation.plan.target)
        return None

    def _power_on(self, task: Task) -> Task | None:
        return self._power(task, task.operation.plan.target, PowerAction.START)

    def _power(self, task: Task, where: Place, action: PowerAction) -> Task | None:
        """Send the command; a server that was stopped needs none."""
        if not _ran(task):
            return task
        if not self._send_power(task, where, action):
            self._no_agent(task, where)
        return None

    def _send_power(self, task: Task, where: Place, action: PowerAction) -> bool:
        operation = task.operation
        late = move_command.until(task, self._cloud.conf.conductor.move_timeout_seconds)
        command = Power(
            *operation.about(move_command.placed(where), late),
            action,
            operation.started_at,
        )
        return self._cloud.send(operation, command)

    def _after(
        self, command: type[Command], following: str
    ) -> Callable[[Task, Outcome], Task | None]:
        """Return the handler of the agent's outcome: next stage, another attempt, or back."""

        def on_outcome(task: Task, outcome: Outcome) -> Task | None:
            if not outcome.ok:
                self._failed(task, failure_of(outcome))
                return None
            return self._reach(task, following)

        return answer(command, on_outcome)

    def _reach(self, task: Task, following: str) -> Task:
        """Commit the stage that follows, with its task_state, and take the lease for it."""
        operation = task.operation
        moving = self._direction.moving
        shown = moving if following == "move" else self._direction.finishing

        def work(connection: Transaction) -> Task:
            leases.reach_owned(
                *(connection, operation, operation.plan, following),
                *(self._cloud.name, self._cloud.lease_seconds),
            )
            if shown == task.shown:
                return task.at(following)
            moved = close.show(connection, task, shown)
            return Task(task.at(following).operation, moved)

        return self._cloud.store.run(work)

    # --- failure

    def _no_agent(self, task: Task, where: Place) -> None:
        self._failed(task, silent(where.host))

    def _failed(self, task: Task, failure: Failure) -> None:
        """Try again where waiting may help; else undo what was done."""
        if not close.waits(self._cloud, task.operation, failure):
            self._unwind(task, failure)

    def _power_on_again(self, task: Task) -> bool:
        return self._power_back(task, task.operation.planned(ResizePlan).source, PowerAction.START)

    def _power_off_again(self, task: Task) -> bool:
        return self._power_back(task, task.operation.plan.target, PowerAction.STOP)

    def _power_back(self, task: Task, where: Place, action: PowerAction) -> bool:
        if not _ran(task):
            return True
        return close.later_unless(self._cloud, task, self._send_power(task, where, action))

    def _move_back(self, task: Task) -> bool:
        """Have it moved back, wherever it is: the agent looks before it acts."""
        plan = task.operation.planned(ResizePlan)
        back = Move(target_node=plan.source.node or "", target_storage=plan.back_storage)
        sent = move_command.send(self._cloud, task, plan.target, back)
        return close.later_unless(self._cloud, task, sent)

    def _shape_back(self, task: Task) -> bool:
        if not _changes(task):
            return True
        forward = not self._direction.forward
        sent = shaping.send(self._cloud, task, forward=forward, starts=False)
        return close.later_unless(self._cloud, task, sent)


def _ran(task: Task) -> bool:
    return task.operation.planned(ResizePlan).was == VmState.ACTIVE


def _changes(task: Task) -> bool:
    """Return whether the VM gets another size."""
    plan = task.operation.planned(ResizePlan)
    return _size(plan.old) != _size(plan.new)


def _size(flavor: Mapping[str, Any]) -> tuple[Any, ...]:
    return flavor["vcpus"], flavor["memory_mib"], dict(flavor.get("extra_specs") or {})
