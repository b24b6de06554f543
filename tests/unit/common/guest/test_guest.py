"""The virtual hardware that flavors and images ask for."""

from __future__ import annotations

import pytest

from common.guest.asked import CannotError
from common.guest.hardware import (
    Hardware,
    device_class,
    read,
    root_bus,
    version,
    with_root_bus,
)
from common.guest.requirements import requirements
from common.guest.topology import NumaNode, cpu_list, parse_cpus


def of(specs: dict[str, str] | None = None, image: dict[str, str] | None = None) -> Hardware:
    return read(4, 4096, specs or {}, image or {})


def why_not(specs: dict[str, str] | None = None, image: dict[str, str] | None = None) -> str:
    with pytest.raises(CannotError) as refused:
        of(specs, image)
    return str(refused.value)


def test_nobody_asks_for_anything() -> None:
    assert of() == Hardware(sockets=1, cores=4)
    assert of({"trait:A": "required", "resources:VCPU": "0", "hw:unheard_of": "x"}) == of()


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        ({"hw:cpu_sockets": "2"}, (2, 2)),
        ({"hw:cpu_cores": "1"}, (4, 1)),
        ({"hw:cpu_sockets": "2", "hw:cpu_cores": "2", "hw:cpu_threads": "1"}, (2, 2)),
        ({"hw:cpu_max_cores": "3"}, (2, 2)),
        ({"hw:cpu_max_sockets": "1"}, (1, 4)),
    ],
)
def test_topologies(specs: dict[str, str], expected: tuple[int, int]) -> None:
    found = of(specs)
    assert (found.sockets, found.cores) == expected


def test_the_flavors_topology_is_before_the_images() -> None:
    found = of({"hw:cpu_sockets": "2"}, {"hw_cpu_sockets": "4"})
    assert (found.sockets, found.cores) == (2, 2)


@pytest.mark.parametrize(
    ("specs", "reason"),
    [
        ({"hw:cpu_sockets": "3"}, "4 VCPUs can't be 3 sockets (at most 4) of any cores"),
        ({"hw:cpu_max_cores": "1", "hw:cpu_max_sockets": "2"}, "any sockets (at most 2) of any"),
        ({"hw:cpu_threads": "2"}, "guests have one thread a core"),
        ({"hw:cpu_cores": "two"}, "hw:cpu_cores=two is no number over 0"),
        ({"hw:cpu_policy": "dedicated"}, "hw:cpu_policy=dedicated: guests can't be bound to pro"),
        ({"hw:cpu_policy": "mixed"}, "guests can't be bound to processors"),
        ({"hw:mem_page_size": "large"}, "guests can't have huge pages"),
        ({"hw:mem_encryption": "True"}, "memory can't be encrypted"),
        ({"hw:numa_nodes": "9"}, "9 NUMA nodes can't be had, at most 4 with 4 VCPUs"),
        ({"hw:numa_nodes": "3"}, "4 VCPUs can't be shared evenly by 3 NUMA nodes"),
        ({"hw:numa_nodes": "2", "hw:numa_cpus.0": "0-2"}, "of all 2 NUMA nodes or of none"),
        (
            {"hw:numa_nodes": "2", "hw:numa_cpus.0": "0-2", "hw:numa_cpus.1": "2-3"},
            "must name each of the 4 VCPUs once",
        ),
        (
            {"hw:numa_nodes": "2", "hw:numa_mem.0": "1024", "hw:numa_mem.1": "1024"},
            "add up to 2048 MiB, the flavor has 4096",
        ),
        ({"hw:tpm_version": "3.0"}, "hw:tpm_version=3.0 can't be had, only 1.2, 2.0"),
        ({"hw:tpm_model": "tpm-crb", "hw:tpm_version": "2.0"}, "hw:tpm_model=tpm-crb"),
        ({"hw:serial_port_count": "5"}, "at most 4"),
        ({"pci_passthrough:alias": "gpu"}, "is no list of NAME:COUNT"),
        ({"pci_passthrough:alias": "gpu:17"}, "17 devices can't be had, at most 16"),
        ({"hw:hide_hypervisor_id": "maybe"}, "is neither true nor false"),
        ({"quota:cpu_shares": "10"}, "quota:cpu_shares: of what a guest uses only disks and"),
        ({"quota:disk_read_iops_sec": "ten"}, "quota:disk_read_iops_sec=ten is no number from 0"),
        ({"quota:disk_read_iops_sec": "\u0661"}, "is no number from 0"),
        ({"quota:disk_read_iops_sec": "9" * 5000}, "is no number from 0"),
        (
            {"quota:disk_read_iops_sec": "10", "quota:disk_total_iops_sec": "10"},
            "quota:disk_total_iops_sec and quota:disk_read_iops_sec can't be had together",
        ),
        (
            {"quota:vif_inbound_average": "10", "quota:vif_outbound_average": "20"},
            "interfaces have one bound for both directions",
        ),
        ({"quota:vif_inbound_peak": "10"}, "needs quota:vif_inbound_average beside it"),
        ({"hw_rng:allowed": "maybe"}, "hw_rng:allowed=maybe is neither true nor false"),
        ({"hw_rng:rate_bytes": "-1"}, "hw_rng:rate_bytes=-1 is no number over 0"),
    ],
)
def test_what_flavors_cannot_have(specs: dict[str, str], reason: str) -> None:
    assert reason in why_not(specs)


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        ({"hw_machine_type": "virt"}, "hw_machine_type=virt can't be had, only pc, q35"),
        ({"hw_firmware_type": "openfirmware"}, "hw_firmware_type=openfirmware can't be had"),
        ({"hw_firmware_type": "bios", "os_secure_boot": "required"}, "secure boot needs"),
        ({"hw_disk_bus": "xen"}, "hw_disk_bus=xen can't be had, only scsi, virtio, sata, ide"),
        ({"hw_cdrom_bus": "usb"}, "hw_cdrom_bus=usb: config drives are on ide"),
        ({"hw_rng_model": "egd"}, "hw_rng_model=egd can't be had, only virtio"),
        ({"hw_video_ram": "2"}, "hw_video_ram=2 can't be had, only 4 to 512 MiB"),
        ({"hw_video_ram": "x"}, "hw_video_ram=x is no number over 0"),
        ({"hw_vif_model": "ne2k_pci"}, "hw_vif_model=ne2k_pci can't be had, only virtio, e1000"),
        ({"hw_viommu_model": "intel", "hw_machine_type": "pc"}, "needs hw_machine_type=q35"),
    ],
)
def test_what_images_cannot_have(image: dict[str, str], reason: str) -> None:
    assert reason in why_not(image=image)


def test_the_bus_that_a_create_names_wins() -> None:
    image = {"hw_disk_bus": "sata", "root_disk_bus": "ide"}
    assert of(image=with_root_bus(image, None)).disk_bus == root_bus({"hw_disk_bus": "SATA"})
    kept = with_root_bus(image, "virtio")
    assert of(image=kept).disk_bus == root_bus(kept) == "virtio"
    # Even where the image's can't be had.
    assert of(image=with_root_bus({"hw_disk_bus": "xen"}, "scsi")).disk_bus == "scsi"
    assert root_bus({}) == root_bus({"hw_disk_bus": "xen"}) == "scsi"


def test_disks_and_interfaces_are_bounded() -> None:
    bounds = {"disk_total_bytes_sec": 1 << 20, "disk_read_iops_sec": 100, "vif_inbound_average": 9}
    specs = {f"quota:{name}": str(value) for name, value in bounds.items()}
    found = of(specs | {"quota:vif_inbound_peak": "20"}).throttle
    assert dict(found.disks) == {"disk_total_bytes_sec": 1 << 20, "disk_read_iops_sec": 100}
    assert found.vif_kib == 9
    assert of({"quota:disk_read_iops_sec": "0"}) == of()


def test_a_random_number_generator_is_the_image_s_wish() -> None:
    image = {"hw_rng_model": "virtio"}
    assert of(image=image).rng == (0, 0)
    assert of({"hw_rng:allowed": "False"}, image).rng is None
    assert of({"hw_rng:rate_bytes": "5", "hw_rng:rate_period": "10"}, image).rng == (5, 10)
    assert of({"hw_rng:allowed": "True"}).rng is None


def test_a_flavor_may_bound_the_memory_of_graphics_cards() -> None:
    image = {"hw_video_ram": "64"}
    assert of(image=image).video_ram_mib == 64
    assert of({"hw_video:ram_max_mb": "64"}, image).video_ram_mib == 64
    assert "over the flavor's" in why_not({"hw_video:ram_max_mb": "32"}, image)


def test_flavor_and_image_must_agree() -> None:
    assert why_not({"os:secure_boot": "disabled"}, {"os_secure_boot": "required"}) == (
        "the flavor asks os:secure_boot=disabled, the image os_secure_boot=required"
    )
    assert of({"os:secure_boot": "required"}, {"os_secure_boot": "Required"}).secure_boot


def test_harmless_values_ask_for_nothing() -> None:
    specs = {"hw:cpu_policy": "shared", "hw:mem_page_size": "small", "hw:locked_memory": "false"}
    image = {"hw_disk_bus": "scsi", "hw_scsi_model": "virtio-scsi", "hw_vif_model": "virtio"}
    image |= {"hw_boot_menu": "true", "hw_cdrom_bus": "sata"}
    assert of(specs, image) == of()


def test_firmware_and_machine_type() -> None:
    found = of({"hw:tpm_version": "2.0"}, {"hw_firmware_type": "uefi", "os_type": "windows"})
    assert (found.uefi, found.secure_boot, found.tpm, found.machine) == (True, False, "2.0", "q35")
    assert found.windows
    assert of(image={"os_secure_boot": "required"}).uefi
    older = of(image={"hw_machine_type": "pc-q35-9.2"})
    assert (older.machine_version, older.q35) == ((9, 2), True)
    assert of(image={"hw_machine_type": "q35"}).machine_version == ()
    assert of({"hw:viommu_model": "auto"}).iommu == "virtio"


def test_numa_nodes() -> None:
    assert of({"hw:numa_nodes": "2"}).numa == (NumaNode((0, 1), 2048), NumaNode((2, 3), 2048))
    uneven = {
        "hw:numa_nodes": "2",
        "hw:numa_cpus.0": "0-3,^1",
        "hw:numa_cpus.1": "1",
        "hw:numa_mem.0": "3072",
        "hw:numa_mem.1": "1024",
    }
    assert of(uneven).numa == (NumaNode((0, 2, 3), 3072), NumaNode((1,), 1024))


def test_lists_of_processors() -> None:
    assert parse_cpus("0-3, ^2, 7") == (0, 1, 3, 7)
    assert cpu_list((0, 1, 3, 7), ";") == "0-1;3;7"
    for text in ("", "a", "^1-2", "0-99999"):
        with pytest.raises(CannotError):
            parse_cpus(text)


def test_devices_are_counted_by_a_class_of_their_own() -> None:
    specs = {"pci_passthrough:alias": "gpu-a100:1, nic:2,nic:1"}
    assert of(specs).devices == (("gpu-a100", 1), ("nic", 3))
    assert device_class("gpu-a100") == "CUSTOM_PCI_GPU_A100"
    amounts = requirements(1, 64, 0, specs, {}).resources
    assert amounts == {"VCPU": 1, "MEMORY_MB": 64, "CUSTOM_PCI_GPU_A100": 1, "CUSTOM_PCI_NIC": 3}
    assert requirements(1, 64, 0, {"pci_passthrough:alias": "?"}, {}).resources.keys() == {
        "VCPU",
        "MEMORY_MB",
    }


def test_versions() -> None:
    assert version("10.1") > version("9.2")
    assert version("") == version("new") == ()


@pytest.mark.parametrize(
    ("specs", "why"),
    [
        ({"resources1:CUSTOM_X": "1"}, "resources can't be had in groups"),
        ({"trait_NET:CUSTOM_X": "required"}, "resources can't be had in groups"),
        ({"group_policy": "isolate"}, "resources can't be had in groups"),
        ({"accel:device_profile": "x"}, "there are no accelerators to be had"),
        ({"resources:VCPU": "-1"}, "resources:VCPU=-1 is no number from 0"),
        ({"resources:VCPU": "٣"}, "is no number from 0"),
        ({"resources:VCPU": ""}, "is no number from 0"),
        ({"resources:VCPU": "9" * 200}, "is no number from 0"),
        ({"resources:": "5"}, "names nothing"),
        ({"trait:": "required"}, "names nothing"),
        ({"trait:CUSTOM_X": "Required"}, "trait:CUSTOM_X=Required is neither"),
    ],
)
def test_what_placement_would_not_understand(specs: dict[str, str], why: str) -> None:
    assert why in why_not(specs)


def test_images_ask_of_placement_too() -> None:
    assert "neither required nor forbidden" in why_not(image={"trait:CUSTOM_X": "yes"})
    assert "fully virtualised" in why_not(image={"hw_vm_mode": "xen"})
    assert "fully virtualised" in why_not(image={"vm_mode": "exe"})
    assert of({"group_policy": "none"}, {"hw_vm_mode": "hvm", "resources:VCPU": "x"}) == of()
