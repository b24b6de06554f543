"""An outcome is taken by the stage whose command it is of, and by no other."""

from __future__ import annotations

from typing import Any

from common.messages.commands import Move, Power, Swap
from common.messages.reports import Built, Moved, Outcome, VmSeen, VolumeMade
from conductor.engine.stages import answer


def test_an_outcome_of_another_command_is_ignored() -> None:
    taken: list[Outcome] = []
    for command in (Swap, Move):
        take = answer(command, lambda _, outcome: taken.append(outcome) or True)
        for one in (VolumeMade(True), VmSeen(True), Outcome(False)):
            assert take(task(), one) is None
    assert not taken
    assert answer(Move, lambda _, outcome: outcome.node)(task(), Moved(True, node="n")) == "n"
    assert answer(Swap, lambda _, outcome: outcome.ok)(task(), Built(True))


def test_an_outcome_that_says_more_is_taken_too() -> None:
    assert answer(Power, lambda _, outcome: outcome.power_state)(task(), Moved(True, None, 1)) == 1


def task() -> Any:
    """The stage's task, which nothing here looks at."""
    return None
