"""Routes of software-defined networks."""

from __future__ import annotations

from simulator import sdn_api as api
from simulator import sdn_lock, sdn_nodes
from simulator import sdn_shown as shown
from simulator.call import Calls, nothing

_ZONES, _VNETS = "/cluster/sdn/zones", "/cluster/sdn/vnets"
_SUBNETS, _IPS = f"{_VNETS}/{{vnet}}/subnets", f"{_VNETS}/{{vnet}}/ips"

CALLS: Calls = {
    "GET /cluster/sdn": shown.index,
    "PUT /cluster/sdn": sdn_lock.apply,
    "POST /cluster/sdn/lock": sdn_lock.take,
    "DELETE /cluster/sdn/lock": sdn_lock.release,
    "POST /cluster/sdn/rollback": sdn_lock.roll_back,
    "GET /cluster/sdn/controllers": nothing,
    "GET /cluster/sdn/dns": nothing,
    "GET /cluster/sdn/ipams": shown.ipams,
    "GET /cluster/sdn/ipams/{ipam}/status": shown.addresses,
    f"GET {_ZONES}": shown.zones,
    f"POST {_ZONES}": api.add_zone,
    f"GET {_ZONES}/{{zone}}": shown.zone,
    f"PUT {_ZONES}/{{zone}}": api.change_zone,
    f"DELETE {_ZONES}/{{zone}}": api.delete_zone,
    f"GET {_VNETS}": shown.vnets,
    f"POST {_VNETS}": api.add_vnet,
    f"GET {_VNETS}/{{vnet}}": shown.vnet,
    f"PUT {_VNETS}/{{vnet}}": api.change_vnet,
    f"DELETE {_VNETS}/{{vnet}}": api.delete_vnet,
    f"GET {_SUBNETS}": shown.subnets,
    f"POST {_SUBNETS}": api.add_subnet,
    f"GET {_SUBNETS}/{{subnet}}": shown.subnet,
    f"PUT {_SUBNETS}/{{subnet}}": api.change_subnet,
    f"DELETE {_SUBNETS}/{{subnet}}": api.delete_subnet,
    f"POST {_IPS}": api.add_address,
    f"PUT {_IPS}": api.move_address,
    f"DELETE {_IPS}": api.delete_address,
    "GET /nodes/{node}/sdn/zones": sdn_nodes.zones,
    "GET /nodes/{node}/sdn/zones/{zone}/content": sdn_nodes.content,
}
