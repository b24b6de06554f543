"""What follows for a bulk migration from what is seen."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import pytest

from common.moving import Situation
from common.resources.bulk_migrations import Move, MoveState, Steering, sentence
from conductor.plans import BulkPlan, Place
from conductor.servers.bulk import decide
from conductor.servers.bulk.decide import MAX_TRIES, NOT_LIVE, ROOM_SECONDS, Facts, Seen
from conductor.store.ledger.bulk_migrations import Begun

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
CARD = {"pci_passthrough:alias": "gpu:1"}


def seen(uuid: str, host: str = "h1", task: str | None = None, **situation: Any) -> Seen:
    now = Situation(**{"vm_state": "active", "vmid": 100, **situation})
    return Seen(uuid, f"name-{uuid}", host, task, now)


def facts(*servers: Seen, late: bool = False, **operations: tuple[Any, ...]) -> Facts:
    known = {int(name.removeprefix("op")): Begun(*value) for name, value in operations.items()}
    return Facts({one.uuid: one for one in servers}, known, NOW, late)


def drain(*moves: Move, at_once: int = 2, **changes: Any) -> BulkPlan:
    return BulkPlan(Place("h1"), moves=moves, at_once=at_once, **changes)


def a_move(uuid: str = "a", **changes: Any) -> Move:
    return dataclasses.replace(Move(uuid, f"name-{uuid}", "h1"), **changes)


def moving(uuid: str = "a", way: str = "live") -> Move:
    return a_move(uuid, state=MoveState.MOVING, way=way, operation_id=5, tries=1)


def only(plan: BulkPlan, found: Facts) -> Move:
    (move,) = decide.after(plan, found).moves
    return move


def started(plan: BulkPlan, found: Facts, others: int = 0, in_all: int = 8) -> list[str]:
    after = decide.after(plan, found)
    return [one.server_uuid for one in decide.begins(after, found, others, in_all)]


def test_a_drain_takes_whatever_is_on_its_host() -> None:
    plan = decide.after(drain(a_move()), facts(seen("a"), seen("b"), seen("c", "h2")))
    assert [(one.server_uuid, one.source) for one in plan.moves] == [("a", "h1"), ("b", "h1")]


def test_one_that_finds_no_host_is_tried_again_where_room_is_waited_for() -> None:
    found = facts(seen("a"), op5=("failed", "No valid host was found.", True))
    later = NOW + datetime.timedelta(seconds=600)
    move = only(drain(moving(), waits_until=later), found)
    pause = datetime.timedelta(seconds=ROOM_SECONDS)
    assert (move.state, move.tries, move.not_before) == (MoveState.WAITING, 0, NOW + pause)
    assert move.reason == "No valid host was found."
    for plan in (drain(moving()), drain(moving(), waits_until=NOW)):
        move = only(plan, found)
        assert (move.state, move.tries) == (MoveState.WAITING, 1)
    other = facts(seen("a"), op5=("failed", "The task failed.", False))
    assert only(drain(moving(), waits_until=later), other).tries == 1


def test_a_rebalance_takes_only_what_was_planned() -> None:
    plan = BulkPlan(moves=(a_move(target="h2"),), at_once=2)
    after = decide.after(plan, facts(seen("a"), seen("b")))
    assert [(one.server_uuid, one.target) for one in after.moves] == [("a", "h2")]


@pytest.mark.parametrize(
    ("situation", "live_only", "way", "reason"),
    [
        ({}, False, "live", None),
        ({"vm_state": "stopped"}, False, "cold", None),
        ({"vm_state": "stopped"}, True, "cold", None),
        ({"extra_specs": CARD}, False, "cold", None),
        ({"extra_specs": CARD}, True, "cold", NOT_LIVE),
        ({"vm_state": "suspended"}, False, None, "it is suspended: resume it"),
        ({"held": True}, False, None, "it is held: release the hold"),
        ({"pinned": {"100": "why"}}, False, None, "why"),
    ],
)
def test_how_each_is_moved_or_why_not(
    situation: dict[str, Any], live_only: bool, way: str | None, reason: str | None
) -> None:
    move = only(drain(live_only=live_only), facts(seen("a", **situation)))
    assert (move.way, move.reason) == (way, reason)
    assert move.state == (MoveState.WAITING if reason is None else MoveState.BLOCKED)


def test_bounded_at_once_and_in_all() -> None:
    found = facts(*(seen(uuid) for uuid in "abcd"))
    assert started(drain(), found) == ["a", "b"]
    assert started(drain(at_once=4), found, others=5, in_all=8) == ["a", "b", "c"]
    assert started(drain(), found, others=8, in_all=8) == []
    going = facts(*(seen(uuid) for uuid in "abcd"), op5=("running", None))
    assert started(drain(moving()), going) == ["b"]


def test_what_is_blocked_is_looked_at_again() -> None:
    blocked = a_move(state=MoveState.BLOCKED, reason="it is suspended: resume it")
    move = only(drain(blocked), facts(seen("a")))
    assert (move.state, move.reason) == (MoveState.WAITING, None)


def test_what_is_busy_is_waited_for_and_not_begun() -> None:
    found = facts(seen("a", task="rebooting"))
    move = only(drain(), found)
    assert (move.state, move.reason) == (MoveState.WAITING, "it is busy (rebooting)")
    assert started(drain(), found) == []
    assert not decide.is_over(drain(move), found)


@pytest.mark.parametrize("steering", [Steering.PAUSE, Steering.CANCEL])
def test_nothing_begins_once_it_is_paused_or_cancelled(steering: Steering) -> None:
    found = facts(seen("a"), seen("b"), op5=("running", None))
    plan = decide.after(drain(moving(), steering=steering), found)
    assert list(decide.begins(plan, found, 0, 8)) == []
    assert not decide.is_over(plan, found), "what is under way is waited for"
    still = decide.after(drain(steering=steering), facts(seen("b")))
    assert decide.is_over(still, found) == (steering == Steering.CANCEL)


def test_late_ones_end_with_what_is_under_way() -> None:
    found = facts(seen("a"), late=True)
    plan = decide.after(drain(), found)
    assert list(decide.begins(plan, found, 0, 8)) == []
    assert decide.is_over(plan, found)
    assert decide.at_the_end(plan).moves[0].reason == "it did not begin in time"


def test_an_open_migration_is_left_alone_wherever_its_server_is() -> None:
    for host in ("h1", "h2"):
        found = facts(seen("a", host, "migrating"), op5=("unwinding", None))
        assert only(drain(moving()), found) == moving()


def test_moved() -> None:
    move = only(drain(moving()), facts(seen("a", "h2"), op5=("done", None)))
    assert move.state == MoveState.MOVED
    assert decide.is_over(drain(move), facts())


def test_moved_by_others() -> None:
    moved = only(drain(a_move()), facts(seen("a", "h3")))
    assert (moved.state, moved.target) == (MoveState.MOVED, "h3")


def test_deleted_before_or_during_its_move() -> None:
    for move in (a_move(), moving()):
        assert only(drain(move), facts(op5=("failed", None))).state == MoveState.GONE


def test_a_failed_one_is_tried_again_later_and_not_for_ever() -> None:
    found, move = facts(seen("a"), op5=("failed", "no room")), moving()
    for tries in range(1, MAX_TRIES):
        move = only(drain(dataclasses.replace(move, tries=tries)), found)
        assert (move.state, move.reason, move.tries) == (MoveState.WAITING, "no room", tries)
        assert move.not_before is not None
        assert move.not_before > NOW
        assert started(drain(move), found) == []
        due = dataclasses.replace(move, not_before=NOW)
        assert started(drain(due), found) == ["a"]
        move = decide.begun(due, 5)
        assert (move.state, move.tries, move.not_before) == (MoveState.MOVING, tries + 1, None)
    move = only(drain(move), found)
    assert (move.state, move.reason) == (MoveState.FAILED, "no room")


def test_a_refused_one_counts_as_a_try() -> None:
    move = a_move(way="live")
    for _ in range(MAX_TRIES - 1):
        move = decide.refused(move, "locked", NOW)
        assert (move.state, move.reason) == (MoveState.WAITING, "locked")
    assert decide.refused(move, "locked", NOW).state == MoveState.FAILED


def test_a_cold_move_is_confirmed_beyond_the_bound() -> None:
    found = facts(seen("a", "h2", vm_state="resized"), seen("b"), op5=("done", None))
    plan = decide.after(drain(moving(way="cold"), at_once=1), found)
    assert plan.moves[0].state == MoveState.CONFIRMING
    assert [one.server_uuid for one in decide.begins(plan, found, 8, 8)] == ["a"]
    confirming = decide.begun(plan.moves[0], 6)
    assert (confirming.state, confirming.tries) == (MoveState.CONFIRMING, 1)
    done = facts(seen("a", "h2"), op6=("done", None))
    assert only(drain(confirming), done).state == MoveState.MOVED


def test_a_resize_of_its_user_is_not_confirmed() -> None:
    found = facts(seen("a", "h2", vm_state="resized"), op5=("done", None))
    assert only(drain(a_move(way="cold")), found).state == MoveState.MOVED


def test_what_can_not_be_confirmed_has_moved_all_the_same() -> None:
    found = facts(seen("a", "h2", vm_state="resized"), op6=("failed", "no agent"))
    move = a_move(state=MoveState.CONFIRMING, way="cold", operation_id=6, tries=1)
    again = only(drain(move), found)
    assert (again.state, again.operation_id, again.tries) == (MoveState.CONFIRMING, None, 2)
    last = only(drain(dataclasses.replace(move, tries=2)), found)
    assert (last.state, last.reason) == (MoveState.MOVED, "no agent")


def test_reverted_by_its_user() -> None:
    move = a_move(state=MoveState.CONFIRMING, way="cold", tries=1)
    back = only(drain(move), facts(seen("a", vm_state="stopped")))
    assert back.state == MoveState.WAITING


def test_the_end_in_a_sentence() -> None:
    moved = a_move(state=MoveState.MOVED)
    assert sentence([moved, a_move("b", state=MoveState.GONE)]) == "1 moved, none remain."
    left = [a_move(uuid, state=MoveState.BLOCKED, reason="it is held") for uuid in "bc"]
    failed = a_move("d", state=MoveState.FAILED, reason="no room")
    assert sentence([moved, *left, failed]) == "1 moved, 3 remain (2: it is held; 1: no room)."
