"""The calls of software-defined networks."""

from __future__ import annotations

from simulator import checks, sdn_api, sdn_lock, sdn_nodes, sdn_shown
from simulator.checks import integer, one_of
from simulator.params import Param
from simulator.route_params import BOOL, NUMBER, TEXT
from simulator.rows import AUTHENTICATED, Row

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
_SUBNET_ID = Param(None, True)

ROWS: tuple[Row, ...] = (
    ("GET", "/cluster/sdn", "", sdn_shown.index, ("/sdn", "SDN.Audit"), {}),
    ("PUT", "/cluster/sdn", "p", sdn_lock.apply, _ALL, _END),
    ("POST", "/cluster/sdn/lock", "p", sdn_lock.take, _ALL, {"allow-pending": BOOL}),
    ("DELETE", "/cluster/sdn/lock", "p", sdn_lock.release, _ALL, {**_TOKEN, "force": BOOL}),
    ("POST", "/cluster/sdn/rollback", "p", sdn_lock.roll_back, _ALL, _END),
    ("GET", "/cluster/sdn/controllers", "", sdn_shown.nothing, AUTHENTICATED, _SHOWN),
    ("GET", "/cluster/sdn/dns", "", sdn_shown.nothing, AUTHENTICATED, {}),
    ("GET", "/cluster/sdn/ipams", "", sdn_shown.ipams, AUTHENTICATED, {}),
    ("GET", "/cluster/sdn/ipams/{ipam}/status", "p", sdn_shown.addresses, AUTHENTICATED, {}),
    ("GET", _ZONES, "", sdn_shown.zones, AUTHENTICATED, {**_SHOWN, "type": Param(_TYPES)}),
    (
        "POST",
        _ZONES,
        "p",
        sdn_api.add_zone,
        ("/sdn/zones", "SDN.Allocate"),
        {**_TOKEN, **_ZONE_OPTIONS, "type": Param(_TYPES, True), "zone": _ID},
    ),
    ("GET", f"{_ZONES}/{{zone}}", "", sdn_shown.zone, _ZONE, _SHOWN),
    (
        "PUT",
        f"{_ZONES}/{{zone}}",
        "p",
        sdn_api.change_zone,
        _ZONE,
        {**_CHANGE, **_ZONE_OPTIONS},
    ),
    ("DELETE", f"{_ZONES}/{{zone}}", "p", sdn_api.delete_zone, _ZONE, _TOKEN),
    ("GET", _VNETS, "", sdn_shown.vnets, AUTHENTICATED, _SHOWN),
    (
        "POST",
        _VNETS,
        "p",
        sdn_api.add_vnet,
        _ZONE,
        {
            **_TOKEN,
            **_VNET_OPTIONS,
            "type": Param(one_of("vnet")),
            "vnet": _ID,
            "zone": Param(None, True),
        },
    ),
    ("GET", f"{_VNETS}/{{vnet}}", "", sdn_shown.vnet, AUTHENTICATED, _SHOWN),
    (
        "PUT",
        f"{_VNETS}/{{vnet}}",
        "p",
        sdn_api.change_vnet,
        AUTHENTICATED,
        {**_CHANGE, **_VNET_OPTIONS, "zone": TEXT},
    ),
    ("DELETE", f"{_VNETS}/{{vnet}}", "p", sdn_api.delete_vnet, AUTHENTICATED, _TOKEN),
    ("GET", _SUBNETS, "", sdn_shown.subnets, AUTHENTICATED, _SHOWN),
    (
        "POST",
        _SUBNETS,
        "p",
        sdn_api.add_subnet,
        AUTHENTICATED,
        {
            **_TOKEN,
            **_SUBNET_OPTIONS,
            "subnet": Param(checks.cidr, True),
            "type": Param(one_of("subnet"), True),
        },
    ),
    ("GET", f"{_SUBNETS}/{{subnet}}", "", sdn_shown.subnet, AUTHENTICATED, _SHOWN),
    (
        "PUT",
        f"{_SUBNETS}/{{subnet}}",
        "p",
        sdn_api.change_subnet,
        AUTHENTICATED,
        {**_CHANGE, **_SUBNET_OPTIONS},
    ),
    ("DELETE", f"{_SUBNETS}/{{subnet}}", "p", sdn_api.delete_subnet, AUTHENTICATED, _TOKEN),
    ("POST", _IPS, "p", sdn_api.add_address, _VNET, _ADDRESS),
    (
        "PUT",
        _IPS,
        "p",
        sdn_api.move_address,
        _VNET,
        {**_ADDRESS, "vmid": Param(checks.vmid, kind="integer")},
    ),
    ("DELETE", _IPS, "p", sdn_api.delete_address, _VNET, _ADDRESS),
    ("GET", "/nodes/{node}/sdn/zones", "pn", sdn_nodes.zones, AUTHENTICATED, {}),
    (
        "GET",
        "/nodes/{node}/sdn/zones/{zone}/content",
        "pn",
        sdn_nodes.content,
        ("/sdn/zones/{zone}", "SDN.Audit"),
        {},
    ),
)
