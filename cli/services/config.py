"""``micronova config``: the configuration as the services read it."""

from __future__ import annotations

import argparse

from cli.command import Command, flag
from cli.services.service import CONFIGURATION, any_config_files, reading


class ShowConfig(Command):
    """Print the configuration that the services read, secrets masked."""

    arguments = (CONFIGURATION, flag("--all", help="Show defaults too"))

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Print it."""
        from launcher import configuration, listing
        from launcher.embedded import settings

        files = any_config_files(parsed_args)
        conf = configuration.load(files, settings.register)
        self.say(reading(files))
        configuration.register_logins(conf)
        configuration.register_clusters(conf)
        for line in listing.lines(conf, defaults=parsed_args.all):
            self.app.stdout.write(line + "\n")
