"""``micronova complete``."""

from __future__ import annotations

import argparse
from typing import Any

import cliff.complete

from cli.completion import SHELLS, Tree
from cli.render.examples import with_examples


class Complete(cliff.complete.CompleteCommand):
    """Print the completion of commands and of our own commands' options for bash, zsh or fish."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser, which knows further shells."""
        parser = with_examples(super().get_parser(prog_name), prog_name)
        for action in parser._actions:
            if action.dest == "shell":
                action.choices = sorted({*(action.choices or ()), *SHELLS})
        return parser

    def get_actions(self, command: list[str]) -> list[argparse.Action]:
        """Return a command's options; none of python-openstackclient's.

        Some of those ask the cloud before they know their options.
        """
        table: Any = self.app.command_manager
        if " ".join(command) in table.theirs:
            return []
        return super().get_actions(command)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Print the script."""
        make = SHELLS.get(parsed_args.shell)
        if make is None:
            return super().take_action(parsed_args)
        tree = Tree()
        for name, _ in self.app.command_manager:
            actions = self.get_actions(name.split())
            words = [word for action in actions for word in action.option_strings]
            tree.add(name, [word for word in words if word.startswith("--")])
        self.app.stdout.write(make(parsed_args.name or self.app.NAME, tree))
        return 0
