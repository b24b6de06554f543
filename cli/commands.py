"""Every command of ``micronova``: name → class, imported when it is used.

A module named here imports nothing heavy at its top (no openstack, SQLAlchemy, oslo or rich), so
that ``micronova --help`` can read all the classes' docstrings at once. Commands that need a cloud
build on ``cli.command``; the others need no authentication.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from typing import Any

import cliff.commandmanager

from cli.suggestions import unknown_command

COMMANDS: Mapping[str, str] = {
    "audit": "cli.audit:RunAudit",
    "aggregate add host": "cli.aggregate:AddHost",
    "aggregate cache image": "cli.aggregate:CacheImages",
    "aggregate create": "cli.aggregate:CreateAggregate",
    "aggregate delete": "cli.aggregate:DeleteAggregates",
    "aggregate list": "cli.aggregate:ListAggregates",
    "aggregate remove host": "cli.aggregate:RemoveHost",
    "aggregate set": "cli.aggregate:SetAggregate",
    "aggregate show": "cli.aggregate:ShowAggregate",
    "aggregate unset": "cli.aggregate:UnsetAggregate",
    "availability zone list": "cli.zone:ListAvailabilityZones",
    "capacity": "cli.schedule:ShowCapacity",
    "catalog list": "cli.identity:ListCatalog",
    "complete": "cliff.complete:CompleteCommand",
    "compute service delete": "cli.service:DeleteServices",
    "compute service list": "cli.service:ListServices",
    "compute service set": "cli.service:SetService",
    "config show": "cli.config_command:ShowConfig",
    "db check": "cli.database_command:CheckDatabases",
    "db upgrade": "cli.database_command:UpgradeDatabases",
    "explain": "cli.explain:Explain",
    "flavor create": "cli.flavor:CreateFlavor",
    "flavor delete": "cli.flavor:DeleteFlavors",
    "flavor list": "cli.flavor:ListFlavors",
    "flavor set": "cli.flavor:SetFlavor",
    "flavor show": "cli.flavor:ShowFlavor",
    "flavor unset": "cli.flavor:UnsetFlavor",
    "help": "cli.help:Help",
    "hypervisor list": "cli.hypervisor:ListHypervisors",
    "hypervisor show": "cli.hypervisor:ShowHypervisor",
    "hypervisor stats show": "cli.hypervisor:ShowHypervisorStats",
    "image list": "cli.image:ListImages",
    "image show": "cli.image:ShowImage",
    "keypair create": "cli.keypair:CreateKeypair",
    "keypair delete": "cli.keypair:DeleteKeypairs",
    "keypair list": "cli.keypair:ListKeypairs",
    "keypair show": "cli.keypair:ShowKeypair",
    "limits show": "cli.quota:ShowLimits",
    "metrics": "cli.metrics:ShowMetrics",
    "network list": "cli.network:ListNetworks",
    "network show": "cli.network:ShowNetwork",
    "node disable": "cli.node:DisableNode",
    "node enable": "cli.node:EnableNode",
    "node list": "cli.node:ListNodes",
    "orphan list": "cli.orphan:ListOrphans",
    "orphan reap": "cli.orphan:ReapOrphans",
    "port list": "cli.network:ListPorts",
    "quota list": "cli.quota:ListQuotas",
    "quota set": "cli.quota:SetQuota",
    "quota show": "cli.quota:ShowQuota",
    "rebalance": "cli.rebalance:Rebalance",
    "schedule": "cli.schedule:Schedule",
    "server adopt": "cli.server.manage:AdoptServer",
    "server create": "cli.server.create:CreateServer",
    "server delete": "cli.server.delete:DeleteServers",
    "server event list": "cli.server.events:ListServerEvents",
    "server event show": "cli.server.events:ShowServerEvent",
    "server forget": "cli.server.manage:ForgetServer",
    "server group create": "cli.server_group:CreateServerGroup",
    "server group delete": "cli.server_group:DeleteServerGroups",
    "server group list": "cli.server_group:ListServerGroups",
    "server group show": "cli.server_group:ShowServerGroup",
    "server hold": "cli.server.manage:HoldServers",
    "server list": "cli.server.list:ListServers",
    "server reboot": "cli.server.power:RebootServer",
    "server mark": "cli.server.manage:MarkServer",
    "server release": "cli.server.manage:ReleaseServer",
    "server release-hold": "cli.server.manage:ReleaseHold",
    "server retry": "cli.server.manage:RetryServers",
    "server set": "cli.server.change:SetServer",
    "server show": "cli.server.show:ShowServer",
    "server start": "cli.server.power:StartServers",
    "server stop": "cli.server.power:StopServers",
    "server unset": "cli.server.change:UnsetServer",
    "service": "cli.service_command:RunService",
    "subnet list": "cli.network:ListSubnets",
    "token issue": "cli.identity:IssueToken",
    "up": "cli.up:Up",
    "vmid list": "cli.vmid:ListVmids",
}


class CommandTable(cliff.commandmanager.CommandManager):
    """cliff's command manager over ``COMMANDS``."""

    def __init__(self, commands: Mapping[str, str] = COMMANDS) -> None:
        super().__init__()
        for name, path in commands.items():
            self.commands[name] = EntryPoint(name, path, "micronova")

    def find_command(self, argv: list[str]) -> tuple[type[Any], str, list[str]]:
        """Return the command's class, its name, and the words after it.

        Only whole names count: cliff takes the beginning of a name for the command, and would
        delete for ``server del``.

        :raises ValueError: there is none; the text says what may be meant.
        """
        words = list(itertools.takewhile(lambda word: not word.startswith("-"), argv))
        for length in range(len(words), 0, -1):
            name = " ".join(words[:length])
            if name in self.commands:
                return self.commands[name].load(), name, argv[length:]
        if not words:
            raise ValueError(f"{argv[0]} is no option here: options of a command come after it.")
        raise ValueError(unknown_command(words, self.commands))

    def add_command(self, name: str, command_class: type) -> None:
        """Add a class, unless the table has the name (cliff adds its own help and complete)."""
        if name not in self.commands:
            super().add_command(name, command_class)
