"""What flavors and requests ask for, from the API to the VM, on the embedded cloud."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from openstack.exceptions import ResourceFailure

from tests.functional.cloud import EmbeddedCloud, eventually

SECONDS = 60


@pytest.fixture(scope="module")
def cloud(three_nodes: EmbeddedCloud) -> EmbeddedCloud:
    """A simulated cluster of three nodes."""
    return three_nodes


@pytest.fixture
def admin(cloud: EmbeddedCloud) -> Iterator[Any]:
    """An administrator, whose servers are gone afterwards."""
    connection = cloud.connection("micronova-admin")
    yield connection
    for server in list(connection.compute.servers()):
        connection.compute.delete_server(server)
    eventually(lambda: not list(connection.compute.servers()))


def a_server(admin: Any, specs: dict[str, str] | None = None, **asked: Any) -> Any:
    """A server that was created, at its end: ACTIVE or ERROR."""
    flavor = admin.compute.create_flavor(
        name=f"f-{uuid.uuid4().hex}", vcpus=2, ram=512, disk=4, is_public=True
    )
    if specs:
        admin.compute.create_flavor_extra_specs(flavor, specs)
    server = admin.compute.create_server(
        name="web",
        flavor_id=flavor.id,
        image_id=admin.image.find_image("debian-12").id,
        networks=[{"uuid": admin.network.find_network("vmbr0").id}],
        **asked,
    )
    with contextlib.suppress(ResourceFailure):
        admin.compute.wait_for_server(server, failures=["ERROR"], interval=0.2, wait=SECONDS)
    return admin.compute.get_server(server.id)


def config_of(cloud: EmbeddedCloud, server: Any) -> dict[str, str]:
    for cluster in cloud.control("GET", "state")["clusters"]:
        for vm in cluster["vms"]:
            if vm["config"].get("smbios1") == f"uuid={server.id}":
                found: dict[str, str] = vm["config"]
                return found
    raise AssertionError(f"no VM of {server.id}")


def test_hardware(cloud: EmbeddedCloud, admin: Any) -> None:
    specs = {
        "os:secure_boot": "required",
        "hw:tpm_version": "2.0",
        "hw:cpu_sockets": "2",
        "hw:numa_nodes": "2",
        "capabilities:hypervisor_version": ">= 8.4",
        "trait:CUSTOM_STORAGE_SNAPSHOTS": "required",
    }
    server = a_server(admin, specs)
    assert server.status == "ACTIVE", server.fault
    config = config_of(cloud, server)
    assert (config["bios"], config["machine"], config["sockets"]) == ("ovmf", "q35", "2")
    assert "pre-enrolled-keys=1" in config["efidisk0"]
    assert "version=v2.0" in config["tpmstate0"]
    assert config["numa1"] == "cpus=1,memory=256"


@pytest.mark.parametrize(
    ("specs", "reason"),
    [
        ({"hw:cpu_policy": "dedicated"}, "guests can't be bound to processors"),
        ({"capabilities:hypervisor_version": "< 8"}, "hypervisor_version is "),
        ({"capabilities:storage:type": "rbd"}, "storage:type is "),
        ({"pci_passthrough:alias": "gpu:1"}, "CUSTOM_PCI_GPU"),
        ({"trait:CUSTOM_STORAGE_RBD": "required"}, "without CUSTOM_STORAGE_RBD"),
    ],
)
def test_what_cannot_be_had_is_reported(admin: Any, specs: dict[str, str], reason: str) -> None:
    server = a_server(admin, specs)
    assert server.status == "ERROR"
    assert reason in server.fault["message"]


def test_hints_and_hosts(admin: Any) -> None:
    first = a_server(admin, host="pve2")
    assert first.compute_host == "pve2"
    with_it = a_server(admin, scheduler_hints={"same_host": [first.id]})
    assert with_it.compute_host == "pve2"
    away = a_server(admin, scheduler_hints={"different_host": [first.id]})
    assert away.compute_host in {"pve1", "pve3"}
    nowhere = a_server(admin, scheduler_hints={"same_host": [str(uuid.uuid4())]})
    assert "3 with no server of the hint same_host" in nowhere.fault["message"]
    far = a_server(admin, scheduler_hints={"build_near_host_ip": "192.0.2.1"})
    assert "its address is not in 192.0.2.0/24" in far.fault["message"]
