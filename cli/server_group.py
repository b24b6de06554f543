"""``micronova server group …``."""

from __future__ import annotations

import argparse
from typing import Any

from cli import columns
from cli.cloud import Cloud
from cli.columns import Column, shown, table
from cli.command import Command, Lister, Pairs, ShowOne, argument, flag, given
from cli.errors import CommandFailed

_POLICIES = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")
_LONG = (
    Column("Members", "member_ids", columns.Listed),
    Column("Project Id", "project_id"),
    Column("User Id", "user_id"),
)
_CELLS = {"members": columns.Listed, "policies": columns.Listed, "rules": columns.Pairs}


class ListServerGroups(Lister):
    """List server groups."""

    arguments = (
        flag("--all-projects", help="Of all projects (admin only)"),
        flag("--long", help="List additional fields"),
        argument("--offset", metavar="<offset>", type=int, help="Number of entries to skip"),
        argument("--limit", metavar="<limit>", type=int, help="Entries per page"),
        argument("--max-items", metavar="<max-items>", type=int, help="Entries in total"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each group."""
        query = given(parsed_args, "all_projects", "offset", "limit", "max_items")
        if "limit" in query:
            query["paginated"] = False
        found = self.cloud.compute.server_groups(**query)
        policy = Column("Policies", "policies", columns.Listed)
        if self.cloud.supports("2.64"):
            policy = Column("Policy", "policy")
        wanted = (Column("ID", "id"), Column("Name", "name"), policy)
        return table(wanted + (_LONG if parsed_args.long else ()), found)


class ShowServerGroup(ShowOne):
    """Show a server group."""

    arguments = (argument("server_group", metavar="<server-group>", help="Group (name or ID)"),)

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the group with its members."""
        return _shown(self.cloud, self.cloud.find("server_group", parsed_args.server_group))


class CreateServerGroup(ShowOne):
    """Create a server group. Servers join it when they are created (`--hint group=<id>`)."""

    arguments = (
        argument("name", metavar="<name>", help="Name"),
        argument(
            "--policy",
            choices=_POLICIES,
            default="affinity",
            help="Which of them may share a host (default: affinity)",
        ),
        argument(
            "--rule",
            metavar="<key=value>",
            action=Pairs,
            dest="rules",
            help="max_server_per_host=<n>, of anti-affinity",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Create it."""
        attributes: dict[str, Any] = {"name": parsed_args.name}
        if self.cloud.supports("2.64"):
            attributes |= {"policy": parsed_args.policy, **given(parsed_args, "rules")}
        elif parsed_args.rules:
            raise CommandFailed("The cloud knows no rules: they came with microversion 2.64")
        else:
            attributes["policies"] = [parsed_args.policy]
        return _shown(self.cloud, self.cloud.compute.create_server_group(**attributes))


class DeleteServerGroups(Command):
    """Delete server groups; their servers stay."""

    arguments = (
        argument(
            "server_group", metavar="<server-group>", nargs="+", help="Group(s) (name or ID)"
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Delete each."""
        compute = self.cloud.compute

        def delete(name: str) -> None:
            found = self.cloud.find("server_group", name)
            compute.delete_server_group(found.id)

        self.each(parsed_args.server_group, "delete server group", delete)


def _shown(cloud: Cloud, group: Any) -> Any:
    old = ("policies",) if cloud.supports("2.64") else ("policy", "rules")
    values = group.to_dict(headers=False)
    return shown(values, {"member_ids": "members"}, ("metadata", *old), _CELLS)
