"""What stops a move: one answer for all who move servers or say whether they can be moved."""

from __future__ import annotations

import pytest

from common.moving import DEVICES, NO_VM, Situation, Way, bound, obstacle, pin, way
from common.resources.states import VmState

CARD = {"pci_passthrough:alias": "gpu:1"}


@pytest.mark.parametrize(
    ("state", "specs", "how"),
    [
        ("active", {}, Way.LIVE),
        ("paused", {}, Way.LIVE),
        ("stopped", {}, Way.COLD),
        ("active", CARD, Way.COLD),
        ("stopped", CARD, Way.COLD),
        ("paused", CARD, None),
    ],
)
def test_live_where_it_runs_and_can_be(state: str, specs: dict[str, str], how: Way | None) -> None:
    now = Situation(state, 100, specs)
    assert way(now) == how
    assert (obstacle(now) is None) == (how is not None)


@pytest.mark.parametrize("state", sorted(set(VmState) - {"active", "paused", "stopped"}))
def test_every_other_state_stops_it_and_says_so(state: str) -> None:
    now = Situation(state, 100)
    if state == VmState.DELETED:
        return
    assert way(now) is None
    assert ": " in str(obstacle(now)), "what would help"


def test_what_the_host_reports_stops_every_way() -> None:
    why = "its disk is a linked clone on the node's own storage local"
    for state in ("active", "stopped", "rescued"):
        assert obstacle(Situation(state, 100, pinned={"100": why})) == why
    assert obstacle(Situation("active", 101, pinned={"100": why})) is None


def test_a_config_drive_is_taken_out_before() -> None:
    pinned = {"100": "its config drive is on the node's own storage local"}
    assert pin(pinned, 100) is None
    assert way(Situation("active", 100, pinned=pinned)) == Way.LIVE


def test_one_without_a_vm() -> None:
    assert pin({}, None) is None
    assert obstacle(Situation("error", None)) == NO_VM


def test_one_that_is_held() -> None:
    assert str(obstacle(Situation("active", 100, held=True))).startswith("it is held")


def test_devices() -> None:
    assert bound(CARD)
    assert bound({"pci_passthrough:alias": "?"}), "what can't be read may be one"
    assert not bound({"hw:cpu_policy": "shared"})
    assert DEVICES in str(obstacle(Situation("paused", 100, CARD)))
