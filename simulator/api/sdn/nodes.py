"""Software-defined networks of a node: `/nodes/{node}/sdn`."""

from __future__ import annotations

from typing import Any

from simulator.request.call import Call
from simulator.state import sdn


def zones(call: Call) -> list[dict[str, Any]]:
    """`GET /nodes/{node}/sdn/zones`."""
    found = sdn.zone_status(call.cluster, call.home())
    return [{"zone": zone, "status": status} for zone, status in found.items()]


def content(call: Call) -> list[dict[str, Any]]:
    """`GET /nodes/{node}/sdn/zones/{zone}/content`: the zone's vnets and their status."""
    shown = []
    for vnet in sdn.vnets_of(call.cluster, call.home()):
        if vnet.zone == call.get("zone"):
            status, message = sdn.vnet_status(call.cluster, call.home(), vnet)
            entry = {"vnet": vnet.vnet, "status": status}
            shown.append(entry | ({"statusmsg": message} if message else {}))
    return shown
