"""A network: its subnets with the addresses in use, and its ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dashboard import addresses
from dashboard.answer import Answer, confirm, view
from dashboard.cloud import COMPUTE, NETWORK, Call, following, rows, segment
from dashboard.page import Page
from dashboard.rights import May
from dashboard.visit import Visit

PATH = "/networks"
API, SUBNETS = "/v2.0/networks", "/v2.0/subnets"
AVAILABILITIES = "network_ip_availabilities"
#: ports that are counted or listed, and servers whose names are read, at the most
MOST = 1000


def availability(visit: Visit, **query: str) -> Iterator[Call]:
    """Yield the call for the use of addresses, which administrators may make."""
    if visit.operates:
        yield Call(NETWORK, "/v2.0/network-ip-availabilities", query, optional=True)


def subnet_of(given: Mapping[str, str], network_id: str) -> dict[str, Any]:
    """Return the body of a subnet that a form asks for."""
    body: dict[str, Any] = {
        "network_id": network_id,
        "cidr": given["cidr"],
        "ip_version": 6 if ":" in given["cidr"] else 4,
    }
    # without one the API takes the first address, which nothing answers at
    return body if given["gateway"] else {**body, "gateway_ip": None}


def show(visit: Visit) -> Answer:
    """Show a network, its subnets and a page of its ports."""
    uuid = visit.params["network_id"]
    query = {"network_id": uuid, "limit": MOST, "marker": visit.query.get("marker")}
    found, subnets, ports, servers, groups, *more = visit.cloud.together(
        Call(NETWORK, _path(visit)),
        Call(NETWORK, SUBNETS, {"network_id": uuid}, optional=True),
        Call(NETWORK, "/v2.0/ports", query, optional=True),
        Call(COMPUTE, "/servers", {"limit": MOST}, optional=True),
        Call(NETWORK, "/v2.0/security-groups", {"fields": ["id", "name"]}, optional=True),
        *availability(visit, network_id=uuid),
    )
    network, own = found["network"], []
    if network["project_id"] == visit.project_id:
        own = [network["id"]]
    uses = (
        addresses.reported(more[0][AVAILABILITIES])
        if more and more[0]
        else addresses.counted(rows(subnets, "subnets"), rows(ports, "ports"), own)
    )
    return view(
        "network.html",
        network=network,
        subnets=rows(subnets, "subnets"),
        uses=uses,
        ports=rows(ports, "ports"),
        servers={one["id"]: one["name"] for one in rows(servers, "servers")},
        groups={one["id"]: one["name"] for one in rows(groups, "security_groups")},
        changeable=visit.may(May.CHANGE) and (visit.operates or bool(own)),
        following=visit.next_page(_page(visit), following(ports, "ports")),
    )


def change(visit: Visit) -> Answer:
    """Give a network another name."""
    body = {"network": {"name": visit.field("name")}}
    said = "The network is renamed."
    return visit.change(_page(visit), said, visit.cloud.put, NETWORK, _path(visit), body)


def ask_delete(visit: Visit) -> Answer:
    """Ask whether a network is to be deleted."""
    network = visit.cloud.get(NETWORK, _path(visit))["network"]
    said = (
        "The network is deleted with its subnets. While a server or a port is on it, it can't be."
    )
    page = _page(visit)
    return confirm(f"Delete {network['name'] or network['id']}?", said, f"{page}/delete", page)


def delete(visit: Visit) -> Answer:
    """Delete a network."""
    said = "The network is deleted."
    send = visit.cloud.delete
    return visit.change(PATH, said, send, NETWORK, _path(visit), back=_page(visit))


def add_subnet(visit: Visit) -> Answer:
    """Give a network another subnet."""
    given = {name: visit.field(name) for name in ("cidr", "gateway")}
    body = {"subnet": subnet_of(given, visit.params["network_id"])}
    return visit.change(
        _page(visit), "The subnet is made.", visit.cloud.post, NETWORK, SUBNETS, body
    )


def ask_delete_subnet(visit: Visit) -> Answer:
    """Ask whether a subnet is to be deleted."""
    path = f"{SUBNETS}/{segment(visit.params['subnet_id'])}"
    subnet = visit.cloud.get(NETWORK, path)["subnet"]
    said = (
        "No new server gets an address of this subnet. While a port has one, it can't be deleted."
    )
    page = f"{_page(visit)}/subnets/{subnet['id']}/delete"
    return confirm(f"Delete the subnet {subnet['cidr']}?", said, page, _page(visit))


def delete_subnet(visit: Visit) -> Answer:
    """Delete a subnet."""
    path = f"{SUBNETS}/{segment(visit.params['subnet_id'])}"
    return visit.change(_page(visit), "The subnet is deleted.", visit.cloud.delete, NETWORK, path)


def _page(visit: Visit) -> str:
    return f"{PATH}/{visit.params['network_id']}"


def _path(visit: Visit) -> str:
    return f"{API}/{segment(visit.params['network_id'])}"


_NETWORK = PATH + "/{network_id:uuid}"
_SUBNET = _NETWORK + "/subnets/{subnet_id:uuid}"
PAGES = (
    Page(_NETWORK, show, calls=6),
    Page(_NETWORK, change, May.CHANGE, "POST"),
    Page(f"{_NETWORK}/delete", ask_delete, May.CHANGE),
    Page(f"{_NETWORK}/delete", delete, May.CHANGE, "POST"),
    Page(f"{_NETWORK}/subnets", add_subnet, May.CHANGE, "POST"),
    Page(f"{_SUBNET}/delete", ask_delete_subnet, May.CHANGE),
    Page(f"{_SUBNET}/delete", delete_subnet, May.CHANGE, "POST"),
)
