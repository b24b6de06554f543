"""Changes of software-defined networks: zones, vnets, subnets, addresses."""

from __future__ import annotations

import ipaddress
from typing import Any

from simulator.api.sdn.lock import changing, save
from simulator.errors import PveError, bad_parameters
from simulator.request.call import Call
from simulator.state.sdn_config import Ip, Subnet, Vnet, Zone

_PERL = "/usr/share/perl5/PVE"
NO_TYPE = f"cannot lookup undefined type! at {_PERL}/API2/Network/SDN/Vnets.pm line 326."
_REQUIRED = {"vlan": ("bridge",), "qinq": ("bridge", "tag"), "evpn": ("controller", "vrf-vxlan")}
_VNI = "vxlan tag"
_TAG = {"vlan": "vlan tag", "qinq": "vlan tag", "vxlan": _VNI, "evpn": _VNI}
_NOT_OPTIONS = ("zone", "type", "nodes", "vnet", "subnet", "delete", "digest", "lock-token")


def _options(call: Call) -> dict[str, str]:
    return {name: text for name, text in call.params.items() if name not in _NOT_OPTIONS}


def _change(call: Call, options: dict[str, str]) -> None:
    """Remove the options that `delete` names, then set those given."""
    for name in call.get("delete").split(","):
        options.pop(name, None)
    options.update(_options(call))


def _gone(name: str) -> PveError:
    return PveError(f"sdn '{name}' does not exist")


def _nodes(call: Call) -> list[str]:
    return [one for one in call.get("nodes").split(",") if one]


def add_zone(call: Call) -> None:
    """`POST /cluster/sdn/zones`; without effect until applied."""
    name, kind = call.get("zone"), call.get("type")
    for option in _REQUIRED.get(kind, ()):
        if option not in call.params:
            raise PveError(f"missing value for required option '{option}'")
    with changing(call, "create sdn zone object failed"):
        if name in call.cluster.sdn.zones:
            raise PveError(f"sdn zone object ID '{name}' already defined")
        call.cluster.sdn.zones[name] = Zone(name, kind, _nodes(call), _options(call))


def change_zone(call: Call) -> None:
    """`PUT /cluster/sdn/zones/{zone}`."""
    with changing(call, "update sdn zone object failed"):
        zone = call.cluster.sdn.zones.get(call.get("zone"))
        if zone is None:
            raise _gone(call.get("zone"))
        if "nodes" in call.params or "nodes" in call.get("delete").split(","):
            zone.nodes = _nodes(call)
        _change(call, zone.options)


def delete_zone(call: Call) -> None:
    """`DELETE /cluster/sdn/zones/{zone}`: refused while a vnet uses it."""
    found, name = call.cluster.sdn, call.get("zone")
    with changing(call, "delete sdn zone object failed"):
        for vnet in found.vnets.values():
            if vnet.zone == name:
                raise PveError(
                    f"zone {name} is used by vnet {vnet.vnet} "
                    f"at {_PERL}/Network/SDN/Zones/Plugin.pm line 149."
                )
        if found.zones.pop(name, None) is None:
            raise _gone(name)


def add_vnet(call: Call) -> None:
    """`POST /cluster/sdn/vnets`."""
    found, name = call.cluster.sdn, call.get("vnet")
    with changing(call, "create sdn vnet object failed"):
        if name in found.vnets:
            raise PveError(f"sdn vnet object ID '{name}' already defined")
        made = Vnet(name, call.get("zone"), _options(call))
        _check_tag(call, made)
        found.vnets[name] = made


def change_vnet(call: Call) -> None:
    """`PUT /cluster/sdn/vnets/{vnet}`."""
    vnet = _vnet(call)
    with changing(call, "update sdn vnet object failed"):
        changed = Vnet(vnet.vnet, call.get("zone", vnet.zone), dict(vnet.options))
        _change(call, changed.options)
        _check_tag(call, changed)
        call.cluster.sdn.vnets[vnet.vnet] = changed


def _check_tag(call: Call, vnet: Vnet) -> None:
    """Raise 500 unless a vnet has the tag that its zone's type requires, and a unique one.

    VNIs are unique in the cluster, VLAN tags in their zone (pve-network, ``vnet_update_hook``).
    """
    found = call.cluster.sdn
    if vnet.zone not in found.zones:
        raise PveError(NO_TYPE)
    wanted, tag = _TAG.get(found.zones[vnet.zone].type), vnet.options.get("tag")
    if wanted is None and tag is not None:
        raise bad_parameters(tag="vlan tag is not allowed on simple zone")
    if wanted is not None and tag is None:
        raise bad_parameters(tag=f"missing {wanted}")
    for other in found.vnets.values():
        if other.vnet == vnet.vnet or tag is None or other.options.get("tag") != tag:
            continue
        if wanted == _VNI and _TAG.get(found.zones[other.zone].type) == _VNI:
            text = f"vxlan tag {tag} already exist in vnet {other.vnet} in zone {other.zone} "
            raise bad_parameters(tag=text)
        if wanted != _VNI and other.zone == vnet.zone:
            raise bad_parameters(tag=f"tag {tag} already exist in vnet {other.vnet}")


def _vnet(call: Call) -> Vnet:
    """Return the vnet of the path. Raises 403 unless the caller may change it."""
    vnet = call.cluster.sdn.vnets.get(call.get("vnet"))
    if vnet is None:
        raise _gone(call.get("vnet"))
    call.cluster.access.require(call.who, f"/sdn/zones/{vnet.zone}/{vnet.vnet}", "SDN.Allocate")
    return vnet


def delete_vnet(call: Call) -> None:
    """`DELETE /cluster/sdn/vnets/{vnet}`: refused while it has subnets, not while VMs use it."""
    vnet, found = _vnet(call), call.cluster.sdn
    with changing(call, "delete sdn vnet object failed"):
        if any(one.vnet == vnet.vnet for one in found.subnets.values()):
            raise bad_parameters(vnet="Can't delete vnet if subnets exists")
        del found.vnets[vnet.vnet]


def add_subnet(call: Call) -> None:
    """`POST /cluster/sdn/vnets/{vnet}/subnets`: accepts overlapping ones."""
    vnet, cidr = _vnet(call), call.get("subnet")
    name = f"{vnet.zone}-{cidr.replace('/', '-')}"
    with changing(call, "create sdn subnet object failed"):
        if name in call.cluster.sdn.subnets:
            raise PveError(f"sdn subnet object ID '{name}' already defined")
        made = Subnet(name, vnet.vnet, vnet.zone, cidr, _options(call))
        _check_gateway(made)
        call.cluster.sdn.subnets[name] = made


def change_subnet(call: Call) -> None:
    """`PUT /cluster/sdn/vnets/{vnet}/subnets/{subnet}`."""
    subnet = _subnet(call)
    with changing(call, "update sdn subnet object failed"):
        changed = Subnet(subnet.subnet, subnet.vnet, subnet.zone, subnet.cidr, {**subnet.options})
        _change(call, changed.options)
        _check_gateway(changed)
        call.cluster.sdn.subnets[subnet.subnet] = changed


def _check_gateway(subnet: Subnet) -> None:
    gateway = subnet.options.get("gateway")
    if gateway and ipaddress.ip_address(gateway) not in ipaddress.ip_network(subnet.cidr):
        raise bad_parameters(gateway=f"{gateway} is not in subnet {subnet.cidr}")


def _subnet(call: Call) -> Subnet:
    vnet, subnet = _vnet(call), call.cluster.sdn.subnets.get(call.get("subnet"))
    if subnet is None or subnet.vnet != vnet.vnet:
        raise _gone(call.get("subnet"))
    return subnet


def delete_subnet(call: Call) -> None:
    """`DELETE /cluster/sdn/vnets/{vnet}/subnets/{subnet}`."""
    subnet = _subnet(call)
    with changing(call, "delete sdn subnet object failed"):
        del call.cluster.sdn.subnets[subnet.subnet]


def add_address(call: Call) -> None:
    """`POST /cluster/sdn/vnets/{vnet}/ips`: assign an address of one of the vnet's subnets."""
    found, address = call.cluster.sdn, call.get("ip")
    subnet = _subnet_of(call, address)
    if f"{subnet.zone}/{address}" in found.ips:
        raise PveError(f"IP '{address}' already exist")
    found.ips[f"{subnet.zone}/{address}"] = Ip(
        address, subnet.zone, subnet.vnet, subnet.subnet, call.get("mac"), call.get("vmid")
    )
    save(call)


def move_address(call: Call) -> None:
    """`PUT /cluster/sdn/vnets/{vnet}/ips`: assign another address to the card of this MAC."""
    mac = call.get("mac")
    for key, one in list(call.cluster.sdn.ips.items()):
        if (one.zone, one.vnet, one.mac) == (call.get("zone"), call.get("vnet"), mac):
            del call.cluster.sdn.ips[key]
    add_address(call)


def delete_address(call: Call) -> None:
    """`DELETE /cluster/sdn/vnets/{vnet}/ips`: release an address."""
    subnet = _subnet_of(call, call.get("ip"))
    call.cluster.sdn.ips.pop(f"{subnet.zone}/{call.get('ip')}", None)
    save(call)


def _subnet_of(call: Call, address: str) -> Subnet:
    """Return the smallest of a vnet's subnets that has an address."""
    fits = [
        one
        for one in call.cluster.sdn.subnets.values()
        if (one.vnet, one.zone) == (call.get("vnet"), call.get("zone"))
        and ipaddress.ip_address(address) in ipaddress.ip_network(one.cidr)
    ]
    if not fits:
        raise PveError(f"can't find any subnet for ip {address}")
    return max(fits, key=_prefix)


def _prefix(subnet: Subnet) -> Any:
    return ipaddress.ip_network(subnet.cidr).prefixlen
