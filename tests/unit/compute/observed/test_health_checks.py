"""Checks of groups' members: when they run, what counts, and what is reported."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import datetime
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from common import clock
from common.errors import Unavailable
from common.messages.health import CheckResult, GuestCheck, GuestHealth
from common.resources.health_checks import Checks
from compute.observed.health_checks import ASK_SECONDS, HealthChecks, Unknown, probe

LONG_AGO = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)
CHECKS = Checks(agent=True, interval_seconds=60, retry_seconds=10, threshold=2, grace_seconds=0)


class AtOnce(concurrent.futures.Executor):
    """Does what it is given right away."""

    def submit(self, work: Callable[..., Any], *given: Any, **more: Any) -> Any:
        work(*given, **more)


class World:
    """A conductor and guests, and a clock that is set."""

    def __init__(self) -> None:
        self.now = 0.0
        self.members = [asked()]
        self.says: str | Exception = ""
        self.checked: list[str] = []
        self.reported: list[tuple[str, str]] = []
        self.deaf = False
        self.health = HealthChecks(
            self.ask, self.report, self.check, 4, lambda: self.now, AtOnce()
        )

    def ask(self) -> Sequence[GuestCheck]:
        if self.deaf:
            raise Unavailable("No conductor answers.")
        return self.members

    def report(self, found: Sequence[GuestHealth]) -> None:
        if self.deaf:
            raise Unavailable("No conductor answers.")
        self.reported += [(one.result.value, one.text) for one in found]
        known = {one.server_uuid: one.result for one in found}
        self.members = [
            dataclasses.replace(one, known=known.get(one.server_uuid, one.known))
            for one in self.members
        ]

    def check(self, one: GuestCheck) -> str:
        self.checked.append(one.server_uuid)
        if isinstance(self.says, Exception):
            raise self.says
        return self.says

    def turns(self, *seconds: float) -> None:
        """Turn at these times."""
        for now in seconds:
            self.now = now
            self.health.turn()


def asked(uuid: str = "s1", **values: Any) -> GuestCheck:
    given = {"checks": CHECKS, "begins_at": LONG_AGO, "known": None, **values}
    return GuestCheck(uuid, f"web-{uuid}", "c1", "pve1", 100, "192.0.2.1", **given)


@pytest.fixture
def world() -> World:
    return World()


def test_only_changes_are_reported(world: World) -> None:
    world.turns(0, 1)
    assert world.reported == [("well", "")]
    world.turns(60, 61, 120, 121)
    assert (len(world.checked), len(world.reported)) == (3, 1)
    world.says = "Port 80 does not answer."
    world.turns(180, 181)
    assert len(world.reported) == 1
    # While it fails it is checked more often.
    world.turns(190, 191)
    assert world.reported[1:] == [("sick", "Port 80 does not answer.")]
    world.says = ""
    world.turns(200, 201)
    assert world.reported[2:] == [("well", "")]


def test_failures_that_are_not_in_a_row_count_for_nothing(world: World) -> None:
    world.turns(0, 1)
    for now in (60, 70, 130, 140):
        world.says = "" if now in (70, 140) else "No."
        world.turns(now, now + 1)
    assert world.reported == [("well", "")]


def test_a_new_server_has_time(world: World) -> None:
    world.members = [asked(begins_at=clock.after(3600))]
    world.says = "No."
    world.turns(*range(0, 200, 10))
    assert world.reported == []
    # That it works is reported at once.
    world.says = ""
    world.turns(200, 201)
    assert world.reported == [("well", "")]


def test_what_is_known_is_not_reported_again(world: World) -> None:
    world.members = [asked(known=CheckResult.SICK)]
    world.says = "No."
    world.turns(0, 1, 10, 11, 20, 21)
    assert world.reported == []
    # After a repair nothing is known.
    world.members = [asked(begins_at=LONG_AGO + datetime.timedelta(days=1))]
    world.turns(ASK_SECONDS, *range(31, 80))
    assert world.reported == [("sick", "No.")]


def test_what_could_not_be_sent_is_sent_again(world: World) -> None:
    world.turns(0)
    world.deaf = True
    world.turns(1, 2)
    assert world.reported == []
    world.deaf = False
    world.turns(3, 4)
    assert world.reported == [("well", "")]


def test_those_that_are_listed_no_more_are_checked_no_more(world: World) -> None:
    world.turns(0, 1)
    world.members = []
    world.turns(ASK_SECONDS, 60, 120)
    assert world.checked == ["s1"]
    # A conductor that does not answer says nothing.
    world.members = [asked("s2")]
    world.turns(150, 151)
    world.deaf = True
    world.turns(210, 211)
    assert world.checked == ["s1", "s2", "s2"]


def test_what_can_t_be_seen(world: World) -> None:
    world.says = Unknown("It has no address.")
    world.turns(0, 1)
    assert world.reported == [("unknown", "It has no address.")]
    world.says = ""
    world.turns(60, 61)
    world.says = Unknown("The node does not answer.")
    world.turns(120, 121, 180, 181)
    assert world.reported[1:] == [("well", "")]


def test_a_member_without_an_address_can_t_be_checked() -> None:
    one = asked(checks=Checks(tcp_port=80))
    with pytest.raises(Unknown, match="no address"):
        probe(GuestCheck(**{**vars(one), "address": ""}), lambda _: "")


def test_the_guest_s_agent_is_asked_first() -> None:
    assert probe(asked(), lambda _: "No agent.") == "No agent."
    assert probe(asked(), lambda _: "") == ""
