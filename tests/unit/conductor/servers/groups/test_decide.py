"""What follows from what is seen of a group's members."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import pytest

from common.resources.groups import (
    Deletion,
    First,
    Health,
    MemberState,
    Options,
    Repair,
    options,
)
from conductor.rpc.groups import Resize
from conductor.servers.groups import begin_group, decide, seen, spread
from conductor.servers.groups.seen import Condition, Facts, Round
from db.reads.groups.groups import Group, Member

NOW = datetime.datetime(2026, 11, 29, tzinfo=datetime.UTC)
LONG_AGO = NOW - datetime.timedelta(days=1)
GROUP = Group(
    **{"id": "g", "project_id": "p", "user_id": "u", "name": "web", "profile_id": "a"},
    **{"former_profile_id": None, "desired": 3, "min_size": 0, "max_size": 9},
    **{"timeout_seconds": 60, "meta": {}, "config": {}, "next_index": 4, "rolling": False},
    **{"paused": False, "deleting": False, "failures": 0, "refusals": 0, "not_before": None},
    **{"halted": None, "status": "ACTIVE", "status_reason": ""},
    **{"created_at": LONG_AGO, "updated_at": None},  # type: ignore[arg-type]
)


def member(index: int, vm_state: str | None = "active", **values: Any) -> Member:
    """A member that works, unless its server is given another state."""
    server = vm_state is not None
    found = Member(
        id=f"m{index}",
        group_id="g",
        member_index=index,
        project_id="p",
        user_id="u",
        name=f"web-{index}",
        role=None,
        meta={},
        profile_id="a",
        server_uuid=f"s{index}" if server else None,
        state=MemberState.KEPT,
        reason="",
        recoveries=0,
        ready_at=LONG_AGO if vm_state == "active" else None,
        created_at=LONG_AGO,
        updated_at=None,
        vm_state=vm_state,
        host="h1",
        availability_zone="nova",
        server_created_at=LONG_AGO + datetime.timedelta(seconds=index),
        launched_at=LONG_AGO if vm_state != "building" else None,
        held=False,
    )
    return dataclasses.replace(found, **values)


def after(*members: Member, group: Any = None, **more: Any) -> Round:
    given = {"options": Options(), "deletion": Deletion(), "health": Health(), **more}
    changes = {} if group is None else group
    return decide.after(Facts(dataclasses.replace(GROUP, **changes), members, now=NOW, **given))


def leaving(made: Round) -> list[str]:
    return sorted(
        one for one, values in made.changed.items() if values.get("state") == MemberState.LEAVING
    )


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({}, Condition.WELL),
        ({"vm_state": "building"}, Condition.BUILDING),
        ({"vm_state": "error"}, Condition.SICK),
        ({"vm_state": "error", "launched_at": None}, Condition.FAILED),
        ({"vm_state": "error", "task_state": "rebuilding"}, Condition.BUSY),
        ({"vm_state": "error", "task_state": "deleting"}, Condition.SICK),
        ({"vm_state": "stopped"}, Condition.SICK),
        ({"vm_state": "stopped", "task_state": "powering-on"}, Condition.BUSY),
        ({"vm_state": "stopped", "locked_by": "owner"}, Condition.BUSY),
        ({"vm_state": "error", "held": True}, Condition.BUSY),
        ({"vm_state": "shelved_offloaded"}, Condition.BUSY),
        ({"vm_state": "deleted", "deleted_at": NOW}, Condition.NONE),
        ({"server_uuid": None, "vm_state": None}, Condition.NONE),
    ],
)
def test_what_a_member_is(values: dict[str, Any], found: Condition) -> None:
    assert seen.condition(dataclasses.replace(member(1), **values)) == found


def test_a_group_as_desired_is_left_alone() -> None:
    made = after(member(1), member(2), member(3))
    assert (made.over, made.changed, made.added, made.creates) == (True, {}, 0, [])
    assert made.group["status_reason"] == "3 of 3 members work."


def test_creations_are_bounded() -> None:
    wanted = [member(one, None) for one in range(1, 9)]
    made = after(*wanted, group={"desired": 8})
    assert made.creates == ["m1", "m2", "m3", "m4"]
    building = [member(1, "building"), *wanted[1:]]
    assert after(*building, group={"desired": 8}).creates == ["m2", "m3", "m4"]
    # After a failure one by one.
    assert after(*wanted, group={"desired": 8, "failures": 1}).creates == ["m1"]
    soon = NOW + datetime.timedelta(seconds=30)
    made = after(*wanted, group={"desired": 8, "failures": 1, "not_before": soon})
    assert (made.creates, made.over, made.seconds) == ([], False, 30)
    made = after(*wanted, group={"desired": 8, "halted": "a bad image"})
    assert (made.creates, made.over, made.failed) == ([], True, "a bad image")


def test_servers_that_are_being_deleted_count() -> None:
    gone = member(9, state=MemberState.LEAVING, task_state="deleting")
    made = after(member(1), member(2), member(3, None), gone)
    assert (made.creates, made.over) == ([], False)
    gone = member(9, "deleted", state=MemberState.LEAVING, deleted_at=NOW)
    made = after(member(1), member(2), member(3, None), gone)
    assert (made.creates, made.removed) == (["m3"], ["m9"])


def test_the_fifth_failure_in_a_row_stops_creations() -> None:
    failed = member(3, "error", launched_at=None, reason="No image.")
    made = after(member(1), member(2), failed, group={"failures": 3})
    assert made.group["failures"] == 4
    assert "halted" not in made.group
    assert made.deletes == ["s3"]
    made = after(member(1), member(2), failed, group={"failures": 4})
    assert made.group["halted"] == "5 creations in a row failed, so none is tried: No image."
    new = member(3, ready_at=None)
    made = after(member(1), member(2), new, group={"failures": 4})
    assert made.group["failures"] == 0


def test_the_sick_leave_first_then_the_crowded_then_by_age() -> None:
    there = [member(1), member(2, host="h2"), member(3), member(4, "stopped", host="h3")]
    assert leaving(after(*there, group={"desired": 3})) == ["m4"]
    assert leaving(after(*there, group={"desired": 2})) == ["m1", "m4"]
    young = {"deletion": Deletion(First.YOUNGEST)}
    assert leaving(after(*there, group={"desired": 2}, **young)) == ["m3", "m4"]
    kept = after(*there, group={"desired": 3}, deletion=Deletion(destroy=False))
    assert ([one.id for one in kept.out], kept.deletes) == (["m4"], [])


def test_one_that_is_not_well_is_repaired_and_in_the_end_replaced() -> None:
    others = (member(1), member(2))
    made = after(*others, member(3, "stopped"))
    assert [(one.id, how) for one, how in made.repairs] == [("m3", Repair.REBOOT)]
    made = after(*others, member(3, "stopped", recoveries=2))
    assert (made.repairs, made.deletes) == ([], ["s3"])
    made = after(*others, member(3, "error"))
    assert made.deletes == ["s3"]
    rebuilt = Health((Repair.REBUILD,))
    made = after(*others, member(3, "error"), health=rebuilt)
    assert [how for _, how in made.repairs] == [Repair.REBUILD]
    made = after(*others, member(3, "error", recoveries=2), health=rebuilt)
    assert made.deletes == ["s3"]


def test_all_at_once_are_reported() -> None:
    sick = [member(one, "error") for one in (1, 2, 3)]
    made = after(*sick)
    assert (made.deletes, made.repairs, made.over) == ([], [], True)
    assert made.failed.startswith("All of its 3 members are not well at once")
    assert after(*sick, recover=True).deletes == ["s1", "s2", "s3"]
    one = after(member(1, "error"), group={"desired": 1})
    assert one.deletes == ["s1"]


def test_a_guest_that_does_not_answer_is_not_well() -> None:
    there = [member(1), member(2, health="sick", health_reason="No answer."), member(3)]
    made = after(*there, checked=True)
    assert made.deletes == ["s2"]
    assert made.changed["m2"]["reason"] == "Its server was not well: No answer."
    assert after(*there).deletes == []
    # Others may be found so a little later: all at once are not repaired.
    soon = [dataclasses.replace(one, health_at=NOW) for one in there]
    made = after(*soon, checked=True, settle_seconds=70)
    assert (made.deletes, made.over, made.seconds) == ([], False, 70)


def rolling(**more: Any) -> dict[str, Any]:
    return {"profile_id": "b", "former_profile_id": "a", "rolling": True, **more}


def test_a_rolling_update_adds_one_before_it_takes_one_away() -> None:
    old = [member(1), member(2), member(3)]
    made = after(*old, group=rolling())
    assert (made.added, leaving(made)) == (1, [])
    new = member(4, "building", profile_id="b")
    made = after(*old, new, group=rolling())
    assert (made.added, leaving(made)) == (0, [])
    new = member(4, profile_id="b")
    made = after(*old, new, group=rolling())
    assert leaving(made) == ["m1"]
    # It counts once it has worked for long enough.
    slow = {"options": Options(min_ready_seconds=60)}
    fresh = dataclasses.replace(new, ready_at=NOW)
    made = after(*old, fresh, group=rolling(), **slow)
    assert (leaving(made), made.seconds) == ([], 60)
    assert leaving(after(*old, new, group=rolling(paused=True))) == []


def test_a_rolling_update_in_place() -> None:
    old = [member(1), member(2), member(3)]
    options = Options(max_surge=0, max_unavailable=1)
    made = after(*old, group=rolling(), options=options)
    assert (made.added, made.deletes) == (0, ["s1"])
    assert made.changed["m1"]["profile_id"] == "b"
    assert made.changed["m1"]["state"] == MemberState.REPLACED


def test_new_members_that_do_not_work_are_rolled_back() -> None:
    old = [member(1), member(2), member(3)]
    bad = member(4, "error", launched_at=None, profile_id="b", reason="No image.")
    made = after(*old, bad, group=rolling(failures=4))
    assert (made.group["profile_id"], made.group["halted"]) == ("a", None)
    assert made.deletes == ["s4"]
    assert str(made.group["status_reason"]).startswith("Rolled back: 5 creations in a row")
    made = after(*old, bad, group=rolling(failures=4), options=Options(roll_back=False))
    assert "profile_id" not in made.group
    unsteady = member(4, "stopped", profile_id="b", ready_at=NOW)
    made = after(*old, unsteady, group=rolling(), options=Options(min_ready_seconds=60))
    assert made.group["failures"] == 1


def test_all_at_once_are_not_deleted_by_a_rolling_update() -> None:
    old = [member(one, "error") for one in (1, 2, 3)]
    # A new member may show that the old ones are the fault.
    made = after(*old, group=rolling())
    assert (made.deletes, leaving(made), made.added) == ([], [], 1)
    new = member(4, "error", profile_id="b")
    made = after(*old, new, group=rolling())
    assert (made.deletes, made.changed, made.over) == ([], {}, True)
    assert made.failed.startswith("All of its 4 members are not well at once")
    assert after(*old, member(4, profile_id="b"), group=rolling()).deletes == ["s1", "s2", "s3"]
    in_place = {"options": Options(max_surge=0, max_unavailable=9)}
    assert after(*old, group=rolling(), **in_place).deletes == []
    asked = after(*old, group=rolling(), recover=True, **in_place)
    assert asked.deletes == ["s1", "s2", "s3"]
    # Others may be found sick a little later.
    sick = {"health": "sick", "health_reason": "No answer.", "health_at": NOW}
    made = after(
        *(member(1, **sick), member(2, **sick), member(3), member(4, profile_id="b")),
        **{"group": rolling(), "checked": True, "settle_seconds": 70},
    )
    assert (made.deletes, made.seconds) == ([], 70)


def test_all_that_turn_sick_soon_after_they_were_well_are_left_alone() -> None:
    slow = {"options": Options(min_ready_seconds=60)}
    fresh = [member(one, "error", ready_at=NOW) for one in (1, 2, 3)]
    made = after(*fresh, **slow)
    assert (made.deletes, made.over, "failures" in made.group) == ([], True, False)
    made = after(member(1), *fresh[1:], **slow)
    assert (made.deletes, made.group["failures"]) == (["s2", "s3"], 2)
    found = {"ready_at": NOW, "health": "sick", "health_reason": "No answer.", "health_at": NOW}
    made = after(
        *(member(1), member(2), member(3, **found)),
        **{**slow, "checked": True, "settle_seconds": 70},
    )
    assert (made.deletes, made.seconds) == ([], 70)


def test_members_are_spread_over_zones() -> None:
    there = [member(1, pinned_zone="a"), member(2, pinned_zone="b"), member(3, pinned_zone="a")]
    assert spread.fewest(("a", "b"), {"a", "b"}, there, spread.by_zone) == "b"
    assert spread.fewest(("a", "b", "c"), {"a", "b", "c"}, there, spread.by_zone) == "c"
    assert spread.fewest((), {"a"}, there, spread.by_zone) is None
    # Where no host works, nothing is created, unless that is so everywhere.
    assert spread.fewest(("a", "b"), {"a"}, there, spread.by_zone) == "a"
    assert spread.fewest(("a", "b"), (), there, spread.by_zone) == "b"


@pytest.mark.parametrize(
    ("kind", "number", "step", "found"),
    [
        (begin_group.EXACT, 4, 1, 4),
        (begin_group.CHANGE, -2, 1, 3),
        (begin_group.PERCENTAGE, 40, 1, 7),
        (begin_group.PERCENTAGE, -30, 1, 4),
        (begin_group.PERCENTAGE, 1, 1, 6),
        (begin_group.PERCENTAGE, 1, 3, 8),
        (begin_group.PERCENTAGE, 0, 1, 5),
        (begin_group.PERCENTAGE, 0, 3, 5),
        (None, 0, 1, 5),
    ],
)
def test_sizes(kind: str | None, number: float, step: int, found: int) -> None:
    assert begin_group.sized(5, Resize("group-resize", kind, number, step)) == found


def test_options_of_a_command_line() -> None:
    found = options({"micronova.max_surge": "2", "micronova.zones": "a, b", "other": 1})
    assert (found.max_surge, found.zones) == (2, ("a", "b"))
    with pytest.raises(ValueError, match="true or false"):
        options({"micronova.shrink": "maybe"})


def test_places_that_keep_volumes_are_updated_in_place() -> None:
    found = options({"micronova.keep": "volumes,volumes, "})
    assert (found.keep, found.max_surge, found.max_unavailable) == (("volumes",), 0, 1)
    two = options({"micronova.keep": ["volumes"], "micronova.max_unavailable": "2"})
    assert (two.max_surge, two.max_unavailable) == (0, 2)
    both = options({"micronova.keep": "ports,volumes"})
    assert (both.keep, both.max_surge) == (("ports", "volumes"), 0)
    assert options({"micronova.keep": ""}).max_surge == 1
    rolling = {"rolling": True, "profile_id": "b"}
    made = after(member(1), member(2), member(3), group=rolling, options=found)
    (replaced,) = made.changed.values()
    assert (replaced["state"], replaced["profile_id"], made.added) == ("replaced", "b", 0)


def test_a_place_whose_own_is_taken_holds_up_no_other() -> None:
    waits, other = member(1, None, volumes=("v1",)), member(2, None)
    made = after(waits, other, member(3), taken={"m1": "Its volume v1 is in-use."})
    assert (made.creates, made.seconds) == (["m2"], seen.LOOK_SECONDS)
    assert made.changed["m1"] == {"reason": "Its volume v1 is in-use."}
    # It is looked at again, as there may be no news of it.
    made = after(waits, member(2), member(3), taken={"m1": "Its volume v1 is in-use."})
    assert (made.creates, made.over) == ([], False)
