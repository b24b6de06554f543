"""``micronova server start``, ``stop`` and ``reboot``."""

from __future__ import annotations

import argparse

from cli.command import Command, argument, flag, one_of
from cli.server.waiting import Waiting

_SERVERS = argument("server", metavar="<server>", nargs="+", help="Server(s) (name or ID)")
_ALL = flag("--all-projects", help="Look in all projects (admin only)")


class StartServers(Command):
    """Start servers."""

    arguments = (_SERVERS, _ALL)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Start each."""
        compute = self.cloud.compute
        for name in parsed_args.server:
            found = compute.find_server(
                name, ignore_missing=False, details=False, all_projects=parsed_args.all_projects
            )
            compute.start_server(found.id)


class StopServers(Command):
    """Stop servers."""

    arguments = (_SERVERS, _ALL)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Stop each."""
        compute = self.cloud.compute
        for name in parsed_args.server:
            found = compute.find_server(
                name, ignore_missing=False, details=False, all_projects=parsed_args.all_projects
            )
            compute.stop_server(found.id)


class RebootServer(Command):
    """Reboot a server."""

    arguments = (
        argument("server", metavar="<server>", help="Server (name or ID)"),
        one_of(
            flag("--hard", help="Power off and on"), flag("--soft", help="Ask the guest (default)")
        ),
        flag("--wait", help="Wait until it is done, and show the steps"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Reboot it."""
        compute = self.cloud.compute
        found = compute.find_server(parsed_args.server, ignore_missing=False)
        compute.reboot_server(found.id, "HARD" if parsed_args.hard else "SOFT")
        if parsed_args.wait:
            Waiting(self.cloud, self.app.stderr).until_idle(found.id, found.name, "reboot")
