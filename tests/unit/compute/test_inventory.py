"""What a host offers, in placement's words."""

from __future__ import annotations

import os_traits

from common.host_traits import traits
from compute.observed.inventory import inventories, with_kept
from tests.unit.compute.fakes import some_facts


def test_inventories_carry_ratios_and_reserved() -> None:
    found = inventories(
        some_facts(cpu_allocation_ratio=4.0, reserved_memory_mib=1024, reserved_disk_gib=500)
    )
    assert found["VCPU"] == {
        "total": 8,
        "reserved": 0,
        "min_unit": 1,
        "max_unit": 8,
        "step_size": 1,
        "allocation_ratio": 4.0,
    }
    assert found["MEMORY_MB"]["reserved"] == 1024
    # Placement refuses more than there is.
    assert found["DISK_GB"]["reserved"] == 100


def test_what_a_host_has_none_of_is_left_out() -> None:
    assert set(inventories(some_facts(disk_gib=0))) == {"VCPU", "MEMORY_MB"}


def test_traits_are_standard_ones() -> None:
    flags = ("sse4_2", "aes", "avx512f", "avx512_vnni", "svm", "nonsense", "fpu")
    found = traits(some_facts(cpu_flags=flags, traits=("CUSTOM_FAST",)))
    assert {
        "HW_CPU_X86_SSE42",
        "HW_CPU_X86_AESNI",
        "HW_CPU_X86_AVX512F",
        "HW_CPU_X86_AVX512VNNI",
        "HW_CPU_X86_AMD_SVM",
        "COMPUTE_IMAGE_TYPE_QCOW2",
        "COMPUTE_ARCH_X86_64",
        "CUSTOM_FAST",
    } <= found
    assert found - {"CUSTOM_FAST"} <= set(os_traits.get_traits())


def test_a_disabled_host_stays_so() -> None:
    wanted = frozenset({"A", "COMPUTE_STATUS_DISABLED"})
    assert with_kept(wanted, frozenset()) == {"A"}
    disabled = frozenset({"B", "COMPUTE_STATUS_DISABLED"})
    assert with_kept(frozenset({"A"}), disabled) == {"A", "COMPUTE_STATUS_DISABLED"}


def test_mapped_devices_are_counted_one_by_one() -> None:
    found = inventories(some_facts(devices={"gpu-a": 2, "gpu.a": 1, "nic": 0}))
    assert found["CUSTOM_PCI_GPU_A"] == {
        "total": 3,
        "reserved": 0,
        "min_unit": 1,
        "max_unit": 3,
        "step_size": 1,
        "allocation_ratio": 1.0,
    }
    assert "CUSTOM_PCI_NIC" not in found
