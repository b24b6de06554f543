"""``micronova token …`` and ``micronova catalog …``."""

from __future__ import annotations

import argparse
from typing import Any

from cliff.columns import FormattableColumn

from cli.command import Lister, ShowOne


class Endpoints(FormattableColumn[Any]):
    """A service's endpoints: the region, then interface and URL."""

    def human_readable(self) -> str:
        """Return two lines for each endpoint."""
        lines = []
        for endpoint in self._value or ():
            region = endpoint.get("region_id") or endpoint.get("region") or "<none>"
            lines.append(f"{region}\n  {endpoint['interface']}: {endpoint['url']}\n")
        return "".join(lines)


class ListCatalog(Lister):
    """List the services of the catalog."""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each service."""
        return ("Name", "Type", "Endpoints"), [
            (service.get("name"), service.get("type"), Endpoints(service.get("endpoints")))
            for service in self.cloud.access().service_catalog.catalog
        ]


class IssueToken(ShowOne):
    """Issue a new token."""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the token and its scope."""
        access = self.cloud.access()
        data = {
            "id": access.auth_token,
            "expires": access.expires and access.expires.strftime("%Y-%m-%dT%H:%M:%S%z"),
            "project_id": access.project_id,
            "user_id": access.user_id,
            "domain_id": access.domain_id,
            "system": "all" if access.system_scoped else None,
        }
        return zip(*sorted((name, value) for name, value in data.items() if value), strict=True)
