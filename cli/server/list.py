"""``micronova server list``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

from cli import columns
from cli.columns import Column, table
from cli.command import ALL_PROJECTS, PAGING, Lister, argument, flag, given, one_of, paging
from cli.server.show import NO_IMAGE
from cli.watch import Watched

_HEAD = (Column("ID", "id"), Column("Name", "name"), Column("Status", "status"))
_STATES = (Column("Task State", "task_state"), Column("Power State", "power_state", columns.Power))
_NETWORKS = (Column("Networks", "addresses", columns.Addresses),)
_IMAGE_BOTH = (Column("Image Name", "image_name"), Column("Image ID", "image_id"))
_FLAVOR = (Column("Flavor", "flavor_name"),)
_FLAVOR_BOTH = (Column("Flavor Name", "flavor_name"), Column("Flavor ID", "flavor_id"))
_LONG = (
    Column("Availability Zone", "availability_zone"),
    Column("Host", "hypervisor_hostname", columns.Blank),
    Column("Properties", "metadata", columns.Pairs),
)
_HOST_STATUS = Column("Host Status", "host_status")
#: with --long, from these microversions on
_SINCE = (
    ("2.96", Column("Pinned Availability Zone", "pinned_availability_zone")),
    ("2.100", Column("Scheduler Hints", "scheduler_hints", columns.ListedPairs)),
)
_PROJECT = Column("Project ID", "project_id")
#: what ``-c`` may name though the table doesn't show it
_BY_NAME = {
    "project_id": _PROJECT,
    "user_id": Column("User ID", "user_id"),
    "created_at": Column("Created At", "created_at"),
    "security_groups": Column("Security Groups", "security_group_names", columns.Listed),
    "task_state": _STATES[0],
    "power_state": _STATES[1],
    "image_id": _IMAGE_BOTH[1],
    "availability_zone": _LONG[0],
    "host": _LONG[1],
    "properties": _LONG[2],
}
_POWER_STATES = {
    "pending": 0,
    "running": 1,
    "paused": 3,
    "shutdown": 4,
    "crashed": 6,
    "suspended": 7,
}
#: options whose value is the filter
_FILTERS = (
    "reservation_id",
    "ip",
    "ip6",
    "name",
    "status",
    "availability_zone",
    "key_name",
    "vm_state",
    "task_state",
)


def wanted_columns(
    long: bool, all_projects: bool, names: bool, asked: Iterable[str] = (), embedded: bool = True
) -> tuple[Column, ...]:
    """Return the columns of the table.

    :param names: whether images are shown by name.
    :param embedded: whether a server carries its flavor (from 2.47), not only the flavor's ID.
    :param asked: further columns, as ``-c`` names them.
    """
    image = (Column("Image", "image_name" if names else "image_id"),)
    flavor = _FLAVOR if names or embedded else (Column("Flavor", "flavor_id"),)
    chosen = (
        _HEAD
        + (_STATES if long else ())
        + _NETWORKS
        + (_IMAGE_BOTH if long else image)
        + (_FLAVOR_BOTH if long and not embedded else flavor)
        + (_LONG if long else ())
        + ((_PROJECT,) if all_projects else ())
    )
    by_name = (_BY_NAME.get(name.lower().strip().replace(" ", "_")) for name in asked)
    return tuple(dict.fromkeys((*chosen, *(column for column in by_name if column))))


class Row:
    """A server with what the table shows beyond the server's own attributes."""

    def __init__(
        self, server: Any, image_names: Mapping[str, str], flavor_names: Mapping[str, str]
    ) -> None:
        self._server = server
        image_id = (server.image or {}).get("id")
        flavor = server.flavor or {}
        self.image_id = image_id or NO_IMAGE
        self.image_name = image_names.get(image_id, "") if image_id else NO_IMAGE
        self.flavor_id = flavor.get("id") or ""
        self.flavor_name = flavor.get("original_name") or flavor_names.get(self.flavor_id, "")
        groups = server.security_groups or ()
        self.security_group_names = [group["name"] for group in groups]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)


class ListServers(Watched, Lister):
    """List servers."""

    in_all_regions = True

    arguments = (
        argument(
            "--reservation-id", metavar="<reservation-id>", help="Only servers of this reservation"
        ),
        argument(
            "--ip", metavar="<ip-address-regex>", help="Only servers whose IPv4 address matches"
        ),
        argument(
            "--ip6", metavar="<ip-address-regex>", help="Only servers whose IPv6 address matches"
        ),
        argument("--name", metavar="<name-regex>", help="Only servers whose name matches"),
        argument("--status", metavar="<status>", type=str.upper, help="Only in this status"),
        argument("--flavor", metavar="<flavor>", help="Only of this flavor (name or ID)"),
        argument("--image", metavar="<image>", help="Only of this image (name or ID)"),
        argument("--host", metavar="<hostname>", help="Only on this host (admin only)"),
        ALL_PROJECTS,
        argument("--project", metavar="<project>", help="Only of this project (admin only)"),
        argument("--project-domain", metavar="<domain>", help="Domain of --project"),
        argument("--user", metavar="<user>", help="Only of this user (name or ID)"),
        argument("--user-domain", metavar="<domain>", help="Domain of --user"),
        flag("--deleted", help="Only deleted servers (admin only)"),
        argument("--availability-zone", metavar="<zone>", help="Only in this zone"),
        argument("--key-name", metavar="<key-name>", help="Only with this keypair"),
        argument("--vm-state", metavar="<state>", help="Only in this vm_state"),
        argument("--task-state", metavar="<state>", help="Only in this task_state"),
        argument(
            "--power-state",
            metavar="<state>",
            choices=_POWER_STATES,
            help="Only in this power_state",
        ),
        flag("--long", help="List additional fields"),
        one_of(
            flag("-n", "--no-name-lookup", help="Show images by ID"),
            flag("--name-lookup-one-by-one", help="Ask for one image name at a time"),
        ),
        *PAGING,
        argument("--changes-before", metavar="<time>", help="Only changed before (ISO 8601)"),
        argument("--changes-since", metavar="<time>", help="Only changed since (ISO 8601)"),
        argument(
            "--tags", metavar="<tag>", action="append", default=[], help="Only with this tag"
        ),
        argument(
            "--not-tags", metavar="<tag>", action="append", default=[], help="Only without it"
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each server."""
        everybody = parsed_args.all_projects or bool(parsed_args.project)
        servers = list(self.cloud.compute.servers(**self._query(parsed_args, everybody)))
        named = not parsed_args.no_name_lookup
        ids = {(server.image or {}).get("id") for server in servers} - {None, ""}
        images = self._image_names(ids, parsed_args.name_lookup_one_by_one) if named else {}
        embedded = self.cloud.supports("2.47")
        flavors = {} if embedded or not named or not servers else self._flavor_names()
        chosen = wanted_columns(parsed_args.long, everybody, named, parsed_args.columns, embedded)
        if parsed_args.long:
            chosen = self._with_later(chosen)
            if any(server.host_status is not None for server in servers):
                chosen += (_HOST_STATUS,)
        return table(chosen, (Row(server, images, flavors) for server in servers))

    def _with_later(self, chosen: tuple[Column, ...]) -> tuple[Column, ...]:
        """Return the columns with those of later microversions, before the project's."""
        later = [column for version, column in _SINCE if self.cloud.supports(version)]
        place = chosen.index(_LONG[-1]) + 1
        return (*chosen[:place], *later, *chosen[place:])

    def _query(self, parsed_args: argparse.Namespace, everybody: bool) -> dict[str, Any]:
        query = given(parsed_args, *_FILTERS, "deleted") | paging(parsed_args)
        if everybody:
            query["all_projects"] = True
        if parsed_args.project:
            domain = parsed_args.project_domain
            query["project_id"] = self.cloud.project_id(parsed_args.project, domain)
        if parsed_args.user:
            query["user_id"] = self.cloud.user_id(parsed_args.user, parsed_args.user_domain)
        if parsed_args.flavor:
            query["flavor"] = self.cloud.find("flavor", parsed_args.flavor).id
        if parsed_args.image:
            found = self.cloud.find("image", parsed_args.image)
            query["image"] = found.id
        if parsed_args.host:
            query["compute_host"] = parsed_args.host
        if parsed_args.power_state:
            query["power_state"] = _POWER_STATES[parsed_args.power_state]
        for option in ("changes_before", "changes_since", "not_tags", "tags"):
            value = getattr(parsed_args, option)
            if value:
                key = option.replace("_", "-")
                query[key] = ",".join(value) if isinstance(value, list) else value
        return query

    def _flavor_names(self) -> dict[str, str]:
        return {found.id: found.name for found in self.cloud.compute.flavors(is_public=None)}

    def _image_names(self, ids: set[Any], one_by_one: bool) -> dict[str, str]:
        from openstack import exceptions

        image = self.cloud.image
        try:
            if one_by_one:
                return {image_id: image.get_image(image_id).name for image_id in ids}
            known = image.images(id=f"in:{','.join(sorted(ids))}") if ids else ()
            return {found.id: found.name for found in known}
        except exceptions.SDKException as error:
            self.app.LOG.info("No names of images: %s", error)
            return {}
