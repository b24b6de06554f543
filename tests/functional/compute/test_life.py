"""Build, power and destroy of servers on simulated Proxmox VE clusters."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from common.context import internal
from common.messages.commands import PowerAction
from common.messages.queues import OPERATIONS, Queue, Queues
from common.messages.reports import Category
from common.resources.states import PowerState
from compute import drivers
from compute.hypervisor.proxmox.driver import ProxmoxHypervisor
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_destroy,
    a_power,
    configuration,
    proxmox_text,
    template_vmid,
)
from tests.functional.simulator_fixture import RunningSimulator

#: what is read of one node, for its facts alone
DETAILS = ("/status", "/network", "/machines", "/certificates/info")

STEPS = [
    "compute_check_host",
    "compute_ensure_image",
    "compute_upload_config_drive",
    "compute_create_vm",
    "compute_resize_disk",
    "compute_start_vm",
]


def test_a_build_makes_what_was_asked_and_a_destroy_leaves_nothing(
    worker: Worker, cluster: Cluster
) -> None:
    build = a_build()
    outcome = worker.run(build)
    assert outcome.ok
    assert outcome.power_state == PowerState.RUNNING
    vm = cluster.vm(build.placed.vmid)
    config = vm["config"]
    assert config["smbios1"] == f"uuid={build.resource_id}"
    assert config["description"].splitlines()[0] == f"micronova: server={build.resource_id}"
    assert config["net0"] == "virtio=FA:16:3E:00:00:01,bridge=vmbr0,mtu=1450,tag=7"
    assert (config["cores"], config["memory"]) == ("2", "512")
    assert "size=2G" in config["scsi0"]
    assert config["ide2"].startswith(
        f"local:iso/micronova-{build.placed.vmid}-{build.resource_id}.iso,media=cdrom"
    )
    steps = worker.conductor.steps(build)
    assert list(steps) == STEPS
    assert {step.result for step in steps.values()} == {"Success"}
    assert all(steps[name].upid for name in STEPS[2:])
    assert steps["compute_ensure_image"].detail["way"] == "linked_clone"

    destroyed = worker.run(a_destroy(build))
    assert destroyed.ok
    assert destroyed.gone
    assert cluster.is_empty(build.placed.vmid)


def test_a_build_without_a_template_imports(worker: Worker, cluster: Cluster) -> None:
    build = a_build(template=None)
    assert worker.run(build).ok
    assert worker.conductor.steps(build)["compute_ensure_image"].detail["way"] == "import_from"
    config = cluster.vm(build.placed.vmid)["config"]
    assert config["smbios1"] == f"uuid={build.resource_id}"
    assert "base-" not in config["scsi0"]
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)


def test_power_actions_are_seen_done(worker: Worker, cluster: Cluster) -> None:
    build = a_build()
    assert worker.run(build).ok
    for action, seen in (
        (PowerAction.STOP, PowerState.SHUTDOWN),
        (PowerAction.STOP, PowerState.SHUTDOWN),
        (PowerAction.START, PowerState.RUNNING),
        (PowerAction.REBOOT_SOFT, PowerState.RUNNING),
        (PowerAction.REBOOT_HARD, PowerState.RUNNING),
    ):
        outcome = worker.run(a_power(build, action))
        assert outcome.ok, outcome
        assert outcome.power_state == seen
    assert worker.run(a_destroy(build)).gone


def test_a_repeated_command_converges_and_reports_again(worker: Worker, cluster: Cluster) -> None:
    build = a_build()
    assert worker.run(build).ok
    again = worker.run(dataclasses.replace(build, attempt=2))
    assert again.ok
    assert len(cluster.calls("POST", "/clone")) == 1
    destroy = a_destroy(build)
    assert worker.run(destroy).gone
    assert worker.run(dataclasses.replace(destroy, attempt=2)).gone


def test_a_command_under_way_is_answered_with_a_sign_of_life(
    worker: Worker, cluster: Cluster
) -> None:
    build = a_build()
    worker.send(build)
    worker.send(dataclasses.replace(build, attempt=2))
    worker.conductor.wait_for(
        lambda: any(
            (one.operation_id, one.attempt) == (build.operation_id, 2)
            for beat in worker.conductor.heartbeats
            for one in beat.working
        )
    )
    worker.conductor.wait_for(
        lambda: worker.conductor.outcomes(dataclasses.replace(build, attempt=2))
    )
    assert worker.conductor.outcomes(build) == []
    assert len(cluster.calls("POST", "/clone")) == 1


def test_a_destroy_cancels_the_build_before_it(worker: Worker, cluster: Cluster) -> None:
    build = a_build()
    worker.send(build)
    worker.conductor.wait_for(lambda: "compute_check_host" in worker.conductor.steps(build))
    assert worker.run(a_destroy(build)).gone
    built = worker.conductor.outcomes(build)[0]
    assert not built.ok
    assert built.failure is not None
    assert "cancelled" in built.failure.message
    assert cluster.is_empty(build.placed.vmid)


def test_a_build_that_comes_after_the_destroy_makes_nothing(
    worker: Worker, cluster: Cluster
) -> None:
    build = a_build()
    assert worker.run(a_destroy(build)).gone
    outcome = worker.run(build)
    assert not outcome.ok
    assert cluster.is_empty(build.placed.vmid)


def test_eight_parallel_builds_make_one_template(worker: Worker, cluster: Cluster) -> None:
    builds = [a_build() for _ in range(8)]
    for build in builds:
        worker.send(build)
    outcomes = worker.conductor.wait_for(
        lambda: (
            found if all(found := [worker.conductor.outcomes(build) for build in builds]) else None
        )
    )
    assert all(outcome.ok for [outcome] in outcomes), outcomes
    creates = [call for call in cluster.calls("POST", "/qemu") if call["status"] == 200]
    assert len(creates) == 1
    assert len(cluster.calls("POST", "/template")) == 1
    assert cluster.vm(template_vmid())["config"]["template"] == "1"


def test_heartbeats_say_what_works_on_a_storage(
    worker: Worker, simulator: RunningSimulator
) -> None:
    assert worker.run(a_build()).ok
    simulator.fault(action="hold", method="POST", path="/clone$", times=0)
    builds = [a_build() for _ in range(2)]
    for build in builds:
        worker.send(build)

    def queues_now() -> Queues:
        found = worker.conductor.heartbeats[-1].queues
        assert found is not None
        return found

    def held() -> tuple[Queue, ...]:
        queues = queues_now().of_host("pve1")
        return queues if [one.running for one in queues] == [2, 2] else ()

    operations, local = worker.conductor.wait_for(held)
    assert (operations.kind, operations.waiting) == (OPERATIONS, 0)
    assert (local.name, local.shared, local.waiting) == ("local", False, 0)
    assert local.width >= 2
    assert queues_now().of_host("pve2") == queues_now().idle
    simulator.control("DELETE", "faults")
    worker.conductor.wait_for(lambda: all(map(worker.conductor.outcomes, builds)))
    worker.conductor.wait_for(lambda: not queues_now().busy)


def test_facts_and_inventories_are_reported(worker: Worker) -> None:
    def complete() -> bool:
        return len(worker.placement.inventories) == 2 and all(
            len(traits) > 5 for traits in worker.placement.kept.values()
        )

    beat = next(beat for beat in worker.conductor.heartbeats if beat.facts)
    facts = beat.facts[0]
    assert (facts.host, facts.worker, facts.vm_storage) == ("pve1", "worker1", "local")
    assert facts.healthy
    assert facts.bridges == ("vmbr0", "vmbr1")
    assert facts.capabilities["linked_clone"]
    assert facts.capabilities["snapshots"]
    assert (facts.hypervisor_version, facts.machine_version) == ("9.2.11", "10.0")
    assert facts.bridge_vlans == {"vmbr1": ""}
    assert {image.name for image in beat.clusters[0].images} >= {"cirros", "debian-12"}
    reports = len([beat for beat in worker.conductor.heartbeats if beat.facts])
    worker.client.announce(internal())
    worker.conductor.wait_for(
        lambda: len([beat for beat in worker.conductor.heartbeats if beat.facts]) > reports
    )
    worker.conductor.wait_for(lambda: complete() or None)
    inventory = worker.placement.inventories[facts.uuid]
    assert set(inventory) == {"VCPU", "MEMORY_MB", "DISK_GB"}
    assert inventory["MEMORY_MB"]["reserved"] == 1024
    assert worker.placement.kept[facts.uuid] >= {
        "COMPUTE_STATUS_DISABLED",
        "COMPUTE_FIRMWARE_UEFI",
        "CUSTOM_STORAGE_DIR",
        "CUSTOM_STORAGE_LOCAL",
        "CUSTOM_STORAGE_SNAPSHOTS",
    }


def test_a_command_of_an_unknown_cluster_is_refused(worker: Worker) -> None:
    build = a_build()
    placed = dataclasses.replace(build.placed, cluster="elsewhere")
    outcome = worker.run(dataclasses.replace(build, placed=placed))
    assert outcome.failure is not None
    assert outcome.failure.category is Category.CONFIGURATION


@pytest.mark.parametrize("others", ["pve2", ""])
def test_workers_that_divide_a_cluster_read_each_node_once(
    simulator: RunningSimulator, tmp_path: Path, others: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reads the lists of the whole cluster, whose length one call has, and of the nodes only
    its own; a worker without ``hosts`` reads all."""

    def read(hosts: str) -> set[str]:
        """What a worker of these hosts asks of single nodes, at its first refresh."""
        text = proxmox_text(simulator, hosts=hosts)
        [hypervisor] = drivers.hypervisors(configuration(tmp_path, text))
        assert isinstance(hypervisor, ProxmoxHypervisor)
        client, paths = hypervisor.shared.client, list[str]()
        get = client.get

        def noted(path: str, **more: Any) -> Any:
            paths.append(path)
            return get(path, **more)

        monkeypatch.setattr(client, "get", noted)
        seen = hypervisor.observe()
        assert [one.node for one in seen.hosts] == (hosts.split() or ["pve1", "pve2"])
        assert sum(path.startswith("cluster/resources") for path in paths) == 1
        hypervisor.close()
        return {path for path in paths if path.startswith("nodes/") and path.endswith(DETAILS)}

    mine, theirs = read("pve1"), read(others)
    assert {path.split("/")[1] for path in mine} == {"pve1"}
    assert {path.split("/")[1] for path in theirs} == set(others.split() or ["pve1", "pve2"])
