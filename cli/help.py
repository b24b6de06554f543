"""``micronova help`` and ``micronova --help``."""

from __future__ import annotations

import argparse
import inspect
import textwrap
from collections.abc import Collection, Iterator
from typing import Any, TextIO

import cliff.help

from cli.commands import CommandTable
from cli.osc.names import by_noun
from cli.render.examples import with_examples

_WIDTH = 99


def summary(command: Any) -> str:
    """Return the first line of a command's documentation, without its full stop."""
    text = getattr(command, "_description", "") or inspect.getdoc(command) or ""
    lines = text.strip().splitlines()
    return lines[0].rstrip(".") if lines else ""


def print_program_help(
    parser: argparse.ArgumentParser, commands: CommandTable, out: TextIO
) -> None:
    """Print the global options and every command with its first line."""
    parser.print_help(out)
    ours = commands.commands
    width = max(map(len, ours))
    out.write("\ncommands:\n")
    for name in sorted(ours):
        out.write(f"  {name:<{width}}  {summary(ours[name].load())}\n")
    out.write("\ncommands of openstack (micronova help <command>):\n")
    out.writelines(f"{line}\n" for line in openstack_lines(commands.theirs))


def openstack_lines(names: Collection[str]) -> Iterator[str]:
    """Yield lines with the names of python-openstackclient's commands, by noun."""
    nouns = list(by_noun(names))
    width = max((len(noun) for noun, _ in nouns), default=0)
    for noun, rest in nouns:
        yield from textwrap.wrap(
            ", ".join(rest),
            _WIDTH,
            initial_indent=f"  {noun:<{width}}  ",
            subsequent_indent=" " * (width + 4),
            break_on_hyphens=False,
        )


class Help(cliff.help.HelpCommand):
    """Print the help of a command, or of the program."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser with its examples."""
        return with_examples(super().get_parser(prog_name), prog_name)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Print the help of the words after ``help``."""
        if parsed_args.cmd:
            return super().take_action(parsed_args)
        program: Any = self.app
        print_program_help(program.parser, program.command_manager, program.stdout)
        return 0
