from __future__ import annotations

from typing import Any

from dashboard import addresses
from dashboard.addresses import Use


def subnet(name: str, network: str, start: str, end: str) -> dict[str, Any]:
    return {
        "id": name,
        "network_id": network,
        "allocation_pools": [{"start": start, "end": end}],
    }


def test_addresses_are_counted_by_ports() -> None:
    subnets = [
        subnet("a", "own", "192.0.2.2", "192.0.2.5"),
        subnet("b", "shared", "2001:db8::2", "2001:db8::ffff:ffff:ffff:ffff"),
    ]
    ports = [
        {"fixed_ips": [{"subnet_id": "a"}, {"subnet_id": "b"}]},
        {"fixed_ips": [{"subnet_id": "a"}]},
        {"fixed_ips": []},
    ]
    found = addresses.counted(subnets, ports, ["own"])
    assert (str(found["a"]), found["a"].percent) == ("2 of 4", 50)
    assert (str(found["b"]), found["b"].percent) == ("1 of yours", None)


def test_nobody_knows_the_part_of_what_others_use() -> None:
    assert Use(3, 10, is_own=True).percent is None
    assert Use(0, 0, is_own=False).percent is None
    assert Use(12, 10, is_own=False).percent == 100


def test_administrators_see_what_the_api_reports() -> None:
    report = {
        "subnet_ip_availability": [{"subnet_id": "a", "used_ips": 7, "total_ips": 253}],
    }
    assert str(addresses.reported([report])["a"]) == "7 of 253"
