"""When token and certificates expire: one call at a time, in the way of nothing else."""

from __future__ import annotations

from typing import Any

from prometheus_client import REGISTRY

from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.observe.expiry import Expiry, served
from compute.hypervisor.proxmox.settings import ClusterSettings, clusters
from tests.functional.compute.conftest import configuration, proxmox_text
from tests.functional.simulator_fixture import RunningSimulator

NODES = ["pve2", "pve1"]


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(f"micronova_proxmox_{name}_timestamp_seconds", labels)


def settings_of(simulator: RunningSimulator, tmp_path: Any, name: str) -> ClusterSettings:
    text = proxmox_text(simulator).replace("c1", name)
    [settings] = clusters(configuration(tmp_path, text))
    return settings


class Counted(Client):
    """Its calls are counted."""

    def __init__(self, settings: ClusterSettings) -> None:
        super().__init__(settings)
        self.paths: list[str] = []

    def get(self, path: str, **params: Any) -> Any:
        self.paths.append(path)
        self.forbidden = False
        return super().get(path, **params)


def test_the_token_and_each_node_take_turns(simulator: RunningSimulator, tmp_path: Any) -> None:
    client = Counted(settings_of(simulator, tmp_path, "turns"))
    expiry = Expiry(client, 0.0)
    for count in range(1, 5):
        expiry.look(NODES)
        assert len(client.paths) == count
    user = client.settings.token.user
    token = f"access/users/{user}/token/{client.settings.token.name}"
    certificates = [f"nodes/{node}/certificates/info" for node in sorted(NODES)]
    assert client.paths == [token, *certificates, token]
    assert value("token_expiry", cluster="turns") == float("inf")
    for node in NODES:
        assert (value("certificate_expiry", cluster="turns", node=node) or 0) > 1.7e9


def test_it_is_not_due_at_once(simulator: RunningSimulator, tmp_path: Any) -> None:
    assert not Expiry(Client(settings_of(simulator, tmp_path, "later")), 60.0).is_due()


def test_what_may_not_be_read_is_no_privilege_that_builds_lack(
    simulator: RunningSimulator, tmp_path: Any
) -> None:
    client = Client(settings_of(simulator, tmp_path, "refused"))
    text = "Permission check failed (/access/groups, User.Modify)"
    simulator.fault(action="fail", method="GET", path="/token/", status=403, text=text)
    expiry = Expiry(client, 0.0)
    expiry.look(NODES)
    assert not client.forbidden
    assert value("token_expiry", cluster="refused") is None
    expiry.look(NODES)
    assert value("certificate_expiry", cluster="refused", node="pve1") is not None


def test_an_own_certificate_goes_before_the_clusters() -> None:
    listed = [
        {"filename": "pve-root-ca.pem", "notafter": 1},
        {"filename": "pve-ssl.pem", "notafter": 2},
    ]
    assert served(listed) == 2
    assert served([*listed, {"filename": "pveproxy-ssl.pem", "notafter": 3}]) == 3
    assert served([]) is None
