"""A guest's hardware as Proxmox VE's options, and what its API's schema says to them."""

from __future__ import annotations

from typing import Any

import pytest

from common.failures import Verdict
from common.messages.commands import Nic
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.observe import devices, refresh
from compute.hypervisor.proxmox.observe.snapshot import Storage
from compute.hypervisor.proxmox.vmconfig import guest, hardware
from compute.hypervisor.proxmox.vmconfig.marks import server_mark
from simulator.request.apischema import methods, parameters
from simulator.request.params import complaint
from tests.unit.compute.fakes import SERVER, a_build

LVM = Storage("fast", "lvmthin", False, True, 1 << 40, 0, frozenset({"images"}))
FILES = Storage("local", "dir", False, True, 1 << 40, 0, frozenset({"images"}))


def options(
    specs: dict[str, str] | None = None,
    image: dict[str, str] | None = None,
    storage: Storage = LVM,
    **changes: Any,
) -> dict[str, Any]:
    sizes = {"vcpus": 4, "memory_mib": 4096, **changes}
    build = a_build(extra_specs=specs or {}, image_properties=image or {}, **sizes)
    found = hardware.parameters(build, server_mark(SERVER, ""), "host", None)
    return found | guest.disks(guest.of(build), storage.name, storage.type)


def test_nobody_asks_for_anything() -> None:
    found = options()
    assert (found["cores"], found["cpu"], found["ostype"]) == (4, "host", "l26")
    assert (found["serial0"], found["vga"]) == ("socket", "std")
    asked = {"bios", "machine", "efidisk0", "tpmstate0", "numa", "sockets", "watchdog", "hostpci0"}
    assert not asked & set(found)


def test_firmware_secure_boot_and_tpm() -> None:
    image = {"hw_firmware_type": "uefi"}
    found = options({"hw:tpm_version": "2.0"}, image)
    assert (found["bios"], found["machine"]) == ("ovmf", "q35")
    assert found["efidisk0"] == "fast:1,efitype=4m,pre-enrolled-keys=0"
    assert found["tpmstate0"] == "fast:1,version=v2.0"
    secure = options({"os:secure_boot": "required"}, image, FILES)
    assert secure["efidisk0"] == "local:1,efitype=4m,pre-enrolled-keys=1,format=qcow2"


def test_processors_and_memory() -> None:
    found = options({"hw:cpu_sockets": "2", "hw:numa_nodes": "2", "hw:hide_hypervisor_id": "yes"})
    assert (found["sockets"], found["cores"], found["numa"]) == (2, 2, 1)
    assert found["numa0"] == "cpus=0-1,memory=2048"
    assert found["numa1"] == "cpus=2-3,memory=2048"
    assert found["cpu"] == "host,hidden=1"


def test_other_devices() -> None:
    specs = {
        "hw:watchdog_action": "reset",
        "hw:serial_port_count": "2",
        "hw:viommu_model": "intel",
        "hw:vif_multiqueue_enabled": "true",
        "pci_passthrough:alias": "gpu:2",
    }
    nic = Nic("p", "n", "net", "vmbr1", "fa:16:3e:aa:bb:cc")
    found = options(specs, {"hw_video_model": "qxl", "os_type": "windows"}, nics=(nic,))
    assert found["watchdog"] == "model=i6300esb,action=reset"
    assert found["serial1"] == "socket"
    assert found["machine"] == "q35,viommu=intel"
    assert found["net0"] == "virtio=FA:16:3E:AA:BB:CC,bridge=vmbr1,queues=4"
    assert (found["vga"], found["ostype"]) == ("qxl", "win11")
    assert (found["hostpci0"], found["hostpci1"]) == ("mapping=gpu,pcie=1",) * 2
    old = options({"pci_passthrough:alias": "gpu:1"}, {"hw_vif_model": "e1000"}, nics=(nic,))
    assert old["hostpci0"] == "mapping=gpu"
    assert old["net0"] == "e1000=FA:16:3E:AA:BB:CC,bridge=vmbr1"


def test_what_cannot_be_had_ends_the_build() -> None:
    with pytest.raises(HypervisorError, match="can't be bound to processors") as refused:
        options({"hw:cpu_policy": "dedicated"})
    assert refused.value.verdict is Verdict.FATAL


def test_the_schema_has_all_of_it() -> None:
    specs = {
        "hw:numa_nodes": "2",
        "hw:cpu_sockets": "2",
        "hw:watchdog_action": "reset",
        "hw:tpm_version": "1.2",
        "os:secure_boot": "required",
        "pci_passthrough:alias": "gpu:1",
        "hw:serial_port_count": "4",
    }
    rules = parameters(methods()["/nodes/{node}/qemu"]["POST"])
    found = options(specs, {"hw_machine_type": "pc-q35-9.2"})
    for name, value in found.items():
        assert complaint(name, str(value), rules[name]) is None


def test_devices_that_the_token_may_use() -> None:
    mappings = [
        {
            "id": "gpu",
            "map": [
                "id=10de:2236,node=pve1,path=0000:81:00.0",
                "id=10de:2236,node=pve1,path=0000:82:00.0;0000:83:00.0",
                "id=10de:2236,node=pve2,path=0000:81:00",
            ],
        },
        {"id": "nic", "map": ["id=8086:1572,node=pve1,path=0000:01:00.0"]},
        {"id": "vgpu", "mdev": 1, "map": ["id=10de:2236,node=pve1,path=0000:84:00.0"]},
    ]
    use = {"Mapping.Use": 1}
    assert devices.by_node(mappings, {"/mapping/pci/gpu": use, "/mapping/pci/vgpu": use}) == {
        "pve1": {"gpu": 3},
        "pve2": {"gpu": 1},
    }
    assert devices.by_node(mappings, {"/mapping": use})["pve1"] == {"gpu": 3, "nic": 1}
    assert devices.by_node(mappings, {"/mapping/pci/gpu": {"Mapping.Audit": 1}}) == {}


def test_the_newest_machine_type() -> None:
    types = [{"version": "9.2+pve1"}, {"version": "10.0"}, {"version": "10.0+pve1"}, {"id": "x"}]
    assert refresh._newest(types) == "10.0"
    assert refresh._newest([]) == ""
