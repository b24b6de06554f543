"""Additional output of ``openstack server show``, added by cliff's hooks, not a subclass."""

from __future__ import annotations

import argparse
from typing import Any

from cliff.hooks import CommandHook

from cli.server.move import COLUMN, with_move


class ShownMove(CommandHook):
    """Adds whether the server can be moved, and why not."""

    def get_parser(self, parser: argparse.ArgumentParser) -> None:
        """Leave the options as they are."""

    def get_epilog(self) -> str:
        """Return nothing for the help."""
        return ""

    def before(self, parsed_args: argparse.Namespace) -> argparse.Namespace:
        """Leave the arguments as they are."""
        return parsed_args

    def after(self, parsed_args: argparse.Namespace, return_code: Any) -> Any:
        """Return the shown columns with ours; ``return_code`` is (names, values) for ``show``."""
        wanted = parsed_args.columns
        if wanted and COLUMN not in wanted:
            return return_code
        app: Any = self.cmd.app
        return with_move(app.client_manager.micronova, *return_code)
