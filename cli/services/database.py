"""``micronova db``: both databases, brought up to date or compared with this release."""

from __future__ import annotations

import argparse
from typing import Any, ClassVar

from cli.command import Argument, Command, OneOf, argument
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


_ROLES = (
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


class _Change(Command):
    """Changes the schemas of databases."""

    arguments: ClassVar[tuple[Argument | OneOf, ...]] = (CONFIGURATION, _DATABASE, *_ROLES)
    phases: ClassVar[tuple[str, ...]] = ("EXPAND", "CONTRACT")
    done: ClassVar[str] = "is up to date"

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Change them."""
        from common.databases.migrations import Phase
        from launcher import databases

        conf = _configuration(self, parsed_args)
        wanted = (parsed_args.database,) if parsed_args.database else _NAMES
        phases = tuple(Phase[name] for name in self.phases)
        for name in databases.upgrade(conf, wanted, phases):
            self.say(f"The {name} database {self.done}.")
        for option in databases.ROLES:
            role = getattr(parsed_args, option.replace("-", "_"), None)
            if role:
                self.say(f"{role} may {databases.grant(conf, option, role)}.")


class UpgradeDatabases(_Change):
    """Expand and contract the schemas of the cloud and placement databases, while nothing runs.

    May run again. It is refused while services of an older release use a database that is to be
    contracted: then `db expand` comes first, and `db contract` after their restart.
    """


class ExpandDatabases(_Change):
    """Add to the schemas of the databases what this release needs; services run on.

    The first step of a rolling upgrade. May run at any time and again.
    """

    phases = ("EXPAND",)
    done = "is expanded"


class ContractDatabases(_Change):
    """Remove from the schemas of the databases what only older releases need.

    The last step of a rolling upgrade, refused while services of an older release use a database.
    """

    arguments = (CONFIGURATION, _DATABASE)
    phases = ("CONTRACT",)
    done = "is contracted"


class CheckDatabases(Command):
    """Check whether the databases have this release's schema; exit code 1 if not."""

    arguments = (CONFIGURATION, _DATABASE)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Check."""
        from launcher import databases

        conf = _configuration(self, parsed_args)
        wanted = (parsed_args.database,) if parsed_args.database else _NAMES
        wrong, urls = 0, databases.urls(conf)
        for name, problem in databases.check(conf, wanted).items():
            wrong += problem is not None
            fine = "is up to date"
            if problem is None and databases.to_contract(name, urls[name]):
                fine = "can be used; once all services are of this release, contract it"
            self.say(f"The {name} database {problem or fine}.")
        return 1 if wrong else 0
