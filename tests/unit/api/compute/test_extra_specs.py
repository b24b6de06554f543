"""Extra specs that can't be understood are refused when they are set, since 2.86."""

from __future__ import annotations

import pytest

from api.compute.extra_specs import check
from common.errors import Invalid


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("resources:VCPU", ("0", "4"), ("-1", "x", "", "1.5", "٣")),
        ("resources_A:CUSTOM_GPU", ("1",), ("one",)),
        ("trait:HW_CPU_X86_AVX", ("required", "forbidden"), ("Required", "true", "")),
        ("hw:cpu_policy", ("shared", "dedicated"), ("DEDICATED", "pinned")),
        ("hw:numa_nodes", ("1",), ("0", "two", "-2")),
        ("hw:numa_cpus.0", ("0-3,^1", "2"), ("a", "0-")),
        ("hw:numa_mem.1", ("512",), ("0",)),
        ("hw:mem_page_size", ("large", "2MB", "1GiB"), ("huge",)),
        ("hw:pmu", ("true", "0"), ("perhaps",)),
        ("hw:cpu_max_sockets", ("2",), ("0",)),
        ("hw:serial_port_count", ("0", "4"), ("-1",)),
        ("os:secure_boot", ("required", "disabled"), ("yes",)),
        ("pci_passthrough:alias", ("gpu:1", "gpu:1, nic:2"), ("gpu", "gpu:x")),
        ("group_policy", ("isolate", "none"), ("some",)),
        ("hw_rng:allowed", ("true",), ("x",)),
        ("quota:disk_read_iops_sec", ("0", "500"), ("-1", "ten", "\u0661", "1_0", "")),
        ("quota:disk_total_bytes_sec", ("1",), ("1.5",)),
        ("quota:vif_outbound_peak", ("1",), ("1k",)),
        ("quota:cpu_shares", ("1",), ("-1",)),
        ("quota:disk_io_limit", ("-1", "5"), ("x",)),
        ("quota:memory_shares_level", ("high",), ()),
    ],
)
def test_values(name: str, good: tuple[str, ...], bad: tuple[str, ...]) -> None:
    for value in good:
        check({name: value}, 86)
    for value in bad:
        check({name: value}, 85)
        with pytest.raises(Invalid, match=f"The extra spec {name}"):
            check({name: value}, 86)


@pytest.mark.parametrize(
    "name",
    [
        *("hw:cpu_polcy", "trait:lower", "resources:", "trait1:", "os:x", "hw:numa_mem."),
        *("resources_A:", "resources:vcpu", "resources:GPU", "resources:CUSTOM_", "trait:FAST"),
        *("quota:disk_read_iops", "quota:vif_average"),
    ],
)
def test_names_that_their_namespace_has_not(name: str) -> None:
    check({name: "1"}, 85)
    with pytest.raises(Invalid, match="There is no extra spec"):
        check({name: "1"}, 86)


def test_other_names_are_the_operators_own() -> None:
    for name in ("ssd", "foo:bar", "ha:rule", "aggregate_instance_extra_specs:x", "a:b:c"):
        check({name: "anything"}, 86)
    check({"capabilities:storage:type": "rbd", "quota:cpu_shares": "5"}, 86)
