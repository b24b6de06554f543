"""Lists of software-defined networks: as configured, as running, and what is pending."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from simulator.errors import PveError
from simulator.request.call import Call
from simulator.state.sdn_config import Subnet, Vnet, Zone

INDEX = ("vnets", "zones", "controllers", "ipams", "dns", "fabrics")
_NUMBERS = frozenset({"tag", "vlanaware", "isolate-ports", "mtu", "snat", "vxlan-port"})
_SEE = ("SDN.Audit", "SDN.Allocate")
NOTHING = hashlib.sha1(b"", usedforsecurity=False).hexdigest()
Shown = dict[str, Any]


def _options(options: Mapping[str, str]) -> Shown:
    return {name: int(text) if name in _NUMBERS else text for name, text in options.items()}


def _zone(one: Zone) -> Shown:
    shown: Shown = {"zone": one.zone, "type": one.type, **_options(one.options)}
    return shown | ({"nodes": ",".join(one.nodes)} if one.nodes else {})


def _vnet(one: Vnet) -> Shown:
    return {"vnet": one.vnet, "zone": one.zone, "type": "vnet", **_options(one.options)}


def _subnet(one: Subnet) -> Shown:
    network = ipaddress.ip_network(one.cidr)
    options = dict(one.options)
    ranges = [part for part in options.pop("dhcp-range", "").split("\0") if part]
    return {
        "subnet": one.subnet,
        "id": one.subnet,
        "vnet": one.vnet,
        "zone": one.zone,
        "cidr": one.cidr,
        "network": str(network.network_address),
        "mask": str(network.prefixlen),
        "type": "subnet",
        "dhcp-range": [_range(text) for text in ranges],
        **_options(options),
    }


def _range(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def _path_of_zone(one: Zone) -> str:
    return f"/sdn/zones/{one.zone}"


def _path_of_vnet(one: Vnet | Subnet) -> str:
    return f"/sdn/zones/{one.zone}/{one.vnet}"


# Kind → how one is shown, its permission path, the keys that are not under `pending`.
_KINDS: dict[str, tuple[Callable[[Any], Shown], Callable[[Any], str], tuple[str, ...]]] = {
    "zones": (_zone, _path_of_zone, ("zone", "type")),
    "vnets": (_vnet, _path_of_vnet, ("vnet", "type")),
    "subnets": (_subnet, _path_of_vnet, ("subnet", "id", "vnet", "type")),
}


def _chosen(call: Call, kind: str) -> dict[str, Shown]:
    """Return the visible objects of a kind by name, by the flags `running` and `pending`."""
    show, path, fixed = _KINDS[kind]
    found = call.cluster.sdn
    configured: dict[str, Any] = getattr(found, kind)
    running: dict[str, Any] = getattr(found, f"running_{kind}")
    if call.flag("pending"):
        # Deleted objects keep their place in the list until applied.
        names = [*running, *(name for name in configured if name not in running)]
    else:
        names = list(running if call.flag("running") else configured)
    shown: dict[str, Shown] = {}
    for name in names:
        one, old = configured.get(name), running.get(name)
        if not call.cluster.access.has(call.who, path(one or old), *_SEE):
            continue
        if call.flag("pending"):
            shown[name] = _pending(show, one, old, fixed)
        elif call.flag("running"):
            shown[name] = show(old) | {"digest": None}
        else:
            shown[name] = show(one) | {"digest": digest(call, kind)}
    return shown


def _pending(show: Callable[[Any], Shown], one: Any, old: Any, fixed: tuple[str, ...]) -> Shown:
    if one == old:
        return show(one) | {"digest": None}
    if one is None:
        return show(old) | {"digest": None, "state": "deleted", "pending": {}}
    wanted = show(one)
    if old is None:
        own = {key: value for key, value in wanted.items() if key in fixed}
        waits = {key: value for key, value in wanted.items() if key not in fixed}
        return own | {"digest": None, "state": "new", "pending": waits}
    present = show(old)
    waits = {key: value for key, value in wanted.items() if present.get(key) != value}
    waits |= {key: "deleted" for key in present if key not in wanted}
    return present | {"digest": None, "state": "changed", "pending": waits}


def digest(call: Call, kind: str) -> str:
    """Return the SHA-1 of a kind's configuration."""
    kept = getattr(call.cluster.sdn, kind)
    if not kept:
        return NOTHING
    return hashlib.sha1(orjson.dumps(kept), usedforsecurity=False).hexdigest()


def index(_call: Call) -> list[Shown]:
    """`GET /cluster/sdn`."""
    return [{"id": name} for name in INDEX]


def zones(call: Call) -> list[Shown]:
    """`GET /cluster/sdn/zones`: those that the caller may see."""
    found = _chosen(call, "zones").values()
    return [one for one in found if call.get("type") in ("", one["type"])]


def vnets(call: Call) -> list[Shown]:
    """`GET /cluster/sdn/vnets`: those that the caller may see."""
    return list(_chosen(call, "vnets").values())


def subnets(call: Call) -> list[Shown]:
    """`GET /cluster/sdn/vnets/{vnet}/subnets`: those that the caller may see."""
    return [one for one in _chosen(call, "subnets").values() if one["vnet"] == call.get("vnet")]


def _one(call: Call, kind: str, name: str) -> Shown:
    found = _chosen(call, kind).get(name)
    if found is None:
        raise PveError(f"sdn '{name}' does not exist")
    return found


def zone(call: Call) -> Shown:
    """`GET /cluster/sdn/zones/{zone}`."""
    return _one(call, "zones", call.get("zone"))


def vnet(call: Call) -> Shown:
    """`GET /cluster/sdn/vnets/{vnet}`."""
    return _one(call, "vnets", call.get("vnet"))


def subnet(call: Call) -> Shown:
    """`GET /cluster/sdn/vnets/{vnet}/subnets/{subnet}`."""
    return _one(call, "subnets", call.get("subnet"))


def ipams(call: Call) -> list[Shown]:
    """`GET /cluster/sdn/ipams`: only Proxmox VE's own."""
    if not call.cluster.access.has(call.who, "/sdn/ipams/pve", *_SEE):
        return []
    return [
        {
            "ipam": "pve",
            "type": "pve",
            "digest": hashlib.sha1(b"", usedforsecurity=False).hexdigest(),
        }
    ]


def addresses(call: Call) -> list[Shown]:
    """`GET /cluster/sdn/ipams/{ipam}/status`: addresses assigned in running vnets."""
    found = call.cluster.sdn
    return [
        {name: text for name, text in vars(one).items() if text}
        for one in found.ips.values()
        if one.subnet in found.running_subnets
        and call.cluster.access.has(call.who, f"/sdn/zones/{one.zone}/{one.vnet}", *_SEE)
    ]
