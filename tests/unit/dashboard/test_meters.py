"""When a meter warns."""

from __future__ import annotations

import pytest

from dashboard.pages.meters import Meter, Warns, of_amount, of_hosts, of_pool


@pytest.mark.parametrize(
    ("used", "limit", "when", "percent", "warns"),
    [
        (0, 10, Warns.NEARLY_FULL, 0, False),
        (9, 10, Warns.NEARLY_FULL, 90, True),
        (5, -1, Warns.NEARLY_FULL, 0, False),
        (0, 0, Warns.NEARLY_FULL, 0, False),
        (2, 3, Warns.NOT_FULL, 200 / 3, True),
        (3, 3, Warns.NOT_FULL, 100, False),
        (300, 100, Warns.NEVER, 100, False),
    ],
)
def test_a_meter_warns(used: int, limit: int, when: Warns, percent: float, warns: bool) -> None:
    meter = Meter("x", used, limit, when=when)
    assert (meter.percent, meter.warns) == (pytest.approx(percent), warns)


@pytest.mark.parametrize(
    ("used", "limit", "unit", "said"),
    [
        (12, 512, "GiB", "12 of 512 GiB"),
        (12, 1536, "GiB", "12 GiB of 1.5 TiB"),
        (2048, 4100, "GiB", "2 of 4 TiB"),
        (3, -1, "MiB", "3 MiB"),
        (896, 51200, "MiB", "896 MiB of 50 GiB"),
        (1536, 3 << 20, "MiB", "1.5 GiB of 3 TiB"),
        (0, 3 << 20, "MiB", "0 of 3 TiB"),
        (3, 4, "", "3 of 4"),
        (0, 0, "GiB", "0 of 0 GiB"),
    ],
)
def test_each_number_has_the_unit_that_suits_it(
    used: int, limit: int, unit: str, said: str
) -> None:
    meter = Meter("x", used, limit, unit)
    assert f"{meter.strong} {meter.rest}".strip() == said


def test_a_sum_says_what_is_free_in_all_and_at_one_place() -> None:
    amount = {"total": 3 << 20, "used": 1 << 20, "free": 2 << 20}
    most = {"name": "pve2", "free": 512 << 10}
    memory = of_amount("Memory", {**amount, "most_free": most}, "MiB", "node", "claimed")
    assert (memory.strong, memory.rest) == ("1", "of 3 TiB")
    assert memory.note == "2 TiB free in all; at most 512 GiB on one node (pve2)"
    none = {"total": 0, "used": 0, "free": 0, "most_free": None}
    assert of_amount("VCPUs", none, "", "node", "claimed").note == "0 free in all"


def test_what_hosts_and_storages_have() -> None:
    numbers = {"vcpus": 8, "vcpus_used": 12, "memory_mb": 4096, "memory_mb_used": 1536}
    vcpus, memory, disk = of_hosts({**numbers, "local_gb": 100, "local_gb_used": 95})
    assert not vcpus.warns
    assert (memory.used, memory.limit, memory.unit) == (1536, 4096, "MiB")
    assert disk.warns
    assert [one.measure.rpartition(", ")[2] for one in (vcpus, memory, disk)] == [
        *("of its threads", "of what it has", "of the storage of root disks"),
    ]
    facts = {"total_capacity_gb": 10, "free_capacity_gb": 4, "storage_protocol": "nfs"}
    pool = of_pool({"name": "pve1@shared#shared", "capabilities": facts})
    assert (pool.title, pool.used, pool.limit) == ("pve1@shared (nfs)", 6, 10)
