"""The zone and the host that a create asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.compute.policies import REQUESTED_DESTINATION
from common.errors import HostNotFound, Invalid
from db.reads.hosts.services import Zones

FORCED_HOST = "servers:create:forced_host"


@dataclass(frozen=True)
class Place:
    """The requested zone and host; None: any."""

    zone: str | None = None
    host: str | None = None
    rule: str | None = None
    """The policy's rule about the way the host is named, where one is."""


def place_of(asked: Mapping[str, Any]) -> Place:
    """Zone and host: `ZONE:HOST[:NODE]`, or since 2.74 `host` and `hypervisor_hostname`.

    Raises Invalid, HostNotFound.
    """
    zone, _, rest = (asked.get("availability_zone") or "").partition(":")
    host, _, node = rest.partition(":")
    if ":" in node:
        raise Invalid("Unable to parse availability_zone")
    host = host or node
    chosen = {asked.get("host"), asked.get("hypervisor_hostname")} - {None}
    if not chosen:
        return Place(zone or None, host or None, FORCED_HOST if host else None)
    if host:
        raise Invalid(
            "One mechanism with host and/or hypervisor_hostname and another mechanism "
            "with zone:host:node are mutually exclusive."
        )
    if len(chosen) > 1:
        raise HostNotFound(
            "No compute host has both this host and this hypervisor_hostname: "
            "here a hypervisor is named as its host is."
        )
    return Place(zone or None, str(chosen.pop()) or None, REQUESTED_DESTINATION)


def check_place(place: Place, zones: Zones) -> None:
    """Raise HostNotFound or Invalid unless zone and host exist; the scheduler checks the rest."""
    if place.host is None:
        if place.zone is not None and place.zone not in zones.available:
            raise Invalid("The requested availability zone is not available")
        return
    if place.host not in zones.hosts:
        raise HostNotFound(f"Compute host {place.host} could not be found.")
    zone = zones.hosts[place.host]
    if place.zone not in (None, zone):
        raise Invalid(f"Host {place.host} is in availability zone {zone}, not {place.zone}.")
