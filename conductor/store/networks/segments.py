"""What a network is on the wire: a bridge, and the VLAN tag on it; or a VNI of an SDN zone."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from common.errors import Conflict, Invalid
from common.resources.vnets import HIGHEST_VNI, VniRange
from conductor.store.networks import unknown_vms, vnets
from conductor.store.networks.pools import ANYWHERE, Within
from conductor.store.quotas import quotas
from db.schema import networks

_C = networks.c
#: kind of finding: a VM that isn't ours uses the VLAN tag of a network, or a tag for new networks
OF_OTHERS = "vlan_of_others"
#: no project's name has a space
_LOCK = "segments of networks"
HIGHEST_TAG = 4094
#: a name of a Linux interface, as Proxmox VE takes it (pve-iface)
_BRIDGE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,19}")


@dataclass(frozen=True)
class TagRange:
    """VLAN tags of a bridge that projects' networks get."""

    bridge: str
    first: int
    last: int

    def has(self, bridge: str, vlan: int) -> bool:
        """Return whether a tag is one of these."""
        return self.bridge == bridge and self.first <= vlan <= self.last


@dataclass(frozen=True)
class Segment:
    """What a network is on the wire."""

    bridge: str = ""
    """Empty: that of a vnet, which has no name yet."""
    vlan: int | None = None
    zone: str | None = None
    vni: int | None = None
    clusters: tuple[str, ...] = ()
    """Those that are to have the vnet."""


def parse(text: str) -> TagRange:
    """Parse ``BRIDGE:FIRST-LAST``. Raises Invalid."""
    bridge, _, tags = text.strip().rpartition(":")
    first, dash, last = tags.partition("-")
    try:
        found = TagRange(bridge, int(first), int(last if dash else first))
    except ValueError as error:
        raise Invalid(f"{text}: {error}") from error
    if not _BRIDGE.fullmatch(bridge) or not 1 <= found.first <= found.last <= HIGHEST_TAG:
        raise Invalid(
            f"{text}: a bridge, a colon and tags from 1 to {HIGHEST_TAG} are needed, the lower "
            "one first"
        )
    return found


class Segments:
    """The segments that are free, in one transaction; who chooses one waits for the others."""

    def __init__(
        self,
        connection: sa.Connection,
        ranges: Sequence[TagRange],
        vnis: Sequence[VniRange] = (),
        within: Within = ANYWHERE,
    ) -> None:
        """``within``: the clusters whose VMs' tags must be known, as none of these is given."""
        quotas.lock(connection, _LOCK)
        self._connection, self._ranges, self._vnis = connection, ranges, vnis
        self._within = within

    def choose(self, kind: str | None, bridge: str | None, number: int | None) -> Segment:
        """Return the segment of a new network, of what is asked; ``number``: its tag, or VNI.

        Raises Invalid, Conflict where it is in use or nothing is left, or Unsettled.
        """
        if kind is None and bridge is None and number is None:
            return self._any()
        if kind == "vxlan" and self._vnis:
            return self._vxlan(bridge, number)
        return Segment(*self._on_bridge(kind, bridge, number))

    def _any(self) -> Segment:
        """Return a free segment: with a VLAN tag while a tag is free, else with a VNI."""
        if not self._vnis:
            return Segment(*self._free(self._ranges))
        tagged = self._free_tag(self._ranges)
        return self._free_vni() if tagged is None else Segment(*tagged)

    def _vxlan(self, zone: str | None, vni: int | None) -> Segment:
        if zone is not None:
            raise invalid_input("provider:physical_network specified for vxlan network")
        if vni is None:
            return self._free_vni()
        if not 1 <= vni <= HIGHEST_VNI:
            raise invalid_input(f"segmentation_id out of range (1 through {HIGHEST_VNI})")
        hosts = vnets.zone_hosts(self._connection)
        # One outside of the ranges is the administrator's to choose, in the first zone.
        for one in sorted(self._vnis, key=lambda one: not one.first <= vni <= one.last):
            clusters = vnets.clusters_with(hosts, one)
            if not clusters:
                continue
            others_have = vnets.used_by_others(self._connection, clusters, one.zone)
            if vni in vnets.used(self._connection, one.zone, clusters) | others_have:
                raise Conflict(
                    f"Unable to create the network. The tunnel ID {vni} is in use.",
                    type="TunnelIdInUse",
                )
            return Segment(zone=one.zone, vni=vni, clusters=tuple(clusters))
        raise _none_left()

    def _free_vni(self) -> Segment:
        hosts = vnets.zone_hosts(self._connection)
        for one in self._vnis:
            clusters = vnets.clusters_with(hosts, one)
            vni = self._first_free(one, clusters) if clusters else None
            if vni is not None:
                return Segment(zone=one.zone, vni=vni, clusters=tuple(clusters))
        raise _none_left()

    def another_vni(
        self, zone: str, clusters: Collection[str], refused: Collection[int]
    ) -> int | None:
        """Return a VNI of a zone for a network that has its vnets in these clusters.

        ``refused``: not one of these, which somebody else has. None: none is left.
        """
        for one in self._vnis:
            if one.zone == zone and all(map(one.holds, clusters)):
                vni = self._first_free(one, clusters, refused)
                if vni is not None:
                    return vni
        return None

    def _first_free(
        self, one: VniRange, clusters: Collection[str], refused: Collection[int] = ()
    ) -> int | None:
        used = vnets.used(self._connection, one.zone, clusters)
        used |= vnets.used_by_others(self._connection, clusters) | set(refused)
        return next((vni for vni in range(one.first, one.last + 1) if vni not in used), None)

    def _on_bridge(
        self, kind: str | None, bridge: str | None, vlan: int | None
    ) -> tuple[str, int | None]:
        if kind is None:
            raise invalid_input("network_type required")
        if kind == "flat":
            return self._flat(bridge, vlan)
        if kind != "vlan":
            raise invalid_input(f"network_type value '{kind[:255]}' not supported")
        if bridge is None and vlan is not None:
            raise invalid_input(
                "segmentation_id requires physical_network for VLAN provider network"
            )
        if bridge is None:
            return self._free(self._ranges)
        self._require_bridge(bridge, "VLAN", {one.bridge for one in self._ranges})
        if vlan is None:
            return self._free([one for one in self._ranges if one.bridge == bridge])
        if not 1 <= vlan <= HIGHEST_TAG:
            raise invalid_input(f"segmentation_id out of range (1 through {HIGHEST_TAG})")
        if vlan in self._used(bridge):
            raise Conflict(
                f"Unable to create the network. The VLAN {vlan} on physical network {bridge} is "
                "in use.",
                type="VlanIdInUse",
            )
        return bridge, vlan

    def _flat(self, bridge: str | None, vlan: int | None) -> tuple[str, None]:
        if bridge is None:
            raise invalid_input("physical_network required for flat provider network")
        if vlan is not None:
            raise invalid_input("segmentation_id prohibited for flat provider network")
        self._require_bridge(bridge, "flat", ())
        if 0 in self._used(bridge):
            raise Conflict(
                f"Unable to create the flat network. Physical network {bridge} is in use.",
                type="FlatNetworkInUse",
            )
        return bridge, None

    def _free(self, ranges: Sequence[TagRange]) -> tuple[str, int]:
        if not self._ranges:
            raise Conflict(
                "Tenant network creation is not enabled: [networks] tenant_vlans is empty.",
                type="TenantNetworksDisabled",
            )
        found = self._free_tag(ranges)
        if found is None:
            raise _none_left()
        return found

    def _free_tag(self, ranges: Sequence[TagRange]) -> tuple[str, int] | None:
        if ranges:
            # A VM of a network that the record has lost would be on the new one's wire.
            self._within.require(self._connection)
        for one in ranges:
            used = self._used(one.bridge) | unknown_vms.tags(self._connection, one.bridge)
            for tag in range(one.first, one.last + 1):
                if tag not in used:
                    return one.bridge, tag
        return None

    def _used(self, bridge: str) -> set[int]:
        """Return the tags in use on a bridge; 0 is that without one."""
        return set(
            self._connection.execute(sa.select(_C.segment).where(_C.bridge == bridge)).scalars()
        )

    def _require_bridge(self, bridge: str, kind: str, more: Iterable[str]) -> None:
        known = sa.select(_C.id).where(_C.bridge == bridge, _C.discovered)
        if bridge not in more and self._connection.execute(known).first() is None:
            raise invalid_input(
                f"physical_network '{bridge[:255]}' unknown for {kind} provider network"
            )


def _none_left() -> Conflict:
    return Conflict(
        "Unable to create the network. No project network is available for allocation.",
        type="NoNetworkAvailable",
    )


def invalid_input(text: str) -> Invalid:
    """Return the error for a value that doesn't go with the others, as Neutron words it."""
    return Invalid(f"Invalid input for operation: {text}.", type="InvalidInput")
