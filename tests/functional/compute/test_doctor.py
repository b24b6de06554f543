"""`micronova doctor`, on a simulated cluster."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from compute.doctor import examine
from tests.fixtures import null
from tests.functional import programs
from tests.functional.compute.conftest import configuration, granted, proxmox_text
from tests.functional.simulator_fixture import RunningSimulator


@pytest.fixture(autouse=True)
def _fresh(simulator: RunningSimulator) -> None:
    simulator.control("POST", "reset")


def doctor(folder: Path, text: str, *options: str) -> tuple[int, str]:
    file = folder / "micronova.conf"
    file.write_text(f"{text}\n[networks]\nfirewall = off\n")  # as new clusters have theirs
    file.chmod(0o600)
    words = ("doctor", "--config-file", str(file), *options)
    done = programs.run("micronova", words, dict(os.environ))
    assert done.stderr == f"Configuration: {file}\n"
    return done.returncode, done.stdout


def test_what_is_well_and_what_is_missing(simulator: RunningSimulator, tmp_path: Path) -> None:
    code, output = doctor(tmp_path, proxmox_text(simulator, iso_storage="shared"))
    assert code == 0
    first, *others = output.splitlines()
    assert first == "Cluster c1: Proxmox VE 9.2.11, nodes: pve1, pve2."
    [steering] = [line for line in others if "Sys.Modify" in line and "$" not in line]
    assert steering.startswith(
        "note: Cluster c1: Aborting and forcing the end of live migrations are "
    )
    assert others[others.index(steering) + 1] == (
        "    It is optional, and in no role of docs/proxmox.md. (privilege_optional)"
    )
    assert others[others.index(steering) + 2].startswith("    $ { pveum role add ")
    assert others[-1] == "Nothing is wrong."

    code, output = doctor(tmp_path, proxmox_text(simulator, vm_storage="nope"))
    assert code == 2
    assert "broken: Node pve1: Storage nope isn't active there" in output


def test_what_programs_read(simulator: RunningSimulator, tmp_path: Path) -> None:
    granted(simulator, "passwords", "steering")
    text = proxmox_text(simulator, iso_storage="shared", write_affinity_rules="true")
    code, output = doctor(tmp_path, text, "--json")
    [found] = json.loads(output)["findings"]
    assert (code, found["code"], found["level"]) == (1, "privilege_missing", "warning")
    code, output = doctor(tmp_path, text, "--fix-lines")
    assert (code, output.splitlines()) == (1, found["lines"])


def test_what_is_left_to_choice_mends_nothing(simulator: RunningSimulator, tmp_path: Path) -> None:
    """Privileges beyond the documented roles are shown with their lines, and asked of nobody."""
    text = proxmox_text(simulator, iso_storage="shared")
    code, output = doctor(tmp_path, text, "--json")
    found = json.loads(output)["findings"]
    assert {(one["code"], one["level"]) for one in found} == {("privilege_optional", "note")}
    assert all(one["lines"] for one in found)
    assert (code, len(found)) == (0, 3)
    assert doctor(tmp_path, text, "--fix-lines") == (0, "")


def test_a_cluster_is_read_once(simulator: RunningSimulator, tmp_path: Path) -> None:
    conf = configuration(tmp_path, proxmox_text(simulator))
    before = len(simulator.control("GET", "calls"))
    examine.examine(conf)
    calls = [one["path"] for one in simulator.control("GET", "calls")[before:]]
    assert sum(path.endswith("cluster/resources") for path in calls) == 1, calls
    for node in ("pve1", "pve2"):
        assert sum(path.endswith(f"nodes/{node}/status") for path in calls) == 1, calls


def test_without_a_cluster_there_is_nothing_to_check(tmp_path: Path) -> None:
    assert doctor(tmp_path, f"[compute]\ndriver = {null.DRIVER}\n") == (
        0,
        f"No Proxmox VE: [compute] driver is {null.DRIVER}.\nNothing is wrong.\n",
    )
