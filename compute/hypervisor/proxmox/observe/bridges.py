"""A node's bridges and SDN vnets: which are usable, and which VLAN tags they take. Pure.

``GET /nodes/{node}/network?type=any_bridge`` lists Linux and Open vSwitch bridges, and those
vnets of the node's zones that the token may use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

#: the tags of a VLAN-aware bridge where nothing else is configured
_ALL = "2-4094"


def usable(listed: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the names of those that are up, not of those that are configured but not applied."""
    return tuple(sorted(str(one["iface"]) for one in listed if _up(one)))


def restricted(listed: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return {bridge: tags it takes} of those that don't take every tag; empty tags: none."""
    found = {str(one["iface"]): _tags(one) for one in listed if _up(one)}
    return {name: tags for name, tags in sorted(found.items()) if tags is not None}


def _up(one: Mapping[str, Any]) -> bool:
    return "iface" in one and bool(one.get("active"))


def _tags(one: Mapping[str, Any]) -> str | None:
    """Return the tags that a bridge takes; None: all."""
    kind = one.get("type")
    if kind == "vnet":
        return None if int(one.get("vlanaware") or 0) else ""
    if kind != "bridge":
        return None
    if int(one.get("bridge_vlan_aware") or 0):
        tags = ",".join(str(one.get("bridge_vids") or _ALL).replace(",", " ").split())
        return None if tags == _ALL else tags
    # Tags are then set on the bridge's own interface, and without one there is nothing to tag.
    return None if str(one.get("bridge_ports") or "").strip() else ""
