"""The client's commands show what ``openstack`` shows: both are run on the same cloud."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.functional import programs
from tests.functional.cli import openstack_stub as stub

ROOT = Path(__file__).resolve().parents[3]
PASSWORD = "a-password-nobody-may-read"
OPENSTACK = shutil.which("openstack", path=str(Path(sys.executable).parent))

COMMANDS = (
    "server list",
    "server list --long",
    "server list --all-projects -c ID -c User_ID",
    "server list --no-name-lookup",
    "server show web",
    f"server event list {stub.SERVER_ID} --long",
    f"server event show {stub.SERVER_ID} {stub.REQUEST_ID}",
    "flavor list",
    "flavor list --long",
    "flavor show m1.small",
    "image list",
    "image list --long",
    "image show debian",
    "network list",
    "network list --long",
    "network show vmbr0",
    "subnet list",
    "subnet list --long",
    "port list",
    "keypair list",
    "keypair show k",
    "hypervisor list",
    "hypervisor show pve1",
    "compute service list",
    "compute service list --long",
    "availability zone list --compute",
    "availability zone list --compute --long",
    "aggregate list",
    "aggregate list --long",
    "aggregate list --host pve3",
    "aggregate list --availability-zone c1",
    "aggregate show fast",
    "server group list",
    "server group list --long",
    "server group list --all-projects",
    "server group show apart",
    "token issue",
    "catalog list",
)
TABLES = (
    "server list --long",
    "server show web",
    "flavor list --long",
    "network list --long",
    "subnet list --long",
    "port list",
    "aggregate list --long",
    "aggregate show fast",
    "server group list --long",
    "server group show apart",
)
#: ours leave out the limits that the cloud doesn't have
WITHOUT_GAPS = ("quota show --compute", "quota show --compute --usage", "limits show --absolute")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The variables that name the cloud, in an otherwise empty home."""
    with stub.running_stub() as auth_url:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("OS_")}
        yield {
            **kept,
            "HOME": str(tmp_path_factory.mktemp("home")),
            "COLUMNS": "400",
            "OS_AUTH_URL": auth_url,
            "OS_USERNAME": "demo",
            "OS_PASSWORD": PASSWORD,
            "OS_PROJECT_NAME": "demo",
            "OS_USER_DOMAIN_NAME": "Default",
            "OS_PROJECT_DOMAIN_NAME": "Default",
        }


def micronova(environment: dict[str, str], *argv: str) -> subprocess.CompletedProcess[str]:
    """Run the command as the installed program is run."""
    return subprocess.run(
        [sys.executable, "-m", "micronova", *argv],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def both(environment: dict[str, str], *words: str) -> tuple[str, str]:
    """Run a command of both; return what each printed."""
    ours = programs.run("micronova", words, environment)
    theirs = programs.run("openstack", words, environment)
    assert ours.returncode == theirs.returncode == 0, ours.stderr + theirs.stderr
    return ours.stdout, theirs.stdout


@pytest.mark.skipif(OPENSTACK is None, reason="python-openstackclient isn't installed")
@pytest.mark.parametrize("command", COMMANDS)
def test_same_data(command: str, environment: dict[str, str]) -> None:
    ours, theirs = both(environment, *command.split(), "-f", "json")
    assert json.loads(ours) == json.loads(theirs)


@pytest.mark.skipif(OPENSTACK is None, reason="python-openstackclient isn't installed")
@pytest.mark.parametrize("command", TABLES)
def test_same_table(command: str, environment: dict[str, str]) -> None:
    ours, theirs = both(environment, *command.split())
    assert ours == theirs


@pytest.mark.skipif(OPENSTACK is None, reason="python-openstackclient isn't installed")
@pytest.mark.parametrize("command", WITHOUT_GAPS)
def test_same_rows_but_those_without_a_value(command: str, environment: dict[str, str]) -> None:
    ours, theirs = both(environment, *command.split(), "-f", "json")
    key = next(iter(json.loads(ours)[0]))
    rows = {row[key]: row for row in json.loads(ours)}
    others = {row[key]: row for row in json.loads(theirs)}
    left_out = [row for name, row in others.items() if name not in rows]
    assert rows == {name: others[name] for name in rows}
    assert all(not list(row.values())[1] for row in left_out)


def test_explain_over_the_wire(environment: dict[str, str]) -> None:
    for subject in (stub.REQUEST_ID, "web", stub.SERVER_ID):
        done = micronova(environment, "explain", subject)
        assert done.returncode == 0, done.stderr
        assert "create  done in 4.00 s" in done.stdout
        assert done.stderr == ""


def test_nodes_over_the_wire(environment: dict[str, str]) -> None:
    done = micronova(environment, "node", "list", "-f", "json")
    [node] = json.loads(done.stdout)
    assert node["Memory MiB"] == {"used": 2048, "total": 16384}
    assert node["Health"] == "disabled: new disk"


def test_a_missing_thing_is_one_line(environment: dict[str, str]) -> None:
    done = micronova(environment, "explain", "req-00000000-0000-0000-0000-000000000009")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "isn't here. (HTTP 404)" in done.stderr


def test_debugging_shows_no_secret(environment: dict[str, str]) -> None:
    done = micronova(environment, "--debug", "server", "list")
    assert done.returncode == 0
    assert "GET " in done.stderr
    assert PASSWORD not in done.stderr
    assert stub.TOKEN not in done.stderr
