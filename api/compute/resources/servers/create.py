"""A `POST /servers` as a message to the conductor, checked against the database."""

from __future__ import annotations

import ipaddress
import secrets
import string
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from oslo_utils import strutils

from api.compute.call import Call
from api.compute.policies import ANY_ADDRESS, NEAR_HOST
from api.compute.resources.servers import boot_sources
from api.compute.resources.servers.block_devices import Device, devices_of, local_disks_of
from api.compute.resources.servers.boot_sources import Sources
from api.compute.resources.servers.place import Place, check_place, place_of
from api.compute.resources.servers.security_groups import group_of
from api.compute.schemas.types import MAX_INT
from api.compute.views import servers as views
from common import hints, ids
from common.errors import (
    FlavorNotFound,
    Invalid,
    KeyPairNotFound,
    NotFound,
    NotSupported,
)
from common.local_disks import LocalDisk
from common.messages.commands import GuestFile
from common.messages.scheduling import ImageHome
from common.security_rules import DEFAULT
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.servers import CreateServers, RequestedNetwork
from db.reads.hosts import services
from db.reads.hosts.services import Zones
from db.reads.images.images import Image
from db.reads.servers import flavors, keypairs
from db.reads.servers.flavors import Flavor
from db.reads.servers.keypairs import KeyPair

_UNSUPPORTED: Mapping[str, str] = {
    "trusted_image_certificates": "Image certificates are not supported.",
}
_ACCESS: Mapping[str, str] = {"accessIPv4": "access_ip_v4", "accessIPv6": "access_ip_v6"}
_GIB = 1024**3
_PASSWORD_LENGTH = 12


@dataclass(frozen=True)
class _Existing:
    """What the request names, as read from the database."""

    flavor: Flavor | None
    sources: Sources
    keypair: KeyPair | None
    zones: Zones | None
    """Read only where the request names a zone or a host."""


def create_request(call: Call) -> CreateServers:
    """Return the message for the conductor.

    Raises Invalid, NotSupported, NotFound for what doesn't exist, Forbidden for what the policy
    doesn't allow.
    """
    asked = call.body["server"]
    for name, sentence in _UNSUPPORTED.items():
        if asked.get(name):
            raise NotSupported(sentence)
    least, most = _counts(asked)
    devices = devices_of(asked)
    if devices:
        call.check("servers:create:attach_volume")
    image_id = boot_sources.image_of(asked, devices)
    networks = _networks(call, asked, most)
    place = place_of(call, asked)
    existing = call.read(_read, call, asked, devices, image_id, place)
    flavor, sources = _checked(call, asked, existing), existing.sources
    disks = local_disks_of(devices, flavor.ephemeral_gib, flavor.swap_mib)
    image = sources.local_image
    if existing.zones is not None:
        check_place(place, existing.zones)
    if asked.get("hostname") and most > 1:
        raise Invalid("Unable to allocate a single hostname to multiple instances")
    return CreateServers(
        name=asked["name"].strip(),
        flavor=snapshot(flavor, disks),
        image_id=(asked.get("imageRef") and image_id) or "",
        image_properties=sources.properties,
        least_memory_mib=sources.least_memory_mib,
        least_disk_gib=least_disk_gib(image) if image else 0,
        image_home=home(image) if image else None,
        min_count=least,
        max_count=most,
        **networks,
        availability_zone=place.zone,
        force_host=place.host,
        disk_tag=sources.disk_tag,
        volumes=boot_sources.volumes_of(sources),
        **_for_the_guest(call, asked, existing.keypair),
    )


def _for_the_guest(
    call: Call, asked: Mapping[str, Any], keypair: KeyPair | None
) -> dict[str, Any]:
    """Return what is stored with the servers and passed to their guests."""
    other_name = call.body.get("OS-SCH-HNT:scheduler_hints", {})
    asked_hints = call.body.get("os:scheduler_hints", other_name)
    return {
        "description": asked.get("description") if call.version >= 19 else asked["name"],
        "hostname": asked.get("hostname"),
        "key_name": asked.get("key_name"),
        "public_key": keypair.public_key if keypair else None,
        "metadata": asked.get("metadata", {}),
        "tags": tuple(dict.fromkeys(asked.get("tags", ()))),
        "user_data": asked.get("user_data"),
        "config_drive": _boolean(asked.get("config_drive", False)),
        "auto_disk_config": asked.get("OS-DCF:diskConfig") == views.AUTO,
        **access_addresses(asked),
        "security_groups": _groups(call, asked),
        "scheduler_hints": _checked_hints(call, asked_hints),
        "server_group": _server_group(asked_hints),
        "admin_password": asked.get("adminPass") or password(),
        "files": files(asked),
    }


def files(asked: Mapping[str, Any]) -> tuple[GuestFile, ...]:
    """Return the files that a body has for the guest."""
    return tuple(
        GuestFile(one.get("path", ""), one.get("contents", ""))
        for one in asked.get("personality", ())
    )


def _checked_hints(call: Call, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the hints. Raises Invalid; Forbidden for hints about hosts' addresses."""
    if asked.get(hints.NEAR_IP):
        call.check(NEAR_HOST)
    try:
        hints.near(asked)
    except ValueError as error:
        raise Invalid(f"{hints.NEAR_IP} and {hints.CIDR} name no network: {error}") from error
    return asked


def _server_group(asked: Mapping[str, Any]) -> str | None:
    """Return the UUID of the server group to join, if any."""
    hint = asked.get("group") or None
    wanted = hint if isinstance(hint, list) else [hint]
    if len(wanted) > 1:
        raise Invalid("A server can't be in more than one server group.")
    return None if wanted[0] is None else str(uuid.UUID(wanted[0]))


def _read(
    connection: sa.Connection,
    call: Call,
    asked: Mapping[str, Any],
    devices: tuple[Device, ...],
    image_id: str | None,
    place: Place,
) -> _Existing:
    project = call.reach
    key_name = asked.get("key_name")
    return _Existing(
        flavor=flavors.find(connection, str(asked["flavorRef"]).rsplit("/", 1)[-1], project),
        sources=boot_sources.read(connection, devices, image_id, project),
        keypair=keypairs.find(connection, call.ctxt.user_id or "", key_name) if key_name else None,
        zones=services.zones(connection) if place != Place() else None,
    )


def _checked(call: Call, asked: Mapping[str, Any], existing: _Existing) -> Flavor:
    """Return the flavor. Raises unless it exists, and fits what servers boot from."""
    flavor, sources = existing.flavor, existing.sources
    if flavor is None or (flavor.disabled and not call.is_admin):
        raise FlavorNotFound(f"Flavor {asked['flavorRef']} could not be found.")
    boot_sources.check(sources, flavor)
    if asked.get("key_name") and existing.keypair is None:
        raise KeyPairNotFound("Invalid key_name provided.")
    if sources.local_image is not None:
        check_size(flavor, sources.local_image)
    return flavor


def check_size(flavor: Flavor | FlavorSnapshot, image: Image) -> None:
    """Raise Invalid for a flavor that is too small for the image."""
    if image.min_ram_mib > flavor.memory_mib:
        raise Invalid("Flavor's memory is too small for requested image.")
    disk = flavor.disk_gib * _GIB
    size = image.virtual_size_bytes or image.size_bytes
    if not disk and image.disk_format != "iso":  # 0: as big as the image
        return
    if size > disk:
        raise Invalid(
            "Flavor's disk is too small for requested image. "
            f"Flavor disk is {disk} bytes, image is {size} bytes."
        )
    if image.min_disk_gib > flavor.disk_gib:
        raise Invalid(
            "Flavor's disk is smaller than the minimum size specified in image metadata. "
            f"Flavor disk is {disk} bytes, minimum size is {image.min_disk_gib * _GIB} bytes."
        )


def home(image: Image) -> ImageHome | None:
    """Return the only place of a server's image; None of others."""
    return None if image.home is None else ImageHome(**image.home)


def least_disk_gib(image: Image) -> int:
    """Return the minimum disk size for the image."""
    size = image.virtual_size_bytes or image.size_bytes
    return max(image.min_disk_gib, -(-size // _GIB))


def snapshot(flavor: Flavor, disks: tuple[LocalDisk, ...] = ()) -> FlavorSnapshot:
    """Return the copy of a flavor that is stored with a server, with its additional disks."""
    return FlavorSnapshot(
        id=flavor.flavorid,
        name=flavor.name,
        vcpus=flavor.vcpus,
        memory_mib=flavor.memory_mib,
        disk_gib=flavor.disk_gib,
        ephemeral_gib=flavor.ephemeral_gib,
        swap_mib=flavor.swap_mib,
        extra_specs=flavor.extra_specs,
        local_disks=disks,
    )


def _counts(asked: Mapping[str, Any]) -> tuple[int, int]:
    least = _count(asked.get("min_count", 1))
    most = _count(asked.get("max_count", least))
    if least > most:
        raise Invalid("min_count must be <= max_count")
    return least, most


def _count(value: Any) -> int:
    if len(str(value)) > 10 or int(value) > MAX_INT:
        raise Invalid(f"min_count and max_count may be {MAX_INT} at the most")
    return int(value)


def _networks(call: Call, asked: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Return the requested networks, or that the cloud chooses one."""
    wanted = asked.get("networks")
    if wanted == "none":
        return {}
    if not wanted:
        return {"auto_network": True}
    call.check("servers:create:attach_network")
    if wanted == "auto":
        return {"auto_network": True, "needs_network": True}
    requested = tuple(_network(item) for item in wanted)
    _require_ports_once(requested)
    if most > 1 and any(each.port_id for each in requested):
        raise Invalid(
            "Unable to launch multiple instances with a single configured port ID. Please launch "
            "your instance one by one with different ports."
        )
    if most > 1 and any(each.fixed_ip for each in requested):
        raise Invalid(
            "Failed to launch instances: a fixed address can't be given to several of them"
        )
    any_address = any(each.fixed_ip for each in requested) and call.allows(ANY_ADDRESS)
    return {"networks": requested, "any_address": any_address}


def _require_ports_once(requested: Iterable[RequestedNetwork]) -> None:
    ports = Counter(one.port_id for one in requested if one.port_id)
    twice = next((one for one, times in ports.items() if times > 1), None)
    if twice is not None:
        raise Invalid(
            f"Port ID '{twice}' was specified twice: you cannot attach a port multiple times."
        )


def _network(item: Mapping[str, Any]) -> RequestedNetwork:
    port_id, fixed_ip = item.get("port"), item.get("fixed_ip")
    if port_id:
        if fixed_ip is not None:
            raise Invalid(
                f"Specified Fixed IP '{fixed_ip}' cannot be used with port '{port_id}': the two "
                "cannot be specified together."
            )
        return RequestedNetwork("", tag=item.get("tag"), port_id=str(uuid.UUID(port_id)))
    network_id = item.get("uuid")
    if network_id is None:
        raise Invalid("Bad network format: missing 'uuid'")
    if not ids.is_uuid(network_id):
        raise Invalid(f"Bad networks format: network uuid is not in proper format ({network_id})")
    return RequestedNetwork(str(uuid.UUID(network_id)), fixed_ip, item.get("tag"))


def _groups(call: Call, asked: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ids of the security groups, ``default`` for that. Raises Invalid, Conflict."""
    names = [group.get("name") or DEFAULT for group in asked.get("security_groups", ())]
    found = [one if one == DEFAULT else _group(call, one) for one in names or [DEFAULT]]
    return tuple(dict.fromkeys(found))


def _group(call: Call, name: str) -> str:
    try:
        return group_of(call, call.project, name).id
    except NotFound as error:
        raise Invalid(f"Unable to find security_group with name or id '{name}'") from error


def access_addresses(asked: Mapping[str, Any]) -> dict[str, str]:
    """Return the columns of the access addresses that a body names, as they are shown."""
    return {
        column: str(ipaddress.ip_address(asked[name]))
        for name, column in _ACCESS.items()
        if name in asked
    }


def _boolean(value: Any) -> bool:
    return bool(strutils.bool_from_string(value, strict=True))


def password() -> str:
    """Return a random password without characters that look alike."""
    letters = [char for char in string.ascii_letters + string.digits if char not in "0O1lI"]
    return "".join(secrets.choice(letters) for _ in range(_PASSWORD_LENGTH))
