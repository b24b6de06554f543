"""SDN zones and vnets by node: which vnets can't be used where, and why. Pure.

A node lists the vnets that are assigned to it, whether or not they are applied. The status of its
zones is in ``/cluster/resources``, which is read anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

#: the status of a working zone; plain bridges are in a zone that is ``ok``
_FINE = frozenset({"available", "ok"})
ERROR = "error"
#: the zone of bridges that are not SDN's
_PLAIN = "localnetwork"


def statuses(resources: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return {node: {zone: status}}; the entries are called ``sdn`` before version 9."""
    found: dict[str, dict[str, str]] = {}
    for one in resources:
        zone = one.get("sdn") if one.get("type") == "sdn" else _network(one)
        if zone:
            found.setdefault(str(one["node"]), {})[str(zone)] = str(one.get("status") or "")
    return found


def named(zones: Iterable[str]) -> tuple[str, ...]:
    """Return the names of SDN zones, by name."""
    return tuple(sorted(zone for zone in zones if zone != _PLAIN))


def _network(one: Mapping[str, Any]) -> Any:
    is_zone = one.get("type") == "network" and one.get("network-type") == "zone"
    return one.get("network") if is_zone else None


def unready(
    vnets: Mapping[str, str],
    listed: Iterable[str],
    zones: Mapping[str, str],
    broken: Mapping[str, Mapping[str, str]],
) -> dict[str, str]:
    """Return {vnet: why it isn't on a node}.

    ``vnets`` is vnet → zone of the whole cluster, ``listed`` the node's assigned vnets, ``zones``
    its zones' statuses; ``broken`` has the faulty vnets of each zone in error.
    """
    there = frozenset(listed)
    found = {}
    for vnet, zone in sorted(vnets.items()):
        status = zones.get(zone, "available")
        if vnet not in there:
            why = "not listed by the node" if zone in zones else "not for this node"
            found[vnet] = f"zone {zone}: {why}"
        elif status == ERROR and zone in broken:
            if vnet in broken[zone]:
                found[vnet] = f"zone {zone}: {broken[zone][vnet]}"
        elif status not in _FINE:
            found[vnet] = f"zone {zone}: {status}"
    return found


def broken(content: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return {vnet: status and reason} of a zone's missing vnets: one may fail for all others."""
    return {
        str(one["vnet"]): ", ".join(filter(None, (one.get("status"), one.get("statusmsg"))))
        for one in content
        if one.get("status") not in _FINE
    }
