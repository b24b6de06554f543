"""``micronova server set`` and ``unset``."""

from __future__ import annotations

import argparse

from cli.command import Command, Pairs, argument, flag, given, one_of

_SERVER = argument("server", metavar="<server>", help="Server (name or ID)")


class SetServer(Command):
    """Set a server's name, description, hostname, properties or tags."""

    arguments = (
        _SERVER,
        argument("--name", metavar="<new-name>", help="New name"),
        argument("--description", metavar="<description>", help="New description"),
        argument("--hostname", metavar="<hostname>", help="New hostname"),
        argument(
            "--property",
            metavar="<key=value>",
            action=Pairs,
            dest="properties",
            help="Property to add or change (repeat)",
        ),
        argument(
            "--tag",
            metavar="<tag>",
            action="append",
            default=[],
            dest="tags",
            help="Tag to add (repeat)",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Apply the changes."""
        compute = self.cloud.compute
        server = self.cloud.find("server", parsed_args.server)
        changed = given(parsed_args, "name", "description", "hostname")
        if changed:
            compute.update_server(server, **changed)
        if parsed_args.properties:
            compute.set_server_metadata(server, **parsed_args.properties)
        for tag in parsed_args.tags:
            compute.add_tag_to_server(server, tag=tag)


class UnsetServer(Command):
    """Unset a server's properties, tags or description."""

    arguments = (
        _SERVER,
        one_of(
            argument(
                "--property",
                metavar="<key>",
                action="append",
                default=[],
                dest="properties",
                help="Property to remove (repeat)",
            ),
            flag("--all-properties", help="Remove all properties"),
        ),
        flag("--description", help="Remove the description"),
        one_of(
            argument(
                "--tag",
                metavar="<tag>",
                action="append",
                default=[],
                dest="tags",
                help="Tag to remove (repeat)",
            ),
            flag("--all-tags", help="Remove all tags"),
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Remove the given values."""
        compute = self.cloud.compute
        server = self.cloud.find("server", parsed_args.server)
        if parsed_args.properties or parsed_args.all_properties:
            compute.delete_server_metadata(server, parsed_args.properties or None)
        if parsed_args.description:
            compute.update_server(server, description="")
        for tag in parsed_args.tags:
            compute.remove_tag_from_server(server, tag)
        if parsed_args.all_tags:
            compute.remove_tags_from_server(server)
