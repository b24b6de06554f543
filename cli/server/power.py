"""``micronova server start``, ``stop`` and ``reboot``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from cli.command import ALL_PROJECTS, Command, argument, flag, one_of
from cli.server.waiting import Waiting

_SERVERS = argument("server", metavar="<server>", nargs="+", help="Server(s) (name or ID)")
_WAIT = flag("--wait", help="Wait until it is done, and show the steps")


class StartServers(Command):
    """Start servers."""

    arguments = (_SERVERS, ALL_PROJECTS, _WAIT)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Start each."""
        _act(self, parsed_args, "start", self.cloud.compute.start_server)


class StopServers(Command):
    """Stop servers."""

    arguments = (_SERVERS, ALL_PROJECTS, _WAIT)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Stop each."""
        _act(self, parsed_args, "stop", self.cloud.compute.stop_server)


class RebootServer(Command):
    """Reboot a server."""

    arguments = (
        argument("server", metavar="<server>", help="Server (name or ID)"),
        one_of(
            flag("--hard", help="Power off and on"), flag("--soft", help="Ask the guest (default)")
        ),
        _WAIT,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Reboot it."""
        compute = self.cloud.compute
        found = self.cloud.find("server", parsed_args.server)
        compute.reboot_server(found.id, "HARD" if parsed_args.hard else "SOFT")
        if parsed_args.wait:
            Waiting(self.cloud, self.app.stderr).until_idle(found.id, found.name, "reboot")


def _act(
    command: Command, parsed_args: argparse.Namespace, action: str, ask: Callable[[str], Any]
) -> None:
    """Ask for all first, each by its ID; then, with --wait, see each done.

    :param action: as ``os-instance-actions`` calls it.
    """
    asked: dict[str, Any] = {}
    for name in parsed_args.server:
        found = command.cloud.find(
            "server", name, details=False, all_projects=parsed_args.all_projects
        )
        ask(found.id)
        asked[name] = found

    def wait(name: str) -> None:
        server = asked[name]
        if len(asked) > 1:
            command.say(f"{server.name}:")
        Waiting(command.cloud, command.app.stderr).until_idle(server.id, server.name, action)

    if parsed_args.wait:
        command.each(list(asked), f"see server {action}", wait)
