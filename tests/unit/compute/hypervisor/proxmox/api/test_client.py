"""Which endpoints a client comes to know, and which it asks first."""

from __future__ import annotations

from typing import Any

import pytest

from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.settings import ClusterSettings, Token

STATUS = [
    {"type": "cluster", "name": "c1", "quorate": 1},
    {"type": "node", "name": "pve1", "ip": "192.0.2.1", "local": 1},
    {"type": "node", "name": "pve2", "ip": "192.0.2.2", "local": 0},
]


def a_client(*hosts: str, verify: bool = True) -> Client:
    return Client(
        ClusterSettings(
            name="c1",
            endpoints=tuple((host, 8006) for host in hosts),
            token=Token("u@pve", "t", "secret"),
            verify=verify,
            availability_zone=None,
            vm_storage=None,
            iso_storage=None,
            linked_clones="shared",
            hosts=frozenset(),
            host_prefix="",
            vmid_low=100_000,
            vmid_high=199_999,
            cpu_type="host",
            local_storage_slots=1,
            shared_storage_slots=1,
            most_storage_slots=1,
            write_affinity_rules=False,
            timeout_seconds=40,
            restart_lock_seconds=30,
            blind_seconds=90,
            connect_seconds=5,
        )
    )


def learned(client: Client, status: list[dict[str, Any]] = STATUS) -> dict[str, str]:
    """The own endpoints of nodes after the first configured one answered."""
    client.learn(client.endpoints[0], status)
    return {node: endpoint.name for node, endpoint in client.own.items()}


@pytest.mark.parametrize(
    ("hosts", "verify", "known"),
    [
        # The cluster's own network: its other addresses are reached like the one asked.
        (("192.0.2.1",), True, {"pve1": "192.0.2.1:8006", "pve2": "192.0.2.2:8006"}),
        # Nobody proves whose an address is.
        (("192.0.2.1",), False, {"pve1": "192.0.2.1:8006"}),
        # Names, tunnels, balancers: what the cluster calls its nodes leads nowhere.
        (("pve1.example.org",), True, {"pve1": "pve1.example.org:8006"}),
    ],
)
def test_what_is_known_of_nodes(
    hosts: tuple[str, ...], verify: bool, known: dict[str, str]
) -> None:
    assert learned(a_client(*hosts, verify=verify)) == known


def test_a_configured_endpoint_is_the_same_one() -> None:
    client = a_client("192.0.2.1", "192.0.2.2")
    learned(client)
    assert client.own["pve2"] is client.endpoints[1]


def test_uploads_alone_are_sent_to_the_node_first() -> None:
    client = a_client("192.0.2.1")
    learned(client)
    upload = client.preferred("nodes/pve2/storage/local/upload")
    assert upload is client.own["pve2"]
    assert client.preferred("nodes/pve3/storage/local/upload") is None
    assert client.preferred("nodes/pve2/qemu") is None


def test_an_answer_that_does_not_say_who_gave_it_teaches_nothing() -> None:
    assert learned(a_client("192.0.2.1"), STATUS[:1]) == {}
