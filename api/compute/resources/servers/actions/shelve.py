"""Shelve, offload and unshelve a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import the_server
from api.compute.schemas import servers as schemas
from common.errors import Conflict, Invalid
from common.resources import states
from db.reads.hosts import services


class ShelveActions:
    """Actions that park a server's VM where it is, and bring it back."""

    @operation("os-shelve:shelve", body=schemas.SHELVE, status=202, on=the_server)
    def shelve(self, call: Call) -> None:
        """Shelve a server: it is stopped, and gives back all but its disk."""
        call.conductor.act(call.ctxt, call.server.uuid, "shelve")

    @operation("os-shelve:shelve_offload", body=schemas.SHELVE_OFFLOAD, status=202, on=the_server)
    def shelve_offload(self, call: Call) -> None:
        """Release everything that a shelved server still claims except its disk."""
        call.conductor.act(call.ctxt, call.server.uuid, "shelveOffload")

    @operation(
        "os-shelve:unshelve",
        asks=("os-shelve:unshelve_to_host",),
        body=schemas.UNSHELVE,
        status=202,
        on=the_server,
    )
    def unshelve(self, call: Call) -> None:
        """Start a shelved server again, on the host that has its disk if that takes it.

        From microversion 2.77 on an availability zone may be given, from 2.91 on a host: a server
        that is elsewhere moves there, within its cluster.
        """
        asked = call.body["unshelve"] or {}
        changes: dict[str, Any] = {}
        if call.version >= _PLACED_SINCE and asked:
            changes = _place(call, asked)
        call.conductor.act(call.ctxt, call.server.uuid, "unshelve", changes)


_PLACED_SINCE = 77


def _place(call: Call, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the unshelve action for the zone and the host that are asked for.

    Raises Invalid for an unknown zone or host; Forbidden where the policy lets the user name no
    host; Conflict for a server that is not offloaded, or a host outside of the zone.
    """
    server = call.server
    zone, host = asked.get("availability_zone"), asked.get("host")
    if host is not None:
        call.check("os-shelve:unshelve_to_host", {"project_id": server.project_id})
    if server.vm_state != states.VmState.SHELVED_OFFLOADED:
        raise Conflict(
            "Specifying an availability zone or a host when unshelving server "
            f'"{server.uuid}" with status "{server.vm_state}" is not supported. '
            "The server status must be SHELVED_OFFLOADED."
        )
    known = call.read(services.zones)
    if zone is not None and zone not in known.available:
        raise Invalid("The requested availability zone is not available")
    if host is not None and host not in known.hosts:
        raise Invalid(f"Compute host {host} could not be found.")
    pinned = zone if "availability_zone" in asked else server.pinned_availability_zone
    if None not in (pinned, host) and known.hosts[str(host)] != pinned:
        raise Conflict(f'Host "{host}" is not in the availability zone "{pinned}".')
    changes = {"pinned_availability_zone": zone} if "availability_zone" in asked else {}
    return changes if host is None else {**changes, "host": host}
