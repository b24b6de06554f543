"""Routes of software-defined networks."""

from __future__ import annotations

from collections.abc import Mapping

from simulator import checks, sdn_lock, sdn_nodes
from simulator import sdn_api as api
from simulator import sdn_shown as shown
from simulator.checks import integer, one_of
from simulator.params import Param
from simulator.route_params import BOOL, NUMBER, TEXT
from simulator.rows import AUTHENTICATED, Handler, Permission, Row

_ZONES, _VNETS = "/cluster/sdn/zones", "/cluster/sdn/vnets"
_SUBNETS, _IPS = f"{_VNETS}/{{vnet}}/subnets", f"{_VNETS}/{{vnet}}/ips"
_ALL = ("/sdn", "SDN.Allocate")
_ZONE = ("/sdn/zones/{zone}", "SDN.Allocate")
_VNET = ("/sdn/zones/{zone}/{vnet}", "SDN.Allocate")
_SHOWN = {"running": BOOL, "pending": BOOL}
_TOKEN = {"lock-token": TEXT}
_END = {**_TOKEN, "release-lock": BOOL}
_CHANGE = {**_TOKEN, "delete": Param(checks.text(4096)), "digest": Param(checks.text(64))}
_TYPES = one_of("evpn", "faucet", "qinq", "simple", "vlan", "vxlan")
_ID = Param(checks.sdn_id, True)
_TAG = Param(integer(1, 16777215), kind="integer")
_ZONE_OPTIONS = {
    "bridge": TEXT,
    "controller": TEXT,
    "dhcp": Param(one_of("dnsmasq")),
    "ipam": TEXT,
    "mtu": NUMBER,
    "nodes": TEXT,
    "peers": TEXT,
    "tag": NUMBER,
    "vlan-protocol": Param(one_of("802.1q", "802.1ad")),
    "vrf-vxlan": _TAG,
    "vxlan-port": Param(integer(1, 65536), kind="integer"),
}
_VNET_OPTIONS = {
    "alias": Param(checks.text(256)),
    "isolate-ports": BOOL,
    "tag": _TAG,
    "vlanaware": BOOL,
}
_SUBNET_OPTIONS = {
    "dhcp-dns-server": Param(checks.ip),
    "dhcp-range": TEXT,
    "dnszoneprefix": TEXT,
    "gateway": Param(checks.ip),
    "snat": BOOL,
}
_ADDRESS = {"ip": Param(checks.ip, True), "mac": Param(checks.mac), "zone": _ID}


def _noun(
    path: str,
    one: str,
    calls: tuple[Handler, Handler, Handler, Handler, Handler],
    may: tuple[Permission, Permission],
    options: Mapping[str, Param],
    new: Mapping[str, Param],
    listed: Mapping[str, Param] | None = None,
    changed: Mapping[str, Param] | None = None,
) -> tuple[Row, ...]:
    """Return the rows of a kind of object: list, add, show, change, delete."""
    show_all, add, show, change, delete = calls
    may_add, may_touch = may
    return (
        ("GET", path, "", show_all, AUTHENTICATED, {**_SHOWN, **(listed or {})}),
        ("POST", path, "p", add, may_add, {**_TOKEN, **options, **new}),
        ("GET", one, "", show, may_touch, _SHOWN),
        ("PUT", one, "p", change, may_touch, {**_CHANGE, **options, **(changed or {})}),
        ("DELETE", one, "p", delete, may_touch, _TOKEN),
    )


_ZONE_ROWS = _noun(
    _ZONES,
    f"{_ZONES}/{{zone}}",
    (shown.zones, api.add_zone, shown.zone, api.change_zone, api.delete_zone),
    (("/sdn/zones", "SDN.Allocate"), _ZONE),
    _ZONE_OPTIONS,
    {"type": Param(_TYPES, True), "zone": _ID},
    listed={"type": Param(_TYPES)},
)
_VNET_ROWS = _noun(
    _VNETS,
    f"{_VNETS}/{{vnet}}",
    (shown.vnets, api.add_vnet, shown.vnet, api.change_vnet, api.delete_vnet),
    (_ZONE, AUTHENTICATED),
    _VNET_OPTIONS,
    {"type": Param(one_of("vnet")), "vnet": _ID, "zone": Param(None, True)},
    changed={"zone": TEXT},
)
_SUBNET_ROWS = _noun(
    _SUBNETS,
    f"{_SUBNETS}/{{subnet}}",
    (shown.subnets, api.add_subnet, shown.subnet, api.change_subnet, api.delete_subnet),
    (AUTHENTICATED, AUTHENTICATED),
    _SUBNET_OPTIONS,
    {"subnet": Param(checks.cidr, True), "type": Param(one_of("subnet"), True)},
)
_MOVED = {**_ADDRESS, "vmid": Param(checks.vmid, kind="integer")}
_CONTENT = "/nodes/{node}/sdn/zones/{zone}/content"

ROWS: tuple[Row, ...] = (
    ("GET", "/cluster/sdn", "", shown.index, ("/sdn", "SDN.Audit"), {}),
    ("PUT", "/cluster/sdn", "p", sdn_lock.apply, _ALL, _END),
    ("POST", "/cluster/sdn/lock", "p", sdn_lock.take, _ALL, {"allow-pending": BOOL}),
    ("DELETE", "/cluster/sdn/lock", "p", sdn_lock.release, _ALL, {**_TOKEN, "force": BOOL}),
    ("POST", "/cluster/sdn/rollback", "p", sdn_lock.roll_back, _ALL, _END),
    ("GET", "/cluster/sdn/controllers", "", shown.nothing, AUTHENTICATED, _SHOWN),
    ("GET", "/cluster/sdn/dns", "", shown.nothing, AUTHENTICATED, {}),
    ("GET", "/cluster/sdn/ipams", "", shown.ipams, AUTHENTICATED, {}),
    ("GET", "/cluster/sdn/ipams/{ipam}/status", "p", shown.addresses, AUTHENTICATED, {}),
    *_ZONE_ROWS,
    *_VNET_ROWS,
    *_SUBNET_ROWS,
    ("POST", _IPS, "p", api.add_address, _VNET, _ADDRESS),
    ("PUT", _IPS, "p", api.move_address, _VNET, _MOVED),
    ("DELETE", _IPS, "p", api.delete_address, _VNET, _ADDRESS),
    ("GET", "/nodes/{node}/sdn/zones", "pn", sdn_nodes.zones, AUTHENTICATED, {}),
    ("GET", _CONTENT, "pn", sdn_nodes.content, ("/sdn/zones/{zone}", "SDN.Audit"), {}),
)
