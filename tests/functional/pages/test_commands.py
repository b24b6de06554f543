"""The commands that pages print, run by one as a reader would, on an embedded cloud."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.pve_captures import qcow2
from tests.functional.cloud import EmbeddedCloud
from tests.functional.pages.reading import SECONDS, Desk, Reading
from tests.functional.pages.readings import FIRST, READINGS
from tests.functional.pages.sentences import SENTENCES
from tests.functional.waiting import eventually
from tests.pages import ROOT


@pytest.fixture(scope="module")
def home(three_nodes: EmbeddedCloud, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home, and checkout, of a reader: the programs and the state where the pages say."""
    folder = tmp_path_factory.mktemp("home")
    (folder / ".ssh").mkdir()
    (folder / ".venv").mkdir()
    (folder / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    state = folder / ".local" / "state" / "micronova"
    state.parent.mkdir(parents=True)
    state.symlink_to(three_nodes.state_dir)
    for name in ("Makefile", "setup.cfg"):
        shutil.copy(ROOT / name, folder)
    for made in ("installed", "tox"):
        (folder / ".venv" / made).touch()
    (folder / "debian.qcow2").write_bytes(qcow2(1 << 30, 1 << 20))
    return folder


@pytest.fixture(scope="module")
def desk(three_nodes: EmbeddedCloud, home: Path) -> Iterator[Desk]:
    """The same reader, who is also root on the nodes of the cluster."""
    made = Desk(home)
    made.on_a_node(three_nodes.simulator_url, three_nodes.simulator)
    yield made
    made.close()


def shell(text: str, home: Path, environment: dict[str, str]) -> str:
    """Run what a reader enters with the installed programs; return what is printed."""
    path = f"{home}/.venv/bin:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", text],
        cwd=home,
        env=environment | {"HOME": str(home), "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_first_server_of_the_readme(three_nodes: EmbeddedCloud, home: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OS_")}
    [text] = FIRST.texts()
    printed = shell(text, home, environment)
    assert "| web-1 " in printed
    assert "start  done" in printed
    connection = three_nodes.connection()
    assert list(connection.compute.servers()) == []
    connection.compute.delete_keypair("k")


def test_the_first_look_of_the_doctor(three_nodes: EmbeddedCloud, home: Path) -> None:
    """A cloud as the README starts it has nothing to mend: the command ends with 0."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OS_")}
    printed = shell("micronova doctor", home, environment).splitlines()
    assert printed[-1] == "Nothing is wrong."
    assert [line for line in printed if line.startswith(("broken:", "warning:"))] == []
    assert shell("micronova doctor --fix-lines", home, environment) == ""


def settled(connection: Any) -> bool:
    """Whether nothing is under way: a reader waits for that between two commands."""
    servers = [one.task_state for one in connection.compute.servers(all_projects=True)]
    kept = [
        one.status
        for found in (connection.block_storage.volumes, connection.block_storage.snapshots)
        for one in found(all_projects=True)
    ]
    return not any(servers) and set(kept) <= {"available", "in-use", "awaiting-transfer"}


@pytest.mark.parametrize("reading", [*READINGS, *SENTENCES], ids=str)
def test_the_commands_of_a_page(three_nodes: EmbeddedCloud, desk: Desk, reading: Reading) -> None:
    environment = three_nodes.environment(reading.who)
    administrator = three_nodes.connection("micronova")
    for command in reading.commands():
        desk.run(command, environment, reading.typed)
        eventually(lambda: settled(administrator), SECONDS)
