"""Members whose hosts can't be reached, or are lost for good."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from common.resources.groups import Deletion, Health, MemberState, Options
from conductor.servers.groups import seen
from conductor.servers.groups.seen import Condition, Facts
from db.reads.hosts.away import Away
from tests.unit.conductor.servers.groups.test_decide import GROUP, NOW, after, leaving, member

OFFLINE = {"h2": Away("h2", answers=False, forced_down=False)}
LOST = {"h2": Away("h2", answers=False, forced_down=True)}
SAID = {"h2": Away("h2", answers=True, forced_down=True)}


@pytest.mark.parametrize(
    ("values", "offline", "lost"),
    [
        ({}, Condition.AWAY, Condition.LOST),
        ({"vm_state": "stopped"}, Condition.AWAY, Condition.LOST),
        ({"vm_state": "error"}, Condition.AWAY, Condition.LOST),
        ({"locked_by": "owner"}, Condition.AWAY, Condition.AWAY),
        ({"held": True}, Condition.AWAY, Condition.AWAY),
        ({"task_state": "deleting"}, Condition.BUSY, Condition.NONE),
        ({"task_state": "rebuilding"}, Condition.BUSY, Condition.BUSY),
        ({"vm_state": "building"}, Condition.BUILDING, Condition.BUILDING),
        ({"vm_state": "error", "launched_at": None}, Condition.FAILED, Condition.FAILED),
        ({"vm_state": "soft-delete"}, Condition.BUSY, Condition.BUSY),
        ({"server_uuid": None, "vm_state": None}, Condition.NONE, Condition.NONE),
    ],
)
def test_what_a_member_on_such_a_host_is(
    values: dict[str, Any], offline: Condition, lost: Condition
) -> None:
    one = dataclasses.replace(member(1, host="h2"), **values)
    found = []
    for away in (OFFLINE, LOST):
        facts = Facts(GROUP, [one], Options(), Deletion(), Health(), NOW, away=away)
        found.append(seen.condition_in(facts, one))
    assert found == [offline, lost]


def test_one_that_may_still_run_is_reported() -> None:
    made = after(member(1), member(2, host="h2"), member(3), away=OFFLINE)
    assert (made.lost, made.deletes, made.repairs, made.added) == ([], [], [], 0)
    assert made.over
    assert made.failed.startswith("web-2 can't be reached. Its node does not answer")
    assert str(made.changed["m2"]["reason"]).startswith("Its node does not answer")
    # Once it is back, that is no reason any more.
    back = member(2, host="h2", reason="Its node does not answer")
    assert after(member(1), back, member(3)).changed == {"m2": {"reason": ""}}


def test_one_that_is_lost_is_replaced_once_its_deletion_has_begun() -> None:
    others = (member(1), member(3))
    made = after(*others, member(2, host="h2"), away=LOST)
    assert ([one.id for one in made.lost], made.deletes, made.over) == (["m2"], [], False)
    given_up = member(2, host="h2", state=MemberState.REPLACED)
    assert after(*others, given_up, away=LOST).deletes == ["s2"]
    deleting = dataclasses.replace(given_up, task_state="deleting")
    made = after(*others, deleting, away=LOST)
    assert (made.changed["m2"]["server_uuid"], made.creates) == (None, ["m2"])
    gone = dataclasses.replace(deleting, state=MemberState.LEAVING)
    assert after(*others, gone, away=LOST, group={"desired": 2}).removed == ["m2"]
    # Where it may still run, there are no two of it.
    made = after(*others, deleting, away=OFFLINE)
    assert made.creates == []
    ((changed, values),) = made.changed.items()
    assert (changed, list(values)) == ("m2", ["reason"])
    assert str(values["reason"]).startswith("Its node does not answer: it is deleted once")


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        ({"volumes": ("v2",)}, "volumes"),
        ({"ports": ("p2",)}, "ports"),
        ({"volumes": ("v2",), "ports": ("p2",)}, "volumes and ports"),
    ],
)
def test_a_place_that_keeps_something_waits_until_its_former_server_is_gone(
    kept: dict[str, Any], words: str
) -> None:
    deleting = member(2, host="h2", state=MemberState.REPLACED, task_state="deleting")
    deleting = dataclasses.replace(deleting, **kept)
    made = after(member(1), deleting, member(3), away=LOST)
    assert (made.creates, made.over, list(made.changed)) == ([], False, ["m2"])
    why = f"Its node is lost, and its former server may still have its {words}: it gets another"
    assert str(made.changed["m2"]["reason"]).startswith(why)
    gone = dataclasses.replace(deleting, deleted_at=NOW)
    assert after(member(1), gone, member(3), away=LOST).creates == ["m2"]


def test_a_node_that_is_said_to_be_down_and_answers_is_looked_at_again() -> None:
    made = after(member(1), member(2, host="h2"), member(3), away=SAID)
    assert (made.over, made.lost, made.seconds) == (False, [], seen.LOOK_SECONDS)


def test_all_on_lost_nodes_are_reported() -> None:
    there = [member(one, host="h2") for one in (1, 2)]
    made = after(*there, group={"desired": 2}, away=LOST)
    assert (made.lost, made.over) == ([], True)
    assert made.failed.startswith("All of its 2 members are not well at once")
    made = after(*there, group={"desired": 2}, away=LOST, recover=True)
    assert len(made.lost) == 2
    # One more that works is enough.
    made = after(*there, member(3), away=LOST)
    assert len(made.lost) == 2


def test_those_that_can_t_be_reached_leave_first() -> None:
    there = [member(1), member(2), member(3, host="h2")]
    assert leaving(after(*there, group={"desired": 2}, away=OFFLINE)) == ["m3"]
