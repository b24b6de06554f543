"""``micronova aggregate …``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from cli import columns
from cli.columns import Column, shown, table
from cli.command import Command, Lister, Pairs, ShowOne, argument, flag, given
from cli.errors import CommandFailed

_ZONE = "availability_zone"
_AGGREGATE = argument("aggregate", metavar="<aggregate>", help="Aggregate (name or ID)")
_HOST = argument("host", metavar="<host>", help="Name of the host")
_PROPERTY = argument(
    "--property", metavar="<key=value>", action=Pairs, dest="properties", help="Metadata (repeat)"
)
_NAMED = (Column("Name", "name"), Column("Availability Zone", _ZONE))
_LONG = (
    Column("Properties", "metadata", columns.Pairs),
    Column("Hosts", "hosts", columns.Listed),
)
_CELLS = {"properties": columns.Pairs, "hosts": columns.Listed}


class ListAggregates(Lister):
    """List host aggregates."""

    arguments = (
        flag("--long", help="List additional fields"),
        argument("--availability-zone", metavar="<zone>", help="Only aggregates of this zone"),
        argument("--host", metavar="<host>", help="Only aggregates with this host"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each aggregate."""
        found = list(self.cloud.compute.aggregates())
        zone, host = parsed_args.availability_zone, parsed_args.host
        if zone is not None:
            found = [aggregate for aggregate in found if aggregate.availability_zone == zone]
        if host is not None:
            found = [aggregate for aggregate in found if host in (aggregate.hosts or ())]
        named = (Column("UUID", "uuid"),) if self.cloud.supports("2.41") else ()
        for aggregate in found:
            aggregate.metadata.pop(_ZONE, None)  # it has a column of its own
        wanted = (Column("ID", "id"), *named, *_NAMED, *(_LONG if parsed_args.long else ()))
        return table(wanted, found)


class ShowAggregate(ShowOne):
    """Show an aggregate."""

    arguments = (_AGGREGATE,)

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the aggregate."""
        found = find(self, parsed_args)
        found.metadata.pop(_ZONE, None)
        return _shown(found)


class CreateAggregate(ShowOne):
    """Create an aggregate."""

    arguments = (
        argument("name", metavar="<name>", help="Name"),
        argument("--zone", metavar="<zone>", help="Availability zone that its hosts will be in"),
        _PROPERTY,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Create it, with its properties."""
        compute = self.cloud.compute
        zone = {_ZONE: parsed_args.zone} if parsed_args.zone else {}
        made = compute.create_aggregate(name=parsed_args.name, **zone)
        if parsed_args.properties:
            made = compute.set_aggregate_metadata(made.id, parsed_args.properties)
        return _shown(made)


class DeleteAggregates(Command):
    """Delete aggregates that have no hosts."""

    arguments = (
        argument("aggregate", metavar="<aggregate>", nargs="+", help="Aggregate(s) (name or ID)"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Delete each."""
        compute = self.cloud.compute

        def delete(name: str) -> None:
            found = self.cloud.find("aggregate", name)
            compute.delete_aggregate(found.id)

        self.each(parsed_args.aggregate, "delete aggregate", delete)


class SetAggregate(Command):
    """Rename an aggregate, make it a zone, or set properties."""

    arguments = (
        _AGGREGATE,
        argument("--name", metavar="<name>", help="New name"),
        argument("--zone", metavar="<zone>", dest=_ZONE, help="Availability zone"),
        _PROPERTY,
        flag("--no-property", help="Remove all properties first (the zone stays)"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Apply the changes."""
        found = find(self, parsed_args)
        changes = given(parsed_args, "name", _ZONE)
        if changes:
            self.cloud.compute.update_aggregate(found.id, **changes)
        properties: dict[str, str | None] = {}
        if parsed_args.no_property:
            properties = dict.fromkeys(key for key in found.metadata if key != _ZONE)
        properties |= parsed_args.properties or {}
        _set(self, found, properties)


class UnsetAggregate(Command):
    """Remove properties of an aggregate."""

    arguments = (
        _AGGREGATE,
        argument(
            "--property",
            metavar="<key>",
            action="append",
            dest="properties",
            default=[],
            help="Metadata to remove (repeat)",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Remove the given values."""
        _set(self, find(self, parsed_args), dict.fromkeys(parsed_args.properties))


class AddHost(ShowOne):
    """Add a host to an aggregate."""

    arguments = (_AGGREGATE, _HOST)

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the aggregate as it is then."""
        found = find(self, parsed_args)
        return _shown(self.cloud.compute.add_host_to_aggregate(found.id, parsed_args.host))


class RemoveHost(ShowOne):
    """Remove a host from an aggregate."""

    arguments = (_AGGREGATE, _HOST)

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the aggregate as it is then."""
        found = find(self, parsed_args)
        return _shown(self.cloud.compute.remove_host_from_aggregate(found.id, parsed_args.host))


class CacheImages(Command):
    """Cache images on all hosts of an aggregate."""

    arguments = (
        _AGGREGATE,
        argument("image", metavar="<image>", nargs="+", help="Image(s) (name or ID)"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Request it; show the images that can't be cached."""
        if not self.cloud.supports("2.81"):
            raise CommandFailed("The cloud doesn't offer this: it came with microversion 2.81")
        found = find(self, parsed_args)
        images = [self.cloud.find("image", name).id for name in parsed_args.image]
        self.cloud.compute.aggregate_precache_images(found.id, images)


def find(command: Command, parsed_args: argparse.Namespace) -> Any:
    """Return the aggregate that the command names."""
    return command.cloud.find("aggregate", parsed_args.aggregate)


def _set(command: Command, aggregate: Any, properties: Mapping[str, str | None]) -> None:
    if properties:
        command.cloud.compute.set_aggregate_metadata(aggregate.id, dict(properties))


def _shown(aggregate: Any) -> Any:
    values = aggregate.to_dict(headers=False)
    return shown(values, {"metadata": "properties"}, ("links",), _CELLS)
