"""Machines that were never finished hold a VMID: it is set aside, nothing else is left."""

from __future__ import annotations

import pytest

from common.failures import Verdict
from common.messages.reports import Category
from tests.functional.compute.conftest import Cluster, Worker, a_build, a_destroy
from tests.functional.simulator_fixture import RunningSimulator


@pytest.mark.parametrize(
    ("leak", "template"), [("L1", False), ("L4", False), ("L4", True)], ids=str
)
def test_a_shell_that_only_root_can_remove_is_set_aside(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, leak: str, template: bool
) -> None:
    if template:
        assert worker.run(a_build()).ok
    build = a_build() if template else a_build(template=None)
    vmid = build.placed.vmid
    simulator.fault(leak=leak, vmid=vmid)
    outcome = worker.run(build)
    failure = outcome.failure
    assert failure is not None
    assert (failure.category, failure.verdict) == (Category.LOCK, Verdict.QUARANTINE)
    lock = "clone" if template else "create"
    # `qm destroy` frees what the configuration names, and that has no disk yet when a create ends.
    named = str(cluster.vm(vmid)["config"].get("scsi0"))
    disks = [one for one in cluster.volumes(vmid) if "iso/" not in one and one not in named]
    assert bool(disks) == (leak == "L4" and not template)
    assert failure.left == (
        f"VM {vmid} on pve1: locked ({lock})",
        *(f"volume {volid}" for volid in disks),
    )
    assert failure.remedy == " && ".join(
        [
            f"as root on pve1: qm unlock {vmid}",
            f"qm destroy {vmid} --purge",
            *(f"pvesm free {volid}" for volid in disks),
        ]
    )
    assert outcome.gone
    assert not failure.clean
    assert not failure.refused, "this build made it"
    # Its config drive is gone, and nothing was tried that Proxmox VE refuses anyway.
    assert [one for one in cluster.volumes(vmid) if "iso/" in one] == []
    assert cluster.calls("DELETE", f"/qemu/{vmid}") == []
    # A repeated command, after the agent's death, comes to the same.
    worker.service._executor._repeats._outcomes.clear()
    again = worker.run(build)
    assert again.gone
    assert again.failure is not None
    assert (again.failure.verdict, again.failure.left) == (Verdict.QUARANTINE, failure.left)
    assert not again.failure.refused
    # A delete doesn't pass it over: it ends when it is seen gone.
    assert not worker.run(a_destroy(build)).gone


def test_what_is_locked_otherwise_is_not_set_aside(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    build = a_build(template=None)
    assert worker.run(build).ok
    simulator.fault(action="config-lock", vmid=build.placed.vmid, lock="backup")
    worker.service._executor._repeats._outcomes.clear()
    outcome = worker.run(build)
    assert not outcome.gone
    assert outcome.failure is not None
    simulator.control("DELETE", "faults")
    assert worker.run(a_destroy(build)).gone
