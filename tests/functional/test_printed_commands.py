"""The commands that pages print, run by one as a reader would, on an embedded cloud."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fixtures.pve_captures import qcow2
from tests.functional.cloud import EmbeddedCloud
from tests.functional.waiting import eventually
from tests.pages import block

SECONDS = 180.0


@dataclass(frozen=True)
class Reading:
    """A page's blocks, in the page's order, and what a reader has before them."""

    page: str
    having: tuple[str, ...]
    """A text of each block."""
    who: str = "micronova-demo"
    before: str = ""
    after: str = ""
    """What leaves nothing of theirs."""
    values: tuple[tuple[str, str], ...] = ()
    """What stands for something of the reader's, and what this one has."""

    def commands(self) -> Iterator[str]:
        """Yield what is run, one after the other."""
        yield from _lines(self.before)
        for text in self.having:
            yield from _lines(self._filled(block(self.page, "", text)))
        yield from _lines(self.after)

    def _filled(self, text: str) -> str:
        for printed, value in self.values:
            text = text.replace(printed, value)
        return text


def _lines(text: str) -> list[str]:
    """The commands of a block without what stands beside them in words."""
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [line.strip().partition("  ")[0] for line in lines if line.strip()]


_NO_SERVERS = "openstack server delete --wait $(openstack server list -f value -c ID)"
_NO_VOLUMES = "openstack volume delete $(openstack volume list -f value -c ID)"

READINGS = [
    Reading(
        "docs/networks.md",
        ("--network vmbr0", "network create mine"),
        after=f"{_NO_SERVERS}\nopenstack network delete mine",
    ),
    Reading(
        "docs/volumes.md",
        ("add volume web data",),
        before="openstack server create --image debian-12 --flavor m1.small --wait web",
        after=_NO_SERVERS,
    ),
    Reading(
        "docs/volumes.md",
        ("--boot-from-volume",),
        before="openstack volume create --size 10 --image debian-12 system",
        after=f"{_NO_SERVERS}\n{_NO_VOLUMES}",
    ),
    Reading(
        "docs/volumes.md",
        ("--ephemeral 50",),
        who="micronova",
        after=f"{_NO_SERVERS}\nopenstack flavor delete m1.scratch",
    ),
    Reading(
        "docs/volumes.md",
        ("volume revert before", "image create --volume data golden", "backup restore"),
        before="openstack volume create --size 1 data",
        after=f"openstack image delete golden\n{_NO_VOLUMES}",
    ),
    Reading(
        "docs/images.md",
        ("--file debian.qcow2", "metadef namespace list"),
        after="openstack image delete debian",
    ),
    Reading("docs/operate.md", ("micronova orphan list",), who="micronova"),
    Reading("docs/operate.md", ("drain pve3 --wait",), who="micronova"),
    Reading(
        "docs/operate.md",
        ("openstack aggregate create",),
        who="micronova",
        values=(("<id>", "$(openstack server group show web -f value -c id)"),),
        after=f"""{_NO_SERVERS}
            openstack server group delete web
            openstack aggregate remove host fast pve3
            openstack aggregate delete fast""",
    ),
]


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
    (folder / "debian.qcow2").write_bytes(qcow2(1 << 30, 1 << 20))
    return folder


def shell(text: str, home: Path, environment: dict[str, str]) -> str:
    """Run what a reader enters; return what is printed."""
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
    printed = shell(block("README.md", "", "openstack flavor list"), home, environment)
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


def settled(cloud: EmbeddedCloud) -> bool:
    """Whether nothing is under way: a reader waits for that between two commands."""
    connection = cloud.connection("micronova")
    servers = [one.task_state for one in connection.compute.servers(all_projects=True)]
    kept = [
        one.status
        for found in (connection.block_storage.volumes, connection.block_storage.snapshots)
        for one in found(all_projects=True)
    ]
    return not any(servers) and set(kept) <= {"available", "in-use"}


@pytest.mark.parametrize("reading", READINGS, ids=lambda one: f"{one.page}-{one.having[0]}")
def test_the_commands_of_a_page(three_nodes: EmbeddedCloud, home: Path, reading: Reading) -> None:
    environment = three_nodes.environment(reading.who)
    for command in reading.commands():
        shell(command, home, environment)
        eventually(lambda: settled(three_nodes), SECONDS)
