"""``micronova node …``: the Proxmox nodes as one table, and whether they take servers."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

from cli import columns
from cli.admin.queues import hosts_of
from cli.cloud import Cloud
from cli.command import Command, Lister, argument
from cli.errors import CommandFailed

BINARY = "nova-compute"
#: the last microversion whose hypervisors carry both usage and UUIDs without extra calls
_USAGE_MICROVERSION = "2.53"
_HEADERS = (
    "Host",
    "Zone",
    "Status",
    "State",
    "VCPUs",
    "Memory MiB",
    "Disk GiB",
    "VMs",
    "Health",
)
HOST = argument("host", metavar="<host>", help="Name of the host")


class ListNodes(Lister):
    """List nodes with cluster, health and usage.

    VCPUs, memory and disk are shown as used/total.
    """

    in_all_regions = True

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each node."""
        compute = self.cloud.compute
        services = compute.services(binary=BINARY)
        hypervisors = compute.hypervisors(details=True, microversion=_USAGE_MICROVERSION)
        return _HEADERS, node_rows(services, hypervisors, reported_health(self.cloud))


class EnableNode(Command):
    """Allow new servers on a node."""

    arguments = (HOST,)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Enable its compute service."""
        service = find_service(self.cloud, parsed_args.host)
        self.cloud.compute.enable_service(service.id, parsed_args.host, BINARY)


class DisableNode(Command):
    """Disable a node for new servers; its servers remain on it."""

    arguments = (
        HOST,
        argument("--reason", metavar="<reason>", help="Reason; every user can see it"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Disable its compute service."""
        service = find_service(self.cloud, parsed_args.host)
        self.cloud.compute.disable_service(
            service.id, parsed_args.host, BINARY, parsed_args.reason
        )


def find_service(cloud: Cloud, host: str) -> Any:
    """Return the compute service of a host.

    :raises CommandFailed: there is none.
    """
    for service in cloud.compute.services(host=host, binary=BINARY):
        return service
    raise CommandFailed(f"No {BINARY} on host {host}")


def reported_health(cloud: Cloud) -> dict[str, str]:
    """Return why hosts can't be used, as their agents say; nothing from other compute APIs."""
    from openstack import exceptions

    try:
        return {one["host"]: one["health"] for one in hosts_of(cloud, {"unwell": "true"})}
    except (exceptions.NotFoundException, exceptions.ForbiddenException):
        return {}


def node_rows(
    services: Iterable[Any], hypervisors: Iterable[Any], reported: Mapping[str, str]
) -> list[tuple[Any, ...]]:
    """Return a row for each compute service with the hypervisor of the same host, by zone.

    :param reported: host → why it can't be used, for the hosts that reported a reason.
    """
    by_host = {(node.service_details or {}).get("host") or node.name: node for node in hypervisors}
    rows = [
        _row(service, by_host.get(service.host), health(service, reported.get(service.host)))
        for service in services
    ]
    return sorted(rows, key=lambda row: (str(row[1]), str(row[0])))


def health(service: Any, reported: str | None) -> str:
    """Return how a node is: why it takes no servers, or ``ok``."""
    disabled = ""
    if service.status == "disabled":
        disabled = f"disabled: {service.disabled_reason or 'no reason was given'}"
    if reported is None and service.is_forced_down:
        reported = "The service is forced down."
    elif reported is None and service.state != "up":
        reported = f"Its agent has not reported since {service.updated_at or 'ever'}."
    return " ".join(filter(None, (reported, disabled))) or "ok"


def _row(service: Any, node: Any | None, health: str) -> tuple[Any, ...]:
    head = (service.host, service.availability_zone, service.status, service.state)
    if node is None:
        nothing = columns.Used((None, None))
        return (*head, nothing, nothing, nothing, columns.Blank(None), health)
    return (
        *head,
        columns.Used((node.vcpus_used, node.vcpus)),
        columns.Used((node.memory_used, node.memory_size)),
        columns.Used((node.local_disk_used, node.local_disk_size)),
        columns.Blank(node.running_vms),
        health,
    )
