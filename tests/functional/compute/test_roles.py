"""The commands of docs/proxmox.md and of `micronova proxmox prepare`, carried out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from compute import preflight
from compute.hypervisor.proxmox import settings
from compute.hypervisor.proxmox.api.client import Client
from compute.prepare.lines import lines
from compute.prepare.wanted import NEWEST, OPTIONAL, wanted
from tests.fixtures.root_shell import RootShell
from tests.functional.compute.conftest import configuration, proxmox_text
from tests.functional.simulator_fixture import RunningSimulator

PAGE = Path(__file__).resolve().parents[3] / "docs" / "proxmox.md"


@pytest.fixture(autouse=True)
def _fresh(simulator: RunningSimulator) -> None:
    simulator.control("POST", "reset")


def conf_of(simulator: RunningSimulator, tmp_path: Path, token: str, secret: str) -> Any:
    file = tmp_path / "token"
    file.write_text(f"{token}={secret}")
    file.chmod(0o600)
    conf = configuration(tmp_path, proxmox_text(simulator, token_file=str(file)))
    conf.set_override("firewall", "off", group="networks")  # new clusters have theirs off
    return conf


def _secret(printed: str) -> str:
    shown = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    [found] = [one["value"] for one in shown if "value" in one]
    return str(found)


def _granted(conf: Any) -> dict[str, set[str]]:
    client = Client(settings.clusters(conf)[0])
    try:
        return {path: set(found) for path, found in client.get("access/permissions").items()}
    finally:
        client.close()


def test_the_page_prints_what_the_command_prints() -> None:
    blocks = re.findall(r"^```\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert blocks[0].splitlines() == lines(wanted("micronova@pve!agent"), NEWEST)


def test_the_commands_give_what_the_simulated_agent_has(
    simulator: RunningSimulator, root: RootShell, tmp_path: Path
) -> None:
    secret = _secret(root.run(lines(wanted("new@pve!one"), NEWEST)))
    conf = conf_of(simulator, tmp_path, "new@pve!one", secret)
    [found] = preflight.check(conf)
    assert {one.code for one in found.refused} == {"privilege_optional"}
    ours = configuration(tmp_path, proxmox_text(simulator))
    assert _granted(conf) == _granted(ours)


def test_nothing_is_refused_with_all_that_is_optional(
    simulator: RunningSimulator, root: RootShell, tmp_path: Path
) -> None:
    printed = lines(wanted("new@pve!one", list(OPTIONAL), ["localnetwork"]), "9.0")
    conf = conf_of(simulator, tmp_path, "new@pve!one", _secret(root.run(printed)))
    [found] = preflight.check(conf)
    assert found.refused == ()


def test_what_a_role_lacks_is_added(
    simulator: RunningSimulator, root: RootShell, tmp_path: Path
) -> None:
    root.run("pveum role modify Micronova --privs VM.Audit")
    printed = lines(wanted("new@pve!one"), NEWEST)
    conf = conf_of(simulator, tmp_path, "new@pve!one", _secret(root.run(printed)))
    assert preflight.check(conf)
