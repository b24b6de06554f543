from __future__ import annotations

import itertools

import pytest

from common.failures import BACKOFF_SECONDS, RULES, Verdict, backoff_seconds, blames_host
from common.messages.reports import Category, Failure
from common.resources import states
from common.resources.states import ACTIONS, PowerState, TaskState, VmState


def test_every_state_has_a_status() -> None:
    for vm_state, task_state in itertools.product(VmState, [None, *TaskState]):
        assert states.status(vm_state, task_state)
    assert states.status("active", "rebooting_hard") == "HARD_REBOOT"
    assert states.status("paused", None) == "PAUSED"
    assert states.status("rescued", "unrescuing") == "RESCUE"
    for vm_state in ("active", "stopped", "error"):
        assert states.status(vm_state, "rebuild_spawning") == "REBUILD"
    assert states.status("suspended", "resuming") == "SUSPENDED"


@pytest.mark.parametrize(
    ("was", "seen", "becomes"),
    [
        ("active", "PAUSED", "active"),
        ("active", "SUSPENDED", "suspended"),
        ("paused", "PAUSED", "paused"),
        ("paused", "SHUTDOWN", "stopped"),
        ("suspended", "SUSPENDED", "suspended"),
        ("suspended", "RUNNING", "active"),
        ("suspended", "SHUTDOWN", "stopped"),
        ("error", "PAUSED", "error"),
        ("rescued", "SHUTDOWN", "rescued"),
    ],
)
def test_an_idle_server_follows_its_vm(was: str, seen: str, becomes: str) -> None:
    assert states.as_seen(was, PowerState[seen]) == becomes
    assert states.status("stopped", "resize_prep") == "RESIZE"
    assert states.status("resized", "resize_reverting") == "REVERT_RESIZE"


@pytest.mark.parametrize("action", list(ACTIONS))
def test_each_action_walks_and_ends(action: str) -> None:
    rule = ACTIONS[action]
    # As in Nova no task_state shows these.
    plugs = {f"{way}_{what}" for way in ("attach", "detach") for what in ("interface", "volume")}
    unseen = {"confirmResize", *plugs}
    assert bool(rule.walk) != (action in unseen)
    assert rule.done is None or rule.done in VmState


@pytest.mark.parametrize(
    ("action", "vm_state", "task_state", "launched", "refused"),
    [
        ("stop", "active", None, True, None),
        ("stop", "stopped", None, True, ("vm_state", "stopped")),
        ("stop", "active", "rebooting", True, ("task_state", "rebooting")),
        ("stop", "error", None, False, ("launched_at", "None")),
        ("start", "stopped", None, True, None),
        ("start", "active", None, True, ("vm_state", "active")),
        ("reboot", "stopped", None, True, ("vm_state", "stopped")),
        ("reboot-hard", "stopped", None, True, None),
        ("reboot-hard", "active", "rebooting", True, None),
        *(
            ("reboot-hard", state, task, True, None)
            for state in ("paused", "suspended", "active")
            for task in ("pausing", "unpausing", "suspending", "resuming")
        ),
        ("pause", "active", None, True, None),
        ("pause", "paused", None, True, ("vm_state", "paused")),
        ("unpause", "active", None, True, ("vm_state", "active")),
        ("suspend", "paused", None, True, ("vm_state", "paused")),
        ("suspend", "active", "pausing", True, ("task_state", "pausing")),
        ("resume", "suspended", None, True, None),
        ("resume", "stopped", None, True, ("vm_state", "stopped")),
        ("stop", "paused", None, True, ("vm_state", "paused")),
        ("delete", "suspended", "resuming", True, None),
        ("delete", "building", "spawning", False, None),
        ("resize", "stopped", None, True, None),
        ("resize", "resized", None, True, ("vm_state", "resized")),
        ("revertResize", "resized", "resize_reverting", True, ("task_state", "resize_reverting")),
        ("stop", "resized", None, True, ("vm_state", "resized")),
        ("delete", "resized", "resize_reverting", True, None),
        ("rebuild", "stopped", None, True, None),
        ("rebuild", "error", None, True, None),
        ("rebuild", "error", None, False, ("launched_at", "None")),
        ("rebuild", "paused", None, True, ("vm_state", "paused")),
        ("rebuild", "active", "rebuilding", True, ("task_state", "rebuilding")),
        ("reboot-hard", "active", "rebuilding", True, ("task_state", "rebuilding")),
        ("delete", "active", "rebuild_spawning", True, None),
        ("rescue", "stopped", None, True, None),
        ("rescue", "paused", None, True, ("vm_state", "paused")),
        ("rescue", "rescued", None, True, ("vm_state", "rescued")),
        *(
            (action, "rescued", None, True, ("vm_state", "rescued"))
            for action in ("stop", "start", "reboot", "reboot-hard", "rebuild", "resize", "pause")
        ),
        ("unrescue", "rescued", None, True, None),
        ("unrescue", "active", None, True, ("vm_state", "active")),
        ("delete", "rescued", "unrescuing", True, None),
        ("delete", "error", None, False, None),
    ],
)
def test_refusals(
    action: str,
    vm_state: str,
    task_state: str | None,
    launched: bool,
    refused: tuple[str, str] | None,
) -> None:
    assert states.refusal(action, vm_state, task_state, launched) == refused


def test_every_category_has_a_rule_and_back_off_is_capped() -> None:
    assert set(RULES) == set(Category)
    assert [backoff_seconds(attempt) for attempt in (0, 1, 2, 5, 50)] == [30, 30, 60, 600, 600]
    assert list(BACKOFF_SECONDS) == sorted(BACKOFF_SECONDS)


#: of each category whether it speaks against the host that a build failed on
BLAMES = {
    "api_not_supported": True,
    "configuration": True,
    "authorization": True,
    "quota_exceeded": False,
    "no_valid_host": False,
    "node_unhealthy": True,
    "image_not_found": False,
    "image_corrupt": False,
    "template_locked": False,
    "lock": False,
    "storage_conflict": False,
    "storage_full": True,
    "network": True,
    "task_timeout": True,
    "unknown_outcome": True,
    "creation_failed": True,
    "vanished": False,
    "protected": False,
    "mark_lost": False,
    "foreign": False,
    "disk_lost": False,
}


@pytest.mark.parametrize("category", Category)
def test_only_what_is_the_hosts_fault_speaks_against_it(category: Category) -> None:
    assert blames_host(Failure(category, "it failed")) is BLAMES[category]
    for verdict in (Verdict.FATAL, Verdict.WAIT, Verdict.QUARANTINE):
        assert not blames_host(Failure(category, "it failed", verdict=verdict))


@pytest.mark.parametrize("power_state", [0, 1, 3, 4])
def test_a_resized_server_stays_so_whatever_is_seen(power_state: int) -> None:
    assert states.as_seen("resized", power_state) == VmState.RESIZED
    assert states.found_well("resized", power_state) == VmState.RESIZED
