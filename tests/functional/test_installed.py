"""A release, made and installed as docs/install.md prints it: with pip, and on clean Debians."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from release import chroot, debian
from release.chroot import Chroot
from release.tree import Repository
from tests.fixtures.install_page import DEBIAN, ENVIRONMENT, MAKES, RELEASE
from tests.pages import ROOT, block

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

VERSION = "1.0.0"
#: installed packages are unpacked from, and what apt has of its own
_APTS = ("/var/cache/apt/", "/var/log/", "/tmp/")


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a release of the commit that is checked out."""
    folder = tmp_path_factory.mktemp("release")
    clone = Repository(ROOT).clone(folder / "clone")
    words = [sys.executable, "-m", "release", VERSION, "--dist", str(folder / "dist")]
    run([*words, "--repository", str(clone.path)], ROOT)
    assert clone.git("tag", "--list", f"v{VERSION}") == ""
    return folder / "dist"


def run(words: list[str], cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}
    done = subprocess.run(
        words, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def test_what_make_runs() -> None:
    printed = [line for line in block(*RELEASE).splitlines() if line]
    assert printed == list(MAKES)
    for line, (environment, command) in MAKES.items():
        shown = run([*line.split(), "--dry-run"], ROOT)
        _, _, given = shown.partition(f"tox run -q -e {environment} --")
        tox = run(
            [sys.executable, "-m", "tox", "config", "-e", environment, "-k", "commands"], ROOT
        )
        commands = re.search(r"^commands = (.*)$", tox, re.MULTILINE)
        assert commands is not None
        assert f"{commands[1]} {given.strip()}".split() == command.split()


def test_the_files_are_what_the_sums_say(dist: Path) -> None:
    said = run(["sha256sum", "--check", "SHA256SUMS"], dist)
    assert said.count(": OK\n") == 3


def test_in_a_virtual_environment(dist: Path, tmp_path: Path) -> None:
    for path in dist.iterdir():
        (tmp_path / path.name).symlink_to(path)
    *install, demo = block(*ENVIRONMENT).splitlines()
    for line in install:
        run(["bash", "-ec", line], tmp_path)
    said = run(["bash", "-ec", f"{demo} --state-dir {tmp_path}/state --port 0"], tmp_path)
    assert "deleted" in said


@pytest.fixture(params=debian.SUITES)
def machine(request: pytest.FixtureRequest, dist: Path) -> Iterator[Chroot]:
    """A minimal Debian with the package of a release in /root."""
    if lacking := chroot.missing():
        pytest.skip(f"needs {', '.join(lacking)}")
    cache = Path(os.environ.get("MICRONOVA_TEST_DEBIANS", debian.CACHE))
    made = debian.package(request.param, next(dist.glob("*.whl")), dist, cache)
    bare = chroot.archive(request.param, (), cache)
    with Chroot.of(bare) as found:
        (found.root / "root" / made.name).write_bytes(made.read_bytes())
        found.run("apt-get", "update")
        yield found


def test_on_a_clean_debian(machine: Chroot) -> None:
    [package] = (machine.root / "root").glob("*.deb")
    before = files(machine)
    for line in block(*DEBIAN).splitlines():
        printed = "micronova_1.0.0~deb13_amd64.deb"
        command = line.replace(printed, package.name).replace("install ", "install --yes ")
        # A chroot has no systemd that runs.
        command = command.replace(" --now ", " ")
        machine.run("bash", "-ec", f"cd /root; {command}")
    assert folders(machine) == ["750 root micronova", "750 micronova micronova"]
    assert machine.run("dpkg", "--verify", "micronova").stdout == ""
    assert "micronova-up.service" in machine.run("systemctl", "list-unit-files").stdout
    units = sorted((machine.root / "etc/systemd/system/multi-user.target.wants").iterdir())
    assert [unit.name for unit in units if "micronova" in unit.name] == ["micronova-up.service"]
    make_a_server(machine)
    machine.run("apt-get", "purge", "--yes", "micronova")
    left = {name for name in files(machine) - before if "micronova" in name}
    assert left == set()
    users = machine.run("getent", "passwd", "micronova", check=False)
    assert users.returncode == 2, users.stdout


def make_a_server(machine: Chroot) -> None:
    """The demonstration of the installed program, as the user of the services."""
    said = machine.run(
        *("setpriv", "--reuid=micronova", "--regid=micronova", "--init-groups", "--no-new-privs"),
        *("env", "HOME=/var/lib/micronova", "micronova", "up", "--demo"),
        *("--state-dir", "/var/lib/micronova/state", "--port", "0"),
    ).stdout
    assert "deleted" in said


def folders(machine: Chroot) -> list[str]:
    words = ("stat", "--format=%a %U %G", "/etc/micronova", "/var/lib/micronova")
    return machine.run(*words).stdout.splitlines()


def files(machine: Chroot) -> set[str]:
    """Return the paths of a system, but for what apt writes of its own."""
    shown = machine.run("find", "/", "-xdev", "-not", "-path", "/proc/*").stdout
    return {name for name in shown.splitlines() if not name.startswith(_APTS)}
