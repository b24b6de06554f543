"""The enumeration of `tests/chaos`: its parts add up, and what was disturbed is recorded again."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from common import clock
from conductor.engine.settling import Settling
from tests.chaos import hooks, protocol
from tests.chaos.director import MESSAGE, PROXMOX, Step
from tests.chaos.enumeration import BUILD, DESTROY, RECORDINGS, SCENARIOS, Play, Theatre
from tests.chaos.group_play import new_steps
from tests.chaos.summary import ALL, Results, counts, read, table

STEP = Step(MESSAGE, "act")


def line(**given: Any) -> dict[str, Any]:
    base = {"case": "a", "kind": MESSAGE, "action": "drop", "met": True, "state": "active"}
    return {**base, "operator": 0, "problem": "", "healed": "", **given}


def test_parts_add_up_to_one_table() -> None:
    lines = [
        line(),
        line(action="hang", state="error"),
        line(problem="VM 1 is nobody's"),
        line(healed="a late claim"),
    ]
    rows = counts(lines)
    assert rows[ALL]["cases"] == 4
    assert (rows[ALL]["survived"], rows[ALL]["leaks or overdue"]) == (3, 1)
    assert rows[ALL]["healed"] == 1
    assert rows[MESSAGE, "drop"]["cases"] == 3
    printed = table(lines).splitlines()
    assert printed[-3].startswith("all")
    assert printed[-2] == "HEALED a: a late claim"
    assert printed[-1] == "FAILED a: VM 1 is nobody's"


def test_a_run_that_was_ended_goes_on_and_has_what_failed_again(tmp_path: Path) -> None:
    before = Results(str(tmp_path), "build")
    before.add(line(case="well"))
    before.add(line(case="leaks", problem="VM 1 is nobody's"))
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes() + b'{"case": "cut o')
    assert Results(str(tmp_path), "build").cases() == {"well"}
    assert [one["case"] for one in read(file)] == ["well"]
    assert Results(None, "build").cases() == set()


class Disturbed(Theatre):
    """Loses the request of its first runs."""

    def __init__(self, losses: int, end: str) -> None:
        self._losses, self._end = losses, end
        broker = SimpleNamespace(tail=lambda: "closed: reset")
        self._stage: Any = SimpleNamespace(unanswered=[], broker=broker)

    def _recorded(self, scenario: str) -> tuple[list[Step], str, str]:
        good = "deleted" if scenario == DESTROY else "active"
        if self._losses:
            self._losses -= 1
            self._stage.unanswered.append("act: nobody answered")
            return [], "active", good
        return [STEP], self._end, good


def test_a_run_whose_request_was_lost_is_recorded_again() -> None:
    assert Disturbed(RECORDINGS - 1, "deleted").record(DESTROY) == [STEP]


def test_it_is_not_recorded_for_ever_and_the_broker_is_quoted() -> None:
    with pytest.raises(AssertionError, match="closed: reset"):
        Disturbed(RECORDINGS, "deleted").record(DESTROY)


def test_a_run_that_went_wrong_though_its_request_arrived_is_a_failure() -> None:
    with pytest.raises(AssertionError, match="error"):
        Disturbed(0, "error").record(BUILD)


def test_a_destroy_that_ends_between_two_looks_is_no_lost_request() -> None:
    looks = [[row("active", "deleting")], [row("active", "deleting")], [row("deleted")]]

    class Cloud:
        """Each look sees what is then."""

        def rows(self, query: Any) -> list[Any]:
            return looks.pop(0) if len(looks) > 1 else looks[0]

        def until(self, check: Any) -> Any:
            return next(answer for answer in iter(check, None) if answer)

        def settle(self) -> None:
            raise AssertionError("nothing was lost")

    play = Play(Cloud(), DESTROY, 1, 0)  # type: ignore[arg-type]
    assert play.settled() == "deleted"


def row(vm_state: str, task_state: str | None = None) -> Any:
    return SimpleNamespace(vm_state=vm_state, task_state=task_state)


def test_every_message_is_in_a_recorded_run_or_it_is_said_why_not() -> None:
    assert set(protocol.messages()) == frozenset[str]().union(*protocol.TABLES)
    assert sum(map(len, protocol.TABLES)) == len(frozenset[str]().union(*protocol.TABLES))


def test_no_scenario_has_the_name_of_another() -> None:
    assert len(set(SCENARIOS)) == len(SCENARIOS)


def test_a_transaction_that_takes_addresses_is_named_by_what_it_is_about() -> None:
    carried: list[Any] = []
    cloud: Any = SimpleNamespace(since=clock.utcnow(), store=SimpleNamespace(run=carried.append))

    def work(*_: Any) -> None:
        """What is done."""

    Settling(cloud).run(work)
    Settling(cloud).run(lambda *_: None)
    name = "test_a_transaction_that_takes_addresses_is_named_by_what_it_is_about"
    assert [hooks.subject(one) for one in carried] == [name, name]


def test_of_a_scenario_beside_others_only_what_is_new_is_a_step() -> None:
    old, look, write = Step(MESSAGE, "act"), Step(PROXMOX, "GET /a"), Step(PROXMOX, "PUT /a")
    again = [Step(PROXMOX, step.name, 2) for step in (look, write)]
    assert new_steps([old, look, write, *again], [old]) == [look, write, again[1]]
