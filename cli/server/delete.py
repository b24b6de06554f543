"""``micronova server delete``."""

from __future__ import annotations

import argparse
from typing import Any

from cli.command import ALL_PROJECTS, Command, argument, flag
from cli.server.waiting import Waiting


class DeleteServers(Command):
    """Delete servers."""

    arguments = (
        argument("server", metavar="<server>", nargs="+", help="Server(s) (name or ID)"),
        flag("--force", help="Delete it also while another action is under way (admin only)"),
        ALL_PROJECTS,
        flag("--wait", help="Wait until it is gone, and show the steps"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Ask for all first; then, with --wait, see each gone."""
        compute = self.cloud.compute
        asked: dict[str, Any] = {}

        def delete(name: str) -> None:
            server = self.cloud.find("server", name, all_projects=parsed_args.all_projects)
            compute.delete_server(server, force=parsed_args.force)
            asked[name] = server

        def wait(name: str) -> None:
            server = asked[name]
            if len(asked) > 1:
                self.say(f"{server.name}:")
            Waiting(self.cloud, self.app.stderr).until_gone(server.id, server.name)

        try:
            self.each(parsed_args.server, "delete server", delete)
        finally:
            if parsed_args.wait and asked:
                self.each(list(asked), "see server gone", wait)
