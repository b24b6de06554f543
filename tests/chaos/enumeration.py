"""Runs cases on a stage, and sums up what became of them."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import sqlalchemy as sa

from common.errors import MicronovaError
from db import schema
from tests.chaos import protocol
from tests.chaos.action_play import ActionPlay
from tests.chaos.actions import ACTIONS, MOVABLE
from tests.chaos.cases import Case
from tests.chaos.cloud import Overdue
from tests.chaos.director import Step
from tests.chaos.drain_play import SERVERS, DrainPlay
from tests.chaos.dressing import image_name
from tests.chaos.group_play import AUDITED, OPTIONS, GroupPlay, new_steps
from tests.chaos.play import (
    BUILD,
    DESTROY,
    DRAIN,
    FIRST,
    GROUP,
    PAIR,
    SCALE,
    TENDED,
    WAITING,
    Play,
)
from tests.chaos.resource_play import STORIES, ResourcePlay
from tests.chaos.scale_play import ScalePlay
from tests.chaos.stage import NODES, Party, Plan, Stage, stage
from tests.chaos.tended_play import LOOKS, TendedPlay
from tests.chaos.waiting_play import WaitingPlay

IDLE_SECONDS = 2.5
"""What happens in this time without a cause is no step of anything."""

#: those of other options first, so that the stage of all others is there when all is recorded
SCENARIOS = (
    *(name for name, one in ACTIONS.items() if one.options),
    *(DRAIN, TENDED),
    *(FIRST, BUILD, PAIR, DESTROY, GROUP, WAITING, SCALE),
    *(name for name, one in ACTIONS.items() if not one.options),
    *STORIES,
)
#: scenarios whose only cases are steps that no other scenario has
BESIDE = (GROUP, DRAIN, TENDED, WAITING, SCALE)
#: of every sample
FEW = (FIRST, BUILD, PAIR, DESTROY, GROUP)
#: how often a run is recorded that was disturbed by what nobody ordered
RECORDINGS = 3

Options = Mapping[str, Mapping[str, str]]
CLUSTER = "proxmox:sim1"
#: where servers move: two of them are a quorum when one is down
MOVING_NODES = 3
#: and that a node was down is soon seen in its VMs
SETTLED: Options = {"conductor": {"settle_seconds": "3"}}
#: so that a resize moves to another host
OFF_ITS_HOST: Options = {
    "conductor": {**SETTLED["conductor"], "allow_resize_to_same_host": "false"}
}

_STEPS = sa.select(schema.operation_events.c.name).distinct()

#: the end of a difference that only root can remove: a half-made template. Only an audit names it,
#: as its image is imported instead, and no build fails
LOCKED = " is locked (create)"
#: how what is left begins where it is a claim
CLAIM = "allocation of "
#: and where it is a config drive on a node's own storage
DRIVE = "volume local:iso/micronova-"


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of one case."""

    case: Case
    met: bool
    """Whether the step was taken at all in this run."""
    state: str
    """What the server was when it was over."""
    operator: int = 0
    """How often a remedy that takes root was carried out."""
    problem: str = ""
    healed: str = ""
    """What was left, and the conductor's own audit put right."""


class Theatre:
    """Gives a stage, and a new one after a case that left a mess."""

    def __init__(self, folder: Path, images: int) -> None:
        self._folder, self._images = folder, images
        self._numbers = itertools.count(1)
        self._image = itertools.count(1)
        self._stack = contextlib.ExitStack()
        self._stage: Stage | None = None
        self._options: Options = OPTIONS
        self.audited: list[str] = []
        """What audits found that the cases did not."""
        self.steps: set[str] = set()
        """Names of the steps that agents took in recorded runs, on whichever stage."""

    def __enter__(self) -> Theatre:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: object, trace: TracebackType | None
    ) -> None:
        self.clear()

    @property
    def stage(self) -> Stage:
        """The stage, made when needed."""
        if self._stage is None:
            folder = self._folder / f"stage-{next(self._numbers)}"
            self._stage = self._stack.enter_context(
                # After a case that failed it is thrown away; else ``audit`` is the last word.
                stage(folder, self._plan(), audited=False)
            )
            self._stage.may_heal = AUDITED
            learn_idle(self._stage)
            for host in [row.host for row in self._stage.rows(sa.select(schema.hosts.c.host))]:
                self._warm(self._stage, host)
        return self._stage

    def _plan(self) -> Plan:
        """Where servers move, nodes go down: a quorum is left of three."""
        nodes = MOVING_NODES if movable(self._options) else NODES
        return Plan(images=self._images, options=self._options, nodes=nodes)

    @staticmethod
    def _warm(stage: Stage, host: str) -> None:
        """Have the template of the first image on a host, so that builds only clone it."""
        name = f"warm-{host}"
        stage.create(name, image_name(0), host=host)
        stage.until(lambda: (row := stage.named(name)) and row.vm_state == "active")
        stage.delete(stage.named(name).uuid)

    def _play(self, scenario: str) -> Play:
        """A run on the stage, or on a new one: of other options, or with more images."""
        options = options_of(scenario)
        if options != self._options:
            self.audit()
            self.clear()
            self._options = options
        image = next(self._image) if scenario == FIRST else 0
        if image >= self._images:
            self.audit()
            self.clear()
            return self._play(scenario)
        return kind_of(scenario)(self.stage, scenario, next(self._numbers), image)

    def clear(self) -> None:
        """Have it made again."""
        self._stage = None
        self._image = itertools.count(1)
        self._stack.close()

    def audit(self) -> None:
        """Have the stage audited, as its last assertion; all its cases have been clean."""
        if self._stage is not None:
            problem = self._stage.audit_problem()
            if problem:
                self.audited.append(problem)
                self.clear()

    def recordings(self, scenarios: Sequence[str] = SCENARIOS) -> dict[str, list[Step]]:
        """The steps of each scenario; of those beside others, what no other one has, nor an audit
        that finds nothing but looks at what is written of groups; of some, what they write."""
        found = {scenario: self.record(scenario) for scenario in scenarios}
        beside = [name for name in BESIDE if name in found]
        if beside:
            known = [step for name, steps in found.items() if name not in beside for step in steps]
            known += [step for step in self._recorded_audit() if "/cluster/ha/" not in step.name]
            found |= {name: new_steps(found[name], known) for name in beside}
        if DRAIN in found:
            # How often it looks is chance: a step that comes later may not come again.
            found[DRAIN] = [step for step in found[DRAIN] if step.number <= SERVERS]
        if TENDED in found:
            # So is how often it looks until the node is back, in the end.
            found[TENDED] = [step for step in found[TENDED] if step.number <= LOOKS]
        if WAITING in found:
            # So is how often it is tried.
            found[WAITING] = [step for step in found[WAITING] if step.number == 1]
        for name in found:
            if writes(name):
                found[name] = [step for step in found[name] if step.writes()]
        return found

    def _recorded_audit(self) -> list[Step]:
        steps = self.stage.director.record()
        self.stage.audited()
        self.stage.director.disarm()
        return list(steps)

    def record(self, scenario: str) -> list[Step]:
        """The steps of a run in which nothing fails; recorded again if its request is lost."""
        for _ in range(RECORDINGS):
            unanswered = len(self.stage.unanswered)
            steps, state, good = self._recorded(scenario)
            lost = self.stage.unanswered[unanswered:]
            if not lost:
                assert state == good, f"{scenario}: {state}"
                return steps
        raise AssertionError(
            f"{scenario}: lost {RECORDINGS} times: {lost}; {self.stage.broker.tail()}"
        )

    def _recorded(self, scenario: str) -> tuple[list[Step], str, str]:
        play = self._play(scenario)
        play.prepare()
        steps = self.stage.director.record()
        play.act()
        state = play.settled()
        self.stage.director.disarm()
        problem = play.kept() or self.stage.clear_away()
        assert problem == "", problem
        self.steps |= {row.name for row in self.stage.rows(_STEPS)}
        return list(steps), state, play.good

    def run(self, case: Case) -> Result:
        """Run a case to its end, and look what is left."""
        play = self._play(case.scenario)
        order = case.order(self.stage)
        state, healed = "?", ""
        before, lost = len(self.stage.followed), len(self.stage.lost_nodes)
        try:
            play.prepare()
            self.stage.director.arm(order)
            play.act()
            state = play.settled()
            self.stage.settle()
            problem = play.kept() or self.stage.clear_away()
            if all(part.endswith(LOCKED) for part in problem.split("; ")):
                self.stage.follow_findings()
                problem = self.stage.left()
            if problem and self._heals(problem, lost_node=len(self.stage.lost_nodes) > lost):
                problem, healed = "", problem
        except Overdue as overdue:
            problem = f"overdue: {overdue}"
        except MicronovaError as error:
            problem = f"unexpected: {error!r}"
        if len(self.stage.lost_nodes) > lost:
            # The next case may need its host.
            with contextlib.suppress(Overdue):
                self.stage.until(self.stage.nodes_are_well)
        operator = len(self.stage.followed) - before
        if problem or healed:
            self._keep_logs(case)
            self.clear()
        return Result(case, order.met.is_set(), state, operator, problem, healed)

    def _heals(self, problem: str, lost_node: bool) -> bool:
        """Whether nothing is left but what an audit puts right, and it does: claims, and on a node
        that was down what nobody could remove from it.

        A case ends leases when it wants, but not the time in which a claim may be made: one may
        come after another conductor has built the server, and it was deleted.
        """
        may = (CLAIM, DRIVE) if lost_node else (CLAIM,)
        if not all(part.startswith(may) for part in problem.split("; ")):
            return False

        def audited() -> bool:
            self.stage.audited()
            return not self.stage.differences()

        with contextlib.suppress(Overdue):
            return bool(self.stage.until(audited))
        return False

    def _keep_logs(self, case: Case) -> None:
        target = self._folder / f"case-{case.hash[:8]}"
        target.mkdir(exist_ok=True)
        for path in (self.stage.folder / "log").iterdir():
            (target / path.name).write_bytes(path.read_bytes())
        (target / "broker.log").write_text(self.stage.broker.tail())


_PLAYS: Mapping[str, type[Play]] = {
    **{GROUP: GroupPlay, DRAIN: DrainPlay, WAITING: WaitingPlay},
    **{SCALE: ScalePlay, TENDED: TendedPlay},
}


def kind_of(scenario: str) -> type[Play]:
    """What runs a scenario."""
    if scenario in ACTIONS:
        return ActionPlay
    if scenario in STORIES:
        return ResourcePlay
    return _PLAYS.get(scenario, Play)


def options_of(scenario: str) -> Options:
    """The services' options in a scenario."""
    own = ACTIONS[scenario].options if scenario in ACTIONS else {}
    of_story = scenario in STORIES and STORIES[scenario].movable
    if scenario in (DRAIN, TENDED) or of_story:
        own = MOVABLE
    found = {**OPTIONS, CLUSTER: {**OPTIONS[CLUSTER], **own}}
    if of_story:
        return {**found, **OFF_ITS_HOST}
    return {**found, **SETTLED} if movable(found) else found


def writes(scenario: str) -> bool:
    """Whether only what a scenario writes to Proxmox VE are cases."""
    if scenario in STORIES:
        return STORIES[scenario].writes
    return scenario in ACTIONS and ACTIONS[scenario].writes


def parties_of(scenario: str) -> tuple[Party, ...]:
    """The nodes that lose power in a scenario."""
    if scenario in STORIES:
        return STORIES[scenario].parties
    # A server moves to another node.
    return (Party.SOURCE, Party.TARGET) if movable(options_of(scenario)) else ()


def movable(options: Options) -> bool:
    """Whether with these options servers can go to another node."""
    return MOVABLE.items() <= options[CLUSTER].items()


def learn_idle(stage: Stage) -> None:
    """Let the director see what happens when nothing is asked."""
    stage.director.learn_idle(True, protocol.RECORDED)
    threading.Event().wait(IDLE_SECONDS)
    stage.director.learn_idle(False)


def line_of(result: Result) -> dict[str, Any]:
    """A result as plain values, for the summary of all processes."""
    return {
        "case": result.case.name,
        "kind": result.case.step.kind,
        "action": result.case.action,
        "met": result.met,
        "state": result.state,
        "operator": result.operator,
        "problem": result.problem,
        "healed": result.healed,
    }
