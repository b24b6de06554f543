"""What is read of the record for a plan to rebalance: one look, bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from conductor.endpoints.servers import request_specs
from conductor.store.servers import host_assignments
from tests.fixtures import listings
from tests.fixtures.listings import Row

pytestmark = pytest.mark.database


def a_server(number: int, **changes: object) -> Row:
    return listings.a_server(number, flavor={"extra_specs": {"trait:HW_A": "required"}}, **changes)


def test_servers_ask_again_what_they_asked(tmp_path: Path) -> None:
    one = a_server(1, memory_mib=512, cluster="sim1", vmid=100_001)
    two = a_server(2, memory_mib=1024, host="pve2")
    hint = {"different_host": [two[1]["uuid"]]}
    rows = [
        listings.a_network("vmbr0", vlan=7),
        listings.a_subnet("vmbr0"),
        (one[0], {**one[1], "scheduler_hints": hint, "pinned_availability_zone": "az1"}),
        two,
        listings.a_port(1, server_uuid=one[1]["uuid"]),
        a_server(3, host=None),
    ]
    reader = listings.a_database(tmp_path, rows)
    with reader.connect() as connection, listings.counted(reader) as count:
        there = host_assignments.idle(connection, ("active", "stopped"), 10)
        found = request_specs.of_servers(connection, there)
        assert [(item.name, item.host) for item in found] == [
            ("server-2", "pve2"),
            ("server-1", "pve1"),
        ]
        asked = found[1].requested
        assert asked.server_uuid == one[1]["uuid"]
        assert asked.extra_specs == {"trait:HW_A": "required"}
        assert asked.networks == ("vmbr0",)
        assert asked.vlans == (("vmbr0", 7),)
        assert asked.availability_zone == "az1"
        assert asked.server_hosts == {two[1]["uuid"]: "pve2"}
        assert asked.image_id is None
        assert asked.vm == ("sim1", 100_001)
        assert count() == 4  # servers, their networks, their volumes, and the hosts of the hints
        assert found[0].requested.vm is None
        largest = host_assignments.idle(connection, ("active", "stopped"), 1)
        first = request_specs.of_servers(connection, largest)
        assert [item.name for item in first] == ["server-2"]
    reader.dispose()
