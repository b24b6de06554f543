"""Which notifications there are, held against those that Nova has."""

from __future__ import annotations

import pytest

from common.resources.states import ACTIONS, InternalAction, TaskState, VmState
from conductor.notifications import events, unversioned, versioned
from tests.fixtures.notifications import EVENTS, OBJECTS, UNVERSIONED

#: actions that Nova sends no notifications of
SILENT = {"changePassword"}


def test_nova_has_every_event_with_that_payload() -> None:
    for name in events.all_events():
        assert EVENTS[name]["payload"] == events.payload_of(name), name


def test_every_object_has_nova_s_version() -> None:
    assert {name: OBJECTS[name]["version"] for name in versioned.VERSIONS} == versioned.VERSIONS


def test_every_older_event_is_nova_s_and_only_what_nova_lacks_is_left_out() -> None:
    older = {name: unversioned.event_type(name) for name in events.all_events()}
    assert {name for name in older.values() if name} <= UNVERSIONED
    assert {name for name, one in older.items() if one is None} == {
        *(f"instance.interface_attach.{phase}" for phase in ("start", "end", "error")),
        *(f"instance.interface_detach.{phase}" for phase in ("start", "end")),
        *("instance.lock", "instance.unlock"),
        *("instance.volume_attach.start", "instance.volume_attach.error"),
        "instance.volume_detach.start",
    }


def test_every_action_of_users_has_events() -> None:
    assert set(ACTIONS) - set(events.OF_ACTION) == SILENT
    assert set(events.OF_ACTION) - set(ACTIONS) == {
        InternalAction.FORGET,
        InternalAction.LOCK,
        InternalAction.UNLOCK,
    }


@pytest.mark.parametrize(
    ("action", "task_state", "vm_state", "expected"),
    [
        ("create", TaskState.SPAWNING, VmState.ACTIVE, ["create.end"]),
        ("stop", TaskState.POWERING_OFF, VmState.STOPPED, ["power_off.end"]),
        (
            "resize",
            TaskState.RESIZE_MIGRATING,
            VmState.RESIZED,
            ["resize.end", "resize_finish.start", "resize_finish.end"],
        ),
        ("migrate", TaskState.RESIZE_FINISH, VmState.RESIZED, ["resize_finish.end"]),
        ("shelve", TaskState.SHELVING, VmState.SHELVED, ["shelve.end"]),
        (
            "shelve",
            TaskState.SHELVING_OFFLOADING,
            VmState.SHELVED_OFFLOADED,
            ["shelve_offload.end"],
        ),
        (
            "shelveOffload",
            TaskState.SHELVING_OFFLOADING,
            VmState.SHELVED_OFFLOADED,
            ["shelve_offload.end"],
        ),
        ("attach_volume", None, None, ["volume_attach.end"]),
        ("lock", None, None, ["lock"]),
        ("delete", TaskState.DELETING, VmState.DELETED, ["shutdown.end", "delete.end"]),
        (
            "live-migration",
            TaskState.MIGRATING,
            VmState.ACTIVE,
            [
                *("live_migration_pre.end", "live_migration_post.start"),
                *("live_migration_post.end", "live_migration_post_dest.start"),
                "live_migration_post_dest.end",
            ],
        ),
        ("sync-power", None, VmState.STOPPED, []),
    ],
)
def test_a_good_end(action: str, task_state: str, vm_state: str, expected: list[str]) -> None:
    found = events.when_done(action, task_state, vm_state)
    assert found == [f"instance.{name}" for name in expected]


def test_a_bad_end() -> None:
    building, error = (VmState.BUILDING, "spawning"), (VmState.ERROR, None)
    assert events.on_the_way(building, error) == ["instance.create.error"]
    assert events.when_failed("create") == []
    assert events.when_failed("evacuate") == ["instance.rebuild.error"]
    assert events.when_failed("stop") == []
    assert events.when_failed("live-migration") == [
        "instance.live_migration_rollback.start",
        "instance.live_migration_rollback.end",
    ]


def test_a_begin() -> None:
    assert events.when_begun("evacuate") == [
        f"instance.{name}" for name in ("evacuate", "exists", "rebuild.start")
    ]
    assert events.when_begun("resize") == ["instance.exists", "instance.resize_prep.start"]
    assert events.when_begun("delete") == ["instance.delete.start", "instance.shutdown.start"]
    assert events.when_begun("lock") == []
    assert events.when_begun("follow") == []
