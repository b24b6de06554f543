"""Whether something changed is asked once for all that show the same."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from dashboard.unchanged import SECONDS, Unchanged


class Servers:
    """One API, its clock, and what it was asked."""

    def __init__(self) -> None:
        self.time = 100.0
        self.changed_at = "2026-01-01T00:00:05Z"
        self.asked: list[str] = []
        self.unchanged = Unchanged(lambda: self.time)

    def changed(self, since: str) -> bool:
        self.asked.append(since)
        return self.changed_at >= since

    def ask(self, second: int, whose: str = "a project") -> bool:
        return self.unchanged.is_changed(whose, f"2026-01-01T00:00:{second:02d}Z", self.changed)


@pytest.fixture
def servers() -> Servers:
    return Servers()


def test_one_question_serves_all_later_moments(servers: Servers) -> None:
    assert [servers.ask(second) for second in (10, 10, 11, 59)] == [False] * 4
    assert len(servers.asked) == 1


def test_the_earliest_moment_is_asked_for_next_time(servers: Servers) -> None:
    assert [servers.ask(second) for second in (20, 10)] == [False] * 2
    servers.time += SECONDS
    assert [servers.ask(second) for second in (20, 10, 30)] == [False] * 3
    assert servers.asked == [f"2026-01-01T00:00:{second}Z" for second in (20, 10, 10)]


def test_a_change_is_seen_by_all_that_lack_it(servers: Servers) -> None:
    assert not servers.ask(10)
    servers.changed_at = "2026-01-01T00:00:15Z"
    servers.time += SECONDS
    assert [servers.ask(second) for second in (10, 16, 12)] == [True, False, True]


def test_each_project_asks_for_itself(servers: Servers) -> None:
    assert [servers.ask(10, whose) for whose in ("one", "another")] == [False] * 2
    assert len(servers.asked) == 2


def test_browsers_that_ask_at_the_same_time_share_one_question(servers: Servers) -> None:
    is_asked, may_answer = threading.Event(), threading.Event()

    def slow(since: str) -> bool:
        is_asked.set()
        assert may_answer.wait(60)
        return servers.changed(since)

    def ask() -> bool:
        return servers.unchanged.is_changed("a project", "2026-01-01T00:00:10Z", slow)

    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(ask)]
        assert is_asked.wait(60)
        answers += [pool.submit(ask) for _ in range(3)]
        may_answer.set()
        assert [one.result(60) for one in answers] == [False] * 4
    assert len(servers.asked) == 1


def test_a_slow_answer_keeps_nobody_from_asking(servers: Servers) -> None:
    is_asked, may_answer = threading.Event(), threading.Event()

    def slow(since: str) -> bool:
        is_asked.set()
        assert may_answer.wait(60)
        return servers.changed(since)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(
            servers.unchanged.is_changed, "a project", "2026-01-01T00:00:10Z", slow
        )
        assert is_asked.wait(60)
        servers.time += SECONDS
        assert not servers.ask(10)
        may_answer.set()
        assert not first.result(60)


def test_a_refusal_of_one_is_no_answer_to_another(servers: Servers) -> None:
    is_asked, may_answer = threading.Event(), threading.Event()

    def refused(since: str) -> bool:
        is_asked.set()
        assert may_answer.wait(60)
        raise PermissionError

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(
            servers.unchanged.is_changed, "a project", "2026-01-01T00:00:10Z", refused
        )
        assert is_asked.wait(60)
        second = pool.submit(servers.ask, 10)
        may_answer.set()
        assert isinstance(first.exception(60), PermissionError)
        assert not second.result(60)


def test_after_a_change_the_next_question_is_of_a_later_moment(servers: Servers) -> None:
    servers.changed_at = "2026-01-01T00:00:15Z"
    assert servers.ask(10)
    servers.time += SECONDS
    assert [servers.ask(second) for second in (20, 20)] == [False] * 2
    assert servers.asked[1:] == ["2026-01-01T00:00:20Z"]


def test_a_refusal_is_raised_and_nothing_is_known(servers: Servers) -> None:
    def refused(since: str) -> bool:
        raise PermissionError

    with pytest.raises(PermissionError):
        servers.unchanged.is_changed("a project", "2026-01-01T00:00:10Z", refused)
    assert not servers.ask(10)
    assert len(servers.asked) == 1
