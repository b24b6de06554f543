"""``micronova availability zone …``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from cli.command import Lister, flag

_HEADERS = ("Zone Name", "Zone Status")
_LONG = ("Zone Resource", "Host Name", "Service Name", "Service Status")


class ListAvailabilityZones(Lister):
    """List availability zones and their status."""

    arguments = (
        flag("--compute", help="List compute availability zones (the only ones there are)"),
        flag("--long", help="List hosts and services too (admin only)"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return zones, or with --long a row for each service of each zone."""
        from openstack import exceptions

        compute = self.cloud.compute
        try:
            zones = list(compute.availability_zones(details=True))
        except exceptions.ForbiddenException:
            zones = list(compute.availability_zones(details=False))
        headers = _HEADERS + (_LONG if parsed_args.long else ())
        return headers, [row for zone in zones for row in zone_rows(zone, parsed_args.long)]


def zone_rows(zone: Any, long: bool) -> Iterator[tuple[str, ...]]:
    """Yield a zone's row, or its row for each service of each host."""
    head = (zone.name, "available" if zone.state["available"] else "not available")
    if not long:
        yield head
    elif not zone.hosts:
        yield (*head, "", "", "", "")
    else:
        for host, services in zone.hosts.items():
            for service, state in services.items():
                enabled = "enabled" if state["active"] else "disabled"
                face = ":-)" if state["available"] else "XXX"
                status = f"{enabled} {face} {state['updated_at']}"
                yield (*head, "", host, service, status)
