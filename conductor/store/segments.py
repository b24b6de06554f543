"""What a network is on the wire: a bridge, and the VLAN tag on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from common.errors import Conflict, Invalid
from conductor.store import quotas
from db.schema import networks

_C = networks.c
#: no project's name has a space
_LOCK = "segments of networks"
HIGHEST_TAG = 4094


@dataclass(frozen=True)
class TagRange:
    """VLAN tags of a bridge that projects' networks get."""

    bridge: str
    first: int
    last: int


def parse(text: str) -> TagRange:
    """Parse ``BRIDGE:FIRST-LAST``. Raises Invalid."""
    bridge, _, tags = text.strip().rpartition(":")
    first, dash, last = tags.partition("-")
    try:
        found = TagRange(bridge, int(first), int(last if dash else first))
    except ValueError as error:
        raise Invalid(f"[networks] tenant_vlans: {text}: {error}") from error
    if not bridge or not 1 <= found.first <= found.last <= HIGHEST_TAG:
        raise Invalid(
            f"[networks] tenant_vlans: {text}: a bridge, a colon and tags from 1 to {HIGHEST_TAG} "
            "are needed, the lower one first"
        )
    return found


class Segments:
    """The segments that are free, in one transaction; who chooses one waits for the others."""

    def __init__(self, connection: sa.Connection, ranges: Sequence[TagRange]) -> None:
        quotas.lock(connection, _LOCK)
        self._connection, self._ranges = connection, ranges

    def choose(
        self, kind: str | None, bridge: str | None, vlan: int | None
    ) -> tuple[str, int | None]:
        """Return (bridge, VLAN tag) of a new network, of what is asked.

        Raises Invalid, or Conflict where it is in use or nothing is left.
        """
        if kind is None and bridge is None and vlan is None:
            return self._free(self._ranges)
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
        for one in ranges:
            used = self._used(one.bridge)
            for tag in range(one.first, one.last + 1):
                if tag not in used:
                    return one.bridge, tag
        raise Conflict(
            "Unable to create the network. No project network is available for allocation.",
            type="NoNetworkAvailable",
        )

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


def invalid_input(text: str) -> Invalid:
    """Return the error for a value that doesn't go with the others, as Neutron words it."""
    return Invalid(f"Invalid input for operation: {text}.", type="InvalidInput")
