"""``micronova server show``, and how a server is shown anywhere."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from cli import columns
from cli.cloud import Cloud
from cli.command import ShowOne, argument
from cli.server.move import with_move
from cli.watch import Watched

NO_IMAGE = "N/A (booted from volume)"

_RENAMED = {
    "access_ipv4": "accessIPv4",
    "access_ipv6": "accessIPv6",
    "admin_password": "adminPass",
    "attached_volumes": "volumes_attached",
    "availability_zone": "OS-EXT-AZ:availability_zone",
    "compute_host": "OS-EXT-SRV-ATTR:host",
    "created_at": "created",
    "disk_config": "OS-DCF:diskConfig",
    "has_config_drive": "config_drive",
    "host_id": "hostId",
    "hostname": "OS-EXT-SRV-ATTR:hostname",
    "hypervisor_hostname": "OS-EXT-SRV-ATTR:hypervisor_hostname",
    "instance_name": "OS-EXT-SRV-ATTR:instance_name",
    "is_locked": "locked",
    "kernel_id": "OS-EXT-SRV-ATTR:kernel_id",
    "launch_index": "OS-EXT-SRV-ATTR:launch_index",
    "launched_at": "OS-SRV-USG:launched_at",
    "metadata": "properties",
    "power_state": "OS-EXT-STS:power_state",
    "ramdisk_id": "OS-EXT-SRV-ATTR:ramdisk_id",
    "reservation_id": "OS-EXT-SRV-ATTR:reservation_id",
    "root_device_name": "OS-EXT-SRV-ATTR:root_device_name",
    "task_state": "OS-EXT-STS:task_state",
    "terminated_at": "OS-SRV-USG:terminated_at",
    "updated_at": "updated",
    "user_data": "OS-EXT-SRV-ATTR:user_data",
    "vm_state": "OS-EXT-STS:vm_state",
}
#: attributes of requests only, attributes that the SDK computes, and aliases
_HIDDEN = frozenset(
    (
        *("block_device_mapping", "flavor_id", "host", "image_id", "max_count", "min_count"),
        *("networks", "personality", "interface_ip", "location", "private_v4", "private_v6"),
        *("public_v4", "public_v6", "volumes", "config_drive", "tenant_id", "links"),
    )
)
#: shown only where there is something
_OPTIONAL = frozenset(("admin_password", "fault", "security_groups"))
_CELLS: Mapping[str, columns.Cell] = {
    "OS-EXT-STS:power_state": columns.Power,
    "addresses": columns.Addresses,
    "properties": columns.Pairs,
    "scheduler_hints": columns.ListedPairs,
    "security_groups": columns.PairsList,
    "tags": columns.Listed,
    "volumes_attached": columns.PairsList,
}
_SINCE = {"pinned_availability_zone": "2.96", "scheduler_hints": "2.100"}


def server_shown(
    server: Mapping[str, Any], image_name: str | None, supports: Callable[[str], bool]
) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return names and values of a server, as in ``openstack server show``.

    :param server: the SDK's server as a dict.
    :param image_name: name of its image, where it was found.
    :param supports: whether the API speaks a microversion.
    """
    values = {
        key: value
        for key, value in server.items()
        if not (key in _OPTIONAL and value is None)
        and not (key in _SINCE and not supports(_SINCE[key]))
    }
    image_id = (server.get("image") or {}).get("id")
    named = f"{image_name} ({image_id})" if image_name else image_id
    values["image"] = named or NO_IMAGE
    flavor = server.get("flavor") or {}
    if flavor.get("original_name") is None:
        values["flavor"] = flavor.get("id") or ""
    else:
        values["flavor"] = columns.Pairs(flavor)
    values["attached_volumes"] = [
        {k: v for k, v in volume.items() if v is not None and k != "location"}
        for volume in server.get("attached_volumes") or ()
    ]
    return columns.shown(values, _RENAMED, _HIDDEN, _CELLS)


def show(cloud: Cloud, server: Any) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return names and values of a server, with its image's name if the image is still there."""
    from openstack import exceptions

    values = server.to_dict()
    flavor = values.get("flavor") or {}
    if flavor.get("id") and flavor.get("original_name") is None:
        values["flavor"] = {"id": _flavor_named(cloud, flavor["id"])}
    image_id = (values.get("image") or {}).get("id")
    name = None
    if image_id:
        try:
            name = cloud.image.get_image(image_id).name
        except exceptions.HttpException:
            name = None  # deleted since, or not for this user: the id is shown alone
    return server_shown(values, name, cloud.supports)


def _flavor_named(cloud: Cloud, flavor_id: str) -> str:
    """Return ``name (id)``, as before microversion 2.47; the id where the flavor is gone."""
    flavor = cloud.compute.find_flavor(flavor_id)
    return f"{flavor.name} ({flavor_id})" if flavor else flavor_id


class ShowServer(Watched, ShowOne):
    """Show a server."""

    in_all_regions = True

    arguments = (argument("server", metavar="<server>", help="Server (name or ID)"),)

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the server."""
        server = self.cloud.find("server", parsed_args.server, details=True)
        return with_move(self.cloud, *show(self.cloud, server))
