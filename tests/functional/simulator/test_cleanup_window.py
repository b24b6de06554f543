"""The lock that a node holds when a VM is started again before its end was cleaned up."""

from __future__ import annotations

import pytest
from proxmoxer import ResourceException

from tests.functional.simulator.conftest import Lab, until

TIMEOUT = "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout"


def _held(lab: Lab) -> bool:
    cluster = lab.simulator.cluster()
    with cluster.turn():
        return bool(cluster.vm_lock("pve1", 100).holders)


def _cleaning(lab: Lab) -> bool:
    cluster = lab.simulator.cluster()
    with cluster.turn():
        return bool(cluster.background)


@pytest.fixture
def running(lab: Lab) -> Lab:
    """VM 100, running, at a speed at which a wait for its lock takes 0.2 s."""
    assert lab.create() == "OK"
    assert lab.done(lab.api.nodes("pve1").qemu(100).status.start.post()) == "OK"
    lab.simulator.engine.set_speed(50)
    return lab


def test_a_start_right_after_a_stop_leaves_the_lock_with_the_clean_up(running: Lab) -> None:
    vm = running.api.nodes("pve1").qemu(100)
    running.simulator.engine.set_speed(2)
    assert running.done(vm.status.stop.post()) == "OK"
    assert running.done(vm.status.start.post()) == "OK"
    vm.config.put(description="still free")
    running.simulator.engine.set_speed(50)
    until(lambda: _held(running))
    began = running.simulator.engine.clock.now()
    stopped, reset = vm.status.stop.post(), vm.status.reset.post()
    with pytest.raises(ResourceException) as refused:
        vm.config.put(description="x")
    assert (refused.value.status_code, refused.value.content) == (500, TIMEOUT)
    assert [running.done(one) for one in (stopped, reset)] == [TIMEOUT] * 2
    log = [line["t"] for line in running.api.nodes("pve1").tasks(stopped).log.get()]
    assert log == ["trying to acquire lock...", f"TASK ERROR: {TIMEOUT}"]
    assert vm.status.current.get()["status"] == "running"
    until(lambda: not _cleaning(running))
    assert running.simulator.engine.clock.now() - began > 25
    vm.config.put(description="free again")
    assert running.done(vm.status.stop.post()) == "OK"


def test_a_stop_without_a_start_holds_nothing(running: Lab) -> None:
    vm = running.api.nodes("pve1").qemu(100)
    assert running.done(vm.status.stop.post()) == "OK"
    until(lambda: not _cleaning(running))
    assert not _held(running)
    assert running.done(vm.status.start.post()) == "OK"
    vm.config.put(description="x")


def test_a_reset_holds_nothing(running: Lab) -> None:
    vm = running.api.nodes("pve1").qemu(100)
    assert running.done(vm.status.reset.post()) == "OK"
    assert not _cleaning(running)


def test_a_soft_reboot_holds_nothing(running: Lab) -> None:
    vm = running.api.nodes("pve1").qemu(100)
    assert running.done(vm.status.reboot.post()) == "OK"
    assert not _cleaning(running)


@pytest.mark.parametrize("verb", ["reset", "suspend", "resume", "reboot"])
def test_what_needs_a_process_is_refused_at_once_without_one(lab: Lab, verb: str) -> None:
    assert lab.create() == "OK"
    with pytest.raises(ResourceException) as off:
        getattr(lab.api.nodes("pve1").qemu(100).status, verb).post()
    assert (off.value.status_code, off.value.content) == (500, "VM 100 not running")
    with pytest.raises(ResourceException) as missing:
        getattr(lab.api.nodes("pve1").qemu(999).status, verb).post()
    assert missing.value.content == "unable to find configuration file for VM 999 on node 'pve1'"
