"""``micronova complete``."""

from __future__ import annotations

import argparse
from typing import Any

import cliff.complete


class Complete(cliff.complete.CompleteCommand):
    """Print the completion of commands and of our own commands' options for bash."""

    def get_actions(self, command: list[str]) -> list[argparse.Action]:
        """Return a command's options; none of python-openstackclient's.

        Some of those ask the cloud before they know their options.
        """
        table: Any = self.app.command_manager
        if " ".join(command) in table.theirs:
            return []
        return super().get_actions(command)
