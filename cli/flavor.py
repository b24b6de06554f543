"""``micronova flavor …``."""

from __future__ import annotations

import argparse
from typing import Any

from cli import columns
from cli.columns import Column, table
from cli.command import (
    PAGING,
    Command,
    Lister,
    Pairs,
    ShowOne,
    argument,
    flag,
    given,
    one_of,
    paging,
)
from cli.errors import CommandFailed

_COLUMNS = (
    Column("ID", "id"),
    Column("Name", "name"),
    Column("RAM", "ram"),
    Column("Disk", "disk"),
    Column("Ephemeral", "ephemeral"),
    Column("VCPUs", "vcpus"),
    Column("Is Public", "is_public"),
)
_LONG = (
    Column("Swap", "swap"),
    Column("RXTX Factor", "rxtx_factor"),
    Column("Properties", "extra_specs", columns.Pairs),
)
_RENAMED = {
    "extra_specs": "properties",
    "ephemeral": "OS-FLV-EXT-DATA:ephemeral",
    "is_disabled": "OS-FLV-DISABLED:disabled",
    "is_public": "os-flavor-access:is_public",
}
_FLAVOR = argument("flavor", metavar="<flavor>", help="Flavor (name or ID)")
_PROJECT_DOMAIN = argument("--project-domain", metavar="<domain>", help="Domain of --project")


def flavor_shown(flavor: dict[str, Any]) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return names and values of a flavor."""
    hidden = ("links", "original_name")
    return columns.shown(flavor, _RENAMED, hidden, {"properties": columns.Pairs})


class ListFlavors(Lister):
    """List flavors."""

    arguments = (
        one_of(
            flag("--public", help="Only public flavors (default)"),
            flag("--private", help="Only private flavors"),
            flag("--all", help="All flavors"),
        ),
        argument("--min-disk", metavar="<min-disk>", type=int, help="At least this disk, GiB"),
        argument("--min-ram", metavar="<min-ram>", type=int, help="At least this memory, MiB"),
        flag("--long", help="List additional fields"),
        *PAGING,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each flavor."""
        compute = self.cloud.compute
        query = given(parsed_args, "min_disk", "min_ram") | paging(parsed_args)
        query["is_public"] = None if parsed_args.all else not parsed_args.private
        flavors = list(compute.flavors(**query))
        if parsed_args.long:
            for flavor in flavors:
                if not flavor.extra_specs:
                    compute.fetch_flavor_extra_specs(flavor)
        return table(_COLUMNS + (_LONG if parsed_args.long else ()), flavors)


class ShowFlavor(ShowOne):
    """Show a flavor."""

    arguments = (_FLAVOR,)

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the flavor, a private one with the projects that may use it."""
        compute = self.cloud.compute
        flavor = self.cloud.find("flavor", parsed_args.flavor, get_extra_specs=True)
        projects = None
        if not flavor.is_public:
            projects = [entry["tenant_id"] for entry in compute.get_flavor_access(flavor.id)]
        return flavor_shown({**flavor.to_dict(), "access_project_ids": projects})


class CreateFlavor(ShowOne):
    """Create a flavor."""

    arguments = (
        argument("name", metavar="<flavor-name>", help="Name"),
        argument("--id", metavar="<id>", help="ID (default: a UUID)"),
        argument("--ram", type=int, metavar="<size-mb>", default=256, help="Memory, MiB (256)"),
        argument("--disk", type=int, metavar="<size-gb>", default=0, help="Root disk, GiB (0)"),
        argument("--ephemeral", type=int, metavar="<size-gb>", default=0, help="GiB (0)"),
        argument("--swap", type=int, metavar="<size-mb>", default=0, help="MiB (0)"),
        argument("--vcpus", type=int, metavar="<vcpus>", default=1, help="Virtual CPUs (1)"),
        argument("--rxtx-factor", type=float, metavar="<factor>", help="RX/TX factor"),
        one_of(
            flag("--public", help="Let every project use it (default)"),
            flag("--private", help="Let only projects with access use it"),
        ),
        argument(
            "--property", metavar="<key=value>", action=Pairs, dest="properties", help="Extra spec"
        ),
        argument(
            "--project", metavar="<project>", help="Give this project access; only with --private"
        ),
        _PROJECT_DOMAIN,
        argument("--description", metavar="<description>", help="Description"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Create it, with its properties and access."""
        if parsed_args.project and not parsed_args.private:
            raise CommandFailed("--project needs --private")
        compute = self.cloud.compute
        sizes = ("name", "ram", "vcpus", "disk", "ephemeral", "swap")
        flavor = compute.create_flavor(
            **{name: getattr(parsed_args, name) for name in sizes},
            **given(parsed_args, "id", "rxtx_factor", "description"),
            is_public=not parsed_args.private,
        )
        if parsed_args.project:
            project = self.cloud.project_id(parsed_args.project, parsed_args.project_domain)
            compute.flavor_add_tenant_access(flavor.id, project)
        if parsed_args.properties:
            flavor = compute.create_flavor_extra_specs(flavor, parsed_args.properties)
        return flavor_shown(flavor.to_dict())


class DeleteFlavors(Command):
    """Delete flavors."""

    arguments = (argument("flavor", metavar="<flavor>", nargs="+", help="Flavor(s) (name or ID)"),)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Delete each."""
        compute = self.cloud.compute
        self.each(
            parsed_args.flavor,
            "delete flavor",
            lambda name: compute.delete_flavor(self.cloud.find("flavor", name).id),
        )


class SetFlavor(Command):
    """Set a flavor's description, properties or access."""

    arguments = (
        _FLAVOR,
        flag("--no-property", help="Remove all properties first"),
        argument(
            "--property", metavar="<key=value>", action=Pairs, dest="properties", help="Extra spec"
        ),
        argument("--project", metavar="<project>", help="Give this project access"),
        _PROJECT_DOMAIN,
        argument("--description", metavar="<description>", help="Description"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Apply the changes."""
        compute = self.cloud.compute
        flavor = self.cloud.find("flavor", parsed_args.flavor, get_extra_specs=True)
        if parsed_args.project and flavor.is_public:
            raise CommandFailed(f"Flavor {flavor.name} is public: every project is in already")
        if parsed_args.description:
            compute.update_flavor(flavor.id, description=parsed_args.description)
        if parsed_args.no_property:
            for key in list(flavor.extra_specs):
                compute.delete_flavor_extra_specs_property(flavor.id, key)
        if parsed_args.properties:
            compute.create_flavor_extra_specs(flavor.id, parsed_args.properties)
        if parsed_args.project:
            project = self.cloud.project_id(parsed_args.project, parsed_args.project_domain)
            compute.flavor_add_tenant_access(flavor.id, project)


class UnsetFlavor(Command):
    """Unset a flavor's properties or access."""

    arguments = (
        _FLAVOR,
        argument(
            "--property",
            metavar="<key>",
            action="append",
            dest="properties",
            default=[],
            help="Extra spec to remove (repeat)",
        ),
        argument("--project", metavar="<project>", help="Remove this project's access"),
        _PROJECT_DOMAIN,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Remove the given values."""
        compute = self.cloud.compute
        flavor = self.cloud.find("flavor", parsed_args.flavor)
        if parsed_args.project and flavor.is_public:
            raise CommandFailed(f"Flavor {flavor.name} is public: no project can be shut out")
        for key in parsed_args.properties:
            compute.delete_flavor_extra_specs_property(flavor.id, key)
        if parsed_args.project:
            project = self.cloud.project_id(parsed_args.project, parsed_args.project_domain)
            compute.flavor_remove_tenant_access(flavor.id, project)
