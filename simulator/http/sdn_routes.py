"""Routes of software-defined networks."""

from __future__ import annotations

from simulator.api.sdn import changes, lists, lock, nodes
from simulator.request.call import Calls, nothing

_ZONES, _VNETS = "/cluster/sdn/zones", "/cluster/sdn/vnets"
_SUBNETS, _IPS = f"{_VNETS}/{{vnet}}/subnets", f"{_VNETS}/{{vnet}}/ips"

CALLS: Calls = {
    "GET /cluster/sdn": lists.index,
    "PUT /cluster/sdn": lock.apply,
    "POST /cluster/sdn/lock": lock.take,
    "DELETE /cluster/sdn/lock": lock.release,
    "POST /cluster/sdn/rollback": lock.roll_back,
    "GET /cluster/sdn/controllers": nothing,
    "GET /cluster/sdn/dns": nothing,
    "GET /cluster/sdn/ipams": lists.ipams,
    "GET /cluster/sdn/ipams/{ipam}/status": lists.addresses,
    f"GET {_ZONES}": lists.zones,
    f"POST {_ZONES}": changes.add_zone,
    f"GET {_ZONES}/{{zone}}": lists.zone,
    f"PUT {_ZONES}/{{zone}}": changes.change_zone,
    f"DELETE {_ZONES}/{{zone}}": changes.delete_zone,
    f"GET {_VNETS}": lists.vnets,
    f"POST {_VNETS}": changes.add_vnet,
    f"GET {_VNETS}/{{vnet}}": lists.vnet,
    f"PUT {_VNETS}/{{vnet}}": changes.change_vnet,
    f"DELETE {_VNETS}/{{vnet}}": changes.delete_vnet,
    f"GET {_SUBNETS}": lists.subnets,
    f"POST {_SUBNETS}": changes.add_subnet,
    f"GET {_SUBNETS}/{{subnet}}": lists.subnet,
    f"PUT {_SUBNETS}/{{subnet}}": changes.change_subnet,
    f"DELETE {_SUBNETS}/{{subnet}}": changes.delete_subnet,
    f"POST {_IPS}": changes.add_address,
    f"PUT {_IPS}": changes.move_address,
    f"DELETE {_IPS}": changes.delete_address,
    "GET /nodes/{node}/sdn/zones": nodes.zones,
    "GET /nodes/{node}/sdn/zones/{zone}/content": nodes.content,
}
