"""What the body of a `POST /servers` asks for, before anything is looked up. Pure."""

from __future__ import annotations

import ipaddress
import secrets
import string
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oslo_utils import strutils

from api.compute.resources.servers.block_devices import Device, devices_of
from api.compute.resources.servers.boot_sources import image_of
from api.compute.resources.servers.place import Place, place_of
from api.compute.schemas.types import MAX_INT
from api.compute.views import servers as views
from common import ids
from common.errors import Invalid, NotSupported
from common.messages.commands import GuestFile
from common.resources import hints
from common.resources.security_rules import DEFAULT
from conductor.rpc.servers.servers import RequestedNetwork

_UNSUPPORTED: Mapping[str, str] = {
    "trusted_image_certificates": "Image certificates are not supported.",
}
_ACCESS: Mapping[str, str] = {"accessIPv4": "access_ip_v4", "accessIPv6": "access_ip_v6"}
_PASSWORD_LENGTH = 12


@dataclass(frozen=True)
class Requested:
    """What is asked for."""

    flavor: str
    """The flavor's ID, or a URL that ends with it."""
    image: str | None
    """The image of the root disk; None: that is a volume."""
    devices: tuple[Device, ...]
    networks: tuple[RequestedNetwork, ...]
    names_networks: bool
    """Whether networks are asked for, also by ``auto``."""
    place: Place
    groups: tuple[str, ...]
    """Names or IDs of security groups, ``default`` too."""
    fields: Mapping[str, Any]
    """The fields of the conductor's message that the body alone decides."""

    @property
    def is_near(self) -> bool:
        """Return whether the hints ask for a host by its address."""
        return bool(self.fields["scheduler_hints"].get(hints.NEAR_IP))


def parse(body: Mapping[str, Any], version: int) -> Requested:
    """Return what a body asks for. Raises Invalid, NotSupported, HostNotFound."""
    asked = body["server"]
    for name, sentence in _UNSUPPORTED.items():
        if asked.get(name):
            raise NotSupported(sentence)
    least, most = _counts(asked)
    wished = _hints(body)
    if hints.wait_all(wished["scheduler_hints"]):
        least = most
    devices = devices_of(asked)
    image, wanted = image_of(asked, devices), asked.get("networks") or ()
    networks = () if isinstance(wanted, str) else _networks(wanted, most)
    place = place_of(asked)
    named = [one.get("name") or DEFAULT for one in asked.get("security_groups", ())]
    return Requested(
        flavor=str(asked["flavorRef"]),
        image=image,
        devices=devices,
        networks=networks,
        names_networks=bool(wanted) and wanted != "none",
        place=place,
        groups=tuple(dict.fromkeys(named or [DEFAULT])),
        fields={
            "name": asked["name"].strip(),
            "description": asked.get("description") if version >= 19 else asked["name"],
            "image_id": (asked.get("imageRef") and image) or "",
            "min_count": least,
            "max_count": most,
            "networks": networks,
            "auto_network": not wanted or wanted == "auto",
            "needs_network": wanted == "auto",
            "availability_zone": place.zone,
            "force_host": place.host,
            **_for_the_guest(asked),
            **wished,
        },
    )


def _for_the_guest(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of ``CreateServers`` that are stored with a server for its guest."""
    return {
        "hostname": asked.get("hostname"),
        "key_name": asked.get("key_name"),
        "metadata": asked.get("metadata", {}),
        "tags": tuple(dict.fromkeys(asked.get("tags", ()))),
        "user_data": asked.get("user_data"),
        "config_drive": bool(
            strutils.bool_from_string(asked.get("config_drive", False), strict=True)
        ),
        "auto_disk_config": asked.get("OS-DCF:diskConfig") == views.AUTO,
        **access_addresses(asked),
        "admin_password": asked.get("adminPass") or password(),
        "files": files(asked),
    }


def files(asked: Mapping[str, Any]) -> tuple[GuestFile, ...]:
    """Return the files that a body has for the guest."""
    return tuple(
        GuestFile(one.get("path", ""), one.get("contents", ""))
        for one in asked.get("personality", ())
    )


def access_addresses(asked: Mapping[str, Any]) -> dict[str, str]:
    """Return the columns of the access addresses that a body names, as they are shown."""
    return {
        column: str(ipaddress.ip_address(asked[name]))
        for name, column in _ACCESS.items()
        if name in asked
    }


def password() -> str:
    """Return a random password without characters that look alike."""
    letters = [char for char in string.ascii_letters + string.digits if char not in "0O1lI"]
    return "".join(secrets.choice(letters) for _ in range(_PASSWORD_LENGTH))


def _hints(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hints, and the group that they name. Raises Invalid."""
    other_name = body.get("OS-SCH-HNT:scheduler_hints", {})
    asked = body.get("os:scheduler_hints", other_name)
    try:
        hints.near(asked)
    except ValueError as error:
        raise Invalid(f"{hints.NEAR_IP} and {hints.CIDR} name no network: {error}") from error
    try:
        hints.wait_seconds(asked, {})
        hints.wait_all(asked)
        hints.cluster(asked)
    except ValueError as error:
        raise Invalid(f"Invalid scheduler hint: {error}") from error
    return {"scheduler_hints": asked, "server_group": _server_group(asked)}


def _server_group(asked: Mapping[str, Any]) -> str | None:
    """Return the UUID of the server group to join, if any."""
    hint = asked.get("group") or None
    wanted = hint if isinstance(hint, list) else [hint]
    if len(wanted) > 1:
        raise Invalid("A server can't be in more than one server group.")
    return None if wanted[0] is None else str(uuid.UUID(wanted[0]))


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


def _networks(wanted: Sequence[Mapping[str, Any]], most: int) -> tuple[RequestedNetwork, ...]:
    """Return the networks of each of `most` servers. Raises Invalid."""
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
    return requested


def _require_ports_once(requested: Sequence[RequestedNetwork]) -> None:
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
