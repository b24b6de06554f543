"""When a meter warns."""

from __future__ import annotations

import pytest

from dashboard.pages.meters import Meter, Warns, of_hosts, of_pool


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


def test_what_hosts_and_storages_have() -> None:
    numbers = {"vcpus": 8, "vcpus_used": 12, "memory_mb": 4096, "memory_mb_used": 1536}
    vcpus, memory, disk = of_hosts({**numbers, "local_gb": 100, "local_gb_used": 95})
    assert not vcpus.warns
    assert (memory.used, memory.limit, memory.unit) == (2, 4, "GiB")
    assert disk.warns
    facts = {"total_capacity_gb": 10, "free_capacity_gb": 4, "storage_protocol": "nfs"}
    pool = of_pool({"name": "pve1@shared#shared", "capabilities": facts})
    assert (pool.title, pool.used, pool.limit) == ("pve1@shared (nfs)", 6, 10)
