"""``micronova backup`` and ``micronova restore``: databases and keys, and what follows."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cli.audits import answer, wait_for
from cli.command import Command, argument, flag
from cli.errors import CommandFailed
from cli.services.service import CONFIGURATION, any_config_files, reading

_SECONDS = 3600.0


class MakeBackup(Command):
    """Back up the databases, and the embedded cloud's Keystone, keys and passwords.

    While all runs, into a new folder. Clusters and their disks are not part of it.
    """

    arguments = (
        CONFIGURATION,
        argument("folder", metavar="<folder>", type=Path, help="A folder that doesn't exist"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Make it."""
        from common.errors import ConfigurationError
        from launcher.backups import backup

        try:
            conf, state = _configuration(self, parsed_args)
            backup.make(conf, parsed_args.folder, state, self.say)
        except ConfigurationError as error:
            raise CommandFailed(error.message) from error
        self.app.stdout.write(f"{parsed_args.folder}\n")


class Restore(Command):
    """Decide about a restored database, or put a backup back; without --apply nothing is changed.

    With --from, while all services are stopped: the databases are replaced by the backup's.

    Without, while all services run: what the clusters have and the record lacks is adopted where
    its marks prove all of it, or left and named, with what the record has and the clusters don't.
    Then what was held is released. Exit code 2: not everything could be looked at, or something is
    being built still.
    """

    arguments = (
        CONFIGURATION,
        argument("--from", metavar="<folder>", type=Path, dest="folder", help="A backup"),
        flag("--apply", help="Do it"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Do it, or say what would be done."""
        if parsed_args.folder is not None:
            self._put_back(parsed_args)
            return 0
        report = self._decide(parsed_args.apply)
        for one in report["items"]:
            self.app.stdout.write(
                f"{one['verdict']}: {one['resource']}: {one['where']}: {one['why']}\n"
            )
        for text in report["unseen"]:
            self.say(f"Not seen: {text}")
        self.say(_outcome(report, parsed_args.apply))
        return exit_code(report, parsed_args.apply)

    def _put_back(self, parsed_args: argparse.Namespace) -> None:
        from common.errors import ConfigurationError
        from launcher.backups import backup

        apply: bool = parsed_args.apply
        try:
            conf, state = _configuration(self, parsed_args)
            backup.put_back(conf, parsed_args.folder, state, self.say, apply=apply)
        except ConfigurationError as error:
            raise CommandFailed(error.message) from error
        self.say(
            "Start the services, then: micronova restore"
            if apply
            else "Nothing was done; --apply does it."
        )

    def _decide(self, apply: bool) -> dict[str, Any]:
        compute = self.cloud.compute
        begun = answer(compute.post("/restores", json={"restore": {"apply": apply}}))
        audit = wait_for(self.cloud, begun["audit"]["id"], _SECONDS)
        found: dict[str, Any] = audit["report"]["restore"]
        return found


def exit_code(report: dict[str, Any], apply: bool) -> int:
    """Return 2 if not everything could be looked at, or all remains held."""
    return 2 if report["unseen"] or (apply and not report["released"]) else 0


def _outcome(report: dict[str, Any], apply: bool) -> str:
    held = report["held"] or "Nothing is held."
    if not apply:
        return f"{held} Nothing was done; --apply does it."
    if report["released"]:
        return "Released: what was held continues."
    return f"{held} Not released: run it again once everything can be seen, and nothing is built."


def _configuration(command: Command, parsed_args: argparse.Namespace) -> tuple[Any, Path | None]:
    """Return the configuration, and the state directory if it is an embedded cloud's."""
    from launcher import configuration

    files: Sequence[str] = any_config_files(parsed_args)
    conf = configuration.load(files)
    command.say(reading(files))
    folder = Path(files[-1]).absolute().parent
    return conf, folder if (folder / "secrets.json").exists() else None
