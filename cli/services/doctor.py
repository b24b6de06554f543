"""``micronova doctor``: are the configured clusters fit for use?"""

from __future__ import annotations

import argparse

from cli.command import Command
from cli.services.service import CONFIGURATION, any_config_files


class Doctor(Command):
    """Check the configured Proxmox VE clusters, and say what is missing, with the commands.

    The exit code is 1 if a cluster can't take servers. It also lists missing privileges that only
    some actions need; those don't change the exit code.
    """

    arguments = (CONFIGURATION,)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Check them."""
        from launcher import configuration, doctor

        conf = configuration.load(any_config_files(parsed_args))
        configuration.register_clusters(conf)
        lines, well = doctor.examine(conf)
        for line in lines:
            self.app.stdout.write(line + "\n")
        return 0 if well else 1
