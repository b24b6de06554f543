"""``micronova bus``: the users of the message bus."""

from __future__ import annotations

import argparse

from cli.command import Command, argument
from cli.services.service import CONFIG_FILE, config_files


class ShowBusUsers(Command):
    """Print the commands that make RabbitMQ's users, each with the rights that it needs.

    There is one for each kind of service, and one for each compute worker. `rabbitmqctl add_user`
    asks for a password.
    """

    arguments = (
        argument(
            "--worker",
            metavar="<name>",
            action="append",
            help="A compute worker; repeat for several (default: [compute] worker of the files)",
        ),
        CONFIG_FILE,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Print them."""
        from launcher import bus_users, configuration

        conf = configuration.load(config_files(parsed_args))
        workers = parsed_args.worker or [conf.compute.worker]
        for line in bus_users.lines(conf, workers):
            self.app.stdout.write(f"{line}\n")
