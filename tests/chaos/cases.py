"""From a recorded run to cases: every step in turn, and everything that may become of it."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from tests import sampling
from tests.chaos import hooks
from tests.chaos.director import (
    AFTER,
    BEFORE,
    GO,
    MESSAGE,
    PLACEMENT,
    PROXMOX,
    TRANSACTION,
    Order,
    Step,
)
from tests.chaos.stage import Party, Stage

HANG_SECONDS = 2.0
WHICH = "MICRONOVA_TEST_CHAOS"
"""``all``, a share of them (``2/8``: the second eighth), a regular expression of case names, or a
share and an expression with a space between; else the sample."""
ALL, SAMPLE = "all", "sample"
_SHARE = re.compile(r"(\d+)/([1-9]\d*)(?: |$)")

Act = Callable[[Stage, str], str | None]


@dataclasses.dataclass(frozen=True)
class Case:
    """One step of one scenario, and what becomes of it."""

    scenario: str
    step: Step
    action: str

    def __str__(self) -> str:
        return f"{self.scenario}: {self.step}: {self.action}"

    @property
    def name(self) -> str:
        """How results call it."""
        return f"{self} [{self.hash[:8]}]"

    @property
    def hash(self) -> str:
        """Names it in results; stable as long as the case is."""
        return hashlib.sha256(str(self).encode()).hexdigest()

    def order(self, stage: Stage) -> Order:
        """The director's order for this case."""
        phase, act = ACTIONS[self.step.kind][self.action]
        return Order(self.step, phase, lambda process: act(stage, process))


def _say(word: str) -> Act:
    return lambda stage, process: word


def _hang(stage: Stage, process: str) -> str:
    """Do nothing for a while; the leases of the process end at once."""
    stage.end_leases(process, f"compute:{process}")
    threading.Event().wait(HANG_SECONDS)
    return GO


def _kill(role: str) -> Act:
    """Kill the process that takes the step if it is of that role, else all of the role."""

    def act(stage: Stage, process: str) -> str:
        names = stage.of_role(role)
        stage.kill(*([process] if process in names else names))
        return GO

    return act


def _cut(stage: Stage, process: str) -> str:
    stage.cut()
    return GO


def _lose_node(party: Party) -> Act:
    """The node that the server is to leave, or to go to, loses power for a while."""

    def act(stage: Stage, process: str) -> str:
        stage.lose_node(party)
        return GO

    return act


_KILLS: Mapping[str, tuple[str, Act]] = {
    "kill agent": (BEFORE, _kill("compute")),
    "kill conductor": (BEFORE, _kill("conductor")),
    "cut broker": (BEFORE, _cut),
}
_AFTER: Mapping[str, tuple[str, Act]] = {
    "kill agent after": (AFTER, _kill("compute")),
    "kill conductor after": (AFTER, _kill("conductor")),
}
_OWN: Mapping[str, tuple[str, Act]] = {
    "fail": (BEFORE, _say(hooks.FAIL)),
    "hang": (BEFORE, _hang),
    "lose answer": (AFTER, _say(hooks.LOSE)),
}

#: of moves, and of what is done with volumes
NODES_DOWN: Mapping[str, tuple[str, Act]] = {
    f"{party} node down": (BEFORE, _lose_node(party)) for party in Party
}

ACTIONS: Mapping[str, Mapping[str, tuple[str, Act]]] = {
    PROXMOX: {
        "fail": (BEFORE, _say("fail")),
        "unreachable (595)": (BEFORE, _say("unreachable")),
        "hang (596)": (BEFORE, _say("hang")),
        "drop": (BEFORE, _say("drop")),
        "lose answer (596)": (BEFORE, _say("lose")),
        "lose answer (599)": (BEFORE, _say("599")),
        "drop answer": (BEFORE, _say("drop-answer")),
        "task fails": (BEFORE, _say("task-fail")),
        "task is killed": (BEFORE, _say("task-kill")),
        **_KILLS,
        **_AFTER,
        **NODES_DOWN,
    },
    PLACEMENT: {**_OWN, **_KILLS, "kill scheduler": (BEFORE, _kill("scheduler"))},
    MESSAGE: {**_OWN, "drop": (BEFORE, _say(hooks.DROP)), **_KILLS, **_AFTER},
    TRANSACTION: {**_OWN, **_KILLS, "kill conductor after": _AFTER["kill conductor after"]},
}

#: of a read's answer nothing hangs but the answer
_NOT_FOR_READS = {
    "lose answer (596)",
    "lose answer (599)",
    "drop answer",
    "task fails",
    "task is killed",
    *_AFTER,
}
#: the API's own messages fail in its hands: there is nothing to kill
_NOT_FOR_CLIENTS = {"fail", "lose answer"}


def cases_of(scenario: str, steps: Iterable[Step], parties: Iterable[Party] = ()) -> list[Case]:
    """Every case of a recorded run; ``parties``: the nodes of it that lose power."""
    down = {f"{party} node down" for party in parties}
    return [
        Case(scenario, dataclasses.replace(step, role=""), action)
        for step in steps
        for action in ACTIONS[step.kind]
        if not (step.name.startswith("GET ") and action in _NOT_FOR_READS)
        and not (step.role == "client" and action in _NOT_FOR_CLIENTS)
        and (step.kind != PROXMOX or _may(step, action))
        and (action in down or action not in NODES_DOWN)
    ]


def _may(step: Step, action: str) -> bool:
    """Whether the request starts a task that could fail."""
    return not action.startswith("task ") or not step.name.startswith("PUT ")


def chosen(cases: Sequence[Case], wanted: str, budget: int) -> list[Case]:
    """What is to be run: all, a share, what matches, or a ``sample`` of that size."""
    if wanted == SAMPLE:
        return sample(cases, budget, sampling.commit())
    if wanted == ALL:
        return list(cases)
    share = _SHARE.match(wanted)
    pattern = wanted[share.end() :] if share else wanted
    turn, turns = map(int, share.groups()) if share else (0, 1)
    mine = [case for case in cases if int(case.hash[:8], 16) % turns == turn % turns]
    return [case for case in mine if re.search(pattern, str(case))]


def sample(cases: Sequence[Case], budget: int, seed: str) -> list[Case]:
    """The choice of a commit: the least hash of each kind and action, then the least of all."""

    def turn(case: Case) -> str:
        return hashlib.sha256(f"{seed}{case}".encode()).hexdigest()

    by_hash = sorted(cases, key=turn)
    first: dict[tuple[str, str], Case] = {}
    for case in by_hash:
        first.setdefault((case.step.kind, case.action), case)
    ordered = sorted(first.values(), key=turn)
    rest = [case for case in by_hash if case not in first.values()]
    picked = set([*ordered, *rest][:budget])
    return [case for case in cases if case in picked]
