"""A release, made and installed as docs/install.md prints it: with pip, and on clean Debians."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from release import chroot, debian
from release.chroot import Booted, Chroot
from release.interpreters import TYPED
from release.tree import Repository, following
from tests.fixtures.install_page import DEBIAN, ENVIRONMENT, QUICKSTART
from tests.functional import backends
from tests.functional.unprepared import unprepared
from tests.pages import ROOT, block

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


#: what the page prints, and the version after the last release: that of the tree
PRINTED = "1.0.0"
VERSION = following(Repository(ROOT))
#: installed packages are unpacked from, and what apt has of its own
_APTS = ("/var/cache/apt/", "/var/log/", "/tmp/")


_PLACES = ("/etc/", "/var/lib/", "/usr/local/")
#: what apt, systemd and the page's servers write there of their own
_OF_THE_SYSTEM = (
    *("/var/lib/apt/", "/var/lib/dpkg/", "/var/lib/systemd/", "/var/lib/private", "/etc/.updated"),
    *("/var/lib/postgresql/", "/var/lib/rabbitmq/", "/etc/rabbitmq/", "/etc/machine-id"),
)
#: the clusters' part of a configuration, which the next quickstart uses again
CLUSTERS = ("compute.conf", "proxmox.token", "proxmox-ca.pem")


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


def test_the_files_are_what_the_sums_say(dist: Path) -> None:
    said = run(["sha256sum", "--check", "SHA256SUMS"], dist)
    assert said.count(": OK\n") == 3


def test_in_a_virtual_environment(dist: Path, tmp_path: Path) -> None:
    for path in dist.iterdir():
        (tmp_path / path.name).symlink_to(path)
    *install, demo = block(*ENVIRONMENT).replace(PRINTED, VERSION).splitlines()
    for line in install:
        run(["bash", "-ec", line], tmp_path)
    assert list(tmp_path.rglob(f"site-packages/{TYPED}"))
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
    # Services run on while the package is upgraded, and start by its units later.
    scripts = list((machine.root / "var/lib/dpkg/info").glob("micronova.p*inst"))
    assert not [path.name for path in scripts if "deb-systemd-invoke" in path.read_text()]
    assert [path.name for path in scripts if "systemctl daemon-reload" in path.read_text()]
    assert "micronova-up.service" in machine.run("systemctl", "list-unit-files").stdout
    units = sorted((machine.root / "etc/systemd/system/multi-user.target.wants").iterdir())
    assert [unit.name for unit in units if "micronova" in unit.name] == ["micronova-up.service"]
    make_a_server(machine)
    machine.run("systemctl", "enable", "micronova-conductor", "micronova-api@public")
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
# it is not waited for before it is known to epmd
timeout 120 sh -c 'until rabbitmqctl --quiet ping >/dev/null 2>&1; do sleep 1; done'
supervisord --configuration /etc/supervisor/supervisord.conf
"""
#: what a removal is to leave as it was
_STATE = """
there() {{
    find /etc /var/lib /usr/local -xdev -not -path '/var/lib/postgresql/*' \
        -not -path '/var/lib/rabbitmq/*' -not -path '/var/lib/systemd/*'
    getent passwd; getent group
    runuser -u postgres -- psql -Atc "SELECT 'role ' || rolname FROM pg_roles"
    runuser -u postgres -- psql -Atc "SELECT 'database ' || datname FROM pg_database"
    rabbitmqctl --quiet list_users --no-table-headers | sed 's/^/user /'
    for kind in queues exchanges; do
        rabbitmqctl --quiet list_$kind --no-table-headers name | sed "s/^/$kind /"
    done
}}
"""
_STORY = """
RABBITMQ_NODENAME=quickstart@localhost; export RABBITMQ_NODENAME
{start}
rabbitmqctl await_startup --timeout 120 >/dev/null
{state}
there | sort > /root/before
took() {{ echo "took $1: $SECONDS s"; SECONDS=0; }}
SECONDS=0
{quickstart} 3</root/password || {{ {logs}; exit 1; }}
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
there | sort > /root/after
# what the clusters' part is, which the next quickstart uses again
diff /root/before /root/after | grep '^[<>]' || true
{stop}
"""
_UNITS = """
systemctl list-units --no-legend --state=active 'micronova*' | tr -d '\n'
# it fails where it finds none
systemctl list-unit-files --no-legend --state=enabled 'micronova*' || true
"""


#: why services didn't start
_LOGS = {
    "supervisord": "tail --lines=20 /var/log/supervisor/*",
    "systemd": "systemctl --no-pager --lines=0 status 'micronova*'; "
    "journalctl --no-pager --lines=40 --unit 'micronova*'",
}


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
    install, quickstart = block(*QUICKSTART).splitlines()
    policy = machine.root / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    # the rest is what the page's machine has: somebody who runs services, and systemd's programs,
    # which the package asks for, and which leave users and files of theirs when they are purged
    theirs = ("systemd", "supervisor" if manager == "supervisord" else "systemd-sysv")
    install = install.replace("micronova_1.0.0~deb13_amd64.deb", package.name)
    install = install.replace("install ", "install --yes --no-install-recommends ")
    servers = install.partition(package.name)[2].split()
    machine.run("apt-get", "install", "--yes", "--no-install-recommends", *theirs, *servers)
    before, began = state(machine), time.monotonic()
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
            state=_STATE.format(),
            logs=_LOGS[manager],
            quickstart=line,
            port=port,
        )
        said = system.run("bash", "-ec", story).stdout
    print(said)  # the seconds are for people
    assert "The cloud is up" in said
    assert "ACTIVE" in said.splitlines()
    shown = said.partition("took remove")[2].splitlines()[1:]
    left = {line for line in shown if line.startswith(("< ", "> "))}
    assert left == {f"> /etc/micronova/{name}" for name in CLUSTERS}
    assert "micronova-" not in said.partition("took remove")[2]
    began = time.monotonic()
    machine.run("apt-get", "purge", "--yes", "micronova")
    print(f"took purge: {time.monotonic() - began:.0f} s")
    # what only it needed
    machine.run("apt-get", "autoremove", "--purge", "--yes")
    after = state(machine)
    assert (after - before, before - after) == (set(), set())


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


def state(machine: Chroot) -> set[str]:
    """Return what a package may leave: files where configuration and data are, users, groups."""
    found = {
        name
        for name in files(machine)
        if name.startswith(_PLACES) and not name.startswith(_OF_THE_SYSTEM)
    }
    for kind in ("passwd", "group"):
        found |= set(machine.run("getent", kind).stdout.splitlines())
    return found


def files(machine: Chroot) -> set[str]:
    """Return the paths of a system, but for what apt writes of its own, and masked units: what
    runs a system in a folder masks what it can't have."""
    without = ("-not", "-path", "/proc/*", "-not", "-lname", "/dev/null")
    shown = machine.run("find", "/", "-xdev", *without).stdout
    return {name for name in shown.splitlines() if not name.startswith(_APTS)}
