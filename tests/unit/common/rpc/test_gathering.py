"""What comes while something is worked on is worked on together."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Mapping

from common.errors import Unavailable
from common.rpc import UNKNOWN, deadlines
from common.rpc.deadlines import Deadline, Wait
from common.rpc.gathering import Apart, Combining, Gathering


def test_what_is_added_during_the_work_is_worked_on_together() -> None:
    done: list[list[int]] = []

    def work(items: list[int]) -> None:
        done.append(items)
        if items == [1]:
            # Others bring these while the first is worked on: they needn't work themselves.
            assert not gathering.add([2])
            assert not gathering.add([3, 4])

    gathering = Gathering(work, most=2)
    assert gathering.add([1])
    gathering.drain()
    assert done == [[1], [2, 3], [4]]
    assert gathering.add([5])


def test_nothing_needs_no_work() -> None:
    assert not Gathering(lambda items: None, most=2).add([])


def test_what_fails_keeps_nothing_else_from_its_turn() -> None:
    done: list[int] = []

    def work(items: list[int]) -> None:
        if items == [1]:
            raise ValueError
        done.extend(items)

    gathering = Gathering(work, most=1)
    assert gathering.add([1, 2])
    gathering.drain()
    assert done == [2]


SECONDS = 10
UNTIL = time.monotonic() + 3600


class Threads:
    """Threads that bring items while the first of them is worked on."""

    def __init__(self, most: int = 10) -> None:
        self.began, self.go = threading.Event(), threading.Event()
        self.worked: list[list[str]] = []
        self.untils: list[float | None] = []
        self.answers: dict[str, str | Exception] = {}
        self.combining = Combining[str, str](self._work, most)
        self._pool = concurrent.futures.ThreadPoolExecutor(8)

    def _work(self, items: list[str]) -> list[str | Exception]:
        self.worked.append(items)
        current = deadlines.current()
        self.untils.append(None if current is None else current.until)
        if items == ["first"]:
            self.began.set()
            assert self.go.wait(SECONDS)
        if "all fail" in items and len(items) > 1:
            raise ValueError
        if "lost" in items:
            raise Unavailable("lost", outcome=UNKNOWN)
        together = len(items) > 1
        return [
            Apart() if together and one == "apart" else self.answers.get(one, f"{one} done")
            for one in items
        ]

    def bring(self, *items: str, kinds: Mapping[str, object] | None = None) -> list[str]:
        """Return what each is answered, or the exception's text; the first comes first."""
        asked = [self._pool.submit(self._bring, "first", None)]
        assert self.began.wait(SECONDS)
        for count, one in enumerate(items, 1):
            asked.append(self._pool.submit(self._bring, one, (kinds or {}).get(one)))
            while self._waiting() < count and not (kinds or {}).get(one):
                threading.Event().wait(0.001)
        self.go.set()
        return [one.result(SECONDS) for one in asked]

    def _bring(self, item: str, kind: object) -> str:
        deadline = None
        if item.startswith("late"):
            deadline = Deadline(Wait(3600.0), time.monotonic())
            deadline.until = UNTIL + len(item)
        try:
            with deadlines.answering(deadline):
                return self.combining.do(item, kind)
        except (KeyError, ValueError, Unavailable) as error:
            return repr(error)

    def _waiting(self) -> int:
        return sum(len(line.waiting) for line in self.combining._lines)


def test_each_thread_gets_its_own_answer() -> None:
    threads = Threads()
    assert threads.bring("a", "b") == ["first done", "a done", "b done"]
    assert threads.worked == [["first"], ["a", "b"]]
    assert not threads.combining._lines


def test_no_more_are_worked_on_together_than_may_be() -> None:
    threads = Threads(most=2)
    assert threads.bring("a", "b", "c") == ["first done", "a done", "b done", "c done"]
    assert threads.worked == [["first"], ["a", "b"], ["c"]]


def test_the_exception_of_one_is_raised_in_its_thread_only() -> None:
    threads = Threads()
    threads.answers["b"] = KeyError("b")
    assert threads.bring("a", "b", "c") == ["first done", "a done", "KeyError('b')", "c done"]


def test_what_is_to_be_apart_is_worked_on_by_itself() -> None:
    threads = Threads()
    assert threads.bring("a", "apart") == ["first done", "a done", "apart done"]
    assert threads.worked == [["first"], ["a", "apart"], ["apart"]]


def test_where_all_fail_together_each_is_worked_on_by_itself() -> None:
    threads = Threads()
    assert threads.bring("a", "all fail") == ["first done", "a done", "all fail done"]
    assert threads.worked[:2] == [["first"], ["a", "all fail"]]
    assert sorted(threads.worked[2:]) == [["a"], ["all fail"]]


def test_what_may_have_been_done_is_not_done_again() -> None:
    threads = Threads()
    first, *others = threads.bring("a", "lost")
    assert first == "first done"
    assert len(set(others)) == 1
    assert "lost" in others[0]
    assert threads.worked == [["first"], ["a", "lost"]]


def test_an_exception_without_others_is_raised() -> None:
    threads = Threads()
    threads.answers["first"] = ValueError("no")
    assert threads.bring() == ["ValueError('no')"]


def test_others_of_another_kind_wait_for_nobody() -> None:
    threads = Threads()
    answers = threads.bring("a", "other", kinds={"other": "another kind"})
    assert answers == ["first done", "a done", "other done"]
    assert sorted(threads.worked[1:]) == [["a"], ["other"]]


def test_work_for_several_has_the_earliest_of_their_deadlines() -> None:
    threads = Threads()
    threads.bring("late by much", "late", "never")
    assert threads.untils == [None, UNTIL + len("late")]
