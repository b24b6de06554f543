"""Guests with firmware, a TPM, NUMA nodes and mapped devices of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from proxmoxer import ProxmoxAPI

from tests.functional.compute.conftest import Cluster, Worker, a_build, a_destroy, granted
from tests.functional.simulator_fixture import RunningSimulator

IMAGE = {"hw_firmware_type": "uefi", "os_secure_boot": "required"}
SPECS = {"hw:tpm_version": "2.0", "hw:cpu_sockets": "2", "hw:numa_nodes": "2"}


@pytest.mark.parametrize("cloned", [True, False])
def test_what_flavor_and_image_ask_is_in_the_vm(
    worker: Worker, cluster: Cluster, cloned: bool
) -> None:
    more: dict[str, Any] = {} if cloned else {"template": None}
    build = a_build(extra_specs=SPECS, image_properties=IMAGE, **more)
    outcome = worker.run(build)
    assert outcome.ok, outcome
    config = cluster.vm(build.placed.vmid)["config"]
    assert (config["bios"], config["machine"]) == ("ovmf", "q35")
    assert "pre-enrolled-keys=1" in config["efidisk0"]
    assert "version=v2.0" in config["tpmstate0"]
    assert (config["sockets"], config["cores"], config["numa"]) == ("2", "1", "1")
    assert config["numa1"] == "cpus=1,memory=256"
    assert len(cluster.volumes(build.placed.vmid)) == 4
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)


def test_what_cannot_be_had_makes_nothing(worker: Worker, cluster: Cluster) -> None:
    build = a_build(extra_specs={"hw:mem_page_size": "large"})
    outcome = worker.run(build)
    assert outcome.failure is not None
    assert "guests can't have huge pages" in outcome.failure.message
    assert outcome.gone
    assert cluster.is_empty(build.placed.vmid)


@pytest.fixture
def root(simulator: RunningSimulator) -> Any:
    password = (simulator.state_dir / "root-password").read_text().strip()
    host, _, port = simulator.url.removeprefix("https://").rpartition(":")
    return ProxmoxAPI(
        host,
        port=int(port),
        user="root@pam",
        password=password,
        verify_ssl=str(simulator.ca_file),
    )


@pytest.fixture
def mapped(root: Any, worker: Worker, simulator: RunningSimulator) -> Iterator[None]:
    """Two devices on pve1, by the name of gpu-a; the worker looks for them at once."""
    granted(simulator, "devices")
    paths = [f"id=10de:2236,node=pve1,path=0000:{bus}:00.0" for bus in ("81", "82")]
    refresher = worker.hypervisors[0]._refresher  # type: ignore[attr-defined]
    root.cluster.mapping.pci.post(id="gpu-a", map=paths)
    refresher._clusterwide._rights_due = 0.0
    yield
    root.cluster.mapping.pci("gpu-a").delete()
    refresher._clusterwide._rights_due = 0.0
    worker.conductor.wait_for(
        lambda: not any("CUSTOM_PCI_GPU_A" in one for one in worker.placement.inventories.values())
    )


def test_mapped_devices(worker: Worker, cluster: Cluster, mapped: None) -> None:
    facts = {one.host: one for one in worker.hypervisors[0].observe().hosts}
    assert facts["pve1"].devices == {"gpu-a": 2}
    assert facts["pve2"].devices == {}
    two = a_build(extra_specs={"pci_passthrough:alias": "gpu-a:2"})
    assert worker.run(two).ok
    config = cluster.vm(two.placed.vmid)["config"]
    assert (config["hostpci0"], config["hostpci1"]) == ("mapping=gpu-a", "mapping=gpu-a")
    another = worker.run(a_build(extra_specs={"pci_passthrough:alias": "gpu-a:1"}))
    assert another.failure is not None
    assert "no free PCI device left" in another.failure.message
    assert another.gone
    assert worker.run(a_destroy(two)).gone
    uuid = facts["pve1"].uuid
    worker.conductor.wait_for(
        lambda: worker.placement.inventories[uuid].get("CUSTOM_PCI_GPU_A") is not None
    )
    assert worker.placement.classes == ["CUSTOM_PCI_GPU_A"]


@pytest.mark.parametrize("seconds", [0.05, 0.2, 0.35])
def test_disks_of_a_killed_configuration_go_with_the_vm(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, seconds: float
) -> None:
    build = a_build(extra_specs=SPECS, image_properties=IMAGE)
    path = f"/qemu/{build.placed.vmid}/config$"
    simulator.fault(action="task-kill", method="POST", path=path, seconds=seconds)
    outcome = worker.run(build)
    assert outcome.ok or outcome.gone, outcome
    # Another worker, or this one restarted, knows nothing of what it saw before.
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid), cluster.volumes(build.placed.vmid)
