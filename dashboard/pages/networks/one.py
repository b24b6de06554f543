"""A network: its subnets with the addresses in use, and its ports."""

from __future__ import annotations

from collections.abc import Iterator

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


def _page(visit: Visit) -> str:
    return f"{PATH}/{visit.params['network_id']}"


def _path(visit: Visit) -> str:
    return f"{API}/{segment(visit.params['network_id'])}"


_NETWORK = PATH + "/{network_id:uuid}"
PAGES = (
    Page(_NETWORK, show, calls=6),
    Page(_NETWORK, change, May.CHANGE, "POST"),
    Page(f"{_NETWORK}/delete", ask_delete, May.CHANGE),
    Page(f"{_NETWORK}/delete", delete, May.CHANGE, "POST"),
)
