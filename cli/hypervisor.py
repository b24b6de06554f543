"""``micronova hypervisor …``."""

from __future__ import annotations

import argparse
import re
from typing import Any

from cli import columns
from cli.columns import Column, shown, table
from cli.command import PAGING, Lister, ShowOne, argument, flag, paging

_COLUMNS = (
    Column("ID", "id"),
    Column("Hypervisor Hostname", "name"),
    Column("Hypervisor Type", "hypervisor_type"),
    Column("Host IP", "host_ip"),
    Column("State", "state"),
)
_USAGE = (
    Column("vCPUs Used", "vcpus_used"),
    Column("vCPUs", "vcpus"),
    Column("Memory MB Used", "memory_used"),
    Column("Memory MB", "memory_size"),
)
_RENAMED = {
    "name": "hypervisor_hostname",
    "disk_available": "disk_available_least",
    "local_disk_free": "free_disk_gb",
    "local_disk_size": "local_gb",
    "local_disk_used": "local_gb_used",
    "memory_free": "free_ram_mb",
    "memory_used": "memory_mb_used",
    "memory_size": "memory_mb",
}
#: not shown since microversion 2.88
_GONE_IN_2_88 = (
    "current_workload",
    "disk_available",
    "local_disk_free",
    "local_disk_size",
    "local_disk_used",
    "memory_free",
    "memory_size",
    "memory_used",
    "running_vms",
    "vcpus_used",
    "vcpus",
)


_UPTIME = re.compile(
    r"\s*(?P<host_time>.+)\sup\s+(?P<uptime>.+),\s+(?P<users>.+)\susers?,"
    r"\s+load average:\s(?P<load_average>.+)"
)


def uptime_shown(text: str) -> dict[str, str]:
    """Return the parts of what ``uptime`` prints; nothing where it isn't that.

    >>> uptime_shown("17:37:14 up  2:33,  3 users,  load average: 0.33, 0.36, 0.34")["users"]
    '3'
    """
    found = _UPTIME.match(text)
    return found.groupdict() if found else {}


class ListHypervisors(Lister):
    """List hypervisors."""

    arguments = (
        argument("--matching", metavar="<hostname>", help="Only names that contain this"),
        flag("--long", help="List additional fields"),
        *PAGING,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each hypervisor."""
        query = paging(parsed_args)
        if parsed_args.matching:
            query["hypervisor_hostname_pattern"] = parsed_args.matching
        usage = parsed_args.long and not self.cloud.supports("2.88")
        hypervisors = self.cloud.compute.hypervisors(details=True, **query)
        return table(_COLUMNS + (_USAGE if usage else ()), hypervisors)


class ShowHypervisor(ShowOne):
    """Show a hypervisor."""

    arguments = (argument("hypervisor", metavar="<hypervisor>", help="Hypervisor (name or ID)"),)

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the hypervisor with its service."""
        compute = self.cloud.compute
        found = self.cloud.find("hypervisor", parsed_args.hypervisor, details=False)
        values = compute.get_hypervisor(found.id).to_dict(headers=False)
        service = values.pop("service_details", None) or {}
        values |= {"service_id": service.get("id"), "service_host": service.get("host")}
        values["aggregates"] = self._aggregates(service.get("host"))
        values |= uptime_shown(values.pop("uptime", None) or self._uptime(found.id))
        hidden = ("servers", *(_GONE_IN_2_88 if self.cloud.supports("2.88") else ()))
        return shown(values, _RENAMED, hidden, {"cpu_info": columns.Pairs})

    def _aggregates(self, host: str | None) -> list[str]:
        """Return the host's aggregates; none where the API has no such thing."""
        from openstack import exceptions

        try:
            groups = list(self.cloud.compute.aggregates())
        except exceptions.NotFoundException:
            return []
        return [group.name for group in groups if host in group.hosts]

    def _uptime(self, hypervisor_id: str) -> str:
        """Return the uptime, which older microversions have in a call of its own."""
        from openstack import exceptions

        if self.cloud.supports("2.88"):
            return ""
        try:
            return self.cloud.compute.get_hypervisor_uptime(hypervisor_id)["uptime"] or ""
        except exceptions.HttpException as error:
            if error.status_code in (404, 501):
                return ""
            raise


class ShowHypervisorStats(ShowOne):
    """Show totals over all hypervisors."""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the sums (the API ends at microversion 2.87, so the first one is asked)."""
        response = self.cloud.compute.get("/os-hypervisors/statistics", microversion="2.1")
        from openstack.exceptions import raise_from_response

        raise_from_response(response)
        return shown(response.json()["hypervisor_statistics"], {})
