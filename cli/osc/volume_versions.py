"""Microversions of python-openstackclient's volume commands that ask without one.

openstacksdk asks with the newest that a resource of it knows; its messages know none, and Cinder
has messages since 3.3.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from cli.command import OneLineErrors

VOLUME_MICROVERSIONS: Mapping[str, str] = {
    "volume message delete": "3.5",
    "volume message list": "3.5",
    "volume message show": "3.5",
}


class VersionedVolume(OneLineErrors):
    """Asks with a microversion, unless the user has chosen one."""

    microversion: ClassVar[str]
    asked: ClassVar[Callable[[Any, argparse.Namespace], Any]]
    """The command itself."""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask."""
        clients: Any = self.app.client_manager  # type: ignore[attr-defined]
        volumes = clients.micronova.connection.block_storage
        volumes.default_microversion = volumes.default_microversion or self.microversion
        return self.asked(parsed_args)
