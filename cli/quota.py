"""``micronova quota …`` and ``micronova limits …``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from cli.command import Command, Lister, argument, flag, one_of
from cli.errors import CommandFailed

#: attribute of the SDK → name to show and option to set
QUOTAS = {
    "cores": "cores",
    "injected_file_content_bytes": "injected-file-size",
    "injected_file_path_bytes": "injected-path-size",
    "injected_files": "injected-files",
    "instances": "instances",
    "key_pairs": "key-pairs",
    "metadata_items": "properties",
    "ram": "ram",
    "server_group_members": "server-group-members",
    "server_groups": "server-groups",
}
_LISTED = (
    ("Cores", "cores"),
    ("Injected Files", "injected_files"),
    ("Injected File Content Bytes", "injected_file_content_bytes"),
    ("Injected File Path Bytes", "injected_file_path_bytes"),
    ("Instances", "instances"),
    ("Key Pairs", "key_pairs"),
    ("Metadata Items", "metadata_items"),
    ("Ram", "ram"),
    ("Server Groups", "server_groups"),
    ("Server Group Members", "server_group_members"),
)
_PROJECT_DOMAIN = argument("--project-domain", metavar="<domain>", help="Domain of the project")


class ShowQuota(Lister):
    """Show the quotas of a project."""

    arguments = (
        argument("project", metavar="<project>", nargs="?", help="Project (default: your own)"),
        one_of(
            flag("--default", help="Show the default quotas"),
            flag("--usage", help="Show what is in use, too"),
        ),
        flag("--compute", help="Show compute quotas (the only ones there are)"),
        _PROJECT_DOMAIN,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each quota."""
        compute = self.cloud.compute
        project = self.cloud.project_id(parsed_args.project, parsed_args.project_domain)
        if parsed_args.default:
            quotas = compute.get_quota_set_defaults(project)
        else:
            quotas = compute.get_quota_set(project, usage=parsed_args.usage)
        return quota_rows(quotas.to_dict(), parsed_args.usage)


def quota_rows(quotas: Mapping[str, Any], usage: bool) -> tuple[tuple[str, ...], list[Any]]:
    """Return headers and a row for each quota that the cloud has.

    A keypair belongs to a user, so its use by a project isn't a number.
    """
    used = {**(quotas.get("usage") or {}), "key_pairs": "N/A"}
    reserved = quotas.get("reservation") or {}
    rows: list[tuple[Any, ...]] = []
    for key, name in QUOTAS.items():
        limit = quotas.get(key)
        if limit is not None:
            rows.append(
                (name, limit, used.get(key, 0), reserved.get(key, 0)) if usage else (name, limit)
            )
    return ("Resource", "Limit") + (("In Use", "Reserved") if usage else ()), rows


class SetQuota(Command):
    """Set the quotas of a project."""

    arguments = (
        argument("project", metavar="<project>", help="Project (name or ID)"),
        *(
            argument(f"--{name}", metavar=f"<{name}>", dest=key, type=int, help="-1: no limit")
            for key, name in QUOTAS.items()
        ),
        flag("--force", help="Even below what is in use"),
        _PROJECT_DOMAIN,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Set those that were given."""
        values = {key: getattr(parsed_args, key) for key in QUOTAS}
        changed: dict[str, Any] = {key: v for key, v in values.items() if v is not None}
        if not changed:
            raise CommandFailed("Nothing to set: give at least one quota")
        if parsed_args.force:
            changed["force"] = True
        project = self.cloud.project_id(parsed_args.project, parsed_args.project_domain)
        self.cloud.compute.update_quota_set(project, **changed)


class ListQuotas(Lister):
    """List the quotas of the projects that don't have the default ones."""

    arguments = (flag("--compute", help="List compute quotas (the only ones there are)"),)

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each project whose quotas differ from the default."""
        compute = self.cloud.compute
        rows = []
        for project in self.cloud.identity.projects():
            quotas = compute.get_quota_set(project.id).to_dict()
            default = compute.get_quota_set_defaults(project.id).to_dict()
            if any(quotas.get(key) != default.get(key) for _, key in _LISTED):
                rows.append((project.id, *(quotas.get(key) for _, key in _LISTED)))
        return ("Project ID", *(header for header, _ in _LISTED)), rows


class ShowLimits(Lister):
    """Show the limits of a project, and what it uses of them."""

    arguments = (
        one_of(
            flag("--absolute", help="Show absolute limits"),
            flag("--rate", help="Show rate limits (there are none)"),
            required=True,
        ),
        flag("--reserved", help="Count reservations, too; only with --absolute"),
        argument("--project", metavar="<project>", help="Project (name or ID) (admin only)"),
        _PROJECT_DOMAIN,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each limit."""
        if parsed_args.rate:
            return ("Verb", "URI", "Value", "Remain", "Unit", "Next Available"), []
        query: dict[str, Any] = {"reserved": parsed_args.reserved}
        if parsed_args.project:
            domain = parsed_args.project_domain
            query["tenant_id"] = self.cloud.project_id(parsed_args.project, domain)
        limits = self.cloud.compute.get_limits(**query).absolute
        hidden = ("id", "name", "location")
        rows = [(k, v) for k, v in limits.to_dict().items() if k not in hidden and v is not None]
        return ("Name", "Value"), sorted(rows)
