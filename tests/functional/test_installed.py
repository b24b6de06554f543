"""A release, made and installed as docs/install.md prints it: with pip, and on clean Debians."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from release import chroot, debian
from release.chroot import Booted, Chroot
from release.tree import Repository
from tests.fixtures.install_page import DEBIAN, ENVIRONMENT, MAKES, QUICKSTART, RELEASE
from tests.functional import backends
from tests.functional.unprepared import unprepared
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


_PORTS = (5432, 5672)
"""Of a machine's own PostgreSQL and RabbitMQ; the chroot has the network of this one."""

#: where supervisord runs services, as in a container, PostgreSQL and RabbitMQ are started by hand
_BY_HAND = """
pg_ctlcluster $(pg_lsclusters --no-header | cut -d' ' -f1,2) start
rabbitmq-server -detached
supervisord --configuration /etc/supervisor/supervisord.conf
"""
_STORY = """
{start}
RABBITMQ_NODENAME=quickstart@localhost; export RABBITMQ_NODENAME
rabbitmqctl await_startup --timeout 120 >/dev/null
took() {{ echo "took $1: $SECONDS s"; SECONDS=0; }}
SECONDS=0
{quickstart} 3</root/password
took quickstart
export OS_CLIENT_CONFIG_FILE=/var/lib/micronova/identity/clouds.yaml OS_CLOUD=micronova
openstack() {{ /usr/lib/micronova/bin/openstack "$@"; }}
openstack server create --flavor m1.small --image debian-13-genericcloud-amd64 \
    --network vmbr0 --wait web -f value -c status
took create
{quickstart} 3</root/password | grep 'Nothing is missing'
took again
openstack server delete --wait web
micronova quickstart --remove --yes {port}
took remove
! psql --version >/dev/null || runuser -u postgres -- psql -Atc \
    "SELECT datname FROM pg_database WHERE datname IN ('micronova', 'placement')"
rabbitmqctl --quiet list_users --no-table-headers
ls /etc/micronova {theirs} /var/lib/micronova
{stop}
"""
_UNITS = """
systemctl list-units --no-legend --state=active 'micronova*' | tr -d '\n'
# it fails where it finds none
systemctl list-unit-files --no-legend --state=enabled 'micronova*' || true
"""


@contextlib.contextmanager
def running(machine: Chroot, manager: str) -> Iterator[Chroot | Booted]:
    """The system in which somebody runs services."""
    (machine.root / "etc/rabbitmq").mkdir(exist_ok=True)
    name = "NODENAME=quickstart@localhost\n"
    (machine.root / "etc/rabbitmq/rabbitmq-env.conf").write_text(name)
    if manager == "supervisord":
        yield machine
        return
    (machine.root / "usr/sbin/policy-rc.d").unlink()
    try:
        with machine.booted() as booted:
            yield booted
    except RuntimeError as error:
        if "systemd doesn't run here" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.mark.parametrize("manager", ["supervisord", "systemd"])
@pytest.mark.parametrize("machine", ["trixie"], indirect=True)
def test_quickstart_on_a_clean_debian(machine: Chroot, manager: str, tmp_path: Path) -> None:
    """Package in, quickstart, a server, package out, and nothing is left; prints the seconds."""
    if busy := [port for port in _PORTS if backends.listens(port)]:
        pytest.skip(f"another server of this machine has the ports {busy}")
    [package] = (machine.root / "root").glob("*.deb")
    before, began = files(machine), time.monotonic()
    install, quickstart = block(*QUICKSTART).splitlines()
    policy = machine.root / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    # the rest is what the page's machine has: somebody who runs services
    theirs = "supervisor" if manager == "supervisord" else "systemd-sysv"
    install = install.replace("micronova_1.0.0~deb13_amd64.deb", package.name)
    install = install.replace("install ", f"install --yes --no-install-recommends {theirs} ")
    machine.run("bash", "-ec", f"cd /root; {install}")
    print(f"took install: {time.monotonic() - began:.0f} s")
    with (
        unprepared(tmp_path / "simulator", nodes=1, speed=50.0) as cluster,
        running(machine, manager) as system,
    ):
        (machine.root / "root/password").write_text(cluster.password)
        (machine.root / "root/ca.pem").write_text(cluster.ca_file.read_text())
        port = f"--port {backends.free_port(8)}"
        line = quickstart.replace("https://pve1.example.org:8006", cluster.url)
        line += f" --yes --password-fd 3 --ca /root/ca.pem {port}"
        by_hand = manager == "supervisord"
        story = _STORY.format(
            start=f"export RABBITMQ_NODENAME=quickstart@localhost{_BY_HAND}" if by_hand else "",
            stop="supervisorctl shutdown" if by_hand else _UNITS,
            theirs="/etc/supervisor/conf.d" if by_hand else "",
            quickstart=line,
            port=port,
        )
        said = system.run("bash", "-ec", story).stdout
    print(said)  # the seconds are for people
    assert "The cloud is up" in said
    assert "ACTIVE" in said.splitlines()
    left = said.partition("took remove")[2].splitlines()[1:]
    assert left[:2] == ["guest\t[administrator]", "/etc/micronova:"]
    assert not {"micronova", "placement", "micronova.conf", "identity"} & set(left[2:])
    assert "micronova-" not in said.partition("took remove")[2]
    began = time.monotonic()
    machine.run("apt-get", "purge", "--yes", "micronova")
    print(f"took purge: {time.monotonic() - began:.0f} s")
    left_over = {name for name in files(machine) - before if "micronova" in name}
    assert left_over == set()


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
