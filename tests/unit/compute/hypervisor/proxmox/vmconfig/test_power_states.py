"""The power state, of a VM and of a list."""

from __future__ import annotations

import pytest

from common.resources.states import PowerState
from compute.hypervisor.proxmox.vmconfig import disks, power_states


@pytest.mark.parametrize(
    ("status", "qmpstatus", "lock", "seen"),
    [
        ("running", "running", "", PowerState.RUNNING),
        ("running", "paused", "", PowerState.PAUSED),
        ("running", "running", "suspending", PowerState.RUNNING),
        ("stopped", "stopped", "", PowerState.SHUTDOWN),
        ("stopped", "stopped", "suspended", PowerState.SUSPENDED),
        ("unknown", "", "", PowerState.NOSTATE),
    ],
)
def test_the_current_state(status: str, qmpstatus: str, lock: str, seen: PowerState) -> None:
    answer = {"status": status, "qmpstatus": qmpstatus} | ({"lock": lock} if lock else {})
    assert power_states.current(answer) is seen


def test_a_list_is_late_with_the_status_but_not_with_the_lock() -> None:
    assert power_states.listed("running", "suspended") is PowerState.SUSPENDED
    assert power_states.listed("running", "backup") is PowerState.RUNNING


def test_only_other_locks_keep_others_out() -> None:
    assert not power_states.is_locked({})
    assert not power_states.is_locked({"lock": "suspended"})
    assert power_states.is_locked({"lock": "suspending"})


def test_a_saved_memory_is_a_volume_of_the_vm() -> None:
    config = {
        "scsi0": "local:570/vm-570-disk-0.qcow2,size=16M",
        "ide2": "iso:iso/micronova.iso,media=cdrom",
        "vmstate": "shared:570/vm-570-state-suspend-2026-11-22.raw",
    }
    assert config["vmstate"] in disks.volumes(config, 570)
    assert disks.storages(config) == ["local", "shared"]
