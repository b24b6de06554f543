"""``micronova service``: one service as a process, for a cloud of many processes."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from cli.command import Command, argument, one_of

CONFIGURATION_NAME = "micronova.conf"
"""What `micronova up` writes into its state directory."""

CONFIG_FILE = argument(
    "--config-file",
    metavar="<file>",
    action="append",
    default=[],
    help="Configuration; repeat for several, the later one wins (default: the files that "
    "MICRONOVA_CONFIG names, separated by colons, or /etc/micronova/micronova.conf)",
)


CONFIGURATION = one_of(
    CONFIG_FILE,
    argument(
        "--state-dir",
        metavar="<dir>",
        type=Path,
        help="Use the configuration of the `micronova up` with this state directory (default: "
        "its own default, where there is no other configuration)",
    ),
)
"""Which configuration, for commands that look at a cloud of either kind."""


def config_files(parsed_args: argparse.Namespace) -> list[str]:
    """Return the configuration files that were asked for."""
    from launcher.configuration import files_of_environment

    return parsed_args.config_file or files_of_environment()


def any_config_files(parsed_args: argparse.Namespace) -> list[str]:
    """Return the files that were asked for, else those that are there.

    That is the embedded cloud of the client's own configuration, if it names one; else the files
    of ``MICRONOVA_CONFIG`` or the default ones. Raises ConfigurationError when there are none.
    """
    from launcher.configuration import found_files
    from launcher.embedded.state import default_state_dir

    given: list[str] = parsed_args.config_file
    if given:
        return given
    state_dir: Path | None = parsed_args.state_dir
    if state_dir is not None:
        return [str(state_dir.expanduser() / CONFIGURATION_NAME)]
    named = clients_state_dir(os.environ)
    if named is not None:
        return [str(named / CONFIGURATION_NAME)]
    return found_files(default_state_dir() / CONFIGURATION_NAME)


def clients_state_dir(environ: Mapping[str, str]) -> Path | None:
    """Return the state directory of the embedded cloud whose clouds.yaml the client reads.

    None: the client reads another file, or MICRONOVA_CONFIG says which configuration is meant.
    """
    file = environ.get("OS_CLIENT_CONFIG_FILE")
    if not file or environ.get("MICRONOVA_CONFIG"):
        return None
    folder = Path(file).expanduser().absolute().parent
    return folder if (folder / CONFIGURATION_NAME).exists() else None


def reading(files: Sequence[str]) -> str:
    """Return a line that says which files are read."""
    return f"Configuration: {', '.join(files)}"


class RunService(Command):
    """Run a conductor, scheduler, compute worker, console proxy or Keystone in the foreground."""

    arguments = (
        argument(
            "service",
            choices=("conductor", "scheduler", "compute", "console", "identity"),
            help="Which service; it runs until SIGTERM",
        ),
        CONFIG_FILE,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Run it; return when it has stopped."""
        from launcher import identity
        from launcher.run import run

        files = config_files(parsed_args)
        if parsed_args.service == identity.NAME:
            identity.run(files)
        else:
            run(parsed_args.service, files)
