"""``micronova service``: one service as a process, for a cloud of many processes."""

from __future__ import annotations

import argparse

from cli.command import Command, argument

CONFIG_FILE = argument(
    "--config-file",
    metavar="<file>",
    action="append",
    default=[],
    help="Configuration; repeat for several, the later one wins (default: the files that "
    "MICRONOVA_CONFIG names, separated by colons, or /etc/micronova/micronova.conf)",
)


def config_files(parsed_args: argparse.Namespace) -> list[str]:
    """Return the configuration files that were asked for."""
    from cli.services.configuration import files_of_environment

    return parsed_args.config_file or files_of_environment()


class RunService(Command):
    """Run a conductor, a scheduler or a worker with compute agents here, until SIGTERM."""

    arguments = (
        argument("service", choices=("conductor", "scheduler", "compute"), help="Which service"),
        CONFIG_FILE,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Run it; return when it has stopped."""
        from cli.services.run import run

        run(parsed_args.service, config_files(parsed_args))
