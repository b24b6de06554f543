"""Where a command looks for its cloud: our own and python-openstackclient's, on one connection."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from cli.cloud import Cloud


class Clients:
    """Where a command looks for its cloud, as under ``openstack``.

    Our own commands use ``micronova``, those of python-openstackclient the rest, which is
    imported when one asks for it.
    """

    def __init__(self, micronova: Cloud) -> None:
        self.micronova = micronova

    @cached_property
    def _openstack(self) -> Any:
        from cli.osc.clients import OpenStackClients

        return OpenStackClients(self.micronova.connection)

    def __getattr__(self, name: str) -> Any:
        if name == "_openstack" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._openstack, name)
