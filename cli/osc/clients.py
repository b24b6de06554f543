"""What commands of python-openstackclient know of a cloud, over the connection of our own ones."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from openstackclient.common.clientmanager import (
    PLUGIN_MODULES,
    ClientManager,
    build_plugin_option_parser,
)


class OpenStackClients(ClientManager):
    """python-openstackclient's clients on a connection that exists already.

    One session for all of them, so that credentials, TLS settings and the token are those that
    ``cli.cloud.connect`` chose.
    """

    _auth_required = True

    def __init__(self, connection: Any) -> None:
        config = connection.config
        super().__init__(cli_options=config, api_version=api_versions(config.config))
        self.sdk_connection = connection
        self.session = connection.session
        self.auth = connection.session.auth
        self.auth_plugin_name = config.config["auth_type"]
        self._auth_setup_completed = True

    @property
    def auth_ref(self) -> Any:  # type: ignore[override]
        """The token with its catalog, which the session has or gets; None without a token."""
        auth: Any = self.auth
        return None if self.auth_plugin_name == "none" else auth.get_access(self.session)


def api_versions(config: Mapping[str, Any]) -> dict[str, str]:
    """Return API → version: as configured, as in the environment, or the plugin's default."""
    defaults = build_plugin_option_parser(argparse.ArgumentParser(add_help=False)).parse_args([])
    versions = {}
    for plugin in PLUGIN_MODULES:
        option = plugin.API_VERSION_OPTION
        versions[plugin.API_NAME] = str(
            config.get(option.removeprefix("os_"))
            or getattr(defaults, option, None)
            or plugin.DEFAULT_API_VERSION
        )
    return versions
