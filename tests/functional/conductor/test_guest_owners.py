"""Whose the VMs on a worker's hosts are."""

from __future__ import annotations

import pytest

from common.messages.guests import GuestOwner
from conductor.store.servers import servers
from tests.fixtures.compute import a_full_server, a_host, uuid_of
from tests.fixtures.listings import NOW
from tests.functional.api_compute.conftest import MakeApi, make, postgres, url

pytestmark = pytest.mark.database

__all__ = ["make", "postgres", "url"]


def test_a_worker_gets_those_of_its_hosts(make: MakeApi) -> None:
    api = make(
        a_host("pve5", worker="w5"),
        a_host("pve6", worker="w5"),
        a_full_server(1, host="pve5"),
        a_full_server(2, host="pve6", project="other"),
        a_full_server(3),
        a_full_server(4, host="pve5", deleted_at=NOW),
        a_full_server(5, host="pve5", vmid=None),
    )
    with api.writer.connect() as connection:
        found = servers.owners(connection, "w5")
        nobody = servers.owners(connection, "w9")
    assert sorted(found, key=lambda one: one.vmid) == [
        GuestOwner("c1", 100_001, uuid_of(1), "demo"),
        GuestOwner("c1", 100_002, uuid_of(2), "other"),
    ]
    assert nobody == []
