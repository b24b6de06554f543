"""Periodic tasks: done when due or asked for, whatever becomes of each."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from conductor.engine import periodic
from conductor.engine.periodic import Periodic, Periodics
from conductor.store.transactions import Store


class Leases:
    """A store whose leases one owner has, or nobody."""

    def __init__(self, owner: str | None = None) -> None:
        self.owner = owner
        self.free = owner is None

    def run(self, work: Any) -> bool:
        return self.free


@pytest.fixture
def tasks() -> Any:
    made: list[Periodics] = []

    def make(*given: Periodic, store: object = None, **more: Any) -> Periodics:
        one = Periodics("test", cast(Store, store or Leases()), "c1", apart_seconds=0.01)
        for task in given:
            one.add(task, **more)
        made.append(one)
        one.start()
        return one

    yield make
    for one in made:
        one.stop()


class Work:
    """Counts how often it is done."""

    def __init__(self, answers: float | None = None, *, fails: bool = False) -> None:
        self.times, self._news = 0, threading.Condition()
        self._answers, self._fails = answers, fails

    def __call__(self) -> float | None:
        with self._news:
            self.times += 1
            self._news.notify_all()
        if self._fails:
            raise ValueError("it is broken")
        return self._answers

    def reaches(self, times: int) -> bool:
        with self._news:
            return self._news.wait_for(lambda: self.times >= times, 10)


def test_what_is_due_is_done_again_and_again(tasks: Any) -> None:
    work = Work()
    tasks(Periodic("often", 0.001, work))
    assert work.reaches(5)


def test_one_that_fails_is_tried_again_and_keeps_no_other_from_its_turn(tasks: Any) -> None:
    broken, other = Work(fails=True), Work()
    tasks(Periodic("broken", 0.001, broken), Periodic("other", 0.001, other))
    assert broken.reaches(3)
    assert other.reaches(3)


def test_one_apart_delays_no_other_and_not_the_end(tasks: Any) -> None:
    began, go_on, other = threading.Event(), threading.Event(), Work()

    def asks_who_stands_still() -> None:
        began.set()
        go_on.wait(60)

    slow = Periodic("slow", 3600, asks_who_stands_still, apart=True)
    running = tasks(slow, Periodic("other", 0.001, other))
    assert began.wait(60)
    assert other.reaches(other.times + 3)
    assert {task.name for task in running.tasks} == {"slow", "other"}
    running.stop()
    assert not go_on.is_set()
    go_on.set()


def test_one_apart_is_done_when_it_is_asked_for(tasks: Any) -> None:
    work = Work()
    running = tasks(Periodic("seldom", 3600, work, apart=True))
    assert work.reaches(1)
    running.wake("seldom")
    assert work.reaches(2)
    assert running.alive


def test_who_asks_need_not_wait(tasks: Any) -> None:
    work = Work()
    running = tasks(Periodic("seldom", 3600, work))
    assert work.reaches(1)
    running.wake("seldom")
    assert work.reaches(2)


def test_the_first_turn_may_come_later(tasks: Any) -> None:
    work, other = Work(), Work()
    running = tasks(Periodic("later", 3600, work), after=3600)
    running.add(Periodic("now", 3600, other))
    assert other.reaches(1)
    assert work.times == 0


def test_a_task_may_say_when_it_is_due_again(tasks: Any) -> None:
    work = Work(answers=0.001)
    tasks(Periodic("sooner", 3600, work))
    assert work.reaches(3)


def test_asked_for_while_it_is_done_it_is_done_once_more(tasks: Any) -> None:
    began, go_on, times = threading.Event(), threading.Event(), []

    def work() -> None:
        times.append(1)
        began.set()
        go_on.wait(60)

    other = Work()
    running = tasks(Periodic("slow", 3600, work))
    assert began.wait(60)
    running.wake("slow")
    running.add(Periodic("other", 3600, other), after=0.001)
    go_on.set()
    assert other.reaches(1)
    running.stop()
    assert len(times) == 2


@pytest.mark.parametrize("free", [True, False])
def test_one_process_at_a_time_does_what_is_to_be_done_alone(tasks: Any, free: bool) -> None:
    alone, other = Work(), Work()
    store = Leases(None if free else "c2")
    tasks(Periodic("alone", 0.001, alone, alone=True), Periodic("all", 0.001, other), store=store)
    assert other.reaches(5)
    assert (alone.times > 0) == free


def test_a_lease_that_is_lost_is_no_longer_renewed() -> None:
    asked = threading.Event()

    class Lost(Leases):
        """It is had once."""

        def run(self, work: Any) -> bool:
            was, self.free = self.free, False
            if not was:
                asked.set()
            return was

    with periodic.only_one(cast(Store, Lost()), "audit", "c1", renew_seconds=0.001) as ours:
        assert ours
        assert asked.wait(60)


def test_the_end_waits_for_a_task_only_as_long_as_asked(tasks: Any) -> None:
    began, go_on = threading.Event(), threading.Event()

    def held() -> None:
        began.set()
        go_on.wait(60)

    running = tasks(Periodic("held", 60, held))
    assert began.wait(60)
    running.stop(0.01)
    assert running.alive
    go_on.set()
