"""``micronova compute service …``."""

from __future__ import annotations

import argparse
from typing import Any

from cli.cloud import Cloud
from cli.columns import Column, table
from cli.command import Command, Lister, argument, flag, one_of
from cli.errors import CommandFailed

_COLUMNS = (
    Column("ID", "id"),
    Column("Binary", "binary"),
    Column("Host", "host"),
    Column("Zone", "availability_zone"),
    Column("Status", "status"),
    Column("State", "state"),
    Column("Updated At", "updated_at"),
)
_LONG = (Column("Disabled Reason", "disabled_reason"), Column("Forced Down", "is_forced_down"))


class ListServices(Lister):
    """List compute services."""

    arguments = (
        argument("--host", metavar="<host>", help="Only services on this host"),
        argument("--service", metavar="<service>", help="Only this binary, e.g. nova-compute"),
        flag("--long", help="List additional fields"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each service."""
        services = self.cloud.compute.services(host=parsed_args.host, binary=parsed_args.service)
        return table(_COLUMNS + (_LONG if parsed_args.long else ()), services)


class SetService(Command):
    """Enable or disable a compute service, or force it down or up."""

    arguments = (
        argument("host", metavar="<host>", help="Name of the host"),
        argument("service", metavar="<service>", help="Binary, e.g. nova-compute"),
        one_of(flag("--enable", help="Enable"), flag("--disable", help="Disable")),
        argument("--disable-reason", metavar="<reason>", help="Why; only with --disable"),
        one_of(flag("--up", help="Force up"), flag("--down", help="Force down")),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Apply the changes."""
        if parsed_args.disable_reason and not parsed_args.disable:
            raise CommandFailed("--disable-reason needs --disable")
        compute = self.cloud.compute
        host, binary = parsed_args.host, parsed_args.service
        found = find_service(self.cloud, host, binary)
        if parsed_args.enable:
            compute.enable_service(found.id, host, binary)
        if parsed_args.disable:
            compute.disable_service(found.id, host, binary, parsed_args.disable_reason)
        if parsed_args.up or parsed_args.down:
            compute.update_service_forced_down(found.id, host, binary, parsed_args.down)


class DeleteServices(Command):
    """Delete compute services."""

    arguments = (argument("service", metavar="<service>", nargs="+", help="Service(s) (ID only)"),)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Delete each."""
        compute = self.cloud.compute
        self.each(
            parsed_args.service,
            "delete compute service",
            lambda service: compute.delete_service(service, ignore_missing=False),
        )


def find_service(cloud: Cloud, host: str, binary: str) -> Any:
    """Return the one service of a host.

    :raises CommandFailed: there is none.
    """
    for service in cloud.compute.services(host=host, binary=binary):
        return service
    raise CommandFailed(f"No {binary} on host {host}")
