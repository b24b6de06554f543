"""Which commands of python-openstackclient are offered."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli.commands import COMMANDS, CommandTable
from cli.osc.names import entry_points

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize(
    "name",
    [
        *("aggregate add host", "availability zone list", "catalog list", "extension list"),
        *("flavor create", "hypervisor list", "image list", "keypair list", "network list"),
        *("port list", "project create", "quota set", "server group create", "server lock"),
        *("server migrate", "server resize confirm", "subnet list", "token issue", "usage list"),
        *("volume create", "volume list", "volume show", "volume set", "volume unset"),
        *("volume delete", "volume snapshot create", "volume type list", "volume message list"),
        *("volume transfer request accept", "volume attachment list", "volume service list"),
        *("volume backup list", "volume summary", "block storage resource filter list"),
    ],
)
def test_what_exists_here_is_offered(name: str) -> None:
    assert name in CommandTable().theirs


@pytest.mark.parametrize(
    "word",
    ["consistency", "snapshot", "container", "object", "router", "floating", "share"],
)
def test_what_does_not_exist_here_is_not(word: str) -> None:
    assert [name for name in entry_points() if name.split()[0] == word] == []
    assert "network agent list" not in entry_points()
    for name in ("volume qos create", "volume group list", "volume host set", "volume migrate"):
        assert name not in entry_points()


def test_ours_replace_theirs_of_the_same_name() -> None:
    theirs = CommandTable().theirs
    assert theirs.keys() & COMMANDS.keys() == set()
    assert {"server create", "server list", "keypair create"} <= entry_points().keys()
    command, name, rest = CommandTable().find_command(["server", "show", "web", "--debug"])
    assert (command.__module__, name, rest) == (
        "cli.server.show",
        "server show",
        ["web", "--debug"],
    )


def test_the_longest_name_is_meant() -> None:
    """Keystone's services are no service to run."""
    table = CommandTable()
    assert table.match(["service", "list"]) == "service list"
    assert table.match(["service", "conductor"]) == "service"
    assert table.match(["servers"]) == ""


def test_every_command_that_is_offered_exists() -> None:
    """In a process of its own, because the plugins add attributes to classes for good."""
    code = (
        "from cli.commands import CommandTable\n"
        "table = CommandTable()\n"
        "for name in table.theirs: table.find_command(name.split())[0].take_action"
    )
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_our_commands_import_none_of_it() -> None:
    code = (
        "import sys\n"
        "from cli.commands import COMMANDS, CommandTable\n"
        "for name in COMMANDS: CommandTable().find_command(name.split())\n"
        "import cli.cloud, cli.main\n"
        "print({'openstackclient', 'osc_lib', 'keystoneclient'} & set(sys.modules))"
    )
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("set()\n", "")
