"""The ``micronova`` program: global options, the table of commands, one line on an error."""

from __future__ import annotations

import argparse
import io
import logging
import os
import sys
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, TextIO, cast

import cliff.app

from cli import options as cloud_options
from cli.clients import Clients
from cli.cloud import Cloud, connect
from cli.commands import CommandTable
from cli.usage import reason_first
from common.release import VERSION

DESCRIPTION = "OpenStack-compatible compute for Proxmox VE: run it, use it, ask it why."

_USAGE = "micronova [options] <command> [its options]   (micronova help <command>)"

#: 128 and the number of SIGPIPE, as shells count
_PIPE_CLOSED = 141

_LEVELS = {0: logging.ERROR, 1: logging.WARNING, 2: logging.INFO}


class Program(cliff.app.App):
    """The application. A ``cloud`` given by a test stands in for the configured one."""

    NAME = "micronova"
    LOG = logging.getLogger("micronova")

    def __init__(
        self,
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
        cloud: Cloud | None = None,
    ) -> None:
        super().__init__(
            description=DESCRIPTION,
            version=VERSION,
            command_manager=CommandTable(),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            deferred_help=True,
        )
        self._cloud = cloud

    @property
    def commands(self) -> CommandTable:
        """The table of commands."""
        table: Any = self.command_manager
        return cast(CommandTable, table)

    @cached_property
    def client_manager(self) -> Clients:
        """The holder of the cloud, which connects at its first use."""
        given = cloud_options.given(self.options, os.environ)
        connecting = partial(connect, given, VERSION)
        return Clients(self._cloud or Cloud(connecting, connect_region=connecting))

    def build_option_parser(
        self,
        description: str | None,
        version: str | None,
        argparse_kwargs: dict[str, Any] | None = None,
    ) -> argparse.ArgumentParser:
        """Return the parser of the global options."""
        # no abbreviations: a command's option would be taken for a longer one of these
        ours = {"prog": self.NAME, "usage": _USAGE, "allow_abbrev": False}
        parser = super().build_option_parser(
            description, version, {**ours, **(argparse_kwargs or {})}
        )
        cloud_options.add_to(parser)
        return reason_first(parser)

    def initialize_app(self, argv: list[str]) -> None:
        """Have commands look at all regions, where that is asked for."""
        if self.options.all_regions:
            if self.options.region_name:
                self.parser.error("--all-regions and --os-region-name exclude each other")
            self.commands.all_regions = True

    def configure_logging(self) -> None:
        """Send warnings and worse to standard error, more with -v, all with --debug."""
        from cli.logs import configure

        level = logging.DEBUG if self.options.debug else None
        configure(
            self.stderr,
            level or _LEVELS.get(self.options.verbose_level, logging.DEBUG),
            self.options.log_file,
        )

    def print_help_if_requested(self) -> None:
        """Print the program's help, without cliff's search of all installed packages."""
        if self.options.deferred_help:
            from cli.help import print_program_help

            print_program_help(self.parser, self.commands, self.stdout)
            raise SystemExit(0)

    def interact(self) -> None:
        """Print the help: there is no interactive mode."""
        self.options.deferred_help = True
        self.print_help_if_requested()

    def get_fuzzy_matches(self, cmd: str) -> list[str]:
        """Return nothing: the command table suggests commands itself."""
        return []

    def clean_up(self, cmd: Any, result: int, err: BaseException | None) -> None:
        """Close what the command opened."""
        if "client_manager" in self.__dict__:
            self.client_manager.micronova.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code: 0 done, 1 failed, 2 wrong usage."""
    for stream in (sys.stdout, sys.stderr):
        # A name or a sign that the terminal can't show ends no command.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace" if stream is sys.stderr else "replace")
    try:
        try:
            code = Program().run(list(sys.argv[1:] if argv is None else argv))
        finally:
            # Also where the parser has printed its help, and exits.
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader of the output has closed it; nothing more may be written, nor at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED
    return code
