"""A server's interfaces: their addresses and security groups; attach and detach."""

from __future__ import annotations

from typing import Any

from dashboard.answer import Answer, view
from dashboard.cloud import COMPUTE, NETWORK, Call, rows, segment
from dashboard.page import Page
from dashboard.pages.networks.ports import usable
from dashboard.pages.server.frame import framed
from dashboard.rights import May
from dashboard.visit import Visit

_MOST = 1000
_OFFERED = ["id", "name", "network_id", "fixed_ips", "mac_address", "device_id", "project_id"]


def show(visit: Visit) -> Answer:
    """Show a server's ports, and the form for another one."""
    found = framed(
        visit,
        Call(NETWORK, "/v2.0/ports", {"device_id": visit.params["server_id"]}, optional=True),
        Call(NETWORK, "/v2.0/networks", {"limit": _MOST}, optional=True),
        Call(NETWORK, "/v2.0/security-groups", {"limit": _MOST}, optional=True),
        # a port of no server is down, as are those of servers that don't run
        Call(
            NETWORK,
            "/v2.0/ports",
            {"status": "DOWN", "fields": _OFFERED, "limit": _MOST},
            optional=True,
        ),
    )
    ports, networks, groups, down = found.answers
    project = found.server["tenant_id"]
    bound = [group for one in rows(ports, "ports") for group in one["security_groups"]]
    return found.view(
        "network",
        ports=rows(ports, "ports"),
        missing="" if ports else ports.message,
        networks={one["id"]: one["name"] or one["id"] for one in rows(networks, "networks")},
        groups={
            one["id"]: one["name"]
            for one in usable(rows(groups, "security_groups"), project, bound)
        },
        free=[
            one
            for one in rows(down, "ports")
            if not one["device_id"] and one["project_id"] == project
        ],
    )


def attach(visit: Visit) -> Answer:
    """Attach an interface: of a network, or a port that exists."""
    asked: dict[str, Any] = {}
    if visit.field("port"):
        asked["port_id"] = visit.field("port")
    else:
        asked["net_id"] = visit.field("network")
        if visit.field("address"):
            asked["fixed_ips"] = [{"ip_address": visit.field("address")}]
    said = "The interface is attached; the guest has to configure it."
    path = f"{_server(visit)}/os-interface"
    body = {"interfaceAttachment": asked}
    return visit.change(_tab(visit), said, visit.cloud.post, COMPUTE, path, body)


def ask_detach(visit: Visit) -> Answer:
    """Ask whether a server is to lose an interface, with its addresses."""
    server, port = visit.cloud.together(
        Call(COMPUTE, _server(visit)), Call(NETWORK, f"/v2.0/ports/{_port(visit)}")
    )
    return view("server/detach_port.html", server=server["server"], port=port["port"])


def detach(visit: Visit) -> Answer:
    """Detach an interface, after the page that asks."""
    path = f"{_server(visit)}/os-interface/{_port(visit)}"
    said = "The interface is being detached."
    return visit.begin(_tab(visit), said, visit.cloud.delete, COMPUTE, path)


def regroup(visit: Visit) -> Answer:
    """Give a port the security groups of the form, in place of those it has."""
    body = {"port": {"security_groups": visit.fields("groups")}}
    path = f"/v2.0/ports/{_port(visit)}"
    said = "The security groups of the port are changed."
    return visit.change(_tab(visit), said, visit.cloud.put, NETWORK, path, body)


def _server(visit: Visit) -> str:
    return f"/servers/{segment(visit.params['server_id'])}"


def _port(visit: Visit) -> str:
    return segment(visit.params["port_id"])


def _tab(visit: Visit) -> str:
    return f"{_server(visit)}/network"


_SERVER = "/servers/{server_id:uuid}"
_PORT = f"{_SERVER}/ports/{{port_id:uuid}}"
PAGES = (
    Page(f"{_SERVER}/network", show, calls=6),
    Page(f"{_SERVER}/network", attach, May.CHANGE, "POST"),
    Page(f"{_PORT}/groups", regroup, May.CHANGE, "POST"),
    Page(f"{_PORT}/detach", ask_detach, May.CHANGE, calls=2),
    Page(f"{_PORT}/detach", detach, May.CHANGE, "POST"),
)
