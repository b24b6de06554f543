"""Preflight says what is missing, in one line, with the command that mends it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from common.errors import ConfigurationError
from compute import preflight
from tests.functional.compute.conftest import configuration, proxmox_text
from tests.functional.simulator_fixture import RunningSimulator


@pytest.fixture(autouse=True)
def _fresh(simulator: RunningSimulator) -> None:
    simulator.control("POST", "reset")


def failure(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        preflight.check(configuration(tmp_path, text))
    assert "\n" not in caught.value.message
    return caught.value.message


def test_a_cluster_that_has_all(simulator: RunningSimulator, tmp_path: Path) -> None:
    [found] = preflight.check(configuration(tmp_path, proxmox_text(simulator)))
    assert (found.name, found.version, found.nodes) == ("c1", "9.2.11", ("pve1", "pve2"))


def test_only_the_chosen_hosts_count(simulator: RunningSimulator, tmp_path: Path) -> None:
    [found] = preflight.check(configuration(tmp_path, proxmox_text(simulator, hosts="pve2")))
    assert found.nodes == ("pve2",)


def test_nobody_answers(simulator: RunningSimulator, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        dead = f"https://127.0.0.1:{unused.getsockname()[1]}"
    message = failure(tmp_path, proxmox_text(simulator, endpoints=dead))
    assert "No endpoint of cluster c1 answers" in message


def test_a_certificate_that_is_not_trusted(simulator: RunningSimulator, tmp_path: Path) -> None:
    text = proxmox_text(simulator)
    text = text.replace(f"ca_file = {simulator.ca_file}", "")
    assert "is not trusted" in failure(tmp_path, text)


def test_a_wrong_token(simulator: RunningSimulator, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("micronova@pve!agent=00000000-0000-0000-0000-000000000000")
    token.chmod(0o600)
    message = failure(tmp_path, proxmox_text(simulator, token_file=str(token)))
    assert "The token is refused" in message
    assert "pveum user token add micronova@pve agent" in message
    assert "00000000-0000" not in message


def test_a_storage_that_takes_no_disks(simulator: RunningSimulator, tmp_path: Path) -> None:
    message = failure(tmp_path, proxmox_text(simulator, vm_storage="nope"))
    assert "nope" in message


def test_a_cluster_without_quorum(simulator: RunningSimulator, tmp_path: Path) -> None:
    simulator.fault(action="node-down", node="pve2")
    assert "has no quorum" in failure(tmp_path, proxmox_text(simulator))
