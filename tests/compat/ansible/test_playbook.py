"""Ansible's openstack.cloud modules, unmodified: a playbook is applied twice and torn down twice.

`tox -e ansible` installs Ansible, with an openstacksdk of its own, and runs it; it is too large
for every run. MICRONOVA_TEST_ANSIBLE is the program `ansible-playbook`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.functional.cloud import EmbeddedCloud, embedded_cloud
from tests.pages import ROOT, block

PLAYBOOK = Path(
    os.environ.get("MICRONOVA_TEST_ANSIBLE") or Path(sys.executable).with_name("ansible-playbook")
)
HERE = Path(__file__).parent
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ6Uo6Xyb0wZVxl3hQ5p1tGqWcm1tLwGxDdVnqkxaX3B"

pytestmark = [
    pytest.mark.timeout(2400),
    pytest.mark.skipif(not PLAYBOOK.exists(), reason="Ansible is not installed"),
]


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCloud]:
    with embedded_cloud(tmp_path_factory.mktemp("ansible")) as running:
        yield running


def play(cloud: EmbeddedCloud, folder: Path, name: str) -> dict[str, bool]:
    """Run a playbook; return what each task says of whether it changed anything."""
    image = folder / "image.qcow2"
    if not image.exists():
        image.write_bytes(empty_qcow2(1 << 20))
    given = {
        "ansible_python_interpreter": str(PLAYBOOK.with_name("python")),
        "image": image_of(cloud),
        "image_file": str(image),
        "public_key": PUBLIC_KEY,
    }
    environment = cloud.environment("micronova-demo") | {
        "HOME": str(folder),
        "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "PATH": f"{PLAYBOOK.parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        # an absolute path is that of a playbook that a page prints
        [str(PLAYBOOK), "-i", "localhost,", "-e", json.dumps(given), str(HERE / name)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [played] = json.loads(done.stdout)["plays"]
    return {
        task["task"]["name"]: bool(task["hosts"]["localhost"]["changed"])
        for task in played["tasks"]
    }


def changes(tasks: dict[str, bool]) -> list[str]:
    """The tasks that changed something."""
    return [name for name, changed in tasks.items() if changed]


def empty_qcow2(size: int) -> bytes:
    """An image of that size in which nothing is written."""
    header = b"QFI\xfb" + (2).to_bytes(4, "big") + bytes(12) + (16).to_bytes(4, "big")
    header += size.to_bytes(8, "big") + bytes(4) + (1).to_bytes(4, "big")
    tables = (0x30000, 0x10000, 1, 0, 0)
    header += b"".join(
        number.to_bytes(width, "big")
        for number, width in zip(tables, (8, 8, 4, 4, 8), strict=True)
    )
    return header.ljust(0x40000, b"\0")


def image_of(cloud: EmbeddedCloud) -> str:
    """An image that the operator has."""
    first = min(cloud.connection().image.images(), key=lambda one: one.min_disk)
    return str(first.name)


def test_a_site_is_made_once_and_goes_once(cloud: EmbeddedCloud, tmp_path: Path) -> None:
    made = play(cloud, tmp_path, "site.yml")
    assert made["A server of all of it"]
    assert changes(play(cloud, tmp_path, "site.yml")) == []
    changed = ["Its volume is larger", "More metadata", "It stops"]
    assert changes(play(cloud, tmp_path, "change.yml")) == changed
    assert changes(play(cloud, tmp_path, "change.yml")) == []
    gone = play(cloud, tmp_path, "teardown.yml")
    looks = ["What servers there are"]
    assert [name for name, changed in gone.items() if not changed] == looks, gone
    assert not any(play(cloud, tmp_path, "teardown.yml").values())
    left: dict[str, Any] = {
        "servers": list(cloud.connection().compute.servers()),
        "ports": list(cloud.connection().network.ports()),
        "volumes": list(cloud.connection().block_storage.volumes()),
        "snapshots": list(cloud.connection().block_storage.snapshots()),
    }
    assert left == {"servers": [], "ports": [], "volumes": [], "snapshots": []}


def test_the_tutorial(cloud: EmbeddedCloud, tmp_path: Path) -> None:
    page = "docs/tutorials/ansible.md"
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "micronova.pub").write_text(f"{PUBLIC_KEY}\n")
    site, teardown = tmp_path / "site.yml", tmp_path / "teardown.yml"
    site.write_text(block(page, "yaml", "lookup("))
    teardown.write_text(block(page, "yaml", "state: absent"))
    made = play(cloud, tmp_path, str(site))
    assert changes(made) == list(made)
    assert changes(play(cloud, tmp_path, str(site))) == []
    [server] = cloud.connection().compute.servers()
    assert (server.status, len(server.attached_volumes)) == ("ACTIVE", 1)
    gone = play(cloud, tmp_path, str(teardown))
    assert changes(gone) == list(gone)
    assert not any(play(cloud, tmp_path, str(teardown)).values())
    assert list(cloud.connection().compute.servers()) == []
    assert list(cloud.connection().block_storage.volumes()) == []


def test_the_installation_is_that_of_tox() -> None:
    printed = block("docs/tutorials/ansible.md", "", "pip install").splitlines()[-1]
    words = printed.partition(" install ")[2]
    assert f"pip install {words}" in (ROOT / "tox.ini").read_text()
