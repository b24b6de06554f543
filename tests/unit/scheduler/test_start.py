"""A scheduler that has just started says nothing before it knows anything."""

from __future__ import annotations

from typing import Any

import pytest

from common import clock
from common.context import RequestContext
from common.errors import Unavailable
from common.messages.facts import Heartbeat
from common.messages.scheduling import Decision
from common.resources.aggregates import AllAggregates
from scheduler.hosts.reported import FIRST_NEWS_SECONDS, HostTable
from scheduler.manager import SchedulerManager
from tests.unit.scheduler.decide.test_choose import a_host

ASKED = Decision("asked", None)


class Decider:
    """Says that it was asked."""

    def decide_many(self, requests: list[Any]) -> list[Decision]:
        return [ASKED]


def manager(table: HostTable) -> SchedulerManager:
    table.update_aggregates(AllAggregates(1, ()))
    return SchedulerManager(Decider(), None, table, lambda ctxt: None)  # type: ignore[arg-type]


def test_a_scheduler_that_knows_no_host_yet_does_not_say_that_there_is_none() -> None:
    now = [0.0]
    doors = manager(HostTable(lambda: now[0]))
    with pytest.raises(Unavailable, match="knows of no host yet"):
        doors.select_many(RequestContext(), ())
    now[0] = FIRST_NEWS_SECONDS + 1
    assert doors.select_many(RequestContext(), ()) == [ASKED]


def test_the_first_news_are_enough() -> None:
    table = HostTable()
    doors = manager(table)
    now = clock.utcnow()
    table.update(Heartbeat("w", now, ("pve1",), (a_host("pve1").facts,)))
    assert doors.select_many(RequestContext(), ()) == [ASKED]
