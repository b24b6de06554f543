"""Networks: the list, a drawing of the project's, and a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard import addresses
from dashboard.addresses import Use
from dashboard.answer import Answer, Redirect, View
from dashboard.cloud import COMPUTE, NETWORK, Call, following, rows, segment
from dashboard.drawing import topology
from dashboard.errors import ApiRefused, status_of
from dashboard.page import Page
from dashboard.pages.networks import forms, ports, subnets
from dashboard.pages.networks import one as network
from dashboard.pages.networks.one import API, MOST, PATH, SUBNETS
from dashboard.rights import May
from dashboard.visit import Visit

_FIELDS = ("name", "cidr", "gateway")


def index(visit: Visit) -> Answer:
    """List a page of networks with their subnets, and draw those of the project."""
    return _list(visit, dict.fromkeys(_FIELDS, ""))


def _list(visit: Visit, given: Mapping[str, str], refused: ApiRefused | None = None) -> View:
    query = {"limit": visit.limit, "marker": visit.query.get("marker")}
    fields = {"fields": ["network_id", "fixed_ips", "device_id"], "limit": MOST}
    own = {"project_id": visit.project_id} if visit.operates else {}
    found, nets, used, servers, *more = visit.cloud.together(
        Call(NETWORK, API, query),
        Call(NETWORK, SUBNETS, optional=True),
        Call(NETWORK, "/v2.0/ports", {**fields, **own}, optional=True),
        Call(COMPUTE, "/servers", {"limit": MOST}, optional=True),
        *network.availability(visit),
    )
    networks = found["networks"]
    values = {
        "networks": networks,
        "subnets": _by_network(rows(nets, "subnets")),
        "uses": _uses(visit, networks, rows(nets, "subnets"), rows(used, "ports"), more),
        "topology": _drawn(visit, networks, rows(used, "ports"), rows(servers, "servers")),
        "given": given,
        "refused": refused,
        "following": visit.next_page(PATH, following(found, "networks")),
    }
    return View("networks.html", values, status_of(refused))


def _by_network(subnets: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for one in subnets:
        found.setdefault(str(one["network_id"]), []).append(one)
    return found


def _uses(
    visit: Visit, networks: Any, subnets: Any, ports: Any, reports: Sequence[Any]
) -> Mapping[str, Use]:
    if reports and reports[0]:
        return addresses.reported(reports[0][network.AVAILABILITIES])
    own = [one["id"] for one in networks if one["project_id"] == visit.project_id]
    return addresses.counted(subnets, ports, own)


def _drawn(visit: Visit, networks: Any, ports: Any, servers: Any) -> topology.Topology:
    """Draw the project's networks, and those that its servers are on."""
    there = topology.attached(ports)
    used = {one for each in there.values() for one in each}
    shown = {
        one["id"]: one["name"] or one["id"]
        for one in networks
        if one["id"] in used or one["project_id"] == visit.project_id
    }
    return topology.draw(shown, there, {one["id"]: one["name"] for one in servers})


def create(visit: Visit) -> Answer:
    """Make a network with its subnet; where that is refused, no network remains."""
    given = {name: visit.field(name) for name in _FIELDS}
    try:
        made = visit.cloud.post(NETWORK, API, {"network": {"name": given["name"]}})["network"]
    except ApiRefused as refused:
        return _list(visit, given, refused)
    if given["cidr"]:
        subnet = forms.new_subnet({**given, "name": "", "dhcp": "1"}, made["id"])
        try:
            visit.cloud.post(NETWORK, SUBNETS, {"subnet": subnet})
        except ApiRefused as refused:
            path = f"{API}/{segment(made['id'])}"
            visit.cloud.send(Call(NETWORK, path, method="DELETE", optional=True))
            return _list(visit, given, refused)
    visit.note(f"The network {made['name']} is made.")
    return Redirect(f"{PATH}/{made['id']}")


PAGES = (
    Page(PATH, index, calls=5),
    Page(PATH, create, May.CHANGE, "POST", calls=8),
    *network.PAGES,
    *ports.PAGES,
    *subnets.PAGES,
)
