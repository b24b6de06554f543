"""Filter by VLANs: do those of the server's networks reach the node?"""

from __future__ import annotations

import functools

from common.log import logger
from common.messages.scheduling import RequestSpec
from scheduler.columnar.forms import by_facts, refusing
from scheduler.filters import host_filter
from scheduler.hosts.columns import HostColumns, Mask
from scheduler.hosts.host import Host

LOG = logger(__name__)

#: bridge → the tags that it takes, for those that don't take all
_Restricted = frozenset[tuple[str, str]]


def _restricted(host: Host) -> _Restricted:
    return frozenset(host.facts.bridge_vlans.items())


def _unreached(columns: HostColumns, request: RequestSpec) -> Mask | None:
    if not request.vlans:
        return None
    return columns.where(_restricted, lambda bridges: _missing(bridges, request) is not None)


@host_filter(after="network_reach", words="not the VLAN")
@refusing(_unreached, same_reason=by_facts(_restricted))
def vlan_reach(host: Host, request: RequestSpec) -> str | None:
    """Refuse nodes whose bridges don't take the VLAN tags of the server's networks."""
    return _missing(_restricted(host), request) if request.vlans else None


def _missing(bridges: _Restricted, request: RequestSpec) -> str | None:
    takes = dict(bridges)
    for bridge, vlan in request.vlans:
        tags = takes.get(bridge)
        if tags is not None and not _among(vlan, tags):
            return f"bridge {bridge} takes {f'VLANs {tags}' if tags else 'no VLAN'}, {vlan} asked"
    return None


def _among(vlan: int, tags: str) -> bool:
    return any(first <= vlan <= last for first, last in _ranges(tags))


@functools.lru_cache(maxsize=1024)
def _ranges(tags: str) -> tuple[tuple[int, int], ...]:
    """Return the tags as ranges; unreadable parts of a bridge's setting are ignored, and logged
    once."""
    found = []
    for part in tags.replace(",", " ").split():
        first, dash, last = part.partition("-")
        try:
            found.append((int(first), int(last if dash else first)))
        except ValueError:
            LOG.warning("Ignored, not a range of VLAN tags: %s (of %s)", part, tags)
    return tuple(found)
