"""Pending changes of a cluster's SDN configuration, and their owners. Pure.

`PUT /cluster/sdn` applies everybody's changes at once, so nothing is applied while there are
others'. Lists with `pending=1` give what was changed a `state`, and the new values in `pending`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from common.resources import vnets
from compute.hypervisor.proxmox.api.privileges import Need, lacking

NEW, DELETED = "new", "deleted"
#: the zone of plain bridges, which nobody configures
_PLAIN = "/sdn/zones/localnetwork"
_SHOWING = ("SDN.Audit", "SDN.Allocate")
Entry = Mapping[str, Any]


def value(entry: Entry, name: str) -> Any:
    """Return the current value of an option, or, of a new entry, the pending value."""
    found = entry.get(name)
    return found if found is not None else (entry.get("pending") or {}).get(name)


def is_network(entry: Entry, network_id: str, cloud: str) -> bool:
    """Return whether a vnet says that it is this network's, of this cloud."""
    return vnets.owner(str(value(entry, "alias"))) == (network_id, cloud)


def are_ours(entry: Entry) -> bool:
    """Return whether an agent is making or removing the vnet for a network."""
    named = vnets.is_ours(str(entry.get("vnet"))) and vnets.owner(str(value(entry, "alias")))
    return bool(named) and entry.get("state") in (NEW, DELETED)


def hidden(granted: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return paths whose configuration the token may not see, by ``/access/permissions``."""
    named = sorted(path for path in granted if path.startswith("/sdn/") and path != _PLAIN)
    # What no path names inherits from the nearest one above it.
    paths = dict.fromkeys(("/sdn/zones", "/sdn/controllers", *named))
    return [
        path
        for path in paths
        if all(lacking(granted, [Need(path, (one,), "")]) for one in _SHOWING)
    ]


def of_others(kind: str, listed: Iterable[Entry]) -> Iterator[str]:
    """Yield the changes that others have made and not applied: kind, name and state."""
    for entry in listed:
        if entry.get("state") and not (kind == "vnet" and are_ours(entry)):
            yield f"{kind} {entry.get(kind)} ({entry['state']})"
