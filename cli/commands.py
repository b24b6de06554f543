"""The commands of ``micronova``: name → class, imported when it is used.

Our own commands are in ``COMMANDS``. All other commands of ``openstack`` for the services that
exist here are python-openstackclient's (``cli.osc.names``), looked up only if ours don't match.

A module named here imports nothing heavy at its top (no openstack, SQLAlchemy, oslo or rich), so
that ``micronova --help`` can read all the classes' docstrings at once. Commands that need a cloud
build on ``cli.command``; the others need no authentication.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import Any

import cliff.commandmanager

from cli.command import with_one_line_errors
from cli.osc.names import entry_points
from cli.osc.stages import with_stages
from cli.regions import over_regions
from cli.suggestions import unknown_command

COMMANDS: Mapping[str, str] = {
    "audit": "cli.admin.audit:RunAudit",
    "backup": "cli.services.backup:MakeBackup",
    "bus users": "cli.services.bus:ShowBusUsers",
    "capacity": "cli.admin.schedule:ShowCapacity",
    "complete": "cli.complete:Complete",
    "config show": "cli.services.config:ShowConfig",
    "db check": "cli.services.database:CheckDatabases",
    "db contract": "cli.services.database:ContractDatabases",
    "db expand": "cli.services.database:ExpandDatabases",
    "db upgrade": "cli.services.database:UpgradeDatabases",
    "doctor": "cli.services.doctor:Doctor",
    "explain": "cli.explain:Explain",
    "files": "cli.services.files:WriteFiles",
    "group create": "cli.group.group:CreateGroup",
    "group delete": "cli.group.group:DeleteGroup",
    "group explain": "cli.group.group:ExplainGroup",
    "group list": "cli.group.group:ListGroups",
    "group quota": "cli.group.group:ShowGroupQuota",
    "group recover": "cli.group.group:RecoverGroup",
    "group replace": "cli.group.group:ReplaceGroup",
    "group scale": "cli.group.group:ScaleGroup",
    "group show": "cli.group.group:ShowGroup",
    "group update": "cli.group.group:UpdateGroup",
    "help": "cli.help:Help",
    "host metrics": "cli.admin.host:ShowHostMetrics",
    "image publish": "cli.publish:PublishImage",
    "keypair create": "cli.keypair:CreateKeypair",
    "keypair publish": "cli.publish:PublishKeypair",
    "metrics": "cli.admin.metrics:ShowMetrics",
    "node disable": "cli.admin.node:DisableNode",
    "node drain": "cli.admin.drain:DrainNode",
    "node enable": "cli.admin.node:EnableNode",
    "node list": "cli.admin.node:ListNodes",
    "orphan list": "cli.admin.orphan:ListOrphans",
    "orphan reap": "cli.admin.orphan:ReapOrphans",
    "proxmox prepare": "cli.services.proxmox:Prepare",
    "quickstart": "cli.services.quickstart:Quickstart",
    "quota spread": "cli.admin.quota_spread:SpreadQuota",
    "queue list": "cli.admin.queues:ListQueues",
    "rebalance": "cli.admin.rebalance:Rebalance",
    "restore": "cli.services.backup:Restore",
    "schedule": "cli.admin.schedule:Schedule",
    "server adopt": "cli.server.manage:AdoptServer",
    "server create": "cli.server.create:CreateServer",
    "server delete": "cli.server.delete:DeleteServers",
    "server event list": "cli.server.events:ListServerEvents",
    "server event show": "cli.server.events:ShowServerEvent",
    "server forget": "cli.server.manage:ForgetServer",
    "server hold": "cli.server.manage:HoldServers",
    "server list": "cli.server.list:ListServers",
    "server metrics": "cli.server.metrics:ShowServerMetrics",
    "server reboot": "cli.server.power:RebootServer",
    "server mark": "cli.server.manage:MarkServer",
    "server release": "cli.server.manage:ReleaseServer",
    "server release-hold": "cli.server.manage:ReleaseHold",
    "server retry": "cli.server.manage:RetryServers",
    "server show": "cli.server.show:ShowServer",
    "server start": "cli.server.power:StartServers",
    "server stop": "cli.server.power:StopServers",
    "service": "cli.services.service:RunService",
    "status upgrade-check": "cli.services.status:CheckUpgrade",
    "up": "cli.services.up:Up",
    "vmid list": "cli.admin.vmid:ListVmids",
}


class CommandTable(cliff.commandmanager.CommandManager):
    """cliff's command manager over ``COMMANDS`` and python-openstackclient's commands."""

    def __init__(self, commands: Mapping[str, str] = COMMANDS) -> None:
        super().__init__()
        self.all_regions = False
        """Whether commands look at all regions."""
        for name, path in commands.items():
            self.commands[name] = EntryPoint(name, path, "micronova")

    def find_command(self, argv: list[str]) -> tuple[type[Any], str, list[str]]:
        """Return the command's class, its name, and the words after it.

        Only whole names count: cliff takes the beginning of a name for the command, and would
        delete for ``server del``.

        :raises ValueError: there is none; the text says what may be meant.
        """
        words = list(itertools.takewhile(lambda word: not word.startswith("-"), argv))
        if name := self.match(words):
            ours: Any = self.commands.get(name)
            found = ours.load() if ours else with_stages(name, self.theirs[name].load())
            command = with_one_line_errors(found)
            if self.all_regions:
                command = over_regions(name, command)
            return command, name, argv[len(name.split()) :]
        if not words:
            raise ValueError(f"{argv[0]} is no option here: options of a command come after it.")
        raise ValueError(unknown_command(words, [*self.commands, *self.theirs]))

    def match(self, words: Sequence[str]) -> str:
        """Return the longest beginning of the words that is a command; empty if there is none."""
        ours = longest(words, self.commands)
        if len(ours.split()) == len(words):
            return ours
        return max(ours, longest(words, self.theirs), key=len)

    @property
    def theirs(self) -> Mapping[str, EntryPoint]:
        """The commands of python-openstackclient that ours don't replace."""
        return {name: p for name, p in entry_points().items() if name not in self.commands}

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Yield name and entry point of every command."""
        yield from self.commands.items()
        yield from self.theirs.items()

    def add_command(self, name: str, command_class: type) -> None:
        """Add a class, unless the table has the name (cliff adds its own help and complete)."""
        if name not in self.commands:
            super().add_command(name, command_class)


def longest(words: Sequence[str], names: Container[str]) -> str:
    """Return the longest beginning of the words that is a name; empty if there is none.

    >>> longest(["server", "list", "x"], {"server", "server list"})
    'server list'
    """
    for length in range(len(words), 0, -1):
        name = " ".join(words[:length])
        if name in names:
            return name
    return ""
