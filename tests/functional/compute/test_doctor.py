"""`micronova doctor`, on a simulated cluster."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.functional import programs
from tests.functional.compute.conftest import proxmox_text
from tests.functional.simulator_fixture import RunningSimulator


@pytest.fixture(autouse=True)
def _fresh(simulator: RunningSimulator) -> None:
    simulator.control("POST", "reset")


def doctor(folder: Path, text: str) -> tuple[int, str]:
    file = folder / "micronova.conf"
    file.write_text(text)
    done = programs.run("micronova", ("doctor", "--config-file", str(file)), dict(os.environ))
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_what_is_well_and_what_is_missing(simulator: RunningSimulator, tmp_path: Path) -> None:
    code, told = doctor(tmp_path, proxmox_text(simulator))
    assert code == 0
    first, *others = told.splitlines()
    assert first == "Cluster c1: Proxmox VE 9.2.11, nodes: pve1, pve2."
    [steering] = [line for line in others if "Sys.Modify" in line]
    assert steering.startswith("Cluster c1: Aborting and forcing the end of live migrations are ")
    assert "Run as root on one of its nodes: { pveum role add " in steering

    code, told = doctor(tmp_path, proxmox_text(simulator, vm_storage="nope"))
    assert code == 1
    assert "Storage nope isn't active there" in told


def test_without_a_cluster_there_is_nothing_to_check(tmp_path: Path) -> None:
    assert doctor(tmp_path, "[compute]\ndriver = null\n") == (
        0,
        "No Proxmox VE: [compute] driver is null.\n",
    )
