"""Nodes: capacity, queues, storages; one node; draining it; what its loss would mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import falcon

from dashboard.answer import Answer, Redirect, view
from dashboard.cloud import COMPUTE, NUMBERS, VOLUME, Call, following, rows, segment
from dashboard.page import Page
from dashboard.pages.capacity.storages import PATH as STORAGES
from dashboard.pages.capacity.storages import listed_storages
from dashboard.pages.meters import OF_NODE, of_hosts, of_pool
from dashboard.pages.overview import METRICS, TOTAL, capacity, uncounted
from dashboard.pages.queues import PATH as QUEUES
from dashboard.pages.queues import by_host, health_by_host
from dashboard.pages.services import COMPUTE_BINARY, changes_of
from dashboard.rights import May
from dashboard.visit import Visit

_POOLS = Call(VOLUME, "/scheduler-stats/get_pools", {"detail": "true"}, optional=True)
_HYPERVISORS = "/os-hypervisors/detail"
_FULLEST = 10
_DRAINS = 5
_TASKS = 20
_MOST_STORAGES = 200


def index(visit: Visit) -> Answer:
    """List a page of nodes with what they have and what is used of it."""
    name = visit.query.get("name", "").strip()
    query: dict[str, Any] = {"limit": visit.limit, "marker": visit.query.get("marker")}
    if name:
        # the API pages only over all of them
        query = {"hypervisor_hostname_pattern": name}
    listed = Call(COMPUTE, _HYPERVISORS, query, optional=bool(name), version=NUMBERS)
    # lists the same hosts in the same order
    page = {"limit": visit.limit, **({"name": name} if name else {"marker": query["marker"]})}
    waits = Call(COMPUTE, QUEUES, page, optional=True)
    found, pools, metrics, total, reported = visit.cloud.together(
        listed, _POOLS, METRICS, TOTAL, waits
    )
    queues, health = by_host(reported), health_by_host(reported)
    nodes = rows(found, "hypervisors")[: visit.limit]
    storages = sorted(map(of_pool, rows(pools, "pools")), key=lambda one: -one.percent)
    return view(
        "nodes.html",
        nodes=[(one, of_hosts(one), queues.get(one["hypervisor_hostname"])) for one in nodes],
        measures=OF_NODE,
        health=health,
        name=name,
        missing="" if found else found.message,
        following=visit.next_page("/nodes", following(found, "hypervisors")),
        capacity=list(capacity(total)),
        uncounted=uncounted(total),
        storages=storages[:_FULLEST],
        more_storages=max(0, len(storages) - _FULLEST),
        metrics=metrics["metrics"] if metrics else None,
    )


def show(visit: Visit) -> Answer:
    """Show one node: capacity, queues, servers, storages, and its drains."""
    host = visit.params["host"]
    found, servers, services, drains, reported, storages, tasks = visit.cloud.together(
        Call(COMPUTE, _HYPERVISORS, {"hypervisor_hostname_pattern": host}, version=NUMBERS),
        Call(COMPUTE, "/servers/detail", {"host": host, "limit": visit.limit, "all_tenants": 1}),
        Call(COMPUTE, "/os-services", {"host": host, "binary": COMPUTE_BINARY}, optional=True),
        Call(COMPUTE, "/bulk-migrations", {"host": host, "limit": _DRAINS}, optional=True),
        Call(COMPUTE, QUEUES, {"host": host}, optional=True),
        Call(COMPUTE, STORAGES, {"host": host, "limit": _MOST_STORAGES}, optional=True),
        Call(COMPUTE, f"/hosts/{segment(host)}/tasks", {"limit": _TASKS}, optional=True),
    )
    node, service = _only(found, host), next(iter(rows(services, "services")), {})
    return view(
        "node.html",
        node=node,
        service=service,
        changes=changes_of(service) if service else [],
        meters=of_hosts(node),
        queues=by_host(reported).get(host),
        health=health_by_host(reported).get(host, ""),
        no_queues="The node's agent doesn't report them." if reported else reported.message,
        servers=servers["servers"],
        drains=rows(drains, "bulk_migrations"),
        storages=listed_storages(storages),
        tasks=rows(tasks, "tasks"),
        no_tasks="" if tasks else tasks.message,
        web_url=next((one["web_url"] for one in rows(reported, "hosts")), None),
    )


def plan_drain(visit: Visit) -> Answer:
    """Show where each server would go, with a form that begins it: nothing moves yet."""
    host, live_only = visit.params["host"], visit.query.get("live_only") == "true"
    query = {"live_only": "true"} if live_only else {}
    plan = visit.cloud.get(COMPUTE, f"/drains/{segment(host)}", **query)["drain"]
    return view("node_drain.html", host=host, servers=plan["servers"], live_only=live_only)


def drain(visit: Visit) -> Answer:
    """Begin a drain, and follow it."""
    host = visit.params["host"]
    asked = {
        "host": host,
        "at_once": visit.number("at_once"),
        "live_only": visit.field("live_only") == "true",
    }
    body = {"bulk_migration": {"drain": asked}}
    begun = visit.changed(visit.cloud.post, COMPUTE, "/bulk-migrations", body)
    if begun is None:
        return Redirect(f"/nodes/{segment(host)}/drain")
    visit.note(f"{host} is disabled, and its servers are being moved.", "begun")
    return Redirect(f"/migrations/bulk/{begun['bulk_migration']['id']}")


def loss(visit: Visit) -> Answer:
    """Show where each of the node's servers would go if it failed."""
    host = visit.params["host"]
    found = visit.cloud.get(COMPUTE, f"/evacuations/{segment(host)}")["evacuation"]
    return view("node_loss.html", host=host, found=found)


def _only(found: Mapping[str, Any], host: str) -> Mapping[str, Any]:
    """Return the node of this very name; others contain it."""
    for one in found["hypervisors"]:
        if one["hypervisor_hostname"] == host:
            node: Mapping[str, Any] = one
            return node
    raise falcon.HTTPNotFound


_NODE = "/nodes/{host}"
PAGES = (
    Page("/nodes", index, May.OPERATE, calls=5),
    Page(_NODE, show, May.OPERATE, calls=7),
    Page(f"{_NODE}/drain", plan_drain, May.OPERATE),
    Page(f"{_NODE}/drain", drain, May.OPERATE, "POST"),
    Page(f"{_NODE}/loss", loss, May.OPERATE),
)
