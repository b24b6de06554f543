"""``micronova db``: both databases, brought up to date or compared with this release."""

from __future__ import annotations

import argparse
from typing import Any

from cli.command import Command, argument
from cli.services.service import CONFIGURATION, any_config_files, reading

_NAMES = ("cloud", "placement")
_DATABASE = argument(
    "--database",
    choices=_NAMES,
    help="Only this database (default: all that are configured)",
)


def _configuration(command: Command, parsed_args: argparse.Namespace) -> Any:
    """Return the configuration that was asked for, and say which it is."""
    from launcher import configuration

    files = any_config_files(parsed_args)
    conf = configuration.load(files)
    command.say(reading(files))
    return conf


class UpgradeDatabases(Command):
    """Upgrade the schemas of the cloud and placement databases.

    May run at any time and again. One of before the first release is refused.
    """

    arguments = (
        CONFIGURATION,
        _DATABASE,
        argument(
            "--reader-role",
            metavar="<role>",
            help="Let this PostgreSQL role read the cloud database: the API's own",
        ),
        argument(
            "--writer-role",
            metavar="<role>",
            help="Let this PostgreSQL role read and write the cloud database: the conductors'",
        ),
        argument(
            "--placement-role",
            metavar="<role>",
            help="Let this PostgreSQL role read and write the placement database: placement's",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Upgrade."""
        from launcher import databases

        conf = _configuration(self, parsed_args)
        wanted = (parsed_args.database,) if parsed_args.database else _NAMES
        for name in databases.upgrade(conf, wanted):
            self.say(f"The {name} database is up to date.")
        for option in databases.ROLES:
            role = getattr(parsed_args, option.replace("-", "_"))
            if role:
                self.say(f"{role} may {databases.grant(conf, option, role)}.")


class CheckDatabases(Command):
    """Check whether the databases have this release's schema; exit code 1 if not."""

    arguments = (CONFIGURATION, _DATABASE)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Check."""
        from launcher import databases

        conf = _configuration(self, parsed_args)
        wanted = (parsed_args.database,) if parsed_args.database else _NAMES
        wrong = 0
        for name, problem in databases.check(conf, wanted).items():
            wrong += problem is not None
            self.say(f"The {name} database {problem or 'is up to date'}.")
        return 1 if wrong else 0
