"""What agents saw against the record."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import pytest

from common.messages.facts import VmFacts, VmStates
from common.resources.states import PowerState
from conductor.store.servers.vm_states import HostOf, Known
from conductor.sync.drift import Difference, Saw, differences

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
LONG_AGO = NOW - datetime.timedelta(days=1)
HOSTS = {"a": HostOf("host-a", "w1"), "b": HostOf("host-b", "w1"), "c": HostOf("host-c", "w2")}
SERVER = Known("uuid", 100, "host-a", "a", "active", PowerState.RUNNING, 7, LONG_AGO)


def report(*vms: VmFacts, **more: Any) -> VmStates:
    values: dict[str, Any] = {"nodes": ("a", "b", "c"), "whole": True} | more
    return VmStates("w1", "c1", NOW, vms=vms, **values)


def found(message: VmStates, server: Known = SERVER) -> Difference | None:
    return next(iter(differences(message, [server], HOSTS, 15.0)), None)


def seen(node: str = "a", power: PowerState = PowerState.RUNNING) -> VmFacts:
    return VmFacts(100, node, power)


def test_what_is_as_recorded_is_no_difference() -> None:
    assert found(report(seen())) is None


@pytest.mark.parametrize("power", [PowerState.SHUTDOWN, PowerState.PAUSED])
def test_another_power_state_is_one(power: PowerState) -> None:
    assert found(report(seen(power=power))) == Difference(SERVER, "a", power)


def test_power_that_isnt_known_says_nothing() -> None:
    assert found(report(seen(power=PowerState.NOSTATE))) is None


def test_a_vm_state_that_doesnt_fit_the_power_is_mended() -> None:
    stopped = replace(SERVER, vm_state="stopped")
    assert found(report(seen()), stopped) == Difference(stopped, "a", PowerState.RUNNING)


def test_a_paused_server_is_listed_as_running() -> None:
    paused = replace(SERVER, vm_state="paused", power_state=PowerState.PAUSED)
    assert found(report(seen()), paused) is None
    stopped = report(seen(power=PowerState.SHUTDOWN))
    assert found(stopped, paused) == Difference(paused, "a", PowerState.SHUTDOWN)


def test_a_look_right_after_a_change_doesnt_count() -> None:
    fresh = replace(SERVER, changed_at=NOW - datetime.timedelta(seconds=10))
    assert found(report(seen(power=PowerState.SHUTDOWN)), fresh) is None


def test_another_node_is_searched() -> None:
    assert found(report(seen("b"))) == Difference(SERVER, "b")


def test_a_node_that_is_offline_has_no_say() -> None:
    assert found(report(seen("b"), nodes=("a",))) is None
    assert found(report(seen("", PowerState.NOSTATE))) is None


def test_a_worker_may_speak_of_its_own_hosts_only() -> None:
    other = replace(SERVER, host="host-c", node="c")
    assert found(report(VmFacts(100, "c", PowerState.SHUTDOWN)), other) is None
    assert found(report(gone=(100,)), other) is None
    # It came to one of its own.
    assert found(report(seen("b")), other) == Difference(other, "b")


@pytest.mark.parametrize("how", [{"gone": (100,)}, {"low": 0, "high": 500}])
def test_what_the_whole_cluster_hasnt_got_is_searched(how: dict[str, Any]) -> None:
    assert found(report(**how)) == Difference(SERVER)
    assert found(report(**how, whole=False)) is None
    assert found(report(**how, nodes=("b", "c"))) is None


def test_a_range_says_nothing_of_what_is_outside() -> None:
    assert found(report(low=101, high=500)) is None
    assert found(report()) is None


def test_a_vanished_one_is_searched_when_it_is_seen_again_only() -> None:
    gone = replace(SERVER, vm_state="error", power_state=0, saw=Saw.VANISHED)
    assert found(report(gone=(100,)), gone) is None
    assert found(report(seen()), gone) == Difference(gone, "a")


def test_somebody_elses_vm_is_looked_at_again_after_a_while_only() -> None:
    foreign = replace(SERVER, vm_state="error", power_state=0, saw=Saw.FOREIGN)
    assert found(report(seen()), foreign) == Difference(foreign, "a")
    recent = replace(foreign, changed_at=NOW - datetime.timedelta(minutes=5))
    assert found(report(seen()), recent) is None
