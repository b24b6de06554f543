"""A VM that somebody protected from removal is neither stopped nor removed by anything."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from common import clock, ids
from common.context import internal
from common.failures import Verdict
from common.messages.commands import Command, Destroy, Placed, PowerAction, RetireTemplate
from common.messages.reports import Category, Failure
from common.resources.states import ResourceType
from tests.functional.compute.conftest import (
    IMAGE,
    Cluster,
    Worker,
    a_build,
    a_destroy,
    a_power,
    as_root,
    template_vmid,
)
from tests.functional.simulator_fixture import RunningSimulator


@pytest.fixture
def root(simulator: RunningSimulator, worker: Worker) -> Any:
    """Root at node pve1."""
    return as_root(simulator).nodes("pve1")


def refused(outcome: Any, vmid: int) -> Failure:
    """The failure of an attempt to remove a VM that was not touched."""
    failure = outcome.failure
    assert failure is not None
    assert not outcome.gone
    assert failure.category is Category.PROTECTED
    assert failure.remedy == f"as root on pve1: qm set {vmid} --protection 0"
    return failure


@pytest.mark.parametrize("graceful", [True, False])
def test_a_delete_looks_before_it_stops(
    worker: Worker, cluster: Cluster, root: Any, graceful: bool
) -> None:
    build = a_build()
    assert worker.run(build).ok
    vmid = build.placed.vmid
    root.qemu(vmid).config.put(protection=1)
    before = cluster.vm(vmid)
    destroy = dataclasses.replace(a_destroy(build), graceful=graceful)
    failure = refused(worker.run(destroy), vmid)
    assert (failure.step, failure.verdict) == ("compute_find_vm", Verdict.FATAL)
    assert cluster.vm(vmid)["pid"] == before["pid"]
    assert cluster.calls("POST", "/status/stop") == cluster.calls("POST", "/status/shutdown") == []
    root.qemu(vmid).config.put(protection=0)
    assert worker.run(dataclasses.replace(destroy, attempt=2)).gone


def test_a_reap_leaves_it_and_its_config_drive(
    worker: Worker, cluster: Cluster, root: Any
) -> None:
    build = a_build()
    assert worker.run(build).ok
    assert worker.run(a_power(build, PowerAction.STOP)).ok
    vmid = build.placed.vmid
    root.qemu(vmid).config.put(protection=1)
    there = cluster.volumes(vmid)
    command: Destroy = dataclasses.replace(a_destroy(build), stopped_on="pve1")
    refused(worker.run(command), vmid)
    assert cluster.volumes(vmid) == there
    root.qemu(vmid).config.put(protection=0)
    assert worker.run(a_destroy(build)).gone


def test_a_failed_build_says_what_it_could_not_remove(
    worker: Worker, cluster: Cluster, root: Any, simulator: RunningSimulator
) -> None:
    build = a_build()
    vmid = build.placed.vmid
    simulator.fault(action="hold", how="after", method="PUT", path=f"/qemu/{vmid}/resize$")
    worker.send(build)
    worker.conductor.wait_for(lambda: worker.conductor.steps(build).get("compute_resize_disk"))
    # So that its start fails.
    root.qemu(vmid).config.put(protection=1, net0="virtio,bridge=vmbr9")
    simulator.control("DELETE", "faults")
    outcome = worker.conductor.wait_for(lambda: worker.conductor.outcomes(build))[0]
    assert outcome.failure is not None
    assert outcome.failure.step == "compute_start_vm"
    assert not outcome.gone
    assert outcome.failure.remedy == f"as root on pve1: qm set {vmid} --protection 0"
    root.qemu(vmid).config.put(protection=0)
    assert worker.run(a_destroy(build)).gone


def test_a_template_stays(worker: Worker, cluster: Cluster, root: Any) -> None:
    build = a_build()
    assert worker.run(build).ok
    assert worker.run(a_destroy(build)).gone
    vmid = template_vmid()
    root.qemu(vmid).config.put(protection=1)
    retire: Command = RetireTemplate(
        0,
        0,
        ResourceType.TEMPLATE,
        f"c1/{vmid}",
        Placed("pve1", "c1", "pve1", vmid),
        clock.after(60),
        image_id=ids.named("image", IMAGE),
    )
    worker.client.execute(internal(), worker.service.address, retire)
    outcome = worker.conductor.wait_for(lambda: worker.conductor.outcomes(retire))[0]
    refused(outcome, vmid)
    assert cluster.vm(vmid)["config"]["template"] == "1"
    assert cluster.calls("DELETE", f"/qemu/{vmid}") == []
    root.qemu(vmid).config.put(protection=0)
