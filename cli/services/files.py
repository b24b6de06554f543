"""``micronova files``: what a machine needs beside the programs, written to a folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from cli.command import Command, argument, flag
from cli.errors import CommandFailed


class WriteFiles(Command):
    """Write units, gunicorn's settings, samples and rules of alerts to a folder.

    The units start the programs of this installation. Nothing is written where a file would be
    replaced that has another text.
    """

    arguments = (
        argument("folder", metavar="<folder>", type=Path, help="Made if it doesn't exist"),
        flag("--force", help="Replace files that have another text"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Write them."""
        from launcher import files

        try:
            written = files.write(parsed_args.folder, replace=parsed_args.force)
        except files.OthersAreThere as error:
            raise CommandFailed(
                f"Nothing is written: --force replaces what has another text: {error}"
            ) from error
        except OSError as error:
            raise CommandFailed(f"The files can't be written: {error}") from error
        for path in written:
            self.app.stdout.write(f"{parsed_args.folder / path}\n")
