"""Builds that are alike, and ask the scheduler at once, are asked for together."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable
from typing import Any

import pytest

from common import clock
from common.context import internal
from common.errors import MicronovaError, Unavailable
from common.messages.scheduling import Alternate, Decision, RequestSpec
from common.rpc import UNKNOWN
from conductor.servers.create.selects import Selects, Undecided
from tests.unit.scheduler.decide.test_choose import a_request

SECONDS = 10


class Scheduler:
    """Answers when its gate is opened; records what was asked."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.came = threading.Semaphore(0)
        self.alone: list[str] = []
        self.together: list[tuple[RequestSpec, ...]] = []
        self.answer: Callable[[str], Decision] = lambda uuid: Decision(uuid, f"host-of-{uuid}")

    def select(
        self, ctxt: Any, request: RequestSpec, alternates: tuple[Alternate, ...] = ()
    ) -> Decision:
        self.alone.append(request.server_uuid)
        self.came.release()
        assert self.gate.wait(SECONDS)
        return self.answer(request.server_uuid)

    def select_many(self, ctxt: Any, requests: tuple[RequestSpec, ...]) -> list[Decision]:
        self.together.append(requests)
        return [self.answer(one.server_uuid) for one in requests]


class Asking:
    """Threads that ask one after the other, while the scheduler is busy with the first."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler, self.selects = scheduler, Selects(scheduler)
        self._pool = concurrent.futures.ThreadPoolExecutor(8)

    def first(self, request: RequestSpec) -> concurrent.futures.Future[Decision]:
        """Ask, and return when the scheduler has begun to decide."""
        asked = self._pool.submit(self.selects.select, internal(), request)
        assert self.scheduler.came.acquire(timeout=SECONDS)
        return asked

    def behind(self, *requests: RequestSpec) -> list[concurrent.futures.Future[Decision]]:
        """Ask, and return when all wait."""
        asked = []
        for request in requests:
            before = self._waiting()
            asked.append(self._pool.submit(self.selects.select, internal(), request))
            while self._waiting() == before:
                threading.Event().wait(0.001)
        return asked

    def _waiting(self) -> int:
        return sum(len(line.waiting) for line in self.selects._combining._lines)


def test_one_that_comes_alone_asks_alone() -> None:
    scheduler = Scheduler()
    scheduler.gate.set()
    selects = Selects(scheduler)
    for uuid in ("a", "b"):
        assert selects.select(internal(), a_request(server_uuid=uuid)).host == f"host-of-{uuid}"
    assert (scheduler.alone, scheduler.together) == (["a", "b"], [])


def test_requests_during_a_call_share_a_message_and_get_their_own_answers() -> None:
    asking = Asking(scheduler := Scheduler())
    first = asking.first(a_request(server_uuid="a", until=clock.after(10)))
    early, late = clock.after(20), clock.after(30)
    others = asking.behind(
        a_request(server_uuid="b", until=early), a_request(server_uuid="c", until=late)
    )
    scheduler.gate.set()
    found = [one.result(SECONDS).host for one in (first, *others)]
    assert found == ["host-of-a", "host-of-b", "host-of-c"]
    assert scheduler.alone == ["a"]
    ((one, other),) = scheduler.together
    assert (one.until, other.until) == (early, early)
    assert one.by_itself and other.by_itself


def test_others_do_not_wait_for_them() -> None:
    asking = Asking(scheduler := Scheduler())
    first = asking.first(a_request(server_uuid="a"))
    other = asking.first(a_request(server_uuid="b", vcpus=7))
    scheduler.gate.set()
    assert [first.result(SECONDS).host, other.result(SECONDS).host] == ["host-of-a", "host-of-b"]
    assert scheduler.together == []


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (Unavailable("The claim of an earlier decision is in the way."), Undecided),
        (Unavailable("Nobody answered.", outcome=UNKNOWN), Unavailable),
        (MicronovaError("It broke."), MicronovaError),
    ],
)
def test_where_they_cannot_be_decided_together_each_hears_of_it(
    error: MicronovaError, raised: type[Exception]
) -> None:
    asking = Asking(scheduler := Scheduler())
    first = asking.first(a_request(server_uuid="a"))
    others = asking.behind(*(a_request(server_uuid=uuid) for uuid in "bc"))

    def answer(uuid: str) -> Decision:
        if uuid == "c":
            raise error
        return Decision(uuid, "host")

    scheduler.answer = answer
    scheduler.gate.set()
    assert first.result(SECONDS).host == "host"
    for one in others:
        with pytest.raises(raised):
            one.result(SECONDS)
    assert asking.selects.select(internal(), a_request(server_uuid="d")).host == "host"


def test_an_answer_about_other_servers_is_none() -> None:
    asking = Asking(scheduler := Scheduler())
    asking.first(a_request(server_uuid="a"))
    others = asking.behind(*(a_request(server_uuid=uuid) for uuid in "bc"))
    scheduler.answer = lambda uuid: Decision("a", "host")
    scheduler.gate.set()
    for one in others:
        with pytest.raises(Undecided):
            one.result(SECONDS)
