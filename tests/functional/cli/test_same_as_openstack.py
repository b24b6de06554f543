"""The client's commands show what ``openstack`` shows: both are run on the same cloud."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.functional import programs
from tests.functional.cli import openstack_stub as stub

ROOT = Path(__file__).resolve().parents[3]
PASSWORD = "a-password-nobody-may-read"

COMMANDS = (
    "server list",
    "server list --long",
    "server list --all-projects -c ID -c User_ID",
    "server list --no-name-lookup",
    "server show web",
    f"server event list {stub.SERVER_ID} --long",
    f"server event show {stub.SERVER_ID} {stub.REQUEST_ID}",
    # python-openstackclient's own, one of each API and each kind
    "flavor list --long",
    "keypair show k",
    "hypervisor show pve1",
    "aggregate list --long",
    "server group list --long",
    "compute service list --long",
    "quota show --compute --usage",
    "limits show --absolute",
    "availability zone list --compute --long",
    "extension list --network",
    "image list",
    "image show debian",
    "network list --long",
    "subnet list --long",
    "port list",
    "token issue",
    "catalog list",
    "versions show",
)
TABLES = ("server list --long", "server show web", "aggregate show fast")


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


@pytest.mark.parametrize("command", COMMANDS)
def test_same_data(command: str, environment: dict[str, str]) -> None:
    ours, theirs = both(environment, *command.split(), "-f", "json")
    assert json.loads(ours) == json.loads(theirs)


@pytest.mark.parametrize("command", TABLES)
def test_same_table(command: str, environment: dict[str, str]) -> None:
    ours, theirs = both(environment, *command.split())
    assert ours == theirs


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


def test_a_failure_of_openstack_s_command_is_one_line(environment: dict[str, str]) -> None:
    done = micronova(environment, "server", "migration", "list")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    assert f"isn't here. (HTTP 404) (Request-ID: {stub.REQUEST_ID})" in done.stderr
    done = micronova(environment, "flavor", "delete", "m1.small", "nothing")
    assert done.returncode == 1
    assert f"Not for you. (HTTP 403) (Request-ID: {stub.REQUEST_ID})" in done.stderr
    assert "No Flavor found for nothing" in done.stderr
    assert done.stderr.splitlines()[-1] == "2 of 2 flavors failed to delete."


def test_the_configuration_shows_no_secret(environment: dict[str, str]) -> None:
    done = micronova(environment, "configuration", "show")
    assert (done.returncode, PASSWORD in done.stdout) == (0, False)
    assert environment["OS_AUTH_URL"] in done.stdout


def test_debugging_shows_no_secret(environment: dict[str, str]) -> None:
    done = micronova(environment, "--debug", "server", "list")
    assert done.returncode == 0
    assert "GET " in done.stderr
    assert PASSWORD not in done.stderr
    assert stub.TOKEN not in done.stderr
