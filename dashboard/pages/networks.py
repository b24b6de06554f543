"""Networks, their subnets, and security groups."""

from __future__ import annotations

from dashboard.answer import Answer, view
from dashboard.cloud import NETWORK, Call, following, rows
from dashboard.page import Page
from dashboard.visit import Visit


def index(visit: Visit) -> Answer:
    """List networks with their subnets, and security groups."""
    query = {"limit": visit.limit, "marker": visit.query.get("marker")}
    networks, subnets, groups = visit.cloud.together(
        Call(NETWORK, "/v2.0/networks", query),
        Call(NETWORK, "/v2.0/subnets", optional=True),
        Call(NETWORK, "/v2.0/security-groups", optional=True),
    )
    by_network: dict[str, list[object]] = {}
    for one in rows(subnets, "subnets"):
        by_network.setdefault(str(one["network_id"]), []).append(one)
    return view(
        "networks.html",
        networks=networks["networks"],
        subnets=by_network,
        groups=rows(groups, "security_groups"),
        following=visit.next_page("/networks", following(networks, "networks")),
    )


PAGES = (Page("/networks", index, calls=3),)
