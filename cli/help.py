"""``micronova help`` and ``micronova --help``."""

from __future__ import annotations

import argparse
import inspect
from typing import TYPE_CHECKING, Any

import cliff.help

if TYPE_CHECKING:
    from cli.main import Program


def summary(command: Any) -> str:
    """Return the first line of a command's documentation, without its full stop."""
    text = getattr(command, "_description", "") or inspect.getdoc(command) or ""
    lines = text.strip().splitlines()
    return lines[0].rstrip(".") if lines else ""


def print_program_help(program: Program) -> None:
    """Print the global options and every command with its first line."""
    out = program.stdout
    program.parser.print_help(out)
    names = sorted(name for name, _ in program.command_manager)
    width = max(len(name) for name in names)
    out.write("\ncommands:\n")
    for name in names:
        command = program.command_manager.commands[name].load()
        out.write(f"  {name:<{width}}  {summary(command)}\n")


class Help(cliff.help.HelpCommand):
    """Print the help of a command, or of the program."""

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Print the help of the words after ``help``."""
        if parsed_args.cmd:
            return super().take_action(parsed_args)
        program: Any = self.app
        print_program_help(program)
        return 0
